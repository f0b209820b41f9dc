"""One training in a folder: updates, logs, checkpoints, the gate, the policy file. Killed and run again, it ends the same.

with TrainingRun(config, folder) as run:
    for update in run.updates(interrupt):
        ...                                   # watch it
    if not run.interrupted:
        run.conclude({"evaluation": asdict(run.training.evaluate("test", 1_000))})
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from fixfirst.base.errors import RunDirError
from fixfirst.base.files import read_file, sha256, write_document
from fixfirst.learner.checkpoint import delete_checkpoints, restore_checkpoint, save_checkpoint, save_policy
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.side_by_side import SideBySide, useful_workers
from fixfirst.learner.training import Training
from fixfirst.learner.update import Update
from fixfirst.policy.network import Weights
from fixfirst.runs.events import TensorBoard
from fixfirst.runs.layout import EPISODE_LOG, POLICY_TENSORS, RESULT, TRAINING_LOG, run_hash_of
from fixfirst.runs.rows import CsvLog, EpisodeRow, UpdateRow


class TrainingRun:
    """A training that goes on from its folder's newest good checkpoint, or from the weights `start`.

    number: of its trial, in the logs. logs: which of training log and episode log it writes. workers: processes that train
    where several compete (0: as many as there are cores); the bytes do not depend on it.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        *,
        start: Weights | None = None,
        number: int = 0,
        logs: tuple[type[UpdateRow] | type[EpisodeRow], ...] = (UpdateRow,),
        tensorboard: Path | None = None,
        workers: int = 1,
    ):
        self.folder = folder
        self.training = training = Training(config, number)
        self.accepted = False  # did it pass the gate?
        self.interrupted = False
        self._open = ExitStack()
        self._open.callback(training.close)
        self._side_by_side = SideBySide(training, useful_workers(config, workers))
        self._open.callback(self._side_by_side.close)
        try:
            if start is not None:
                training.inherit(start)
            self.complaints = restore_checkpoint(folder, training)  # what was wrong with newer ones
            self._updates = self._log(TRAINING_LOG, UpdateRow) if UpdateRow in logs else None
            self._episodes = self._log(EPISODE_LOG, EpisodeRow) if EpisodeRow in logs else None
            self._board = TensorBoard(tensorboard, training.episodes + 1)
            self._open.callback(self._board.close)
        except BaseException:
            self._open.close()
            raise

    def _log(self, name: str, kind: Any) -> CsvLog[Any]:
        """A log, cut back to the update the training goes on from."""
        path, updates = self.folder / name, self.training.updates
        log: CsvLog[Any] = CsvLog(path, kind, lambda row: row.update <= updates)
        self._open.callback(log.close)
        if (0 if log.last is None else log.last.update) < updates:  # it is written before the checkpoint
            raise RunDirError(f"{path}: rows of the first {updates} updates are missing; put them back, or begin a new run")
        return log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def updates(self, interrupt: object = False) -> Iterator[Update]:
        """Train until the budget is used or the gate is passed, or until `interrupt` is true after an update."""
        training, gate = self.training, self.training.config.gate
        self.accepted = gate.stop_when_compliant and training.updates > 0 and training.passes_gate()
        while not (training.done or self.accepted or interrupt):
            before = training.updates
            for update in self._side_by_side.advance(interrupt):
                self._write(update)
                yield update
            self.accepted = gate.stop_when_compliant and training.passes_gate()
            if training.updates // training.config.checkpoint_every > before // training.config.checkpoint_every:
                self._sync()
                save_checkpoint(self.folder, training)
        if training.done and not gate.stop_when_compliant:
            self.accepted = training.passes_gate()
        self.interrupted = bool(interrupt) and not training.done and not self.accepted
        self._sync()
        if self.interrupted:
            save_checkpoint(self.folder, training)
        else:
            save_policy(self.folder, training, accepted=self.accepted)

    def conclude(self, result: dict[str, Any]) -> None:
        """Write the result; with it the training is done, and only then its checkpoints go."""
        policy = sha256(read_file(self.folder / POLICY_TENSORS))
        run = run_hash_of(self.folder) or ""
        write_document(self.folder / RESULT, "result", result | {"policy_sha256": policy}, run)
        delete_checkpoints(self.folder)

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
