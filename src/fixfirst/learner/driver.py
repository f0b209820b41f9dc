"""Work on a training in its folder: restore it, train it, save it, and stop where somebody asks to.

    with working(folder, progress) as interrupt, Driver(folder, training, identity, progress.say, every=50) as run:
        for step in run.steps(interrupt):
            ...                                                # show it
        if run.interrupted:
            raise ...
        conclude(folder, result)

Trainings of defenders, attackers and leagues are driven like this; killed and run again, each ends with the same bytes.
All that changes in a training is in its checkpoints, pairs of files, of which the newest good one is restored.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from fixfirst.base import array_files, errors, files, jobs
from fixfirst.policy.network import Weights
from fixfirst.runs import csv_logs, manifest, sessions
from fixfirst.runs.layout import RunFiles

_KIND = "checkpoint"
_NUMBER = 2  # the newest, and one to fall back on
_R = TypeVar("_R", bound=csv_logs.Row)


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


@contextmanager
def working(folder: Path, progress: AbstractContextManager[object], *, is_run: bool = True) -> Iterator[jobs.Interrupt]:
    """Hold the folder's lock, add a row to its log of sessions, show progress, note Ctrl-C; then delete the checkpoints.

    Raises if the run in the folder is finished. is_run: an attacker's folder has no log of sessions.
    """
    hint = f"; fix this, then run: {errors.command('resume', folder)}" if is_run else ""
    with ExitStack() as stack:
        stack.enter_context(errors.writing(folder, hint))
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(sessions.locked(folder))
        if is_run and sessions.is_finished(folder) and RunFiles(folder).result.exists():
            raise errors.RunDirError(f"{folder} is finished; see {RunFiles(folder).result}")
        session = stack.enter_context(sessions.Session(folder)) if is_run else None
        interrupt = stack.enter_context(jobs.interrupts())
        stack.enter_context(progress)
        yield interrupt
        delete_checkpoints(folder)
        if session is not None:
            session.finished = True


class Driver:
    """A training in its folder, from its newest good checkpoint on; its logs end where that was written.

    identity: what all numbers of the training follow from. say: is given a line for each checkpoint that is damaged, and
    one for what follows from it. every: updates between two checkpoints.
    """

    def __init__(
        self,
        folder: Path,
        training: Resumable,
        identity: Mapping[str, Any],
        say: Callable[[str], None],
        every: int = 1,
    ):
        self.folder, self.training, self._identity, self._every = folder, training, identity, every
        self.interrupted = False
        self._logs: list[csv_logs.CsvLog[Any]] = []
        folder.mkdir(parents=True, exist_ok=True)
        before = training.updates
        if complaints := restore_checkpoint(folder, training, identity):
            restored = f"going on from update {training.updates}, the newest good checkpoint"
            for line in (*complaints, restored if training.updates > before else "starting over"):
                say(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for log in self._logs:
            log.close()

    def open_log(self, name: str, kind: type[_R], number: Callable[[_R], int], done: int) -> csv_logs.CsvLog[_R]:
        """Open a log for appending, cut off after row number `done`."""
        log = csv_logs.CsvLog(self.folder / name, kind, lambda row: number(row) <= done)
        self._logs.append(log)
        return log

    def steps(self, interrupt: object = False) -> Iterator[Any]:
        """Train to the end, or until `interrupt` is true after a step; yield what came of each step."""
        training, done = self.training, self.training.done
        while not done and not interrupt:
            before = training.updates
            yield training.step()
            done = training.done
            if training.updates == before or training.updates // self._every > before // self._every:
                self.save()
        self.interrupted = not done
        self.save()

    def save(self) -> None:
        """Write a checkpoint, after the rows that led to it."""
        for log in self._logs:
            log.sync()
        save_checkpoint(self.folder, self.training, self._identity)


def conclude(folder: Path, result: Mapping[str, Any]) -> None:
    """Write the result of a training. With it the training is done, and only then its checkpoints go."""
    policy = files.sha256(files.read_file(RunFiles(folder).policy_tensors))
    files.write_document(RunFiles(folder).result, "result", {**result, "policy_sha256": policy})
    delete_checkpoints(folder)


def save_checkpoint(folder: Path, training: Resumable, identity: Mapping[str, Any]) -> None:
    """Write a checkpoint, then delete all but the newest ones. identity: what all numbers of the training follow from."""
    path = folder / f"{RunFiles.checkpoints}{training.updates:08d}.json"
    array_files.write_pair(path, _KIND, {**identity, "numbers": training.numbers()}, training.tensors())
    newest = {path.stem for path in checkpoint_paths(folder)[:_NUMBER]}
    for path in folder.glob(f"{RunFiles.checkpoints}*"):
        if path.stem not in newest:
            path.unlink(missing_ok=True)


def restore_checkpoint(folder: Path, training: Resumable, identity: Mapping[str, Any]) -> list[str]:
    """Put the newest good checkpoint, if any, into `training`; return what was wrong with newer ones."""
    complaints: list[str] = []
    for path in checkpoint_paths(folder):
        try:
            document, tensors = array_files.read_pair(path, _KIND)
        except errors.PolicyError as e:
            complaints.append(str(e))
            continue
        _check_identity(path, document, identity)
        training.restore(tensors, document["numbers"])
        break
    return complaints


def read_checkpoint(folder: Path, identity: Mapping[str, Any] = MappingProxyType({})) -> dict[str, np.ndarray]:
    """Return the tensors at a training's end; PolicyError unless they are good and of the training of this identity."""
    newest = next(iter(checkpoint_paths(folder)), folder / RunFiles.checkpoints)
    document, tensors = array_files.read_pair(newest, _KIND)
    _check_identity(newest, document, identity)
    return tensors


def checkpoint_paths(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{RunFiles.checkpoints}*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """Delete what a finished training does not need: checkpoints, and the entrants of its tournament."""
    for path in folder.glob(f"{RunFiles.checkpoints}*"):
        path.unlink(missing_ok=True)
    if RunFiles(folder).entrants.exists():
        shutil.rmtree(RunFiles(folder).entrants)


def _check_identity(path: Path, document: dict[str, Any], identity: Mapping[str, Any]) -> None:
    document["config"] = manifest.flat_settings(document.get("config", {}))
    if any(document.get(name) != value for name, value in identity.items()):
        raise errors.PolicyError(f"{path}: belongs to a training with another configuration; delete it to begin again")
