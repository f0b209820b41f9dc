"""Checkpoints of trainings: from the newest good one each goes on with the same bytes."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import BaseModel, Field

from fixfirst.base import arrays, checks, errors, files
from fixfirst.learner.ppo import tensor_shapes
from fixfirst.learner.training import Training
from fixfirst.orders import judging
from fixfirst.policy.network import Weights
from fixfirst.runs import layout, manifest, rows

KEPT_CHECKPOINTS = 2  # the newest, and one to fall back on
_KIND = "checkpoint"
LAST = f"{layout.CHECKPOINT_PREFIX}last.json"  # of an attacker, or a league
BEFORE = f"{layout.CHECKPOINT_PREFIX}before.json"  # to fall back on


def save_checkpoint(folder: Path, training: Training) -> None:
    """Write a checkpoint, then forget all but the newest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{layout.CHECKPOINT_PREFIX}{training.updates:08d}.json"
    facts = {"numbers": training.numbers(), "seconds": round(training.seconds, 3)}
    arrays.write_pair(path, _KIND, identity_of(training) | facts, training.learner.tensors())
    kept = {old.stem for old in checkpoints(folder)[:KEPT_CHECKPOINTS]}
    for old in folder.glob(f"{layout.CHECKPOINT_PREFIX}*"):
        if old.stem not in kept:
            old.unlink(missing_ok=True)


def identity_of(training: Training) -> dict[str, Any]:
    """Return what all numbers of a training follow from, JSON-ready."""
    entrant = training.entrant
    return {
        "config": training.config.model_dump(mode="json"),
        "entrant": entrant.number,
        "opening": list(entrant.opening),
    }


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{layout.CHECKPOINT_PREFIX}*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """A finished training needs none, nor the entrants of its tournament, nor what a kill left of them."""
    for path in folder.glob(f"{layout.CHECKPOINT_PREFIX}*"):
        path.unlink(missing_ok=True)
    if (folder / layout.ENTRANTS).exists():
        shutil.rmtree(folder / layout.ENTRANTS)


