"""Trainings in a folder that go on from their newest checkpoint when they are begun again: of attackers, and leagues."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fixfirst.base import arrays, errors
from fixfirst.policy.network import Weights
from fixfirst.runs import layout

_KIND = "checkpoint"
NAME = f"{layout.CHECKPOINT_PREFIX}last.json"


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

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        ...


def go_on(folder: Path, training: Resumable, config: dict[str, Any]) -> bool:
    """Put the folder's checkpoint into a training; return whether there was one. Raises if it is another training's."""
    path = folder / NAME
    if not path.exists():
        return False
    document, tensors = arrays.read_pair(path, _KIND)
    if document.get("config") != config:
        raise errors.ConfigError(f"{folder}: holds another training; name another folder with --out")
    try:
        training.restore(tensors, document["numbers"])
    except (KeyError, TypeError, ValueError) as e:
        raise errors.PolicyError(f"{path}: damaged ({e}); delete it to begin again") from e
    return True


def train_on(
    folder: Path, training: Resumable, config: dict[str, Any], step: Callable[[], object], every: int, interrupt: object
) -> None:
    """Train to the end with a checkpoint every so many updates. Raises Interrupted, after saving, if it is interrupted."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while not training.done:
            step()
            if interrupt or training.updates % every == 0:
                save(folder, training, config)
            if interrupt and not training.done:
                raise errors.Interrupted(f"interrupted after {training.updates} updates; the same command goes on")
        save(folder, training, config)
    except OSError as e:
        raise errors.RunDirError(f"{folder}: cannot be written ({e.strerror})") from e


def save(folder: Path, training: Resumable, config: dict[str, Any]) -> None:
    """Write the checkpoint: the document last, so that a kill leaves the one before or none."""
    arrays.write_pair(folder / NAME, _KIND, {"config": config, "numbers": training.numbers()}, training.tensors())


def forget(folder: Path) -> None:
    """Delete the checkpoint of a training that has its result."""
    for path in folder.glob(f"{layout.CHECKPOINT_PREFIX}last.*"):
        path.unlink(missing_ok=True)
