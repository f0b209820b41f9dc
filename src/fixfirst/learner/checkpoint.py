"""Checkpoints: all that changes in a training, as a pair of files; the newest good one gives the same bytes again."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from fixfirst.base import array_files, errors
from fixfirst.policy.network import Weights
from fixfirst.runs import setting_names
from fixfirst.runs.layout import RunFiles

_KIND = "checkpoint"
_NUMBER = 2  # the newest, and one to fall back on


class Resumable(Protocol):
    """A training whose state is tensors and numbers: of a defender, an attacker, a league."""

    updates: int

    @property
    def done(self) -> bool:
        """Is it trained?"""

    def step(self) -> Any:
        """Go on by one update, or by what a league does between two; return what came of it."""

    def numbers(self) -> dict[str, Any]:
        """Return the state outside the learners, JSON-ready."""

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all weights and moments, by name."""

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


def save(folder: Path, training: Resumable, identity: Mapping[str, Any]) -> None:
    """Write a checkpoint, then delete all but the newest ones. identity: what all numbers of the training follow from."""
    path = folder / f"{RunFiles.checkpoints}{training.updates:08d}.json"
    array_files.write_pair(path, _KIND, {**identity, "numbers": training.numbers()}, training.tensors())
    newest = {path.stem for path in paths(folder)[:_NUMBER]}
    for path in folder.glob(f"{RunFiles.checkpoints}*"):
        if path.stem not in newest:
            path.unlink(missing_ok=True)


def restore(folder: Path, training: Resumable, identity: Mapping[str, Any]) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`; return what was wrong with newer ones."""
    complaints: list[str] = []
    for path in paths(folder):
        try:
            document, tensors = array_files.read_pair(path, _KIND)
        except errors.PolicyError as e:
            complaints.append(str(e))
            continue
        _check_identity(path, document, identity)
        training.restore(tensors, document["numbers"])
        break
    return complaints


def read_last(folder: Path, identity: Mapping[str, Any] = MappingProxyType({})) -> dict[str, np.ndarray]:
    """Return the tensors at a training's end; PolicyError unless they are good and of the training of this identity."""
    newest = next(iter(paths(folder)), folder / RunFiles.checkpoints)
    document, tensors = array_files.read_pair(newest, _KIND)
    _check_identity(newest, document, identity)
    return tensors


def paths(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{RunFiles.checkpoints}*.json"), reverse=True)


def delete(folder: Path) -> None:
    """Delete what a finished training does not need: checkpoints, and the entrants of its tournament."""
    for path in folder.glob(f"{RunFiles.checkpoints}*"):
        path.unlink(missing_ok=True)
    if RunFiles(folder).entrants.exists():
        shutil.rmtree(RunFiles(folder).entrants)


def _check_identity(path: Path, document: dict[str, Any], identity: Mapping[str, Any]) -> None:
    document["config"] = setting_names.flatten(document.get("config", {}))
    if any(document.get(name) != value for name, value in identity.items()):
        raise errors.PolicyError(f"{path}: belongs to a training with another configuration; delete it to begin again")
