"""The published search: one training per order. Ask for orders, train and judge each, until the episode budget is used.

Trials go in rounds; a round's orders, budgets and parents are fixed before it begins and depend only on the ledger's rounds
before it (trials.csv). A round that was cut short is begun again, and reads what is finished of it from the trials' folders.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from fixfirst.base import files, plans, tables
from fixfirst.learner import driver
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.learner.training import Training
from fixfirst.orders.order import Workflow
from fixfirst.policy.trained import load_policy
from fixfirst.runs import csv_logs, layout, rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import TensorBoard, Trial
from fixfirst.runs.sessions import Session
from fixfirst.searcher.choosing import choice_row, make_strategy
from fixfirst.searcher.jobs import BaseJob, NamedJob, TellJob, run_base
from fixfirst.searcher.search import View, gather
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import across_seeds
from fixfirst.stats.evaluation import Evaluation

R = TypeVar("R", bound=csv_logs.Row)


@dataclass(frozen=True)
class TrialJob(NamedJob):
    """All that a trial depends on."""

    number: int
    config: TrainConfig
    folder: Path
    parent_policy: Path | None
    parent_sha256: str | None
    test_episodes: int
    test_seed: int
    log_episodes: bool


def run_trial(job: TrialJob, tell: TellJob, interrupt: object) -> Trial | None:
    """Train, gate and evaluate one order; return its row of the ledger."""
    with sessions.job_folder(job.folder):
        if (done := job.result()) is not None:
            driver.delete_checkpoints(job.folder)  # a kill may have come between its result and this
            return Trial.from_values(done["trial"])
        started = time.perf_counter()
        start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
        begin = Begin(start, job.number, log_episodes=job.log_episodes)
        with train_in(job.folder, job.config, tell, interrupt, begin) as training:
            if training is None:
                return None
            tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            trial = _trial_row(job, training, tested, seconds)
            facts = {"job": job.digest, "trial": trial.values(), "evaluation": asdict(tested)}
            driver.conclude(job.folder, facts)
        return trial


def _trial_row(job: TrialJob, training: Training, tested: Evaluation, seconds: float) -> Trial:
    """Return the trial's row of the ledger, but for what only the search knows: its parent, and where its policy lies."""
    repairs = tested.compliance
    assert repairs is not None  # every trial has an order
    return Trial(
        id=job.number,
        workflow=job.config.workflow,
        status=rows.Status.ACCEPTED if training.passes_gate() else rows.Status.NON_COMPLIANT,
        return_mean=tested.mean,
        return_se=tested.standard_error,
        return_low=tested.low,
        return_high=tested.high,
        compliance=repairs.compliance.value,
        compliance_low=repairs.compliance.low,
        compliance_high=repairs.compliance.high,
        compliance_bound=repairs.lower_bound,
        judged=repairs.compliance.count,
        contested_compliance=repairs.contested.value,
        contested=repairs.contested.count,
        effectiveness=repairs.effectiveness.value,
        response=repairs.response.value,
        repairs_per_episode=repairs.repairs_per_episode,
        episodes=training.episodes,
        updates=training.updates,
        policy_sha256=files.sha256(RunFiles(job.folder).policy_tensors.read_bytes()),
        seconds=round(seconds, 3),
    )


