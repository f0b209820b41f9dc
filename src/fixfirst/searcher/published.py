"""The published search: one training per order. Ask for orders, train and judge each, until the episode budget is used.

Trials go in rounds; a round's orders, budgets and parents are fixed before it begins and depend only on the ledger's rounds
before it, so the outcome is the same for any number of workers, and after any interruption: a round that was cut short is
begun again, and reads what is finished of it from the trials' folders.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from fixfirst.base import errors, files, plans, seeds, tables
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.policy_file import load_policy
from fixfirst.runs import layout, manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import BaseJob, TrialJob, run_base, run_trial
from fixfirst.searcher.strategy import FAILED, NON_COMPLIANT, Choice, Strategy, StrategyConfig, TrialOutcome
from fixfirst.settings.search import SearchConfig
from fixfirst.stats import across_seeds

R = TypeVar("R", bound=rows.Row)


@dataclass
class PublishedSearch:
    """What is known of a search; all of it follows from the ledger."""

    config: SearchConfig
    folder: Path
    trials: list[Trial] = field(default_factory=list)
    answer: None = None  # what one network for all orders ends with
    _ranked: tuple[int, across_seeds.RankedTrials | None] = (
        0,
        None,
    )  # the standings after so many trials; a live view asks often

    def __post_init__(self) -> None:
        config = self.config
        strategy = StrategyConfig(
            name=config.strategy,
            seed=seeds.stream_seed(config.seed, "search"),
            beta=config.gp_beta,
            beta_schedule=config.gp_beta_schedule,
            initial_orders=config.initial_orders,
        )
        self.strategy = Strategy(strategy, config.scheme)

    def reload(self) -> None:
        """Go to the last complete round of the ledger."""
        ledger = across_seeds.read_trials(self.folder)
        if len(ledger) < len(self.trials):
            raise errors.RunDirError(f"{RunFiles(self.folder).ledger}: has lost trials; was it changed?")
        while (size := len(self.next_budgets())) and len(self.trials) + size <= len(ledger):
            for trial in ledger[len(self.trials) :][:size]:
                self.tell(trial)
        if not size and len(self.trials) < len(ledger):
            raise errors.RunDirError(
                f"{self.folder}: {RunFiles.ledger} has more trials than {RunFiles.config} allows; was it changed?"
            )

    @property
    def used(self) -> int:
        """Training episodes so far."""
        return self.config.warmup_budget + sum(trial.episodes for trial in self.trials)

    def standings(self) -> across_seeds.RankedTrials | None:
        """Accepted orders by return; None before there is one."""
        if self._ranked[0] != len(self.trials):
            self._ranked = len(self.trials), across_seeds.rank_trials(self.trials, self.scheme, self.config.test_episodes)
        return self._ranked[1]

    @property
    def is_done(self) -> bool:
        """Is there nothing left to do?"""
        return not self.next_budgets()

    @property
    def result(self) -> across_seeds.SeedResult:
        """For a comparison with other seeds."""
        red_agent = self.config.training.game.attacker
        return across_seeds.SeedResult(red_agent, self.config.seed, self.scheme, self.trials, self.standings())

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
        """Return the trial whose weights a new trial inherits."""
        rows, rule = [trial for trial in self.trials if trial.accepted], self.config.inherit
        if rule == "none" or not rows:
            return None
        if rule == "nearest":  # ties: the latest
            return min(reversed(rows), key=lambda row: self.workflow_of(row).kendall_distance(workflow))
        best = self.standings() if rule == "best" else None
        return rows[-1] if best is None else best.best

    def job(self, number: int, workflow: Workflow, budget: int, parent: Trial | None) -> TrialJob:
        config = self.config
        policy = Path(config.from_policy) if config.from_policy else None
        if config.warmup_budget:
            policy = RunFiles(self.folder).warmup
        if parent is not None:
            policy = RunFiles(self.folder).trial(parent.id)
            if not _holds(policy, parent):
                raise errors.RunDirError(
                    f"{policy}: its policy, which trial {number} inherits, is damaged, or not that of {RunFiles.ledger}"
                )
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
        """Remember a trial, and tell the strategy."""
        self.trials.append(trial)
        outcome = {rows.Status.NON_COMPLIANT: NON_COMPLIANT, rows.Status.FAILED: FAILED}.get(trial.status)
        if outcome is None:
            outcome = TrialOutcome.compliant(trial.earned, trial.return_se or 0.0)
        self.strategy.tell(self.workflow_of(trial), outcome)

    def table(self) -> tables.Table:
        """Return a row per order that passed the gate, the best first."""
        return across_seeds.ranking_table(self.standings(), self.trials, self.config.training.game.red_agent)

    # ---- as a plan of jobs

    def plan(self, view: Any, session: manifest.Session, opened: ExitStack) -> plans.Plan[None]:
        """Plan the warm-up, then rounds of trials."""
        logs = SearchLogs(self.folder, self.config, self.trials, self.used, opened)
        return self._jobs(view, session, logs)

    def _jobs(self, view: Any, session: manifest.Session, logs: "SearchLogs") -> plans.Plan[None]:
        config = self.config
        warmup = BaseJob(config.warmup_config(), RunFiles(self.folder).warmup, config.test_episodes, config.seed)
        if config.warmup_budget and not warmup.is_done():
            yield from plans.gather({layout.WARMUP_KEY: plans.Task(run_base, warmup, "warm-up")})
        while budgets := self.next_budgets():
            first = len(self.trials)
            with session.choosing():
                choices = self.strategy.ask(len(budgets))
            parents = [self.parent_of(choice.workflow) for choice in choices]
            chosen: dict[int, TrialJob] = {}
            for place, (choice, budget) in enumerate(zip(choices, budgets, strict=True)):
                number = first + place
                chosen[number] = self.job(number, choice.workflow, budget, parents[place])
                logs.write_choice(number, first, choice)
                view.chosen(self, number, choice)
            logs.sync_choices()
            tasks = {n: plans.Task(run_trial, job, f"trial {n}", may_fail=True) for n, job in chosen.items()}
            results: dict[int, Trial | plans.Lost] = {}
            while len(self.trials) < first + len(chosen):
                number, result = yield tasks
                tasks, results[number] = {}, result
                while (number := len(self.trials)) in results:  # the ledger is written in the order of the numbers
                    trial = self._row(chosen[number], results.pop(number), parents[number - first])
                    logs.record(trial, self.used)
                    self.tell(trial)
                    view.recorded(self, trial)
        self._keep_best()
        session.finished = True

    def _row(self, job: TrialJob, result: Trial | plans.Lost, parent: Trial | None) -> Trial:
        """Return the row of the ledger. How far a lost trial got is unknown, so all of its budget counts as used."""
        inherited = None if parent is None else parent.id
        if isinstance(result, plans.Lost):
            order, episodes = job.config.workflow, job.config.total_episodes
            return Trial(id=job.number, workflow=order, status=rows.Status.FAILED, episodes=episodes, parent=inherited)
        return replace(result, parent=inherited, policy=str(job.folder.relative_to(self.folder)))

    def _keep_best(self) -> None:
        """Put the winner's policy into best/: the one that the ledger means, or none."""
        ranked = self.standings()
        if ranked is None:
            return
        source, target = RunFiles(self.folder).trial(ranked.best.id), RunFiles(self.folder).best
        if _holds(target, ranked.best):
            return
        if not _holds(source, ranked.best):
            raise errors.RunDirError(
                f"{RunFiles(source).policy_tensors}: damaged, or not the one whose sha256 stands in {RunFiles.ledger}: the "
                f"policy of the best order, {ranked.best.workflow}, is lost; the ranking is not "
                f"({errors.command('report', self.folder)})"
            )
        target.mkdir(exist_ok=True)
        for name in (RunFiles.policy_tensors, RunFiles.policy_json):  # the JSON last: with it the copy is complete
            files.write_atomically(target / name, files.read_file(source / name))