def restore_checkpoint(folder: Path, training: Training) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`. Returns what was wrong with newer ones, a line each."""
    complaints: list[str] = []
    for path in checkpoints(folder):
        try:
            document, tensors = read_checkpoint(path, training)
            training.restore(tensors, document["numbers"])
            training.seconds_before = max(0.0, rows.number(document.get("seconds")) or 0.0)
            return complaints
        except errors.PolicyError as e:
            complaints.append(str(e) if str(path.parent) in str(e) else f"{path}: damaged ({e})")
    return complaints


def read_checkpoint(path: Path, training: Training) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the document and the tensors of a checkpoint of this very training; PolicyError if it is none."""
    document, tensors = arrays.read_pair(path, _KIND)
    if any(document.get(name) != value for name, value in identity_of(training).items()):
        raise errors.PolicyError(f"{path}: belongs to a training with another configuration")
    _check_numbers(path, document.get("numbers"), training)
    _check_tensors(path, tensors, training)
    return document, tensors


def last_tensors(folder: Path, training: Training) -> dict[str, np.ndarray]:
    """Return weights and Adam's moments at the end of the training in a folder, for another one of its kind."""
    path = next(iter(checkpoints(folder)), folder / f"{layout.CHECKPOINT_PREFIX}.json")
    _, tensors = arrays.read_pair(path, _KIND)
    _check_tensors(path, tensors, training)
    return tensors


def _check_tensors(path: Path, tensors: Weights, training: Training) -> None:
    """Raise PolicyError unless these are the weights and Adam's moments of such a training."""
    expected = tensor_shapes(training.spec.inputs, training.spec.actions)
    arrays.check_tensors(path.with_suffix(".safetensors"), tensors, expected)


class _Numbers(BaseModel):
    """What `Training.numbers` tells."""

    updates: checks.Count
    episodes: checks.Count
    multiplier: checks.Number
    latest: tuple[tuple[checks.Number, ...], ...] | None
    openings: tuple[tuple[checks.Count, ...], ...]
    look: tuple[Annotated[int, Field(ge=-1, le=checks.MOST)], Annotated[int, Field(ge=-1, le=checks.MOST)], bool]

    def fits(self, training: Training) -> bool:
        """Is it a place that this training can be at? Compiled code looks up choices by number."""
        columns, begun = self.latest or ((),) * len(judging.Counts._fields), training.entrant
        return (
            self.updates >= begun.updates
            and begun.episodes <= self.episodes <= begun.episodes + begun.stage.episodes
            and bool(self.openings) == bool(training.openings)
            and all(choice < training.spec.actions for opening in self.openings for choice in opening)
            and len(columns) == len(judging.Counts._fields)
            and len({len(column) for column in columns}) == 1
        )


def _check_numbers(path: Path, numbers: Any, training: Training) -> None:
    """Raise PolicyError if a checkpoint's numbers are none of this training."""
    try:
        if not checks.check_saved(_Numbers, numbers).fits(training):
            raise ValueError(checks.WRONG_NUMBERS)
    except ValueError as e:
        raise errors.PolicyError(f"{path}: damaged ({e})") from e


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
        "versions": manifest.versions(),
        "config": config.model_dump(mode="json"),
        "notes": {"accepted": accepted},
    }
    arrays.write_pair(folder / layout.POLICY_JSON, "policy", document, training.learner.weights)


# ---------------------------------------------------------------- attackers and leagues: one checkpoint each


class Resumable(Protocol):
    """A training whose state is tensors and numbers."""

    updates: int

    @property
    def done(self) -> bool:
        """Is it trained?"""
        ...

    def numbers(self) -> dict[str, Any]:
        """Return the state outside the learners, JSON-ready."""
        ...

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all weights and moments, by name."""
        ...

    def saved_shapes(self, numbers: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the tensors that were saved with these numbers; ValueError if they are none of its own."""
        ...

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state that `saved_shapes` has looked at."""
        ...


def go_on(folder: Path, training: Resumable, config: dict[str, Any]) -> bool:
    """Put the newest good checkpoint into a training; return whether there was one. Raises if it is another training's."""
    complaints: list[errors.PolicyError] = []
    for path in (folder / LAST, folder / BEFORE):
        if path.exists():
            try:
                _restore(path, training, config)
                if complaints:
                    errors.note(f"{complaints[0]}; going on from the one before")
                    (folder / LAST).unlink()  # it must not be fallen back on
                return True
            except errors.PolicyError as e:
                complaints.append(e)
    if complaints:
        raise errors.PolicyError(f"{complaints[0]}; delete it to begin again")
    return False


def _restore(path: Path, training: Resumable, config: dict[str, Any]) -> None:
    """Put a checkpoint into a training; PolicyError if it is damaged, ConfigError if it is another training's."""
    document, tensors = arrays.read_pair(path, _KIND)
    if document.get("config") != config:
        raise errors.ConfigError(f"{path.parent}: holds another training; name another folder with --out")
    try:
        arrays.check_tensors(path.with_suffix(".safetensors"), tensors, training.saved_shapes(document.get("numbers")))
        training.restore(tensors, document["numbers"])
    except (ValueError, errors.PolicyError) as e:
        text = str(e).removeprefix(f"{path.with_suffix('.safetensors')}: ")
        raise errors.PolicyError(f"{path}: damaged ({text})") from e


def train_on(
    folder: Path, training: Resumable, config: dict[str, Any], step: Callable[[], object], every: int, interrupt: object
) -> None:
    """Train to the end with a checkpoint every so many updates. Raises Interrupted, after saving, if it is interrupted."""
    with errors.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while not training.done:
            step()
            if interrupt or training.updates % every == 0:
                save(folder, training, config)
            if interrupt and not training.done:
                raise errors.Interrupted(f"interrupted after {training.updates} updates; the same command goes on")
        save(folder, training, config)


def save(folder: Path, training: Resumable, config: dict[str, Any]) -> None:
    """Write the checkpoint; the one before stays beside it until the next, for a kill meanwhile."""
    if (folder / LAST).exists():
        (folder / BEFORE).unlink(missing_ok=True)
        for suffix in (".safetensors", ".json"):
            path = (folder / BEFORE).with_suffix(suffix)
            files.write_atomically(path, files.read_file((folder / LAST).with_suffix(suffix)))
    arrays.write_pair(folder / LAST, _KIND, {"config": config, "numbers": training.numbers()}, training.tensors())
