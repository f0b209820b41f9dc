"""The search: ask for orders, train and judge each, tell what became of them, until the episode budget is used.

The one place where learning and search meet. Trials go in rounds; a round's orders, budgets and parents are fixed before it
begins and depend only on the ledger's rounds before it, so the outcome is the same for any number of workers, and after any
interruption: a round that was cut short is begun again, and reads what is finished of it from the trials' folders.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fixfirst.errors import ConfigError, RunDirError
from fixfirst.executor import Executor
from fixfirst.learner.checkpoint import POLICY_JSON, POLICY_TENSORS, load_policy, versions
from fixfirst.learner.config import readable_errors
from fixfirst.ledger import DEAD, NOT_COMPLIANT, Standings, Trial, accepted, read_trials, standings
from fixfirst.run_dir import (
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
from fixfirst.search.strategy import FAILED, NON_COMPLIANT, Choice, Outcome, Strategy, StrategyConfig
from fixfirst.search_config import SearchConfig
from fixfirst.search_trial import TrialJob, WarmupJob, failed_row, run_trial, run_warmup
from fixfirst.seeds import derive
from fixfirst.workflow import UnitScheme, Workflow

KIND = "search"
WARMUP_KEY = -1  # the warm-up's number, among those of the trials
MAX_ATTEMPTS = 2  # a trial whose worker dies is tried once more


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

    @property
    def used(self) -> int:
        """Training episodes so far."""
        warmup = self.config.warmup_config
        return sum(int(trial["episodes"]) for trial in self.trials) + (0 if warmup is None else warmup.total_episodes)

    def standings(self) -> Standings | None:
        """Accepted orders by return; None before there is one."""
        return standings(self.trials, self.scheme, self.config.test_episodes)

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


def run_search(search: Search, executor: Executor, view: View, interrupt: Any) -> bool:
    """Rounds until the budget is used. Returns False if interrupted; `resume` then goes on from the same place."""
    try:
        with (
            locked(search.folder),
            closing(Books(search)) as books,
            Runtime(search.folder, executor.workers) as runtime,
        ):
            view.begin(search)
            if not _warm_up(search, executor, view):
                return False
            while budgets := search.next_budgets():
                if not _run_round(search, budgets, executor, view, books, runtime, interrupt):
                    return False
            finish_search(search)
            runtime.finished = True
            return True
    except OSError as e:
        raise RunDirError(
            f"{search.folder}: cannot be written ({e.strerror or e}); free the way, then: fixfirst resume {search.folder}"
        ) from e


def _warm_up(search: Search, executor: Executor, view: View) -> bool:
    """Train the policy that the first trials inherit, unless it is there. False if interrupted."""
    config, folder = search.config.warmup_config, search.folder / WARMUP
    if config is None or (folder / RESULT).exists():
        return True
    job, died = WarmupJob(config, folder, search.config.test_episodes, search.config.seed), ""
    for _ in range(MAX_ATTEMPTS):
        executor.submit(WARMUP_KEY, run_warmup, job)
        ended = executor.wait(lambda number, message: view.progress(search, number, message))
        if ended.died is None:
            return bool(ended.result)
        died = ended.died
    raise RunDirError(f"{folder}: the worker of the warm-up died again and again ({died})")


def _run_round(
    search: Search,
    budgets: Sequence[int],
    executor: Executor,
    view: View,
    books: "Books",
    runtime: Runtime,
    interrupt: Any,
) -> bool:
    first = len(search.trials)
    with runtime.choosing():
        choices = search.strategy.ask(len(budgets))
    jobs = {}
    for number, (choice, budget) in enumerate(zip(choices, budgets, strict=True), start=first):
        jobs[number] = search.job(number, choice.workflow, budget)
        books.choice(number, first, choice)
        view.chosen(search, number, choice)
    parents = {number: search.parent_of(choice.workflow) for number, choice in enumerate(choices, start=first)}
    books.sync_choices()
    for number, job in jobs.items():
        executor.submit(number, run_trial, job)

    finished: dict[int, Trial] = {}
    attempts = dict.fromkeys(jobs, 1)
    waiting = set(jobs)
    while waiting:
        if interrupt:
            executor.cancel()
            return False
        ended = executor.wait(lambda number, message: view.progress(search, number, message))
        if ended.died is not None and attempts[ended.key] < MAX_ATTEMPTS:
            view.progress(
                search, ended.key, ("complaint", f"trial {ended.key}: its worker is gone ({ended.died}); trying again")
            )
            attempts[ended.key] += 1
            executor.submit(ended.key, run_trial, jobs[ended.key])
            continue
        waiting.discard(ended.key)
        if ended.died is not None:
            finished[ended.key] = failed_row(jobs[ended.key])
        elif ended.result is None:
            return False
        else:
            finished[ended.key] = ended.result
        while (number := len(search.trials)) in finished:  # the ledger is written in the order of the numbers
            parent = parents[number]
            known = finished.pop(number) | {"parent": None if parent is None else parent["id"]}
            if known["status"] != DEAD:
                known["policy"] = str(jobs[number].folder.relative_to(search.folder))
            trial = {column: known.get(column) for column in TRIAL_COLUMNS}
            books.record(trial)
            search.tell(trial)
            view.recorded(search, trial)
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
