"""A run as an object: what `ff.search`, `ff.train` and `ff.load_run` hand out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fixfirst.base import errors, tables
from fixfirst.policy.trained import Policy, load_policy
from fixfirst.reporter import report
from fixfirst.reporter.report import WrittenReport
from fixfirst.reporter.run import Run
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Trial
from fixfirst.searcher.search import Search
from fixfirst.searcher.shared import SharedSearch
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import across_seeds
from fixfirst.stats.answer import Answer
from fixfirst.stats.evaluation import Evaluation, Evaluations
from fixfirst.stats.network_facts import NetworkFacts
from fixfirst.stats.ranking import Ranking

if TYPE_CHECKING:
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.stats.agreement import Agreement


class Written(tables.Tabular):
    """A run that is written in a folder."""

    folder: Path

    @property
    def best(self) -> Policy:
        """The policy that was trained. Raises PolicyError, with the reason, if there is none."""
        return load_policy(self.folder)

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about it; see `ff.report`."""
        return report.report(self.folder, out, **options)


@dataclass(frozen=True)
class SearchRun(Written):
    """A search: `answer` is its result, `best` a policy that follows any order, the best one unless told otherwise.

    Of the published kind (separate=True) `ranking` is the result, and `best` the policy of the first order.

    For example:

        run = ff.load_run("runs/first")
        for sentence in run.answer.sentences:
            print(sentence)
        actions = run.best.act(np.zeros((3, 52)), workflow="user_priority")  # [3]
    """

    search: Search

    def __repr__(self) -> str:
        if not self.config.separate:
            return f"SearchRun({str(self.folder)!r}: {self.search.in_words or 'not finished'})"
        return f"SearchRun({str(self.folder)!r}: {len(self.trials)} trials, {len(self.ranking.rows)} orders passed the gate)"

    @property
    def _result(self) -> tables.Tabular:
        if self._published is not None:
            return self._published.table()
        return tables.Table((), ()) if self.finished_answer is None else self.finished_answer

    def table(self) -> tables.Table:
        """Return a row per order, the best first; without rows while there is no answer."""
        return self._result.table()

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        return self._result._repr_html_()

    def tables(self) -> Sequence[tables.Table]:
        """Return the swaps, too."""
        return self._result.tables()

    @property
    def folder(self) -> Path:  # type: ignore[override]  # the search's
        return self.search.folder

    @property
    def config(self) -> SearchConfig:
        return self.search.config

    @property
    def answer(self) -> Answer:
        """The rule with its price. Raises RunDirError while it is not finished, and if it is of the published kind."""
        if self.finished_answer is None:
            why = "one training per order gives a ranking instead" if self.config.separate else "it is not finished"
            raise errors.RunDirError(f"{self.folder} has no answer: {why}")
        return self.finished_answer

    @property
    def _published(self) -> "PublishedSearch | None":
        """The search, if it is of the published kind."""
        return cast("PublishedSearch", self.search) if self.config.separate else None

    @property
    def finished_answer(self) -> Answer | None:
        """The answer, where there is one."""
        return self.search.answer if isinstance(self.search, SharedSearch) else None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, also those that did not pass the gate; none where one network is trained for all orders."""
        return () if self._published is None else tuple(self._published.trials)

    @property
    def standings(self) -> across_seeds.RankedTrials | None:
        """The ranking with what it rests on; None if no order passed the gate."""
        return None if self._published is None else self._published.standings

    @property
    def ranking(self) -> Ranking:
        """The orders that passed the gate, best first; without rows if none did."""
        return Ranking(()) if self.standings is None else self.standings.ranking

    @property
    def best(self) -> Policy:
        """The policy of the ranking's first order. Raises PolicyError, with the reason, if there is none."""
        if self.config.separate and self.standings is None and self.search.is_done:
            raise errors.PolicyError(f"{self.folder}: holds no policy (no order passed the gate)")
        return load_policy(self.folder)


