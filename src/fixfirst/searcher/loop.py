"""The search: ask for orders, train and judge each, tell what became of them, until the episode budget is used.

The one place where learning and choosing meet. Trials go in rounds; a round's orders, budgets and parents are fixed before
it begins and depend only on the ledger's rounds before it, so the outcome is the same for any number of workers, and after
any interruption: a round that was cut short is begun again, and reads what is finished of it from the trials' folders.

A search is a generator: it yields the jobs it wants done and is sent their ends. One driver feeds any number of searches.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from fixfirst.base.errors import PolicyError, RunDirError
from fixfirst.base.files import read_file
from fixfirst.base.statistics import stream_seed
from fixfirst.learner.checkpoint import delete_checkpoints
from fixfirst.learner.settings import resolve
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.file import load_parent, load_policy
from fixfirst.runs.across_seeds import SeedResult
from fixfirst.runs.files import write_atomically
from fixfirst.runs.layout import BEST, CONFIG, LEDGER, POLICY_JSON, POLICY_TENSORS, WARMUP, WARMUP_KEY, Kind, trial_folder
from fixfirst.runs.ledger import RankedTrials, rank_trials, read_trials
from fixfirst.runs.lock import Session, locked
from fixfirst.runs.manifest import create_run, read_config, read_manifest
from fixfirst.runs.rows import Status, Trial
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.executors.contract import Executor, Finished
from fixfirst.searcher.jobs import Job, run_job
from fixfirst.searcher.parcels import pack, run_parcel, unpack
from fixfirst.searcher.search_logs import SearchLogs
from fixfirst.searcher.shared import SharedSearch, open_shared, shared_steps
from fixfirst.searcher.strategy import FAILED, NON_COMPLIANT, Choice, Outcome, Strategy, StrategyConfig
from fixfirst.searcher.trial import Message, TrialJob, WarmupJob, failed_row, is_warmed_up

MAX_ATTEMPTS = 2  # a trial whose worker dies is tried once more
MAX_NODES_LOST = 10  # a trial whose machine is lost begins again elsewhere, so often


class View(Protocol):
    """Whoever shows the search to the user."""

    def begin(self, search: "Search") -> None: ...

    def chosen(self, search: "Search", number: int, choice: Choice) -> None: ...

    def progress(self, search: "Search", number: int, message: Message) -> None: ...

    def recorded(self, search: "Search", trial: Trial) -> None: ...


@dataclass
class Search:
    """What is known of a search; all of it follows from the ledger."""

    config: SearchConfig
    folder: Path
    trials: list[Trial]
    strategy: Strategy
    _ranked: tuple[int, RankedTrials | None] = (0, None)  # the standings after so many trials; a live view asks often

    @property
    def used(self) -> int:
        """Training episodes so far."""
        return self.config.warmup_budget + sum(trial.episodes for trial in self.trials)

    def standings(self) -> RankedTrials | None:
        """Accepted orders by return; None before there is one."""
        if self._ranked[0] != len(self.trials):
            self._ranked = len(self.trials), rank_trials(self.trials, self.scheme, self.config.test_episodes)
        return self._ranked[1]

    @property
    def is_done(self) -> bool:
        """Is there nothing left to do?"""
        return not self.next_budgets()

    @property
    def result(self) -> SeedResult:
        """For a comparison with other seeds."""
        red_agent = self.config.training.game.red_agent
        return SeedResult(red_agent, self.config.seed, self.scheme, self.trials, self.standings())

    @property
    def scheme(self) -> UnitScheme:
        return self.config.scheme

    def workflow_of(self, trial: Trial) -> Workflow:
        return Workflow.parse(trial.workflow, self.scheme)

    def next_budgets(self) -> list[int]:
        """Training episodes each trial of the next round may use; empty: the search is over."""
        config, left = self.config, self.config.total_episodes - self.used
        update, room = config.training.ppo.episodes_per_update, config.round_size
        if config.n_workflows is not None:
            room = min(room, config.n_workflows - len(self.trials))
        size = min(room, left // config.shortest_trial)
        if size < 1:
            return []
        each = min(config.training.total_episodes, left // size)
        return [each // update * update] * size

    def parent_of(self, workflow: Workflow) -> Trial | None:
        """The trial whose weights a new trial inherits."""
        rows, rule = [trial for trial in self.trials if trial.accepted], self.config.inherit
        if rule == "none" or not rows:
            return None
        if rule == "nearest":  # ties: the latest
            return min(reversed(rows), key=lambda row: self.workflow_of(row).kendall_distance(workflow))
        best = self.standings() if rule == "best" else None
        return rows[-1] if best is None else best.best

    def job(self, number: int, workflow: Workflow, budget: int) -> TrialJob:
        config, parent = self.config, self.parent_of(workflow)
        policy = Path(config.from_policy) if config.from_policy else None
        if config.warmup_budget:
            policy = self.folder / WARMUP
        if parent is not None:
            policy = trial_folder(self.folder, parent.id)
            if not _holds(policy, parent):
                raise RunDirError(
                    f"{policy}: its policy, which trial {number} inherits, is damaged, or not that of {LEDGER}"
                )
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
        outcome = {Status.NON_COMPLIANT: NON_COMPLIANT, Status.FAILED: FAILED}.get(trial.status)
        if outcome is None:
            outcome = Outcome.compliant(trial.earned, trial.return_se or 0.0)
        self.strategy.tell(self.workflow_of(trial), outcome)


def begin_search(config: SearchConfig, folder: Path) -> "Search | SharedSearch":
    """A new run directory."""
    config = with_parent(config)
    create_run(folder, Kind.SEARCH, config.model_dump(mode="json"), config.seed)
    return open_search(folder, config.training.game.cyborg)


def with_parent(config: SearchConfig) -> SearchConfig:
    """The config with the place of the policy that the first trials inherit, which must be one they can."""
    if config.from_policy is None:
        return config
    load_parent(Path(config.from_policy), config.trial_role)
    return config.model_copy(update={"from_policy": str(Path(config.from_policy).resolve())})


def open_search(folder: Path, cyborg: str | None = None) -> "Search | SharedSearch":
    """A search as its run directory has it, up to the last round that is complete. cyborg: the checkout to play in."""
    if read_manifest(folder)["kind"] != Kind.SEARCH:
        raise RunDirError(f"{folder} is not a run of `fixfirst search`")
    config = resolve(SearchConfig, read_config(folder), {"cyborg": cyborg})
    if not config.separate:
        return open_shared(config, folder)
    strategy_config = StrategyConfig(
        name=config.strategy,
        seed=stream_seed(config.seed, "search"),
        beta=config.gp_beta,
        beta_schedule=config.gp_beta_schedule,
        initial_orders=config.initial_orders,
    )
    search = Search(config, folder, [], Strategy(strategy_config, config.scheme))
    ledger = read_trials(folder)
    while (size := len(search.next_budgets())) and len(search.trials) + size <= len(ledger):
        for trial in ledger[len(search.trials) :][:size]:
            search.tell(trial)
    if not size and len(search.trials) < len(ledger):
        raise RunDirError(f"{folder}: {LEDGER} has more trials than {CONFIG} allows; was it changed?")
    return search


def run_searches(
    searches: Sequence[Search | SharedSearch], executor: Executor, view: Any, interrupt: object, folder: Path
) -> bool:
    """Run searches until their budgets are used, trials of different searches side by side; none depends on another.

    view: a `View`, for searches with one network for all orders a `SharedView`.
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


