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
from fixfirst.learner.driver import Driver, read_checkpoint, restore_checkpoint
from fixfirst.learner.openings import evaluate_openings
from fixfirst.learner.stages import Entrant, Opening, Stage, StageKind, stages_of
from fixfirst.learner.training import Training, identity_of
from fixfirst.policy.network import Weights
from fixfirst.runs import csv_logs, rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import TensorBoard
from fixfirst.settings.training import TrainConfig

Message = str | rows.UpdateRow  # what went wrong and was dealt with, or an update: its `episodes` are all that were played
Tell = Callable[[Message], None]


@dataclass(frozen=True)
class Begin:
    """How a training begins; the same for all that compete in a tournament."""

    start: Weights | None = None  # else from scratch
    number: int = 0  # of its trial, in the logs
    log: bool = True  # write a row per update
    log_episodes: bool = False  # and a row per episode
    num_workers: int | None = None  # processes of CybORG; nothing depends on it


_FROM_SCRATCH = Begin()


@contextmanager
def train_in(
    folder: Path,
    config: TrainConfig,
    tell: Tell,
    interrupt: object = False,
    begin: Begin = _FROM_SCRATCH,
    *,
    tensorboard: Path | None = None,
    workers: int = 1,
) -> Iterator[Training | None]:
    """Train to the end, from where the folder is; None if interrupted.

    workers: processes that train where several compete (0: as many as there are cores). The bytes do not depend on them.
    """
    stages = stages_of(config)
    if len(stages) == stages[0].entrants == 1:
        with closing(Training(config, begin.number, num_workers=begin.num_workers)) as training:
            if begin.start is not None:
                training.inherit(begin.start)
            is_trained = train_on(training, folder, begin, tell, interrupt, tensorboard)
            if is_trained:
                training.save_policy(folder)
            yield training if is_trained else None
        return
    with closing(_Tournament(config, folder, begin, tensorboard)) as tournament:
        winner = tournament.run(tell, interrupt, workers)
        with nullcontext() if winner is None else closing(winner):
            yield winner


def train_on(
    training: Training, folder: Path, begin: Begin, tell: Tell, interrupt: object, tensorboard: Path | None = None
) -> bool:
    """Train from the folder's newest good checkpoint on; return False if interrupted, as opposed to trained to the end."""
    with Driver(folder, training, training.identity, tell, training.config.checkpoint_every) as run:
        log = episode_log = None
        if begin.log:
            log = run.open_log(RunFiles.training_log, rows.UpdateRow, lambda row: row.update, training.updates)
        if begin.log_episodes:
            episode_log = run.open_log(RunFiles.episode_log, rows.EpisodeRow, lambda row: row.update, training.updates)
        with closing(TensorBoard(tensorboard, training.episodes + 1)) as board:
            for update in run.steps(interrupt):
                if log is not None:
                    log.write(update.row)
                if episode_log is not None:
                    for episode in update.episode_rows():
                        episode_log.write(episode)
                board.add(update.row)
                tell(update.row)
        return not run.interrupted


@dataclass(frozen=True)
class EntrantJob:
    """All that an entrant depends on. origin: the folder of the one from whose end it goes on."""

    config: TrainConfig
    folder: Path
    entrant: Entrant
    origin: Path | None
    begin: Begin

    def finished(self) -> "EntrantResult | None":
        """Return the result in the job's folder, if the last checkpoint is there, too, and is of this very job."""
        try:
            result = files.read_document(RunFiles(self.folder).result, "entrant")
            read_checkpoint(self.folder, identity_of(self.config, self.entrant))
            candidates = tuple((float(mean), tuple(map(int, opening))) for mean, opening in result["candidates"])
            return EntrantResult(candidates, bool(result["accepted"]))
        except (OSError, ValueError, KeyError, errors.PolicyError):
            return None

    def training(self) -> Training:
        """Return the training as it is before its first update, but for its weights."""
        return Training(self.config, self.begin.number, self.entrant, self.begin.num_workers)


