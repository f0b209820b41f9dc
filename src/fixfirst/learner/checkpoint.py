"""Checkpoints of a training: from the newest good one it goes on with the same bytes."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from fixfirst.base import arrays, checks, errors
from fixfirst.learner.training import Training
from fixfirst.orders.judging import Counts
from fixfirst.policy.network import shapes
from fixfirst.runs import layout
from fixfirst.runs.manifest import versions

KEPT_CHECKPOINTS = 2  # the newest, and one to fall back on
_KIND = "checkpoint"


def save_checkpoint(folder: Path, training: Training) -> None:
    """Write a checkpoint, then forget all but the newest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{layout.CHECKPOINT_PREFIX}{training.updates:08d}.json"
    document = {"config": training.config.model_dump(mode="json"), "numbers": training.numbers()}
    arrays.write_pair(path, _KIND, document, training.tensors())
    kept = {old.stem for old in checkpoints(folder)[:KEPT_CHECKPOINTS]}
    for old in folder.glob(f"{layout.CHECKPOINT_PREFIX}*"):
        if old.stem not in kept:
            old.unlink(missing_ok=True)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{layout.CHECKPOINT_PREFIX}*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """A finished training needs none, nor what a kill left of one."""
    for path in folder.glob(f"{layout.CHECKPOINT_PREFIX}*"):
        path.unlink(missing_ok=True)


def restore_checkpoint(folder: Path, training: Training) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`. Returns what was wrong with newer ones, a line each."""
    complaints: list[str] = []
    for path in checkpoints(folder):
        try:
            document, tensors = arrays.read_pair(path, _KIND)
            if document.get("config") != training.config.model_dump(mode="json"):
                raise errors.PolicyError(f"{path}: belongs to a training with another configuration")
            numbers = _check_numbers(path, document.get("numbers"), training)
            arrays.check_arrays(path.with_suffix(".safetensors"), tensors, _shapes(training, numbers))
            training.restore(tensors, numbers)
            return complaints
        except errors.PolicyError as e:
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


_Count = Annotated[int, Field(ge=0, le=checks.MOST)]
_Number = Annotated[float, Field(ge=-checks.MOST, le=checks.MOST)]
_Opening = tuple[_Count, ...]


class _Contest(BaseModel):
    entrants: tuple[tuple[_Opening, _Count], ...]  # opening, and number of the origin
    origins: _Count
    best: tuple[tuple[_Number, _Opening], ...]  # mean return and opening


class _Numbers(BaseModel):
    """What `Training.numbers` tells."""

    updates: _Count
    episodes: _Count
    multiplier: _Number
    latest: tuple[tuple[_Number, ...], ...] | None
    stage: _Count
    stage_updates: _Count
    stage_episodes: _Count
    place: _Count
    opening: _Opening
    openings: tuple[_Opening, ...]
    contest: _Contest
    look: tuple[Annotated[int, Field(ge=-1, le=checks.MOST)], Annotated[int, Field(ge=-1, le=checks.MOST)], bool]

    def fits(self, training: Training) -> bool:
        """Is it a place that this training can be at? Compiled code looks up choices by number."""
        contest, openings = self.contest, [self.opening, *self.openings]
        openings += [opening for opening, _ in contest.entrants] + [opening for _, opening in contest.best]
        columns = self.latest or ((),) * len(Counts._fields)
        return (
            self.stage < len(training.stages)
            and self.place < training.stages[self.stage].entrants == len(contest.entrants) >= contest.origins
            and all(origin < max(contest.origins, 1) for _, origin in contest.entrants)
            and all(choice < training.spec.actions for opening in openings for choice in opening)
            and len(columns) == len(Counts._fields)
            and len({len(column) for column in columns}) == 1
        )


def _check_numbers(path: Path, numbers: Any, training: Training) -> dict[str, Any]:
    """Return a checkpoint's numbers; PolicyError if they are none of this training."""
    try:
        checked = _Numbers.model_validate_json(json.dumps(numbers), strict=True)
    except ValidationError:
        checked = None
    if checked is None or not checked.fits(training):
        raise errors.PolicyError(f"{path}: damaged (its numbers are missing or of the wrong kind)")
    return dict(numbers)


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
    arrays.write_pair(folder / layout.POLICY_JSON, "policy", document, training.learner.weights)
