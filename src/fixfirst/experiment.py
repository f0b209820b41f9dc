"""The search: ask for orders, train and judge each, tell what became of them, until the episode budget is used.

The one place where learning and search meet. Trials go in rounds; a round's orders, budgets and parents are fixed before it
begins and depend only on the ledger's rounds before it, so the outcome is the same for any number of workers, and after any
interruption: a round that was cut short is begun again, and reads what is finished of it from the trials' folders.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from fixfirst.compliance import Counts
from fixfirst.errors import ConfigError, RunDirError
from fixfirst.evaluate import Evaluation
from fixfirst.executor import Executor
from fixfirst.files import sha256, write_json
from fixfirst.learner.checkpoint import POLICY_JSON, POLICY_TENSORS, load_policy, versions
from fixfirst.learner.config import ALL, NONE, TrainConfig, preset_alignment, preset_ppo, readable_errors
from fixfirst.learner.training import Training, UpdateRow
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
    create_run,
    keep_rows,
    locked,
    read_csv,
    read_manifest,
    read_toml,
    trial_folder,
)
from fixfirst.search.ranking import Ranking, rank, training_spread
from fixfirst.search.strategy import FAILED, NON_COMPLIANT, Choice, Outcome, Strategy, StrategyConfig
from fixfirst.seeds import derive
from fixfirst.train_run import training_values
from fixfirst.trial import evaluate_training, run_training
from fixfirst.workflow import Workflow

KIND = "search"
Inherit = Literal["last", "nearest", "best", "none"]
ACCEPTED, NOT_COMPLIANT, DEAD = "accepted", "non_compliant", "failed"
WARMUP_KEY = -1  # the warm-up's number, among those of the trials
MAX_ATTEMPTS = 2  # a trial whose worker dies is tried once more
ORPHAN_WAIT_S = 30.0  # for a worker of a killed search to notice that it is alone

# Episodes per workflow, at most, where the published ways of training had a limit of their own.
MAX_EPISODES = {"sequential": 50, "hybrid": 50, "parallel-25": 50 * 25, "parallel-100": 100 * 100, "default": 10_000}


class SearchConfig(TrainConfig):
    """A search: how every trial is trained, which orders are tried, and for how long.

    `total_episodes` is the training budget of the whole search; evaluation episodes are counted apart.
    """

    workflow: str = ALL
    total_episodes: int = Field(100_000, ge=1)
    max_episodes: int = Field(MAX_EPISODES["default"], ge=1)  # per trial
    strategy: Literal["gp_ucb", "random", "exhaustive"] = "gp_ucb"
    gp_beta: float = Field(2.0, ge=0)
    gp_beta_schedule: bool = False  # sqrt(2 ln(|W| pi^2 t^2 / (6 delta))) instead
    initial_orders: int = Field(8, ge=1)
    round_size: int = Field(2, ge=1)
    n_workflows: int | None = Field(None, ge=1)  # stop after so many trials
    inherit: Inherit = "last"
    warmup_episodes: int = Field(20_000, ge=0)  # training without an order that the first trials inherit; part of the budget
    from_policy: str | None = None  # where the first trials start instead
    min_episodes: int = Field(2_000, ge=0)  # per trial, before the gate may end it
    test_episodes: int = Field(1_000, ge=2)
    log_episodes: bool = False
    tensorboard: bool = True
    stop_when_compliant: bool = True

    @model_validator(mode="after")
    def _searchable(self) -> "SearchConfig":
        if self.scheme is None or self.workflow != ALL:
            raise ConfigError(f"a search chooses the workflows itself: leave workflow at 'all', got {self.workflow!r}")
        if self.max_episodes < self.ppo.episodes_per_update:
            raise ConfigError(
                f"max_episodes ({self.max_episodes}) is less than one update of {self.ppo.episodes_per_update} episodes"
            )
        if self.max_episodes < self.shortest_trial:
            raise ConfigError(
                f"no trial could pass the gate: it opens after {self.shortest_trial} episodes (min_episodes "
                f"{self.min_episodes}), and a trial has at most {self.max_episodes} (max_episodes)"
            )
        warmup = self.warmup_config
        left = self.total_episodes - (0 if warmup is None else warmup.total_episodes)
        if left < self.shortest_trial:
            raise ConfigError(
                f"total_episodes ({self.total_episodes}) leaves {left} after the warm-up, less than one trial of "
                f"{self.shortest_trial} episodes; raise it, or lower min_episodes"
            )
        return self

    @property
    def shortest_trial(self) -> int:
        """Episodes after which the gate may first be passed, in whole updates; a shorter trial could not show anything."""
        update = self.ppo.episodes_per_update
        return max(1, -(-self.min_episodes // update)) * update

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """None yet: the strategy finds them."""
        return ()

    @property
    def warmup_config(self) -> TrainConfig | None:
        """How to defend at all, before keeping to an order; None if the first trials start elsewhere."""
        update = self.ppo.episodes_per_update
        budget = min(self.warmup_episodes, self.total_episodes // 3) // update * update
        if self.from_policy is not None or budget == 0:
            return None
        fields = {name: getattr(self, name) for name in TrainConfig.model_fields}
        own = {"workflow": NONE, "total_episodes": budget, "seed": derive(self.seed, "warmup")}
        return TrainConfig(**fields | own | {"min_episodes": 0})

    def trial_config(self, number: int, workflow: Workflow, budget: int) -> TrainConfig:
        """How trial `number` is trained, with streams of its own."""
        fields = {name: getattr(self, name) for name in TrainConfig.model_fields}
        own = {"workflow": str(workflow), "total_episodes": budget, "seed": derive(self.seed, "trial", number)}
        return TrainConfig(**fields | own)


def search_config(preset: str = "default", ppo: dict[str, Any] | None = None, **settings: Any) -> SearchConfig:
    """A search config from a preset, as `make_config`."""
    if preset == "original":
        raise ConfigError("preset 'original' knows no workflow; it cannot search for one")
    if preset != "default":  # the published searches began with the first order, and let it stop at once
        settings = {"warmup_episodes": 0, "min_episodes": 0, "max_episodes": MAX_EPISODES.get(preset, 1)} | settings
    with readable_errors():
        return SearchConfig(preset=preset, ppo=preset_ppo(preset, ppo), **preset_alignment(preset, settings))


# ---------------------------------------------------------------- one trial, wherever it runs


@dataclass(frozen=True)
class TrialJob:
    """All that a trial depends on."""

    number: int
    config: TrainConfig
    folder: Path
    parent_policy: Path | None
    parent_sha256: str | None
    test_episodes: int
    test_seed: int
    log_episodes: bool

    @property
    def digest(self) -> str:
        """Names the job: a result in its folder counts only if it is of this job."""
        parts = (self.number, self.config.model_dump(mode="json"), self.parent_sha256, self.test_episodes, self.test_seed)
        return sha256(json.dumps(parts).encode())


def run_trial(job: TrialJob, tell: Callable[[Any], None], interrupt: Any) -> dict[str, Any] | None:
    """Train, gate, evaluate; None if interrupted. A finished trial is read from its folder, an unfinished one goes on."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        done = finished_trial(job)
        return done if done is not None else _run_trial(job, tell, interrupt)