Jobs = dict[int, Job]  # by number: a trial's, or WARMUP_KEY
Steps = Generator[Jobs, Finished, None]  # a search: says which jobs are to be done now, is sent the end of one


class _Driver:
    """Feeds the jobs of several searches to one executor, and the ends of jobs back to their searches."""

    def __init__(self, searches: Sequence[Search | SharedSearch], executor: Executor, view: Any, interrupt: object):
        self._searches, self._executor, self._view, self._interrupt = searches, executor, view, interrupt
        self._steps: list[Steps] = []
        self._jobs: list[Jobs] = []  # submitted so far, by search

    def run(self, open_files: ExitStack) -> bool:
        sessions = []
        for search in self._searches:
            enter = open_files.enter_context
            enter(locked(search.folder))
            _bring_up_to_date(search)
            if isinstance(search, SharedSearch):
                session = enter(Session(search.folder, self._executor.workers))
                run = partial(_until_ended, search, self._view)
                self._steps.append(shared_steps(search, self._view, session, open_files, run))
            else:  # the logs first: a run with a damaged one stays as it is
                logs = enter(SearchLogs(search.folder, search.config, len(search.trials), search.used))
                session = enter(Session(search.folder, self._executor.workers))
                self._steps.append(_steps(search, self._view, logs, session))
            sessions.append(session)
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
        return all(session.finished for session in sessions)

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


def _bring_up_to_date(search: Search | SharedSearch) -> None:
    """Now that nobody else works on it: between opening and locking it, somebody may have gone on with it, or ended it."""
    vars(search).update(vars(open_search(search.folder, search.config.training.game.cyborg)))