class PublishedSearch:
    """A search with a training of its own for each order."""

    def __init__(self, config: SearchConfig, folder: Path):
        self.config, self.folder = config, folder
        self.trials: list[Trial] = []
        self.strategy = make_strategy(config)

    def reload(self) -> None:
        """Go to the last complete round of the ledger."""
        ledger = across_seeds.read_trials(self.folder)
        while (size := len(self.next_budgets())) and len(self.trials) + size <= len(ledger):
            for trial in ledger[len(self.trials) :][:size]:
                self.tell(trial)

    @property
    def used(self) -> int:
        """Training episodes so far."""
        return self.config.warmup_budget + sum(trial.episodes for trial in self.trials)

    @cached_property
    def standings(self) -> across_seeds.RankedTrials | None:
        """Accepted orders by return; None before there is one. Ranked anew after each trial."""
        return across_seeds.RankedTrials.of(self.trials, self.config.scheme, self.config.test_episodes)

    @property
    def is_done(self) -> bool:
        return not self.next_budgets()

    @property
    def in_words(self) -> str:
        return "" if self.standings is None else f"best {self.standings.best.workflow}"

    @property
    def result(self) -> across_seeds.SeedResult:
        """For a comparison with other seeds."""
        config = self.config
        red_agent = config.training.game.attacker
        return across_seeds.SeedResult(red_agent, config.seed, config.scheme, self.trials, self.standings)

    def workflow_of(self, trial: Trial) -> Workflow:
        """Return a trial's order."""
        return Workflow.parse(trial.workflow, self.config.scheme)

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
        """Return the trial whose weights a new trial inherits."""
        accepted, rule = [trial for trial in self.trials if trial.accepted], self.config.inherit
        if rule == "none" or not accepted:
            return None
        if rule == "nearest":  # ties: the latest
            return min(reversed(accepted), key=lambda trial: self.workflow_of(trial).kendall_distance(workflow))
        return self.standings.best if rule == "best" and self.standings is not None else accepted[-1]

    def job(self, number: int, workflow: Workflow, budget: int, parent: Trial | None) -> TrialJob:
        """Return how an order is trained."""
        config = self.config
        policy = Path(config.from_policy) if config.from_policy else None
        if config.warmup_budget:
            policy = RunFiles(self.folder).warmup
        if parent is not None:
            policy = RunFiles(self.folder).trial(parent.id)
        return TrialJob(
            number=number,
            config=config.trial_config(number, workflow, budget),
            folder=RunFiles(self.folder).trial(number),
            parent_policy=policy,
            parent_sha256=None if policy is None else str(load_policy(policy).facts["sha256"]),
            test_episodes=config.test_episodes,
            test_seed=config.seed,
            log_episodes=config.log_episodes,
        )

    def tell(self, trial: Trial) -> None:
        """Add a trial, and tell the strategy."""
        self.trials.append(trial)
        self.__dict__.pop("standings", None)
        mean = trial.mean if trial.accepted else None
        self.strategy.tell(self.workflow_of(trial), mean, trial.return_se or 0.0)

    def table(self) -> tables.Table:
        """Return a row per order that passed the gate, the best first."""
        return across_seeds.ranking_table(self.standings, self.trials, self.config.training.game.red_agent)

    # ---- the plan

    def plan(self, view: View, session: Session) -> plans.Plan[None]:
        """The warm-up, then rounds of trials."""
        config = self.config
        if config.warmup_budget and not self.trials:
            warmup = BaseJob(config.warmup_config(), RunFiles(self.folder).warmup, config.test_episodes, config.seed)
            yield from gather({layout.WARMUP_KEY: plans.Task(run_base, warmup, "warm-up")})
        with _Logs(self) as logs:
            while budgets := self.next_budgets():
                first = len(self.trials)
                with session.choosing():
                    choices = self.strategy.ask(len(budgets))
                parents = [self.parent_of(choice.workflow) for choice in choices]
                jobs: list[TrialJob] = []
                for number, (choice, budget, parent) in enumerate(zip(choices, budgets, parents, strict=True), start=first):
                    jobs.append(self.job(number, choice.workflow, budget, parent))
                    logs.choices.write(choice_row(number, first, choice))
                    view.chosen(self, number, choice)
                logs.choices.sync()
                tasks = {job.number: plans.Task(run_trial, job, f"trial {job.number}", may_fail=True) for job in jobs}
                results: dict[int, Trial | plans.Lost] = {}
                for job, parent in zip(jobs, parents, strict=True):  # the ledger is written in the order of the numbers
                    while job.number not in results:
                        number, result = yield tasks
                        tasks, results[number] = {}, result
                    trial = self._row(job, results[job.number], parent)
                    logs.record(trial, self.used)
                    self.tell(trial)
                    view.recorded(self, trial)
        if self.standings is not None:
            self._keep_policy(self.standings.best)

    def _row(self, job: TrialJob, result: Trial | plans.Lost, parent: Trial | None) -> Trial:
        """Return the row of the ledger. How far a lost trial got is unknown, so all of its budget counts as used."""
        inherited = None if parent is None else parent.id
        if isinstance(result, plans.Lost):
            order, episodes = job.config.workflow, job.config.total_episodes
            return Trial(id=job.number, workflow=order, status=rows.Status.FAILED, episodes=episodes, parent=inherited)
        return replace(result, parent=inherited, policy=str(job.folder.relative_to(self.folder)))

    def _keep_policy(self, best: Trial) -> None:
        """Put the winner's policy into best/."""
        source, target = RunFiles(self.folder).trial(best.id), RunFiles(self.folder).best
        load_policy(source)  # it is whole
        target.mkdir(exist_ok=True)
        for name in (RunFiles.policy_tensors, RunFiles.policy_json):  # the JSON last: with it the copy is complete
            files.write_atomically(target / name, files.read_file(source / name))


class _Logs(ExitStack):
    """The files that only the driver writes: choices, logs, ledger, TensorBoard. What goes beyond the trials is cut off."""

    def __init__(self, search: PublishedSearch):
        super().__init__()
        self._run, known, config = RunFiles(search.folder), len(search.trials), search.config
        self.ledger = self._open(self._run.ledger, Trial, lambda row: row.id < known)
        self.choices = self._open(self._run.choices, rows.ChoiceRow, lambda row: row.iteration < known)
        self.training = self._open(self._run.training_log, rows.UpdateRow, lambda row: row.trial < known)
        self.episodes = None
        if config.log_episodes:
            self.episodes = self._open(self._run.episode_log, rows.EpisodeRow, lambda row: row.trial < known)
        board = TensorBoard(self._run.tensorboard if config.tensorboard else None, search.used + 1)
        self.board = self.enter_context(closing(board))

    def _open(self, path: Path, kind: type[R], keep: Callable[[R], bool]) -> csv_logs.CsvLog[R]:
        return self.enter_context(closing(csv_logs.CsvLog(path, kind, keep)))

    def record(self, trial: Trial, used_before: int) -> None:
        """Write a trial's rows, the ledger's last: a trial in the ledger is complete. A lost one has no others."""
        if trial.status != rows.Status.FAILED:
            own = RunFiles(self._run.trial(trial.id))
            for row in csv_logs.read_rows(own.training_log, rows.UpdateRow):
                counted = replace(row, sampled=used_before + row.episodes)
                self.training.write(counted)
                self.board.add(counted)
            self.training.sync()
            if self.episodes is not None:
                for episode in csv_logs.read_rows(own.episode_log, rows.EpisodeRow):
                    self.episodes.write(episode)
                self.episodes.sync()
        self.ledger.write(trial)
        self.ledger.sync()
