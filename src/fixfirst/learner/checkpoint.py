"""Checkpoints of a training: from the newest good one it goes on with the same bytes."""

from pathlib import Path
from typing import Any

from fixfirst.base.checks import MOST
from fixfirst.base.errors import PolicyError
from fixfirst.learner.training import Training
from fixfirst.orders.judging import Counts
from fixfirst.policy.network import shapes
from fixfirst.runs.array_files import check_arrays, read_pair, write_pair
from fixfirst.runs.files import versions
from fixfirst.runs.layout import CHECKPOINT_PREFIX, POLICY_JSON, POLICY_TENSORS

KEPT_CHECKPOINTS = 2  # the newest, and one to fall back on
_KIND = "checkpoint"


def save_checkpoint(folder: Path, training: Training) -> None:
    """Write a checkpoint, then forget all but the newest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{CHECKPOINT_PREFIX}{training.updates:08d}.json"
    document = {"config": training.config.model_dump(mode="json"), "numbers": training.numbers()}
    write_pair(path, path.with_suffix(".safetensors"), _KIND, document, training.tensors())
    kept = {old.stem for old in checkpoints(folder)[:KEPT_CHECKPOINTS]}
    for old in folder.glob(f"{CHECKPOINT_PREFIX}*"):
        if old.stem not in kept:
            old.unlink(missing_ok=True)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{CHECKPOINT_PREFIX}*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """A finished training needs none, nor what a kill left of one."""
    for path in folder.glob(f"{CHECKPOINT_PREFIX}*"):
        path.unlink(missing_ok=True)


def restore_checkpoint(folder: Path, training: Training) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`. Returns what was wrong with newer ones, a line each."""
    complaints: list[str] = []
    for path in checkpoints(folder):
        try:
            document, tensors = read_pair(path, path.with_suffix(".safetensors"), _KIND)
            if document.get("config") != training.config.model_dump(mode="json"):
                raise PolicyError(f"{path}: belongs to a training with another configuration")
            numbers = _check_numbers(path, document.get("numbers"), training)
            check_arrays(path.with_suffix(".safetensors"), tensors, _shapes(training, numbers))
            training.restore(tensors, numbers)
            return complaints
        except PolicyError as e:
            complaints.append(str(e))
    return complaints


def _shapes(training: Training, numbers: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of the weights and of Adam's moments; the same of all that the contest holds."""
    expected: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes(training.spec.inputs, training.spec.actions).items():
        expected |= {f"net.{name}": shape, f"adam.exp_avg.{name}": shape, f"adam.exp_avg_sq.{name}": shape}
    expected |= {"adam.step": ()}
    contest = numbers["contest"]
    kept = [f"origin{place}" for place in range(contest["origins"])]
    kept += [f"best{place}" for place in range(len(contest["best"]))]
    return expected | {f"{name}.{tensor}": shape for name in kept for tensor, shape in expected.items()}


def _check_numbers(path: Path, numbers: Any, training: Training) -> dict[str, Any]:
    kinds: dict[str, Any] = {"latest": list | None, "opening": list, "openings": list, "contest": dict, "look": list}
    counts = ("updates", "episodes", "stage", "stage_updates", "stage_episodes", "place")
    fits = isinstance(numbers, dict) and all(isinstance(numbers.get(key, ...), kind) for key, kind in kinds.items())
    fits = (
        fits
        and all(_is_number(numbers.get(key)) and isinstance(numbers[key], int) and numbers[key] >= 0 for key in counts)
        and _is_number(numbers.get("multiplier"))
        and (numbers["latest"] is None or _are_columns(numbers["latest"]))
        and 0 <= numbers["stage"] < len(training.stages)
        and 0 <= numbers["place"] < training.stages[numbers["stage"]].entrants
        and all(_is_opening(opening, training) for opening in (numbers["opening"], *numbers["openings"]))
        and [type(value) for value in numbers["look"]] == [int, int, bool]
        and _is_contest(numbers["contest"], training, training.stages[numbers["stage"]].entrants)
    )
    if not fits:
        raise PolicyError(f"{path}: damaged (its numbers are missing or of the wrong kind)")
    return dict(numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST


def _are_columns(value: list[Any]) -> bool:
    """As many numbers of each count as there were episodes."""
    columns = [column for column in value if isinstance(column, list) and all(map(_is_number, column))]
    return len(value) == len(columns) == len(Counts._fields) and len({len(column) for column in columns}) == 1


def _is_opening(value: Any, training: Training) -> bool:
    choices = range(training.spec.actions)
    return isinstance(value, list) and all(type(choice) is int and choice in choices for choice in value)


def _is_contest(value: dict[str, Any], training: Training, entrants: int) -> bool:
    kinds = {"entrants": list, "origins": int, "best": list}
    return (
        all(isinstance(value.get(key), kind) for key, kind in kinds.items())
        and 0 <= value["origins"] <= len(value["entrants"]) == entrants
        and all(_begins(entrant, training, value["origins"]) for entrant in value["entrants"])
        and all(_is_candidate(candidate, training) for candidate in value["best"])
    )


def _begins(value: Any, training: Training, origins: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and _is_opening(value[0], training)
        and isinstance(value[1], int)
        and 0 <= value[1] < max(origins, 1)
    )


def _is_candidate(value: Any, training: Training) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_number(value[0]) and _is_opening(value[1], training)


def save_policy(folder: Path, training: Training, *, accepted: bool) -> None:
    """Write policy.safetensors and policy.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config, workflows, spec = training.config, training.workflows, training.spec
    document = {
        "workflow": str(workflows[0]) if len(workflows) == 1 else None,
        **spec.as_dict(),
        "inputs": spec.inputs,
        "actions": spec.actions,
        "episodes": training.episodes,
        "updates": training.updates,
        "versions": versions(),
        "config": config.model_dump(mode="json"),
        "notes": {"accepted": accepted},
    }
    write_pair(folder / POLICY_JSON, folder / POLICY_TENSORS, "policy", document, training.learner.weights)
