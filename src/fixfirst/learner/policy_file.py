"""A trained policy, ready to play, and its two files. Needs no PyTorch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.errors import ConfigError, PolicyError, WorkflowError
from fixfirst.game import NUM_ACTIONS, OBSERVATION_BITS
from fixfirst.learner.array_files import check_arrays, read_pair, write_pair
from fixfirst.learner.engines import torch_twin
from fixfirst.learner.training import Training
from fixfirst.orders import UnitScheme, Workflow
from fixfirst.play import Network, PolicyTable, Probabilities, chance_keys, num_inputs, probabilities, shapes
from fixfirst.runs import BEST, POLICY_JSON, POLICY_TENSORS, versions

if TYPE_CHECKING:
    from fixfirst.learner.torch_ppo import ActorCritic


@dataclass(frozen=True)
class Policy:
    """A trained policy, ready to play."""

    weights: dict[str, np.ndarray] = field(repr=False)
    workflow: Workflow | None  # the order it follows; None: it knows no order, or is told one when it plays
    scheme: UnitScheme | None
    config: dict[str, Any] = field(repr=False)  # of its training
    facts: dict[str, Any] = field(repr=False)  # versions, hash, and what its makers noted

    @property
    def probabilities(self) -> Probabilities:
        """inputs [M, 52 + workflow bits] -> probabilities [M, 145]."""
        return probabilities(self.network)

    @property
    def network(self) -> Network:
        """Its weights as the compiled code reads them."""
        return Network.of(self.weights)

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
        player = PolicyTable(self.network, self.orders(workflow), greedy=greedy)
        actions = player.act(words, np.empty((n, 0)), np.zeros(n, np.int64), keys, step)
        return actions if np.ndim(obs) == 2 else actions[0]

    def to_torch(self) -> "ActorCritic":
        """A PyTorch module with its weights: `.actor` (logits) and `.critic` (values) of inputs [M, 52 + workflow bits]."""
        return torch_twin("to_torch()").module_of(self.weights)

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


def save_policy(folder: Path, training: Training, *, accepted: bool) -> None:
    """Write policy.safetensors and policy.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config, workflows = training.config, training.workflows
    document = {
        "workflow": str(workflows[0]) if len(workflows) == 1 else None,
        "units": None if config.policy_scheme is None else config.policy_scheme.as_dict(),
        "inputs": num_inputs(config.policy_scheme),
        "actions": NUM_ACTIONS,
        "episodes": training.episodes,
        "updates": training.updates,
        "versions": versions(),
        "config": config.model_dump(mode="json"),
        "notes": {"accepted": accepted},
    }
    write_pair(folder / POLICY_JSON, folder / POLICY_TENSORS, "policy", document, training.learner.weights)


def load_policy(path: str | Path) -> Policy:
    """From a folder with policy.json (or with best/), or from the file itself."""
    folder = policy_folder(Path(path))
    facts, tensors = read_pair(folder / POLICY_JSON, folder / POLICY_TENSORS, "policy")
    try:
        scheme = None if facts["units"] is None else UnitScheme.from_dict(facts["units"])
        workflow = None if facts["workflow"] is None or scheme is None else Workflow.parse(facts["workflow"], scheme)
    except (KeyError, TypeError, AttributeError, WorkflowError) as e:
        raise PolicyError(f"{folder / POLICY_JSON}: damaged ({e})") from e
    check_arrays(folder / POLICY_TENSORS, tensors, shapes(num_inputs(scheme)))
    return Policy(tensors, workflow, scheme, facts.get("config", {}), facts)


def load_parent(path: Path, scheme: UnitScheme | None) -> Policy:
    """A policy whose weights a training can inherit: of the same unit types, or of none."""
    policy = load_policy(path)
    if policy.scheme not in (None, scheme):
        known = ", ".join(policy.scheme.names)
        wanted = "no order" if scheme is None else f"the unit types {', '.join(scheme.names)}"
        raise ConfigError(f"{path}: knows the unit types {known}, the training needs a policy that knows {wanted}")
    return policy


def policy_folder(path: Path) -> Path:
    """The folder that holds a policy's two files."""
    folder = path.parent if path.name in (POLICY_JSON, POLICY_TENSORS) else path
    if not (folder / POLICY_JSON).exists() and (folder / BEST / POLICY_JSON).exists():
        folder = folder / BEST
    if not (folder / POLICY_JSON).exists():
        raise PolicyError(f"{path}: holds no policy ({POLICY_JSON} is missing)")
    return folder
