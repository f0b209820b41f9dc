"""Training in a folder to the end: one training, or a tournament of them as a plan of jobs.

    with train_in(folder, config, tell, interrupt) as training:
        if training is not None:                       # else it was interrupted
            conclude(folder, {"evaluation": asdict(training.evaluate("test", 1_000))})

Each that competes (`stages.py`) is a job in `entrants/<n>/`: a training with a log of its own, a last checkpoint from which
others go on, and a result. What becomes of one depends on the config and on those before it, not on where it is trained.
Killed and begun again, a tournament goes on with the entrants that are not finished.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import cycle, islice
from multiprocessing import current_process
from pathlib import Path
from typing import NamedTuple

from fixfirst.base import errors, files, jobs, plans
from fixfirst.learner import checkpoint
from fixfirst.learner.openings import evaluate_openings
from fixfirst.learner.stages import Entrant, Opening, Stage, StageKind, stages_of
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import FROM_SCRATCH, Begin, TrainingRun
from fixfirst.policy.network import Network
from fixfirst.runs import csv_logs, rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.tensorboard import TensorBoard
from fixfirst.settings.training import TrainConfig

_Message = str | rows.UpdateRow  # what went wrong and was dealt with, or an update: its `episodes` are all that were played
_Tell = Callable[[_Message], None]


@contextmanager
def train_in(
    folder: Path,
    config: TrainConfig,
    tell: _Tell,
    interrupt: object = False,
    begin: Begin = FROM_SCRATCH,
    *,
    tensorboard: Path | None = None,
    workers: int = 1,
) -> Iterator[Training | None]:
    """Train to the end, from where the folder is; None if interrupted.

    workers: processes that train where several compete (0: as many as there are cores). The bytes do not depend on them.
    """
    stages = stages_of(config)
    if len(stages) == stages[0].entrants == 1:
        with TrainingRun(config, folder, begin, tensorboard=tensorboard) as run:
            _follow(run, tell, interrupt)
            yield None if run.interrupted else run.training
        return
    with closing(_Tournament(config, folder, begin, tensorboard)) as tournament:
        training = tournament.run(tell, interrupt, workers)
        with nullcontext() if training is None else closing(training):
            yield training


def _follow(run: TrainingRun, tell: _Tell, interrupt: object) -> None:
    for complaint in run.driver.complaints:
        tell(complaint)
    for update in run.updates(interrupt):
        tell(update.row)


# ---------------------------------------------------------------- one that competes


@dataclass(frozen=True)
class EntrantJob:
    """All that one depends on. origin: the folder of the one from whose end it goes on."""

    config: TrainConfig
    folder: Path
    entrant: Entrant
    origin: Path | None
    begin: Begin

    def finished(self) -> "EntrantResult | None":
        """Return the result in the job's folder, if it is of this very job and its last checkpoint is there."""
        with closing(self.training()) as training:
            identity = training.identity
        try:
            result = files.read_document(RunFiles(self.folder).result, "entrant")
            if result["sha256"] != checkpoint.read_last(self.folder, identity):
                return None
            candidates = tuple((float(mean), tuple(map(int, opening))) for mean, opening in result["candidates"])
            return EntrantResult(candidates, bool(result["accepted"]))
        except (OSError, ValueError, KeyError, errors.PolicyError):
            return None

    def training(self) -> Training:
        """Return the training as it is before its first update, but for its weights."""
        return Training(self.config, self.begin.number, entrant=self.entrant)


@dataclass(frozen=True)
class EntrantResult:
    """What one earned on fresh episodes, with every opening that it may go on with; and whether it passed the gate.

    accepted: it ends the tournament, which is to stop when the order is kept.
    """

    candidates: tuple[tuple[float, Opening], ...]
    accepted: bool


def run_entrant(job: EntrantJob, tell: _Tell, interrupt: object) -> EntrantResult | None:
    """Train one to its end and measure it; None if interrupted."""
    with sessions.job_folder(job.folder):
        if (done := job.finished()) is not None:
            return done
        origin = None if job.origin is None else checkpoint.last_tensors(job.origin)
        with TrainingRun(job.config, job.folder, job.begin, entrant=job.entrant, origin=origin) as run:
            _follow(run, tell, interrupt)
            if run.interrupted:
                return None
            training = run.training
            ends = training.config.stop_when_compliant and training.passes_gate()
            result = EntrantResult(tuple(_measure(training)), ends)
        facts = {"sha256": checkpoint.read_last(job.folder, training.identity), **vars(result)}
        files.write_document(RunFiles(job.folder).result, "entrant", facts)
        return result


def _measure(training: Training) -> list[tuple[float, Opening]]:
    """Return what was trained earns on fresh episodes, with every opening that it may go on with."""
    stage, config, policy = training.stage, training.config, training.learner.policy
    if stage.begin == StageKind.SEEK:
        assert isinstance(policy, Network)
        asked = config.game, config.seed, stage.begin.value, stage.judged_on
        means = evaluate_openings(policy, training.spec, training.openings, *asked)
        return list(zip(means, training.openings, strict=True))
    rated = stage.entrants > stage.advance  # else it goes on, whatever it earns
    return [(training.evaluate(stage.begin.value, stage.judged_on).mean if rated else 0.0, training.spec.opening)]


# ---------------------------------------------------------------- the tournament


class _Candidate(NamedTuple):
    """A policy after a stage, with the opening it is to have."""

    mean: float
    opening: Opening
    job: EntrantJob | None


