"""Policies and checkpoints on disk: arrays in safetensors, the rest in JSON beside them with their sha256. Never pickles.

Every file is treated as untrusted: hash, names, shapes and types are checked before anything is used.
"""

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fixfirst.errors import ConfigError, PolicyError, WorkflowError
from fixfirst.game.actions import NUM_ACTIONS
from fixfirst.game.kernel import OBSERVATION_BITS
from fixfirst.learner.config import TrainConfig, readable_errors
from fixfirst.learner.networks import ActorCritic, num_inputs, probabilities, weights_of
from fixfirst.learner.training import Training
from fixfirst.orders.compliance import Counts
from fixfirst.orders.workflow import UnitScheme, Workflow
from fixfirst.play.rollout import PolicyTable, Probabilities, chance_keys
from fixfirst.runs.files import sha256, write_atomically, write_json

SCHEMA = 1
POLICY_TENSORS, POLICY_JSON = "policy.safetensors", "policy.json"
KEPT_CHECKPOINTS = 2  # the newest, and one to fall back on


# ---------------------------------------------------------------- policies


@dataclass(frozen=True)
class Policy:
    """A trained policy, ready to play; needs no PyTorch."""

    weights: dict[str, np.ndarray]
    workflow: Workflow | None  # the order it follows; None: it knows no order, or is told one when it plays
    scheme: UnitScheme | None
    config: dict[str, Any]  # of its training
    facts: dict[str, Any]  # versions, hash, and what its makers noted

    @property
    def probabilities(self) -> Probabilities:
        """inputs [M, 52 + workflow bits] -> probabilities [M, 145]."""
        return probabilities(self.weights)

    def act(
        self, obs: np.ndarray, *, workflow: Workflow | str | None = None, greedy: bool = False, seed: int = 0, step: int = 0
    ) -> np.ndarray:
        """Actions [N] for observations [N, 52] (or one for one).

        Sampled actions are a pure function of (seed, step, position in the batch): give another step at every call.
        """
        batch = np.atleast_2d(np.asarray(obs))
        if batch.ndim != 2 or batch.shape[1] != OBSERVATION_BITS or not np.isin(batch, (0, 1)).all():
            raise PolicyError(f"observations must be [N, {OBSERVATION_BITS}] bits, got shape {np.shape(obs)}")
        words = (batch.astype(np.uint64) << np.arange(OBSERVATION_BITS, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        keys, n = np.empty(len(words), np.uint64), len(words)
        chance_keys(seed, 0, keys)
        player = PolicyTable(self.probabilities, self.orders(workflow), greedy=greedy)
        actions = player.act(words, np.empty((n, 0)), np.zeros(n, np.int64), keys, step)
        return actions if np.ndim(obs) == 2 else actions[0]

    def orders(self, workflow: Workflow | str | None = None) -> tuple[Workflow, ...]:
        """The order to play by: the given one, else its own; empty for a policy that knows none."""
        if self.scheme is None:
            return ()
        chosen = workflow if workflow is not None else self.workflow
        if chosen is None:
            raise ConfigError("this policy follows any order: say which one (workflow=..., --workflow)")
        order = Workflow.parse(chosen, self.scheme) if isinstance(chosen, str) else chosen
        if order.scheme != self.scheme:
            raise WorkflowError(f"this policy orders {', '.join(self.scheme.names)}, not {', '.join(order.scheme.names)}")
        return (order,)


def save_policy(folder: Path, training: Training, notes: dict[str, Any] | None = None) -> None:
    """Write policy.safetensors and policy.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = training.config
    workflows = training.workflows
    document = {
        "workflow": str(workflows[0]) if len(workflows) == 1 else None,
        "units": None if config.scheme is None else config.scheme.as_dict(),
        "inputs": num_inputs(config.scheme),
        "actions": NUM_ACTIONS,
        "episodes": training.episodes,
        "updates": training.updates,
        "versions": versions(),
        "config": config.model_dump(mode="json"),
        "notes": notes or {},
    }
    _write_pair(folder / POLICY_JSON, folder / POLICY_TENSORS, "policy", document, weights_of(training.net))


def load_policy(path: str | Path) -> Policy:
    """From a folder with policy.json (or with best/), or from the file itself."""
    folder = policy_folder(Path(path))
    facts, tensors = _read_pair(folder / POLICY_JSON, folder / POLICY_TENSORS, "policy")
    try:
        scheme = None if facts["units"] is None else UnitScheme.from_dict(facts["units"])
        workflow = None if facts["workflow"] is None or scheme is None else Workflow.parse(facts["workflow"], scheme)
    except (KeyError, TypeError, AttributeError, WorkflowError) as e:
        raise PolicyError(f"{folder / POLICY_JSON}: damaged ({e})") from e
    _check_tensors(folder / POLICY_TENSORS, tensors, _network_shapes(num_inputs(scheme)))
    return Policy(tensors, workflow, scheme, facts.get("config", {}), facts)


def policy_folder(path: Path) -> Path:
    """The folder that holds a policy's two files."""
    folder = path.parent if path.name in (POLICY_JSON, POLICY_TENSORS) else path
    if not (folder / POLICY_JSON).exists() and (folder / "best" / POLICY_JSON).exists():
        folder = folder / "best"
    if not (folder / POLICY_JSON).exists():
        raise PolicyError(f"{path}: holds no policy ({POLICY_JSON} is missing)")
    return folder


# ---------------------------------------------------------------- checkpoints


def save_checkpoint(folder: Path, training: Training) -> None:
    """Write a checkpoint, then forget all but the newest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"checkpoint-{training.updates:08d}.json"
    document = {"config": training.config.model_dump(mode="json"), "numbers": training.numbers()}
    _write_pair(path, path.with_suffix(".safetensors"), "checkpoint", document, training.tensors())
    for old in checkpoints(folder)[KEPT_CHECKPOINTS:]:
        _delete(old)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob("checkpoint-*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """A finished training needs none."""
    for path in checkpoints(folder):
        _delete(path)


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_suffix(".safetensors").unlink(missing_ok=True)


def restore_checkpoint(folder: Path, training: Training) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`. Returns what was wrong with newer ones, a line each."""
    complaints: list[str] = []
    for path in checkpoints(folder):
        try:
            document, tensors = _read_pair(path, path.with_suffix(".safetensors"), "checkpoint")
            if document.get("config") != training.config.model_dump(mode="json"):
                raise PolicyError(f"{path}: belongs to a training with another configuration")
            _check_tensors(path.with_suffix(".safetensors"), tensors, _training_shapes(training))
            training.restore(tensors, _check_numbers(path, document.get("numbers")))
            return complaints
        except PolicyError as e:
            complaints.append(str(e))
    return complaints


def _check_numbers(path: Path, numbers: Any) -> dict[str, Any]:
    kinds = {"updates": int, "episodes": int, "multiplier": int | float, "repeats": bool, "latest": list | None}
    fits = isinstance(numbers, dict) and all(isinstance(numbers.get(key, ...), kind) for key, kind in kinds.items())
    if not fits or len(numbers["latest"] or Counts._fields) != len(Counts._fields):
        raise PolicyError(f"{path}: damaged (its numbers are missing or of the wrong kind)")
    return dict(numbers)


# ---------------------------------------------------------------- writing and reading with care


def _write_pair(
    json_path: Path, tensor_path: Path, kind: str, document: dict[str, Any], tensors: Mapping[str, np.ndarray]
) -> None:
    """Arrays, and a JSON document with their hash and its own: a flipped bit in either is noticed."""
    data = save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    document = {"schema": SCHEMA, "kind": kind, "sha256": sha256(data), **document}
    write_atomically(tensor_path, data)
    write_json(json_path, document | {"document_sha256": _document_hash(document)})


def _document_hash(document: dict[str, Any]) -> str:
    """Of all it says, however it is laid out."""
    return sha256(json.dumps({k: v for k, v in document.items() if k != "document_sha256"}, sort_keys=True).encode())


def _read_pair(json_path: Path, tensor_path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A JSON document and the arrays whose hash it holds."""
    try:
        document = json.loads(json_path.read_bytes())
        data = tensor_path.read_bytes()
    except FileNotFoundError as e:
        raise PolicyError(f"{e.filename}: is missing") from e
    except (OSError, ValueError) as e:
        raise PolicyError(f"{json_path}: cannot be read ({e})") from e
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise PolicyError(f"{json_path}: is not a {kind} of fixfirst")
    if document.get("schema") != SCHEMA:
        raise PolicyError(f"{json_path}: has schema {document.get('schema')!r}, this version reads {SCHEMA}")
    if document.get("sha256") != sha256(data):
        raise PolicyError(f"{tensor_path}: damaged (its sha256 is not the one in {json_path.name})")
    if document.get("document_sha256") != _document_hash(document):
        raise PolicyError(f"{json_path}: damaged (its document_sha256 is not that of its contents)")
    try:
        return document, load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as e:  # KeyError: a type of numbers that NumPy lacks
        raise PolicyError(f"{tensor_path}: is not a safetensors file of NumPy arrays ({e})") from e


Shapes = dict[str, tuple[int, ...]]


def _network_shapes(inputs: int) -> Shapes:
    return {name: array.shape for name, array in weights_of(ActorCritic(inputs, 0)).items()}


def _training_shapes(training: Training) -> Shapes:
    shapes: Shapes = {}
    for name, array in weights_of(training.net).items():
        moments = {f"adam.exp_avg.{name}": array.shape, f"adam.exp_avg_sq.{name}": array.shape, f"adam.step.{name}": ()}
        shapes |= {f"net.{name}": array.shape, **moments}
    return shapes


def _check_tensors(path: Path, tensors: dict[str, np.ndarray], expected: Shapes) -> None:
    if set(tensors) != set(expected):
        odd: Sequence[str] = sorted(set(tensors) ^ set(expected))
        raise PolicyError(f"{path}: holds the wrong arrays ({', '.join(odd[:3])}{' ...' if len(odd) > 3 else ''})")
    for name, array in tensors.items():
        if array.shape != expected[name] or array.dtype != np.float32:
            raise PolicyError(f"{path}: {name} is {array.dtype} {array.shape}, expected float32 {expected[name]}")
        if not np.isfinite(array).all():
            raise PolicyError(f"{path}: {name} holds values that are not finite")


def config_of(document: dict[str, Any]) -> TrainConfig:
    """The training config a file carries."""
    with readable_errors():
        return TrainConfig(**document)


def versions() -> dict[str, str]:
    """Of everything that can change a result."""
    packages = ("fixfirst", "numpy", "numba", "torch", "gymnasium")
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {"python": platform.python_version(), **found}
