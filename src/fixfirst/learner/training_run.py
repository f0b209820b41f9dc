"""One training of a defender in its folder, with its logs: it ends with a policy, or with a checkpoint if it competes."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fixfirst.learner.driver import Driver
from fixfirst.learner.stages import Entrant
from fixfirst.learner.training import Training, Update
from fixfirst.policy.network import Weights
from fixfirst.runs import rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.tensorboard import TensorBoard
from fixfirst.settings.training import TrainConfig

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
        self._competes = entrant is not None
        self.training = training = Training(config, begin.number, entrant=entrant, num_workers=begin.num_workers)
        with ExitStack() as stack:
            stack.callback(training.close)
            if origin is not None:
                training.load_parent(origin)
            elif begin.start is not None:
                training.inherit(begin.start)
            self.driver = run = stack.enter_context(Driver(folder, training, training.identity, config.checkpoint_every))
            done, before = training.updates, training.entrant.updates
            if rows.UpdateRow in begin.logs:
                self._updates = run.open_log(RunFiles.training_log, rows.UpdateRow, _update_of, done, before)
            if rows.EpisodeRow in begin.logs:
                self._episodes = run.open_log(RunFiles.episode_log, rows.EpisodeRow, _update_of, done, before)
            self._logs = begin.logs
            self._board = TensorBoard(tensorboard, training.episodes + 1)
            stack.callback(self._board.close)
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @property
    def interrupted(self) -> bool:
        """Did it stop before its end?"""
        return self.driver.interrupted

    def updates(self, interrupt: object = False) -> Iterator[Update]:
        """Train until the budget is used or the gate is passed, or until `interrupt` is true after an update."""
        for update in self.driver.steps(interrupt):
            if rows.UpdateRow in self._logs:
                self._updates.write(update.row)
            if rows.EpisodeRow in self._logs:
                for episode in update.episode_rows():
                    self._episodes.write(episode)
            self._board.add(update.row)
            yield update
        if not self.interrupted and not self._competes:
            self.training.save_policy(self.driver.folder)


def _update_of(row: rows.UpdateRow | rows.EpisodeRow) -> int:
    return row.update
