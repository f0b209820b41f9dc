"""Those that compete in a stage, trained side by side: this process begins with the first of them, others with the last.

What becomes of one depends on the config and on where it begins, not on who trains it: updates come in the same order, and
with the same numbers, whatever the number of processes. A process that dies is not missed: its work is done here.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import current_process
from multiprocessing.connection import wait

from fixfirst.base.jobs import JobProcess, available_cores, raise_carried_error
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.contest import Candidate, Contest
from fixfirst.learner.training import Training
from fixfirst.learner.update import Update

POLL_S = 0.1  # how often an interrupt is looked for


@dataclass(frozen=True)
class Entry:
    """One that is to be trained elsewhere; see `Training.beginning`."""

    config: TrainConfig
    number: int
    contest: Contest
    stage: int
    place: int
    behind: tuple[int, int]


@dataclass(frozen=True)
class Trained:
    """What became of it."""

    updates: list[Update]
    candidates: list[Candidate]


def train_entry(entry: Entry, tell: object, interrupt: object) -> Trained | None:
    """The job of another process; None if it was interrupted."""
    training = Training.beginning(**vars(entry))
    updates = []
    while not training.stage_is_over:
        if interrupt:
            return None
        updates.append(training.update())
    return Trained(updates, training.candidates())


def useful_workers(config: TrainConfig, workers: int) -> int:
    """How many processes may train, this one among them, if so many are asked for (0: as many as there are cores)."""
    alone = config.game.backend == "cyborg" or config.gate.stop_when_compliant or current_process().daemon
    return 1 if alone else workers or available_cores()


class SideBySide:
    """Trains with the help of `workers` - 1 more processes where several compete."""

    def __init__(self, training: Training, workers: int = 1):
        self.training = training
        self._room = workers - 1
        self._idle: list[JobProcess] = []
        self._busy: list[JobProcess] = []
        self._stage = -1  # whose entries these are
        self._waiting: list[int] = []  # places that nobody has begun
        self._elsewhere: dict[int, Trained | None] = {}  # by place; None: being trained

    def advance(self, interrupt: object) -> list[Update]:
        """The next update, or all of one that was trained elsewhere; none if interrupted while waiting for it."""
        training = self.training
        if training.stage_is_over:
            training.next_of_stage()
        if self._room or self._busy or self._idle:
            self._hand_out()
            while training.place in self._elsewhere and not interrupt:
                trained = self._elsewhere[training.place]
                if trained is not None:
                    training.take_over(trained.updates, trained.candidates)
                    return trained.updates
                self._listen(POLL_S)
            if training.place in self._elsewhere:
                return []
        return [training.step()]

    def _hand_out(self) -> None:
        """Let idle processes begin with the last that nobody has begun."""
        training = self.training
        if self._stage != training.stage_number:
            self._stage, self._elsewhere = training.stage_number, {}
            self._waiting = list(range(training.place + 1, training.stage.entrants))
        self._waiting = [place for place in self._waiting if place > training.place]
        self._listen(0)
        while self._waiting and (self._idle or self._room):
            if not self._idle:
                self._room -= 1
                self._idle.append(JobProcess())
            process, place = self._idle.pop(), self._waiting.pop()
            self._elsewhere[place] = None
            self._busy.append(process)
            process.begin(place, train_entry, self._entry(place))

    def _entry(self, place: int) -> Entry:
        training = self.training
        updates, episodes = training.stage.share
        later = place - training.place
        behind = training.begun[0] + later * updates, training.begun[1] + later * episodes
        contest = replace(training.contest, best=())
        return Entry(training.config, training.number, contest, training.stage_number, place, behind)

    def _listen(self, timeout_s: float) -> None:
        """Take what other processes have finished."""
        for process in self._ready(timeout_s):
            place = process.key
            assert isinstance(place, int)
            self._busy.remove(process)
            try:
                kind, content = process.connection.recv()
            except (EOFError, OSError):  # it is gone
                del self._elsewhere[place]
                process.stop()
                continue
            self._idle.append(process)
            if kind == "raised":
                raise_carried_error(content)
            self._elsewhere[place] = content

    def _ready(self, timeout_s: float) -> Iterator[JobProcess]:
        connections = {process.connection: process for process in self._busy}
        for ready in wait(list(connections), timeout_s) if connections else ():
            yield connections[ready]  # type: ignore[index]

    def close(self) -> None:
        """End the processes."""
        for process in self._idle + self._busy:
            with suppress(OSError):
                process.stop()
        self._idle, self._busy = [], []