def _holds(folder: Path, trial: Trial) -> bool:
    """Does a folder hold a trial's policy, undamaged?"""
    try:
        return load_policy(folder).facts["sha256"] == trial.policy_sha256
    except errors.PolicyError:
        return False


class SearchLogs:
    """The files that only the driver writes: choices, logs, ledger, TensorBoard.

    Opened for a search with these trials that has used so many episodes: what goes beyond them is cut off. opened: closes
    all of them, also when one cannot be flushed.
    """

    def __init__(self, folder: Path, config: SearchConfig, trials: Sequence[Trial], used: int, opened: ExitStack):
        self._folder, self._opened = folder, opened
        known = len(trials)
        self._ledger = self._log(RunFiles.ledger, Trial, lambda row: row.id < known)
        self._choices = self._log(RunFiles.choices, rows.ChoiceRow, lambda row: row.iteration < known)
        self._training = self._log(RunFiles.training_log, rows.UpdateRow, lambda row: row.trial < known)
        self._episodes = (
            self._log(RunFiles.episode_log, rows.EpisodeRow, lambda row: row.trial < known) if config.log_episodes else None
        )
        self._board = rows.TensorBoard(RunFiles(folder).tensorboard if config.tensorboard else None, used + 1)
        opened.callback(self._board.close)

    def _log(self, name: str, kind: type[R], keep: Callable[[R], bool]) -> rows.CsvLog[R]:
        log = rows.CsvLog(self._folder / name, kind, keep)
        self._opened.callback(log.close)
        return log

    def write_choice(self, number: int, first: int, choice: Choice) -> None:
        """Write a row that lets a reader redo the choice from the ledger's rows before `first`."""
        self._choices.write(choice_row(number, first, choice))

    def sync_choices(self) -> None:
        self._choices.sync()

    def record(self, trial: Trial, used_before: int) -> None:
        """Write a trial's rows, the ledger's last: a trial in the ledger is complete. A lost one has no others."""
        own = RunFiles(self._folder).trial(trial.id)
        if trial.status != rows.Status.FAILED:
            self._copy_logs(own, used_before)
        self._ledger.write(trial)
        self._ledger.sync()

    def _copy_logs(self, own: Path, used_before: int) -> None:
        for row in rows.iterate_rows(RunFiles(own).training_log, rows.UpdateRow):
            counted = replace(row, sampled=used_before + row.episodes)
            self._training.write(counted)
            self._board.add(counted)
        self._training.sync()
        if self._episodes is not None:
            for episode in rows.iterate_rows(RunFiles(own).episode_log, rows.EpisodeRow):
                self._episodes.write(episode)
            self._episodes.sync()


def choice_row(number: int, first: int, choice: Choice) -> rows.ChoiceRow:
    """Return a choice with what the strategy believed. number: of the trial; first: of its round."""
    beliefs: dict[str, Any] = {"workflow": str(choice.workflow)}
    for place, candidate in enumerate(choice.top, start=1):
        numbers = {name: getattr(candidate, name) for name in ("ucb", "mean", "std")}
        beliefs |= numbers if place == 1 else {}
        of_place: dict[str, Any] = {"workflow": str(candidate.workflow), **numbers}
        beliefs |= {f"top{place}_{name}": value for name, value in of_place.items()}
    return rows.ChoiceRow(iteration=number, round=first, how=choice.how, beta=choice.beta, **beliefs)
