"""One training in a folder: updates, logs, checkpoints, the gate, the policy file. Killed and run again, it ends the same.

with TrainingRun(config, folder) as run:
    for update in run.updates(interrupt):
        ...                                   # watch it
    if not run.interrupted:
        conclude(folder, {"evaluation": asdict(run.training.evaluate("test", 1_000))})
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from fixfirst.base import errors, files
from fixfirst.learner.training import Entrant, Training, Update
from fixfirst.policy.network import Weights
from fixfirst.runs import layout, manifest, rows
from fixfirst.settings.training import TrainConfig

# ---------------------------------------------------------------- checkpoints
#
# From the newest good one each training goes on with the same bytes.

KEPT_CHECKPOINTS = 2  # the newest, and one to fall back on
_KIND = "checkpoint"


class Resumable(Protocol):
    """A training whose state is tensors and numbers: of a defender, an attacker, a league."""

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


def save_checkpoint(folder: Path, training: Resumable, identity: Mapping[str, Any], seconds: float = 0.0) -> None:
    """Write a checkpoint, then forget all but the newest ones. identity: what all numbers of the training follow from."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{layout.CHECKPOINT_PREFIX}{training.updates:08d}.json"
    facts = {**identity, "numbers": training.numbers(), "seconds": round(seconds, 3)}
    files.write_pair(path, _KIND, facts, training.tensors())
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
    """Return the checkpoints of a folder (their JSON files), newest first."""
    return sorted(folder.glob(f"{layout.CHECKPOINT_PREFIX}*.json"), reverse=True)


def delete_checkpoints(folder: Path) -> None:
    """A finished training needs none, nor the entrants of its tournament, nor what a kill left of them."""
    for path in folder.glob(f"{layout.CHECKPOINT_PREFIX}*"):
        path.unlink(missing_ok=True)
    if (folder / layout.ENTRANTS).exists():
        shutil.rmtree(folder / layout.ENTRANTS)


def restore_checkpoint(folder: Path, training: Resumable, identity: Mapping[str, Any]) -> tuple[list[str], float]:
    """Put the newest good checkpoint, if any, into `training`. Returns what was wrong with newer ones, and its seconds."""
    complaints: list[str] = []
    for path in checkpoints(folder):
        try:
            document, tensors = read_checkpoint(path, identity)
            training.restore(tensors, document["numbers"])
            return complaints, document["seconds"]
        except errors.PolicyError as e:
            complaints.append(str(e))
    return complaints, 0.0