def _until_ended(search: SharedSearch, view: Any, jobs: Jobs) -> Generator[Jobs, Finished, dict[int, Any]]:
    """Have jobs done, those whose workers die once more; their results by number."""
    results: dict[int, Any] = {}
    deaths, to_do = _Deaths(search, view), dict(jobs)
    while len(results) < len(jobs):
        ended, to_do = (yield to_do), {}
        if ended.died is None:
            results[ended.key] = ended.result
        elif deaths.forgiven(ended):
            to_do = {ended.key: jobs[ended.key]}
        else:
            folder = jobs[ended.key].folder
            raise RunDirError(f"{folder}: the worker of replicate {ended.key} died again and again ({ended.died})")
    return results


def _steps(search: Search, view: View, logs: SearchLogs, session: Session) -> Steps:
    """The search, as far as the ends of its jobs take it."""
    yield from _warm_up(search, view)
    while budgets := search.next_budgets():
        yield from _round(search, budgets, view, logs, session)
    keep_best(search)
    session.finished = True


def _warm_up(search: Search, view: View) -> Steps:
    """Train the policy that the first trials inherit, unless it is there."""
    config, folder = search.config, search.folder / WARMUP
    if not config.warmup_budget:
        return
    job = WarmupJob(config.warmup_config(), folder, config.test_episodes, config.seed)
    if is_warmed_up(job):
        delete_checkpoints(folder)  # a kill may have come between
        return
    deaths = _Deaths(search, view)
    while (ended := (yield {WARMUP_KEY: job})).died is not None:
        if not deaths.forgiven(ended):
            raise RunDirError(f"{folder}: the worker of the warm-up died again and again ({ended.died})")


def _round(search: Search, budgets: Sequence[int], view: View, logs: SearchLogs, session: Session) -> Steps:
    first = len(search.trials)
    with session.choosing():
        choices = search.strategy.ask(len(budgets))
    jobs: dict[int, TrialJob] = {}
    for number, (choice, budget) in enumerate(zip(choices, budgets, strict=True), start=first):
        jobs[number] = search.job(number, choice.workflow, budget)
        logs.choice(number, first, choice)
        view.chosen(search, number, choice)
    parents = {number: search.parent_of(choice.workflow) for number, choice in enumerate(choices, start=first)}
    logs.sync_choices()

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
            trial, parent = finished.pop(number), parents[number]
            trial = replace(
                trial,
                parent=None if parent is None else parent.id,
                policy=None if trial.status == Status.FAILED else str(jobs[number].folder.relative_to(search.folder)),
            )
            logs.record(trial, search.used)
            search.tell(trial)
            view.recorded(search, trial)


class _Deaths:
    """Which jobs of a round get another attempt. A job may be the end of its worker, hardly that of ten machines."""

    def __init__(self, search: Search | SharedSearch, view: Any):
        self._search, self._view = search, view
        self._workers: Counter[int] = Counter()
        self._nodes: Counter[int] = Counter()

    def forgiven(self, ended: Finished) -> bool:
        count, limit = (self._nodes, MAX_NODES_LOST) if ended.node_lost else (self._workers, MAX_ATTEMPTS)
        count[ended.key] += 1
        if count[ended.key] >= limit:
            return False
        kind = "trial" if isinstance(self._search, Search) else "replicate"
        name = "warm-up" if ended.key == WARMUP_KEY else f"{kind} {ended.key}"
        text = f"{name}: its worker is gone ({ended.died}); trying again"
        self._view.progress(self._search, ended.key, text)
        return True


def keep_best(search: Search) -> None:
    """Put the winner's policy into best/: the one that the ledger means, or none."""
    found = search.standings()
    if found is None:
        return
    source, target = trial_folder(search.folder, found.best.id), search.folder / BEST
    if _holds(target, found.best):
        return
    if not _holds(source, found.best):
        raise RunDirError(
            f"{source / POLICY_TENSORS}: damaged, or not the one whose sha256 stands in {LEDGER}: the policy of the best "
            f"order, {found.best.workflow}, is lost; the ranking is not (fixfirst report {search.folder})"
        )
    target.mkdir(exist_ok=True)
    for name in (POLICY_TENSORS, POLICY_JSON):  # the JSON last: with it the copy is complete
        write_atomically(target / name, read_file(source / name))


def _holds(folder: Path, trial: Trial) -> bool:
    """Does a folder hold a trial's policy, undamaged?"""
    try:
        return load_policy(folder).facts["sha256"] == trial.policy_sha256
    except PolicyError:
        return False
