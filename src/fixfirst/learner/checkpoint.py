"""Checkpoints of a training: from the newest good one it goes on with the same bytes."""

from pathlib import Path
from typing import Any

from fixfirst.errors import PolicyError
from fixfirst.learner.array_files import check_arrays, read_pair, write_pair
from fixfirst.learner.training import Training
from fixfirst.orders import Counts
from fixfirst.play import RANDOM_MACRO, shapes
from fixfirst.runs import CHECKPOINT_PREFIX

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
    """Of the weights and of Adam's moments; the same of the best candidate, and of what openings are tried from."""
    expected: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes(training.role.inputs, training.role.actions).items():
        expected |= {f"net.{name}": shape, f"adam.exp_avg.{name}": shape, f"adam.exp_avg_sq.{name}": shape}
    expected |= {"adam.step": ()}
    kept = ["origin"] if numbers["trying"] else []
    for name, key in (("field", "field"), ("finalist", "finalists")):
        kept += [f"{name}{place}" for place in range(len(numbers[key]))]
    return expected | {f"{name}.{tensor}": shape for name in kept for tensor, shape in expected.items()}


def _check_numbers(path: Path, numbers: Any, training: Training) -> dict[str, Any]:
    kinds: dict[str, Any] = {"updates": int, "episodes": int, "multiplier": int | float, "latest": list | None}
    kinds |= {"stage": int, "stage_updates": int, "stage_episodes": int, "opening": list, "field": list, "finalists": list}
    kinds |= {"openings": list, "without": list | tuple | None, "trying": bool, "look": list}
    fits = isinstance(numbers, dict) and all(isinstance(numbers.get(key, ...), kind) for key, kind in kinds.items())
    fits = (
        fits
        and 0 <= numbers["stage"] < len(training.stages)
        and all(_is_opening(opening, training) for opening in (numbers["opening"], *numbers["openings"]))
        and all(_is_candidate(candidate, training) for candidate in (*numbers["field"], *numbers["finalists"]))
        and [type(value) for value in numbers["look"]] == [int, int, bool]
        and (numbers["without"] is None or _are_numbers(numbers["without"]))
    )
    if not fits or len(numbers["latest"] or Counts._fields) != len(Counts._fields):
        raise PolicyError(f"{path}: damaged (its numbers are missing or of the wrong kind)")
    return dict(numbers)


def _is_opening(value: Any, training: Training) -> bool:
    choices = range(RANDOM_MACRO, training.role.actions)
    return isinstance(value, list) and all(isinstance(choice, int) and choice in choices for choice in value)


def _is_candidate(value: Any, training: Training) -> bool:
    return isinstance(value, list) and len(value) == 3 and _are_numbers(value[:2]) and _is_opening(value[2], training)


def _are_numbers(values: Any) -> bool:
    return len(values) == 2 and all(isinstance(value, int | float) for value in values)
