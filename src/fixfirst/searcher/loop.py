"""The search: ask for orders, train and judge each, tell what became of them, until the episode budget is used.

The one place where learning and search meet. Trials go in rounds; a round's orders, budgets and parents are fixed before it
begins and depend only on the ledger's rounds before it, so the outcome is the same for any number of workers, and after any
interruption: a round that was cut short is begun again, and reads what is finished of it from the trials' folders.

A search is a generator: it yields the jobs it wants done and is sent their ends. One driver feeds any number of searches.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fixfirst.errors import ConfigError, RunDirError
from fixfirst.learner.checkpoint import POLICY_JSON, POLICY_TENSORS, load_policy, versions
from fixfirst.learner.config import readable_errors
from fixfirst.orders.workflow import UnitScheme, Workflow
from fixfirst.play.seeds import derive
from fixfirst.runs.ledger import DEAD, NOT_COMPLIANT, Standings, Trial, accepted, read_trials, standings
from fixfirst.runs.run_dir import (
    BEST,
    CHOICE_COLUMNS,
    CHOICES,
    CONFIG,
    EPISODE_COLUMNS,
    EPISODE_LOG,
    LEDGER,
    PLOTTED,
    RESULT,
    TENSORBOARD,
    TRAINING_COLUMNS,
    TRAINING_LOG,
    TRIAL_COLUMNS,
    WARMUP,
    CsvLog,
    Runtime,
    create_run,
    keep_rows,
    locked,
    read_csv,
    read_manifest,
    read_toml,
    trial_folder,
)
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.executors.inline import Executor, Finished
from fixfirst.searcher.strategy import FAILED, NON_COMPLIANT, Choice, Outcome, Strategy, StrategyConfig
from fixfirst.searcher.trial import TrialJob, WarmupJob, failed_row, pack, run_job, run_parcel, unpack

KIND = "search"
WARMUP_KEY = -1  # the warm-up's number, among those of the trials
MAX_ATTEMPTS = 2  # a trial whose worker dies is tried once more
MAX_NODES_LOST = 10  # a trial whose machine is lost begins again elsewhere, so often


class View(Protocol):
    """Whoever shows the search to the user."""

    def begin(self, search: "Search") -> None: ...

    def chosen(self, search: "Search", number: int, choice: Choice) -> None: ...

    def progress(self, search: "Search", number: int, message: Any) -> None: ...

    def recorded(self, search: "Search", trial: Trial) -> None: ...


@dataclass
class Search:
    """What is known of a search; all of it follows from the ledger."""

    config: SearchConfig
    folder: Path
    trials: list[Trial]
    strategy: Strategy
    _ranked: tuple[int, Standings | None] = (0, None)  # the standings after so many trials; a live view asks often

    @property
    def used(self) -> int:
        """Training episodes so far."""
        warmup = self.config.warmup_config
        return sum(int(trial["episodes"]) for trial in self.trials) + (0 if warmup is None else warmup.total_episodes)

    def standings(self) -> Standings | None:
        """Accepted orders by return; None before there is one."""
        if self._ranked[0] != len(self.trials):
            self._ranked = len(self.trials), standings(self.trials, self.scheme, self.config.test_episodes)
        return self._ranked[1]

    @property
    def scheme(self) -> UnitScheme:
        scheme = self.config.scheme
        assert scheme is not None  # checked by the config
        return scheme

    def workflow_of(self, trial: Trial) -> Workflow:
        return Workflow.parse(trial["workflow"], self.scheme)

    def next_budgets(self) -> list[int]:
        """Training episodes each trial of the next round may use; empty: the search is over."""
        config, left = self.config, self.config.total_episodes - self.used
        update = config.ppo.episodes_per_update
        room = (
            config.round_size
            if config.n_workflows is None
            else min(config.round_size, config.n_workflows - len(self.trials))
        )
        size = min(room, left // config.shortest_trial)
        if size < 1:
            return []
        each = min(config.max_episodes, left // size)
        return [each // update * update] * size

    def parent_of(self, workflow: Workflow) -> Trial | None:
        """The trial whose weights a new trial inherits."""
        rows, rule = accepted(self.trials), self.config.inherit
        if rule == "none" or not rows:
            return None
        if rule == "nearest":  # ties: the latest
            return min(reversed(rows), key=lambda row: self.workflow_of(row).kendall_distance(workflow))
        best = self.standings() if rule == "best" else None
        return rows[-1] if best is None else best.best

    def job(self, number: int, workflow: Workflow, budget: int) -> TrialJob:
        config, parent = self.config, self.parent_of(workflow)
        policy = Path(config.from_policy) if config.from_policy else None
        if config.warmup_config is not None:
            policy = self.folder / WARMUP
        if parent is not None:
            policy = trial_folder(self.folder, int(parent["id"]))
        return TrialJob(
            number=number,
            config=config.trial_config(number, workflow, budget),
            folder=trial_folder(self.folder, number),
            parent_policy=policy,
            parent_sha256=None if policy is None else str(load_policy(policy).facts["sha256"]),
            test_episodes=config.test_episodes,
            test_seed=config.seed,
            log_episodes=config.log_episodes,
        )

    def tell(self, trial: Trial) -> None:
        """Remember a trial, and tell the strategy."""
        self.trials.append(trial)
        outcome = {NOT_COMPLIANT: NON_COMPLIANT, DEAD: FAILED}.get(trial["status"])
        if outcome is None:
            outcome = Outcome.compliant(trial["return_mean"], trial["return_se"])
        self.strategy.tell(self.workflow_of(trial), outcome)


def begin_search(config: SearchConfig, folder: Path) -> Search:
    """A new run directory."""
    if config.from_policy is not None:
        policy = load_policy(config.from_policy)
        if policy.scheme not in (None, config.scheme):
            raise ConfigError(f"{config.from_policy}: its policy reads other unit types than this search")
        config = config.model_copy(update={"from_policy": str(Path(config.from_policy).resolve())})
    create_run(folder, KIND, config.model_dump(mode="json"), versions())
    return open_search(folder)


def open_search(folder: Path) -> Search:
    """A search as its run directory has it, up to the last round that is complete."""
    if read_manifest(folder)["kind"] != KIND:
        raise RunDirError(f"{folder} is not a run of `fixfirst search`")
    with readable_errors():
        config = SearchConfig(**read_toml(folder / CONFIG))
    scheme = config.scheme
    assert scheme is not None
    strategy_config = StrategyConfig(
        name=config.strategy,
        seed=derive(config.seed, "search"),
        beta=config.gp_beta,
        beta_schedule=config.gp_beta_schedule,
        initial_orders=config.initial_orders,
    )
    search = Search(config, folder, [], Strategy(strategy_config, scheme))
    ledger = read_trials(folder)
    while (size := len(search.next_budgets())) and len(search.trials) + size <= len(ledger):
        for trial in ledger[len(search.trials) :][:size]:
            search.tell(trial)
    if not size and len(search.trials) < len(ledger):
        raise RunDirError(f"{folder}: {LEDGER} has more trials than {CONFIG} allows; was it changed?")
    return search


def run_searches(searches: Sequence[Search], executor: Executor, view: View, interrupt: Any, folder: Path) -> bool:
    """Run searches until their budgets are used, trials of different searches side by side; none depends on another.

    False if interrupted: `resume` of `folder`, their run directory or that of their study, then goes on from the same place.
    """
    driver = _Driver(searches, executor, view, interrupt)
    try:
        with ExitStack() as open_files:
            return driver.run(open_files)
    except OSError as e:
        raise RunDirError(
            f"{folder}: cannot be written ({e.strerror or e}); free the way, then: fixfirst resume {folder}"
        ) from e


Jobs = dict[int, TrialJob | WarmupJob]  # by number: a trial's, or WARMUP_KEY
Steps = Generator[Jobs, Finished, None]  # a search: says which jobs are to be done now, is sent the end of one


class _Driver:
    """Feeds the jobs of several searches to one executor, and the ends of jobs back to their searches."""

    def __init__(self, searches: Sequence[Search], executor: Executor, view: View, interrupt: Any):
        self._searches, self._executor, self._view, self._interrupt = searches, executor, view, interrupt
        self._steps: list[Steps] = []
        self._jobs: list[Jobs] = []  # submitted so far, by search

    def run(self, open_files: ExitStack) -> bool:
        runtimes = []
        for search in self._searches:
            open_files.enter_context(locked(search.folder))
            books = open_files.enter_context(closing(Books(search)))
            runtimes.append(open_files.enter_context(Runtime(search.folder, self._executor.workers)))
            self._steps.append(_steps(search, self._view, books, runtimes[-1]))
            self._jobs.append({})
            self._view.begin(search)
        for index, steps in enumerate(self._steps):
            self._submit(index, next(steps, {}))
        while (ended := self._executor.wait(self._show)) is not None:
            index, number = ended.key
            ended = self._brought_home(index, replace(ended, key=number))
            interrupted = ended.died is None and not ended.result
            if not interrupted and not self._interrupt:  # what is finished is in its folder: `resume` finds it there
                with suppress(StopIteration):
                    self._submit(index, self._steps[index].send(ended))
        return all(runtime.finished for runtime in runtimes)

    def _submit(self, index: int, jobs: Jobs) -> None:
        self._jobs[index] |= jobs
        for number, job in jobs.items():
            if self._executor.shares_disk:
                self._executor.submit((index, number), run_job, job)
            else:
                self._executor.submit((index, number), run_parcel, pack(job))

    def _brought_home(self, index: int, ended: Finished) -> Finished:
        """The end of a job with its files in its folder, wherever it ran."""
        if self._executor.shares_disk or ended.died is not None or ended.result is None:
            return ended
        result, files = ended.result
        unpack(self._jobs[index][ended.key], files)
        return replace(ended, result=result)

    def _show(self, key: tuple[int, int], message: Any) -> None:
        index, number = key
        self._view.progress(self._searches[index], number, message)


def _steps(search: Search, view: View, books: "Books", runtime: Runtime) -> Steps:
    """The search, as far as the ends of its jobs take it."""
    yield from _warm_up(search, view)
    while budgets := search.next_budgets():
        yield from _round(search, budgets, view, books, runtime)
    finish_search(search)
    runtime.finished = True


def _warm_up(search: Search, view: View) -> Steps:
    """Train the policy that the first trials inherit, unless it is there."""
    config, folder = search.config.warmup_config, search.folder / WARMUP
    if config is None or (folder / RESULT).exists():
        return
    job = WarmupJob(config, folder, search.config.test_episodes, search.config.seed)
    deaths = _Deaths(search, view)
    while (ended := (yield {WARMUP_KEY: job})).died is not None:
        if not deaths.forgiven(ended):
            raise RunDirError(f"{folder}: the worker of the warm-up died again and again ({ended.died})")


def _round(search: Search, budgets: Sequence[int], view: View, books: "Books", runtime: Runtime) -> Steps:
    first = len(search.trials)
    with runtime.choosing():
        choices = search.strategy.ask(len(budgets))
    jobs: dict[int, TrialJob] = {}
    for number, (choice, budget) in enumerate(zip(choices, budgets, strict=True), start=first):
        jobs[number] = search.job(number, choice.workflow, budget)
        books.choice(number, first, choice)
        view.chosen(search, number, choice)
    parents = {number: search.parent_of(choice.workflow) for number, choice in enumerate(choices, start=first)}
    books.sync_choices()

    finished: dict[int, Trial] = {}
    deaths = _Deaths(search, view)
    to_do: Jobs = dict(jobs)
    while len(search.trials) < first + len(jobs):
        ended, to_do = (yield to_do), {}
        if ended.died is None:
            finished[ended.key] = ended.result
        elif deaths.forgiven(ended):
            to_do = {ended.key: jobs[ended.key]}
        else:
            finished[ended.key] = failed_row(jobs[ended.key])
        while (number := len(search.trials)) in finished:  # the ledger is written in the order of the numbers
            parent = parents[number]
            known = finished.pop(number) | {"parent": None if parent is None else parent["id"]}
            if known["status"] != DEAD:
                known["policy"] = str(jobs[number].folder.relative_to(search.folder))
            trial = {column: known.get(column) for column in TRIAL_COLUMNS}
            books.record(trial)
            search.tell(trial)
            view.recorded(search, trial)


class _Deaths:
    """Which jobs of a round get another attempt. A job may be the end of its worker, hardly that of ten machines."""

    def __init__(self, search: Search, view: View):
        self._search, self._view = search, view
        self._workers: Counter[int] = Counter()
        self._nodes: Counter[int] = Counter()

    def forgiven(self, ended: Finished) -> bool:
        count, limit = (self._nodes, MAX_NODES_LOST) if ended.node_lost else (self._workers, MAX_ATTEMPTS)
        count[ended.key] += 1
        if count[ended.key] >= limit:
            return False
        name = "warm-up" if ended.key == WARMUP_KEY else f"trial {ended.key}"
        text = f"{name}: its worker is gone ({ended.died}); trying again"
        self._view.progress(self._search, ended.key, ("complaint", text))
        return True


class Books:
    """The files only the driver writes: choices, logs, ledger. On opening, what the ledger does not know is cut off."""

    def __init__(self, search: Search):
        self._search, folder, known = search, search.folder, len(search.trials)
        keep_rows(folder / LEDGER, TRIAL_COLUMNS, lambda row: int(row["id"]) < known)
        keep_rows(folder / CHOICES, CHOICE_COLUMNS, lambda row: int(row["iteration"]) < known)
        keep_rows(folder / TRAINING_LOG, TRAINING_COLUMNS, lambda row: int(row["Workflow_ID"]) < known)
        keep_rows(folder / EPISODE_LOG, EPISODE_COLUMNS, lambda row: int(row["Workflow_ID"]) < known)
        self._files = ExitStack()  # closes all of them, also when one cannot be flushed
        self._choices = self._open(folder / CHOICES, CHOICE_COLUMNS)
        self._training = self._open(folder / TRAINING_LOG, TRAINING_COLUMNS)
        self._episodes = self._open(folder / EPISODE_LOG, EPISODE_COLUMNS) if search.config.log_episodes else None
        self._ledger = self._open(folder / LEDGER, TRIAL_COLUMNS)
        self._add_scalar: Callable[[str, float, int], None] | None = None
        if search.config.tensorboard:
            from torch.utils.tensorboard import SummaryWriter  # a slow import that not everybody needs

            writer = SummaryWriter(str(folder / TENSORBOARD), purge_step=search.used + 1)
            self._files.callback(writer.close)
            self._add_scalar = writer.add_scalar

    def _open(self, path: Path, columns: tuple[str, ...]) -> CsvLog:
        log = CsvLog(path, columns)
        self._files.callback(log.close)
        return log

    def choice(self, number: int, first: int, choice: Choice) -> None:
        """A row that lets a reader redo the choice from the ledger's rows before `first`."""
        candidates = [(str(c.workflow), round(c.ucb, 6), round(c.mean, 6), round(c.std, 6)) for c in choice.top]
        chosen = candidates[0] if candidates else (str(choice.workflow), None, None, None)
        padded = [*candidates, *[(None,) * 4] * (3 - len(candidates))]
        self._choices.write([number, first, choice.how, choice.beta, *chosen, *(cell for row in padded for cell in row)])

    def sync_choices(self) -> None:
        self._choices.sync()

    def record(self, trial: Trial) -> None:
        """Logs first, the ledger last: a trial in the ledger is complete."""
        own = trial_folder(self._search.folder, trial["id"])
        before = self._search.used
        for row in read_csv(own / TRAINING_LOG, TRAINING_COLUMNS):
            row["Total_Episodes_Sampled"] = str(before + int(row["Episodes"]))
            self._training.write(row.values())
            self._plot(row)
        self._training.sync()
        if self._episodes is not None:
            for row in read_csv(own / EPISODE_LOG, EPISODE_COLUMNS):
                self._episodes.write(row.values())
            self._episodes.sync()
        self._ledger.write(trial.values())
        self._ledger.sync()

    def _plot(self, row: dict[str, str]) -> None:
        """One update of a trial in TensorBoard."""
        for column, name in PLOTTED.items():
            if self._add_scalar is not None and row[column]:
                self._add_scalar(name, float(row[column]), int(row["Total_Episodes_Sampled"]))

    def close(self) -> None:
        self._files.close()


def finish_search(search: Search) -> None:
    """Put the winner's policy into best/."""
    found = search.standings()
    if found is None:
        return
    target = search.folder / BEST
    target.mkdir(exist_ok=True)
    for name in (POLICY_TENSORS, POLICY_JSON):  # the JSON last: with it the copy is complete
        shutil.copyfile(trial_folder(search.folder, int(found.best["id"])) / name, target / name)