class _Tournament:
    """Who trains next, given what the others have earned; and the run's log, to which finished stages add theirs."""

    def __init__(self, config: TrainConfig, folder: Path, begin: Begin, tensorboard: Path | None):
        self.config, self.folder, self._begin = config, folder, begin
        self._jobs: list[EntrantJob] = []  # of all that have begun
        self._played: dict[int, int] = {}  # episodes of each of them
        self._winner: EntrantJob | None = None  # at the end
        self._accepted = False
        self._log = (
            csv_logs.CsvLog(RunFiles(folder).training_log, rows.UpdateRow, None) if rows.UpdateRow in begin.logs else None
        )
        self._board = TensorBoard(tensorboard, 1)

    def close(self) -> None:
        """Close the log."""
        self._board.close()
        if self._log is not None:
            self._log.close()

    def run(self, tell: _Tell, interrupt: object, workers: int) -> Training | None:
        """Train all that compete, and write the policy of the best; None if interrupted."""
        alone = self.config.game.backend == "cyborg" or current_process().daemon
        most = max(stage.entrants for stage in stages_of(self.config))
        workers = 1 if alone else min(workers or jobs.available_cores(), most)
        scheduler = jobs.local_scheduler(workers, interrupt)

        def show(_: int, number: int, message: _Message) -> None:
            if isinstance(message, rows.UpdateRow):
                self._played[number] = message.episodes - self._jobs[number].entrant.episodes
                message = replace(message, episodes=sum(self._played.values()))
            tell(message)

        with closing(scheduler):
            plans.run_plans([self._plan()], scheduler, show, interrupt)
        return None if self._winner is None else self._crown(self._winner)

    def _plan(self) -> plans.Plan[None]:
        stages = stages_of(self.config)
        candidates = [_Candidate(0.0, self.config.spec.opening, None)] * stages[0].entrants
        for place, stage in enumerate(stages):
            entrants = [self._enter(stage, candidate) for candidate in candidates]
            results = yield from self._train(entrants)
            self._collect_logs(entrants[: len(results)])
            if results[-1].accepted:  # with --stop-when-compliant; nobody else is trained
                self._winner, self._accepted = entrants[len(results) - 1], True
                return
            trained = [
                _Candidate(mean, opening, job)
                for job, result in zip(entrants, results, strict=True)
                for mean, opening in result.candidates
            ]
            best = sorted(trained, key=lambda each: -each.mean)[: stage.advance]
            if place + 1 < len(stages):
                candidates = self._next_candidates(best, stage, stages[place + 1])
        self._winner = best[0].job

    def _enter(self, stage: Stage, candidate: _Candidate) -> EntrantJob:
        """Return the job of one more that competes."""
        number, updates, episodes = len(self._jobs), 0, 0
        if self._jobs:
            last = self._jobs[-1].entrant
            updates, episodes = last.updates + last.stage.share[0], last.episodes + last.stage.share[1]
        entrant = Entrant(stage, number, candidate.opening, updates, episodes)
        origin = None if candidate.job is None else candidate.job.folder
        job = EntrantJob(self.config, RunFiles(self.folder).entrants / str(number), entrant, origin, self._begin)
        self._jobs.append(job)
        return job

    def _train(self, entrants: Sequence[EntrantJob]) -> plans.Plan[list[EntrantResult]]:
        """Train all of a stage side by side; if the first that passes the gate is enough, one after the other."""
        results: dict[int, EntrantResult] = {}
        tasks = {job.entrant.number: plans.Task(run_entrant, job, f"entrant {job.entrant.number}") for job in entrants}
        for together in [{key: task} for key, task in tasks.items()] if self.config.stop_when_compliant else [tasks]:
            waiting = together
            while not together.keys() <= results.keys():
                key, result = yield waiting
                waiting, results[key], self._played[key] = {}, result, entrants[0].entrant.stage.share[1]
            if any(result.accepted for result in results.values()):
                break
        return [results[key] for key in sorted(results)]

    def _next_candidates(self, best: Sequence[_Candidate], stage: Stage, following: Stage) -> list[_Candidate]:
        """Return those that compete in the stage that follows, given the best of a stage."""
        if following.begin == StageKind.FINAL:
            finalists = islice(cycle(best), self.config.tournament.finalists)  # some twice, if fewer are left
            return [best[0]._replace(opening=()), *finalists]
        if following.begin == StageKind.OPENING and stage.begin != StageKind.FINAL:
            return [best[0]._replace(opening=self.config.opened(self.config.spec).opening)]
        return list(best)

    def _collect_logs(self, entrants: Sequence[EntrantJob]) -> None:
        if self._log is None:
            return
        for job in entrants:
            for row in csv_logs.iterate_rows(RunFiles(job.folder).training_log, rows.UpdateRow):
                self._log.write(row)
                self._board.add(row)
        self._log.sync()

    def _crown(self, winner: EntrantJob) -> Training:
        """Write the policy of the best: it is what the whole tournament has learned."""
        training = winner.training()
        if complaints := checkpoint.restore(winner.folder, training, training.identity):
            raise errors.RunDirError(f"{complaints[0]}; go on with: {errors.command('resume', self.folder)}")
        if not self._accepted:
            last = self._jobs[-1].entrant
            training.updates, training.episodes = last.updates + last.stage.share[0], last.episodes + last.stage.share[1]
        training.save_policy(self.folder)
        return training
