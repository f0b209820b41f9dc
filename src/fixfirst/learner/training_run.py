"""One training in a folder: updates, logs, checkpoints, the gate, the policy file. Killed and run again, it ends the same.

with TrainingRun(config, folder) as run:
    for update in run.updates(interrupt):
        ...                                   # watch it
    if not run.interrupted:
        run.conclude({"evaluation": asdict(run.training.evaluate("test", 1_000))})
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Self

from fixfirst.base import errors, files, jobs
from fixfirst.learner.checkpoint import delete_checkpoints, restore_checkpoint, save_checkpoint, save_policy
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.tournament import Candidate, Contest
from fixfirst.learner.training import Training, Update
from fixfirst.policy.network import Weights
from fixfirst.runs import layout
from fixfirst.runs.events import TensorBoard
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
            self._updates = self._log(layout.TRAINING_LOG, UpdateRow) if UpdateRow in logs else None
            self._episodes = self._log(layout.EPISODE_LOG, EpisodeRow) if EpisodeRow in logs else None
            self._board = TensorBoard(tensorboard, training.episodes + 1)
            self._open.callback(self._board.close)
        except BaseException:
            self._open.close()
            raise

    def _log(self, name: str, kind: Any) -> CsvLog[Any]:
        """A log, cut back to the update the training goes on from."""
        path, updates = self.folder / name, self.training.updates
        log: CsvLog[Any] = CsvLog(path, kind, (lambda row: row.update <= updates) if updates else None)
        self._open.callback(log.close)
        if (0 if log.last is None else log.last.update) < updates:  # it is written before the checkpoint
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
        policy = files.sha256(files.read_file(self.folder / layout.POLICY_TENSORS))
        run = layout.run_hash_of(self.folder) or ""
        files.write_document(self.folder / layout.RESULT, "result", result | {"policy_sha256": policy}, run)
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


# ---------------------------------------------------------------- entrants of a stage, trained side by side


@dataclass(frozen=True)
class EntrantJob:
    """One that competes in a stage, to be trained elsewhere; see `Training.beginning`."""

    config: TrainConfig
    number: int
    contest: Contest
    stage: int
    place: int
    behind: tuple[int, int]


@dataclass(frozen=True)
class TrainedEntrant:
    """What became of it."""

    updates: list[Update]
    candidates: list[Candidate]


def train_entrant(job: EntrantJob, tell: jobs.Tell, interrupt: object) -> TrainedEntrant | None:
    """Train one entrant from its beginning to its end; None if interrupted."""
    training, updates = Training.beginning(**vars(job)), []
    while not training.stage_is_over:
        if interrupt:
            return None
        updates.append(training.update())
    return TrainedEntrant(updates, training.candidates())


def useful_workers(config: TrainConfig, workers: int) -> int:
    """How many processes may train, this one among them, if so many are asked for (0: as many as there are cores)."""
    alone = config.game.backend == "cyborg" or config.gate.stop_when_compliant or current_process().daemon
    return 1 if alone else workers or jobs.available_cores()


class SideBySide:
    """Trains with the help of `workers` - 1 more processes where several compete: this one begins with the first of them,
    others with the last.

    What becomes of one depends on the config and on where it begins, not on who trains it: updates come in the same order,
    and with the same numbers, whatever the number of processes. If a process dies, its work is done here.
    """

    def __init__(self, training: Training, workers: int = 1):
        self.training = training
        self.scheduler = jobs.ProcessScheduler(workers - 1) if workers > 1 else None
        self._stage = -1  # whose entrants these are
        self._waiting: list[int] = []  # places that nobody has begun
        self._elsewhere: dict[int, TrainedEntrant | None] = {}  # by place; None: being trained

    def advance(self, interrupt: object) -> list[Update]:
        """The next update, or all of one that was trained elsewhere; none if interrupted while waiting for it."""
        training = self.training
        if training.stage_is_over:
            training.next_of_stage()
        if self.scheduler is not None:
            self._hand_out(self.scheduler)
            while training.place in self._elsewhere and not interrupt:
                trained = self._elsewhere[training.place]
                if trained is not None:
                    training.take_over(trained.updates, trained.candidates)
                    return trained.updates
                self._collect(self.scheduler, jobs.POLL_S)
            if training.place in self._elsewhere:
                return []
        return [training.step()]

    def _hand_out(self, scheduler: jobs.ProcessScheduler) -> None:
        """Let idle processes begin with the last that nobody has begun."""
        training = self.training
        if self._stage != training.stage_number:
            self._stage, self._elsewhere = training.stage_number, {}
            self._waiting = list(range(training.place + 1, training.stage.entrants))
        self._waiting = [place for place in self._waiting if place > training.place]
        while self._collect(scheduler, 0.0):
            pass
        while self._waiting and list(self._elsewhere.values()).count(None) < scheduler.workers:
            place = self._waiting.pop()
            self._elsewhere[place] = None
            scheduler.submit(place, train_entrant, self._job(place))

    def _job(self, place: int) -> EntrantJob:
        training = self.training
        updates, episodes = training.stage.share
        later = place - training.place
        behind = training.begun[0] + later * updates, training.begun[1] + later * episodes
        contest = replace(training.contest, best=())
        return EntrantJob(training.config, training.number, contest, training.stage_number, place, behind)

    def _collect(self, scheduler: jobs.ProcessScheduler, timeout_s: float) -> bool:
        """Take what another process has finished, if any has within this time."""
        ended = scheduler.wait(lambda key, message: None, timeout_s)
        if ended is None:
            return False
        if ended.died is None:
            self._elsewhere[ended.key] = ended.result
        else:
            del self._elsewhere[ended.key]
        return True

    def close(self) -> None:
        """End the processes."""
        if self.scheduler is not None:
            self.scheduler.close()