def read_checkpoint(path: Path, identity: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the document and the tensors of a checkpoint of this very training; PolicyError if it is none."""
    document, tensors = files.read_pair(path, _KIND)
    if any(document.get(name) != value for name, value in identity.items()):
        raise errors.PolicyError(f"{path}: belongs to a training with another configuration")
    return document, tensors


def last_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return weights and Adam's moments at the end of the training in a folder, for another one of its kind."""
    return files.read_pair(checkpoints(folder)[0], _KIND)[1]


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
    files.write_pair(folder / layout.POLICY_JSON, "policy", document, training.learner.weights)


def train_on(
    folder: Path, training: Resumable, config: dict[str, Any], step: Callable[[], object], every: int, interrupt: object
) -> None:
    """Train to the end with a checkpoint every so many updates. Raises Interrupted, after saving, if it is interrupted."""
    with errors.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while not training.done:
            step()
            if interrupt or training.updates % every == 0:
                save_checkpoint(folder, training, {"config": config})
            if interrupt and not training.done:
                raise errors.Interrupted(f"interrupted after {training.updates} updates; the same command goes on")
        save_checkpoint(folder, training, {"config": config})


def go_on(folder: Path, training: Resumable, config: dict[str, Any]) -> None:
    """Put the newest good checkpoint into a training. Raises if there are some, and none of them is good or its own."""
    complaints, _ = restore_checkpoint(folder, training, {"config": config})
    if complaints and not training.updates:
        raise errors.PolicyError(f"{complaints[0]}; delete it to begin again")
    if complaints:
        errors.note(f"{complaints[0]}; going on from the one before")


# ---------------------------------------------------------------- the training

Logs = tuple[type[rows.UpdateRow] | type[rows.EpisodeRow], ...]


@dataclass(frozen=True)
class Begin:
    """How a training begins; the same for all that compete in a tournament."""

    start: Weights | None = None  # else from scratch
    number: int = 0  # of its trial, in the logs
    logs: Logs = (rows.UpdateRow,)  # which of training log and episode log it writes
    num_workers: int | None = None  # processes of CybORG; nothing depends on it


FROM_SCRATCH = Begin()


class TrainingRun:
    """A training that goes on from its folder's newest good checkpoint, or begins.

    entrant: which one of a tournament it is; it ends with a checkpoint, from which others go on. Without it, with a policy.
    origin: the tensors of the learner that it goes on from, instead of `begin.start`.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        begin: Begin = FROM_SCRATCH,
        *,
        tensorboard: Path | None = None,
        entrant: Entrant | None = None,
        origin: Weights | None = None,
    ):
        self.folder, self._competes = folder, entrant is not None
        self.training = training = Training(config, begin.number, entrant=entrant, num_workers=begin.num_workers)
        self.accepted = False  # did it pass the gate?
        self.interrupted = False
        self._open = ExitStack()
        self._open.callback(training.close)
        try:
            if origin is not None:
                training.go_on_from(origin)
            elif begin.start is not None:
                training.inherit(begin.start)
            self.complaints, training.seconds_before = restore_checkpoint(folder, training, identity_of(training))
            self._updates = self._log(layout.TRAINING_LOG, rows.UpdateRow) if rows.UpdateRow in begin.logs else None
            self._episodes = self._log(layout.EPISODE_LOG, rows.EpisodeRow) if rows.EpisodeRow in begin.logs else None
            self._board = rows.TensorBoard(tensorboard, training.episodes + 1)
            self._open.callback(self._board.close)
        except BaseException:
            self._open.close()
            raise

    def _log(self, name: str, kind: Any) -> rows.CsvLog[Any]:
        """Open a log, cut back to the update the training goes on from."""
        path, updates, before = self.folder / name, self.training.updates, self.training.entrant.updates
        log: rows.CsvLog[Any] = rows.CsvLog(path, kind, (lambda row: row.update <= updates) if updates > before else None)
        self._open.callback(log.close)
        if (before if log.last is None else log.last.update) < updates:  # it is written before the checkpoint
            raise errors.RunDirError(
                f"{path}: rows of the first {updates} updates are missing; put them back, or begin a new run"
            )
        return log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def updates(self, interrupt: object = False) -> Iterator[Update]:
        """Train until the budget is used or the gate is passed, or until `interrupt` is true after an update."""
        training, gate = self.training, self.training.config.gate
        self.accepted = gate.stop_when_compliant and training.passes_gate()
        while not (training.done or self.accepted or interrupt):
            before = training.updates
            update = training.step()
            self._write(update)
            yield update
            self.accepted = gate.stop_when_compliant and training.passes_gate()
            if training.updates // training.config.checkpoint_every > before // training.config.checkpoint_every:
                self._sync()
                self._save()
        self.interrupted = bool(interrupt) and not training.done and not self.accepted
        self._sync()
        if self.interrupted or self._competes:
            self._save()
        else:
            self.accepted = self.accepted or training.passes_gate()
            save_policy(self.folder, training, accepted=self.accepted)

    def _save(self) -> None:
        save_checkpoint(self.folder, self.training, identity_of(self.training), self.training.seconds)

    def _write(self, update: Update) -> None:
        if self._updates is not None:
            self._updates.write(update.row)
        if self._episodes is not None:
            for episode in update.episode_rows():
                self._episodes.write(episode)
        self._board.add(update.row)

    def _sync(self) -> None:
        for log in (self._updates, self._episodes):
            if log is not None:
                log.sync()


def conclude(folder: Path, result: dict[str, Any]) -> None:
    """Write the result of a training; with it the training is done, and only then its checkpoints go."""
    policy = files.sha256(files.read_file(folder / layout.POLICY_TENSORS))
    files.write_document(folder / layout.RESULT, "result", result | {"policy_sha256": policy})
    delete_checkpoints(folder)