@dataclass(frozen=True)
class EntrantResult:
    """What an entrant earned on fresh episodes, with every opening that it may go on with; and whether it passed the gate.

    accepted: it ends the tournament, which is to stop when the order is kept.
    """

    candidates: tuple[tuple[float, Opening], ...]
    accepted: bool


def run_entrant(job: EntrantJob, tell: Tell, interrupt: object) -> EntrantResult | None:
    """Train an entrant to its end and measure it; None if interrupted."""
    with sessions.job_folder(job.folder):
        if (done := job.finished()) is not None:
            return done
        with closing(job.training()) as training:
            if job.origin is not None:
                training.load_parent(read_checkpoint(job.origin))
            elif job.begin.start is not None:
                training.inherit(job.begin.start)
            if not train_on(training, job.folder, job.begin, tell, interrupt):
                return None
            ends = training.config.stop_when_compliant and training.passes_gate()
            result = EntrantResult(tuple(_measure(training)), ends)
        files.write_document(RunFiles(job.folder).result, "entrant", vars(result))
        return result


def _measure(training: Training) -> list[tuple[float, Opening]]:
    """Return what was trained earns on fresh episodes, with every opening that it may go on with."""
    stage, config, policy = training.stage, training.config, training.learner.policy
    if stage.begin == StageKind.SEEK:
        means = evaluate_openings(
            policy, training.spec, training.openings, config.game, config.seed, stage.begin.value, stage.judged_on
        )
        return list(zip(means, training.openings, strict=True))
    rated = stage.entrants > stage.advance  # else it goes on, whatever it earns
    return [(training.evaluate(stage.begin.value, stage.judged_on).mean if rated else 0.0, training.spec.opening)]


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
        self._log = csv_logs.CsvLog(RunFiles(folder).training_log, rows.UpdateRow, None) if begin.log else None
        self._board = TensorBoard(tensorboard, 1)

    def close(self) -> None:
        """Close the log."""
        self._board.close()
        if self._log is not None:
            self._log.close()

    def run(self, tell: Tell, interrupt: object, workers: int) -> Training | None:
        """Train all that compete, and write the policy of the best; None if interrupted."""
        alone = self.config.game.backend == "cyborg" or current_process().daemon
        most = max(stage.entrants for stage in stages_of(self.config))
        workers = 1 if alone else min(workers or jobs.available_cores(), most)
        scheduler = jobs.local_scheduler(workers, interrupt)

        def show(_: int, number: int, message: Message) -> None:
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
        for stage, following in zip(stages, (*stages[1:], None), strict=True):
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
            best = sorted(trained, key=lambda candidate: -candidate.mean)[: stage.advance]
            if following is not None:
                candidates = self._next_candidates(best, stage, following)
        self._winner = best[0].job

    def _enter(self, stage: Stage, candidate: _Candidate) -> EntrantJob:
        """Return the job of one more that competes."""
        number, before = len(self._jobs), self._jobs[-1].entrant.end if self._jobs else (0, 0)
        entrant = Entrant(stage, number, candidate.opening, *before)
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
            finalists = islice(cycle(best), self.config.finalists)  # some twice, if fewer are left
            return [best[0]._replace(opening=()), *finalists]
        if following.begin == StageKind.OPENING and stage.begin != StageKind.FINAL:
            return [best[0]._replace(opening=self.config.opened(self.config.spec).opening)]
        return list(best)

    def _collect_logs(self, entrants: Sequence[EntrantJob]) -> None:
        if self._log is None:
            return
        for job in entrants:
            for row in csv_logs.read_rows(RunFiles(job.folder).training_log, rows.UpdateRow):
                self._log.write(row)
                self._board.add(row)
        self._log.sync()

    def _crown(self, winner: EntrantJob) -> Training:
        """Write the policy of the best: it is what the whole tournament has learned."""
        training = winner.training()
        if complaints := restore_checkpoint(winner.folder, training, training.identity):
            raise errors.RunDirError(f"{complaints[0]}; go on with: {errors.command('resume', self.folder)}")
        if not self._accepted:
            training.updates, training.episodes = self._jobs[-1].entrant.end
        training.save_policy(self.folder)
        return training