@dataclass(frozen=True)
class TrainRun(Written):
    """One training: what its policy earned, and whether it passed the gate. None while it is not finished.

    For example:

        run = ff.train(workflow="critical_first", total_episodes=2_000, out="runs/one", quiet=True)
        run.evaluation.mean, run.evaluation.low, run.evaluation.high, run.accepted
    """

    folder: Path
    config: TrainConfig
    evaluation: Evaluation | None
    accepted: bool | None

    def __repr__(self) -> str:
        mean = "not finished" if self.evaluation is None else f"{self.evaluation.mean:.2f}"
        return f"TrainRun({str(self.folder)!r}: {mean})"

    @property
    def evaluations(self) -> Evaluations:
        """What its policy earned, as `ff.evaluate` returns it; empty while it is not finished."""
        evaluations = Evaluations([] if self.evaluation is None else [self.evaluation])
        evaluations.world = self.config.game.scenario.in_words()
        return evaluations

    def table(self) -> tables.Table:
        """Return one row, what its policy earned; none while it is not finished."""
        return self.evaluations.table()


@dataclass(frozen=True)
class StudyRun(tables.Tabular):
    """Several searches that belong together.

    For example:

        study = ff.search(total_episodes=2_000, seeds=2, out="runs/study", quiet=True)
        for run in study.searches:
            print(run.folder, run.answer.rule)
    """

    folder: Path
    searches: tuple[SearchRun, ...]

    def __repr__(self) -> str:
        return f"StudyRun({str(self.folder)!r}: {len(self.searches)} searches)"

    def table(self) -> tables.Table:
        """Return a row per order of each search, with the search's name and seed."""
        rows = tuple((run.folder.name, run.config.seed, *row) for run in self.searches for row in run.table().rows)
        first = self.searches[0].table()
        return tables.Table(("run", "seed", *first.columns), rows, ("run", *first.shown))

    def tables(self) -> Sequence[tables.Table]:
        """Return, of several networks, how often rules hold and what decides; else the rows of all searches."""
        survey = self.agreement.survey if self.answers else None
        return [self.table()] if survey is None else survey.tables()

    @property
    def comparisons(self) -> list[across_seeds.Comparison]:
        """What the seeds say together, for each red agent."""
        return across_seeds.compare_seeds([run._published.result for run in self.searches if run._published is not None])

    @property
    def agreement(self) -> "Agreement":
        """What the finished searches say together: whether seeds agree, and which rule is good in every world."""
        from fixfirst.stats.agreement import Agreement  # only several searches need it

        finished = [run for run in self.searches if run.finished_answer is not None]
        return Agreement.of(self.answers, [NetworkFacts.of(run.config.scheme) for run in finished])

    @property
    def answers(self) -> list[Answer]:
        """Of each search that is finished."""
        return [run.answer for run in self.searches if run.finished_answer is not None]

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about all of them; see `ff.report`."""
        return report.report(self.folder, RunFiles(self.folder).page if out is None else out, **options)


def load_training(folder: Path) -> TrainRun:
    """Return a training as an object."""
    run = Run(folder)
    config, result = TrainConfig.resolve({}, run.config), run.result
    return TrainRun(folder, config, result and result.evaluation, result and bool(result.facts["accepted"]))


@dataclass(frozen=True)
class Progress:
    """How far a run is, after an update of a training.

    For example:

        def follow(progress):
            print(progress.training, progress.episodes, progress.values["return"])
            return progress.episodes >= 1_000  # True: stop, as Ctrl-C would

        try:
            ff.train(workflow="none", total_episodes=2_000, out="runs/followed", quiet=True, callback=follow)
        except ff.Interrupted:
            ff.resume("runs/followed", quiet=True)
    """

    folder: Path  # of the run
    episodes: int  # trained so far, by all trainings of the run
    total_episodes: int
    training: int  # which of them this is about; 0 if there is only one
    values: Mapping[str, float]  # "return" of the update's episodes; of `ff.train`, all that training_log.csv has


Callback = Callable[[Progress], object]  # what it returns stops the run if it is true