def finished_trial(job: TrialJob) -> dict[str, Any] | None:
    """The result in the job's folder, if it is complete and of this very job."""
    try:
        result = json.loads((job.folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return dict(result["trial"]) if isinstance(result, dict) and result.get("job") == job.digest else None


def _run_trial(job: TrialJob, tell: Callable[[Any], None], interrupt: Any) -> dict[str, Any] | None:
    started = time.perf_counter()
    start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
    log, episodes, report = job.folder / TRAINING_LOG, job.folder / EPISODE_LOG, _Reporter(tell)
    files: list[CsvLog] = []

    def on_restore(training: Training, complaints: list[str]) -> None:
        for complaint in complaints:
            tell(("complaint", complaint))
        for path, columns in ((log, TRAINING_COLUMNS), (episodes, EPISODE_COLUMNS)):
            if path == log or job.log_episodes:
                keep_rows(path, columns, lambda row: int(row["Update"]) <= training.updates)
                files.append(CsvLog(path, columns))

    def on_update(row: UpdateRow) -> None:
        files[0].write(training_values(row, job.number, job.config.workflow, row.episodes))
        if job.log_episodes:
            for values in episode_values(row, job.number, job.config.workflow):
                files[1].write(values)
        report(row)

    def sync() -> None:
        for file in files:
            file.sync()

    try:
        trained = run_training(
            job.config,
            job.folder,
            start=start,
            on_restore=on_restore,
            on_update=on_update,
            before_checkpoint=sync,
            interrupt=interrupt,
        )
    finally:
        for file in files:
            file.close()
    if trained.interrupted:
        return None
    evaluation = evaluate_training(trained.training, "test", job.test_episodes, seed=job.test_seed)
    trained.training.close()
    trial = trial_row(job, trained.accepted, trained.training, evaluation, time.perf_counter() - started)
    write_json(job.folder / RESULT, {"job": job.digest, "trial": trial, "evaluation": asdict(evaluation)})
    return trial


def trial_row(job: TrialJob, accepted: bool, training: Training, shown: Evaluation, seconds: float) -> dict[str, Any]:
    """The values of TRIAL_COLUMNS, but for the parent, which the search knows."""
    kept = shown.compliance
    assert kept is not None  # every trial has a workflow
    values: dict[str, Any] = {
        "id": job.number,
        "workflow": job.config.workflow,
        "status": ACCEPTED if accepted else NOT_COMPLIANT,
        "return_mean": shown.mean,
        "return_se": shown.standard_error,
        "return_low": shown.low,
        "return_high": shown.high,
        "compliance": kept.compliance.value,
        "compliance_low": kept.compliance.low,
        "compliance_high": kept.compliance.high,
        "compliance_bound": kept.lower_bound,
        "judged": kept.compliance.count,
        "contested_compliance": kept.contested.value,
        "contested": kept.contested.count,
        "effectiveness": kept.effectiveness.value,
        "response": kept.response.value,
        "repairs_per_episode": kept.repairs_per_episode,
        "episodes": training.episodes,
        "updates": training.updates,
        "policy_sha256": sha256((job.folder / POLICY_TENSORS).read_bytes()),
        "seconds": round(seconds, 3),
    }
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}


def failed_row(job: TrialJob) -> dict[str, Any]:
    """A trial whose worker died again and again. How far it got is unknown, so all of its budget counts as used."""
    return {"id": job.number, "workflow": job.config.workflow, "status": DEAD, "episodes": job.config.total_episodes}


def episode_values(row: UpdateRow, number: int, workflow: str) -> list[list[Any]]:
    """The values of EPISODE_COLUMNS for every episode of an update."""
    rows, counts = row.episode_rows, row.episode_rows.counts
    n = len(rows.env_reward)
    first = row.episodes - n + 1
    counts = counts if counts is not None else Counts(*(np.zeros(n, int) for _ in Counts._fields))
    shares = [round(c / j, 6) if j else None for c, j in zip(counts.compliant, counts.judged, strict=True)]
    rewards = zip(rows.env_reward.tolist(), rows.alignment.tolist(), strict=True)
    return [
        [
            number,
            workflow,
            row.update,
            first + i,
            round(env, 1),
            round(bonus, 6),
            round(env + bonus, 6),
            shares[i],
            int(counts.repairs[i]),
        ]
        for i, (env, bonus) in enumerate(rewards)
    ]


# ---------------------------------------------------------------- the search


class View(Protocol):
    """Whoever shows the search to the user."""

    def begin(self, search: "Search") -> None: ...

    def chosen(self, search: "Search", number: int, choice: Choice) -> None: ...

    def progress(self, search: "Search", number: int, message: Any) -> None: ...

    def recorded(self, search: "Search", trial: dict[str, Any]) -> None: ...


@dataclass
class Search:
    """What is known of a search; all of it follows from the ledger."""

    config: SearchConfig
    folder: Path
    trials: list[dict[str, Any]]  # rows of the ledger, by column
    strategy: Strategy

    @property
    def used(self) -> int:
        """Training episodes so far."""
        warmup = self.config.warmup_config
        return sum(int(trial["episodes"]) for trial in self.trials) + (0 if warmup is None else warmup.total_episodes)

    @property
    def accepted(self) -> list[dict[str, Any]]:
        return [trial for trial in self.trials if trial["status"] == ACCEPTED]

    def ranking(self) -> Ranking | None:
        """Accepted orders by return; None before there is one."""
        rows = self.accepted
        if not rows:
            return None
        workflows = [self.workflow_of(row) for row in rows]
        means, errors = ([row[key] for row in rows] for key in ("return_mean", "return_se"))
        combined = np.hypot(errors, self.training_spread()).tolist()
        return rank(workflows, means, combined, [self.config.test_episodes] * len(rows))

    def training_spread(self) -> float:
        """How much another training of the same order would change its return: a standard deviation, estimated."""
        rows = self.accepted
        means, errors = ([row[key] for row in rows] for key in ("return_mean", "return_se"))
        return training_spread([self.workflow_of(row) for row in rows], means, errors)

    def best_trial(self) -> dict[str, Any] | None:
        """The trial whose policy is the search's result: the highest return (ties: the first) of the ranking's first order.

        Not of all trials: an order that was lucky once and tried again is judged by all its trials.
        """
        ranking = self.ranking()
        if ranking is None:
            return None
        first = str(ranking.rows[0].workflow)
        return max((t for t in self.accepted if t["workflow"] == first), key=lambda trial: trial["return_mean"])

    def workflow_of(self, trial: dict[str, Any]) -> Workflow:
        scheme = self.config.scheme
        assert scheme is not None  # checked by the config
        return Workflow.parse(trial["workflow"], scheme)

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

    def parent_of(self, workflow: Workflow) -> dict[str, Any] | None:
        """The trial whose weights a new trial inherits."""
        rows, rule = self.accepted, self.config.inherit
        if rule == "none" or not rows:
            return None
        if rule == "nearest":  # ties: the latest
            return min(reversed(rows), key=lambda row: self.workflow_of(row).kendall_distance(workflow))
        return rows[-1] if rule == "last" else self.best_trial()

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

    def tell(self, trial: dict[str, Any]) -> None:
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
    try:
        ledger = [{key: _number(value) for key, value in row.items()} for row in read_csv(folder / LEDGER, TRIAL_COLUMNS)]
    except OSError as e:
        raise RunDirError(f"{folder / LEDGER}: cannot be read ({e.strerror})") from e
    for number, trial in enumerate(ledger):
        if trial["id"] != number or not isinstance(trial["episodes"], int):
            raise RunDirError(f"{folder / LEDGER}: line {number + 2} is not of trial {number}, or damaged")
    while (size := len(search.next_budgets())) and len(search.trials) + size <= len(ledger):
        for trial in ledger[len(search.trials) :][:size]:
            search.tell(trial)
    if not size and len(search.trials) < len(ledger):
        raise RunDirError(f"{folder}: {LEDGER} has more trials than {CONFIG} allows; was it changed?")
    return search


def _number(text: str) -> Any:
    """A cell of the ledger as what was written."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def run_search(search: Search, executor: Executor, view: View, interrupt: Any) -> bool:
    """Rounds until the budget is used. Returns False if interrupted; `resume` then goes on from the same place."""
    try:
        with locked(search.folder), closing(Books(search)) as books:
            view.begin(search)
            if not _warm_up(search, executor, view):
                return False
            while budgets := search.next_budgets():
                if not _run_round(search, budgets, executor, view, books, interrupt):
                    return False
            finish_search(search)
            return True
    except OSError as e:
        raise RunDirError(
            f"{search.folder}: cannot be written ({e.strerror or e}); free the way, then: fixfirst resume {search.folder}"
        ) from e


def _warm_up(search: Search, executor: Executor, view: View) -> bool:
    """Train the policy that the first trials inherit, unless it is there. False if interrupted."""
    config, folder = search.config.warmup_config, search.folder / WARMUP
    if config is None or (folder / POLICY_JSON).exists():
        return True
    died = ""
    for _ in range(MAX_ATTEMPTS):
        executor.submit(WARMUP_KEY, run_warmup, (config, folder))
        ended = executor.wait(lambda number, message: view.progress(search, number, message))
        if ended.died is None:
            return bool(ended.result)
        died = ended.died
    raise RunDirError(f"{folder}: the worker of the warm-up died again and again ({died})")


def run_warmup(job: tuple[TrainConfig, Path], tell: Callable[[Any], None], interrupt: Any) -> bool:
    """Train without an order; False if interrupted."""
    config, folder = job
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait_s=ORPHAN_WAIT_S):
        trained = run_training(config, folder, on_update=_Reporter(tell), interrupt=interrupt)
        trained.training.close()
        return not trained.interrupted


class _Reporter:
    """Passes on some of the updates: enough to watch."""

    def __init__(self, tell: Callable[[Any], None]):
        self._tell, self._told = tell, 0.0

    def __call__(self, row: UpdateRow) -> None:
        if (now := time.perf_counter()) - self._told > 0.1:
            self._tell(("update", (row.episodes, row.env_reward, row.compliance)))
            self._told = now


def _run_round(
    search: Search, budgets: Sequence[int], executor: Executor, view: View, books: "Books", interrupt: Any
) -> bool:
    first = len(search.trials)
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

    finished: dict[int, dict[str, Any]] = {}
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

    def record(self, trial: dict[str, Any]) -> None:
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
    best = search.best_trial()
    if best is None:
        return
    target = search.folder / BEST
    target.mkdir(exist_ok=True)
    for name in (POLICY_TENSORS, POLICY_JSON):  # the JSON last: with it the copy is complete
        shutil.copyfile(trial_folder(search.folder, int(best["id"])) / name, target / name)
