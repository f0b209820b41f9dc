"""One training in a folder: updates, logs, checkpoints, the gate, the policy file. Killed and run again, it ends the same.

with TrainingRun(config, folder) as run:
    for update in run.updates(interrupt):
        ...                                   # watch it
    if not run.interrupted:
        conclude(folder, {"evaluation": asdict(run.training.evaluate("test", 1_000))})
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fixfirst.base import errors, files
from fixfirst.learner.checkpoint import delete_checkpoints, restore_checkpoint, save_checkpoint, save_policy
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.stages import Entrant
from fixfirst.learner.training import Training, Update
from fixfirst.policy.network import Weights
from fixfirst.runs import layout, rows

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
            self.complaints = restore_checkpoint(folder, training)  # what was wrong with newer ones
            self._updates = self._log(layout.TRAINING_LOG, rows.UpdateRow) if rows.UpdateRow in begin.logs else None
            self._episodes = self._log(layout.EPISODE_LOG, rows.EpisodeRow) if rows.EpisodeRow in begin.logs else None
            self._board = rows.TensorBoard(tensorboard, training.episodes + 1)
            self._open.callback(self._board.close)
        except BaseException:
            self._open.close()
            raise

    def _log(self, name: str, kind: Any) -> rows.CsvLog[Any]:
        """A log, cut back to the update the training goes on from."""
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
                save_checkpoint(self.folder, training)
        self.interrupted = bool(interrupt) and not training.done and not self.accepted
        self._sync()
        if self.interrupted or self._competes:
            save_checkpoint(self.folder, training)
        else:
            self.accepted = self.accepted or training.passes_gate()
            save_policy(self.folder, training, accepted=self.accepted)

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
    run = layout.run_hash_of(folder) or ""
    files.write_document(folder / layout.RESULT, "result", result | {"policy_sha256": policy}, run)
    delete_checkpoints(folder)
