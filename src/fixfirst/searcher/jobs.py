"""The jobs of searches, wherever they run. A job holds all it needs, its folder all it leaves.

    run_base     train a defender without an order: what trials inherit, and what replicates begin from
    run_trial    train, gate and evaluate one order (the published search)
    run_round    train one network on some orders, then play all tried ones (one network for all orders)
    run_cross    cross-play: the policy that is told order A may keep order B better than the one that is told B; so under
                 every order, on episodes for selection, the best order to tell it is looked for, and what it then earns is
                 measured on fresh episodes

Each returns None if it was interrupted. Begun again, it reads its result from its folder, or goes on from a checkpoint.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import distributions, errors, files
from fixfirst.learner import checkpoint, driver
from fixfirst.learner.tournament import train_in
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import Begin
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.runs import manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Trial
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import intervals, pricing
from fixfirst.stats.evaluation import Evaluation

TELL_EVERY_S = 0.1
TAIL = -60.0  # episodes that earn less are disasters
FINALISTS, CLOSER = 2, 5  # so many of the orders to tell are tried again, on so many times the episodes


class JobProgress(NamedTuple):
    """How far a job is."""

    episodes: int
    env_reward: float
    compliance: float | None
    done: int = 0  # orders measured by cross-play, or episodes of attackers; 0: the search's own training


Message = str | JobProgress  # what a job tells: that something went wrong and was dealt with, or how far it is
TellJob = Callable[[Message], None]


class NamedJob:
    """A job that knows its name: a result in its folder counts only if it is of this very job."""

    folder: Path

    @property
    def digest(self) -> str:
        """A hash of all that the job's result depends on."""
        facts = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        places = ("folder", "parent_policy", "attackers")
        return files.sha256(json.dumps({name: fact for name, fact in facts.items() if name not in places}).encode())


def _plain(value: Any) -> Any:
    """Return a field of a job as JSON can say it."""
    if isinstance(value, TrainConfig):
        return value.model_dump(mode="json")
    if isinstance(value, Workflow):
        return str(value)
    return list(map(str, value)) if isinstance(value, tuple) else value if not isinstance(value, Path) else None


# ---------------------------------------------------------------- training without an order


@dataclass(frozen=True)
class BaseJob(NamedJob):
    """A training without an order, evaluated on the search's test episodes."""

    config: TrainConfig
    folder: Path
    test_episodes: int
    test_seed: int

    def is_done(self) -> bool:
        """Is the policy of this very job there? Else it is trained again, with the same result. Clears what a kill left."""
        try:
            result, policy = files.read_document(RunFiles(self.folder).result, "result"), load_policy(self.folder).facts
            done = result["job"] == self.digest and result["policy_sha256"] == policy["sha256"]
        except (OSError, ValueError, KeyError, errors.PolicyError):
            return False
        if done:
            checkpoint.delete(self.folder)  # a kill may have come between its result and this
        return bool(done)


def run_base(job: BaseJob, tell: TellJob, interrupt: object) -> bool | None:
    """Train the defender that knows no order yet."""
    with manifest.job_folder(job.folder):
        started = time.perf_counter()
        with train_in(job.folder, job.config, _seldom(tell), interrupt, Begin(logs=())) as training:
            if training is None:
                return None
            tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            facts = {"episodes": training.episodes, "seconds": round(seconds, 3)}
            driver.conclude(job.folder, {"job": job.digest, "evaluation": asdict(tested), **facts})
        return True


def _seldom(tell: TellJob) -> Callable[[str | rows.UpdateRow], None]:
    """Pass on what went wrong, and some of the updates: enough to watch."""
    last = 0.0

    def tell_some(message: str | rows.UpdateRow) -> None:
        nonlocal last
        if isinstance(message, str):
            tell(message)
        elif (now := time.perf_counter()) - last > TELL_EVERY_S:
            tell(_progress(message))
            last = now

    return tell_some


def _progress(row: rows.UpdateRow) -> JobProgress:
    return JobProgress(row.episodes, row.env_reward, row.compliance)


# ---------------------------------------------------------------- one order, the published way


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

    def finished(self) -> Trial | None:
        """Return the result in the job's folder, if it is complete, of this very job, and of the policy that lies there."""
        try:
            result = files.read_document(RunFiles(self.folder).result, "result")
            if result["job"] != self.digest:
                return None
            trial = Trial.from_values(result["trial"])
            return (
                trial if trial.policy_sha256 == files.sha256(files.read_file(RunFiles(self.folder).policy_tensors)) else None
            )
        except (OSError, ValueError, KeyError, TypeError, errors.RunDirError):
            return None


def run_trial(job: TrialJob, tell: TellJob, interrupt: object) -> Trial | None:
    """Train, gate and evaluate one order; return its row of the ledger."""
    with manifest.job_folder(job.folder):
        done = job.finished()
        if done is not None:
            checkpoint.delete(job.folder)  # a kill may have come between
            return done
        return _run_trial(job, tell, interrupt)


def _run_trial(job: TrialJob, tell: TellJob, interrupt: object) -> Trial | None:
    started = time.perf_counter()
    start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
    begin = Begin(start, job.number, (rows.UpdateRow, rows.EpisodeRow) if job.log_episodes else (rows.UpdateRow,))
    with train_in(job.folder, job.config, _seldom(tell), interrupt, begin) as training:
        if training is None:
            return None
        tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
        seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
        trial = _trial_row(job, training, tested, seconds)
        facts = {"job": job.digest, "trial": trial.values()}
        driver.conclude(job.folder, facts | {"evaluation": asdict(tested)})
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


# ---------------------------------------------------------------- one network for all orders


@dataclass(frozen=True)
class RoundJob(NamedJob):
    """One round of one replicate: train on some orders, then play all that were tried so far."""

    number: int  # of the replicate
    round: int
    config: TrainConfig  # of the whole training with orders
    folder: Path
    parent_policy: Path  # what it starts from in the first round
    orders: tuple[Workflow, ...]  # they take turns
    played_orders: tuple[Workflow, ...]  # orders whose returns are asked for
    since: int  # training episodes before this round
    until: int  # and after it
    episodes: int  # on which each of these is played
    seed: int  # of these


def run_round(job: RoundJob, tell: TellJob, interrupt: object) -> list[pricing.OrderResult] | None:
    """Train for a round; return what each order that is played earned."""
    with manifest.job_folder(job.folder):
        done = read_results(job, job.played_orders)
        if done is not None:
            return done
        with (
            closing(Training(job.config, job.number)) as training,
            driver.Driver(job.folder, training, training.identity) as run,
        ):
            return _train_and_play(job, training, run, tell, interrupt)


def _train_and_play(
    job: RoundJob, training: Training, run: driver.Driver, tell: TellJob, interrupt: object
) -> list[pricing.OrderResult] | None:
    for complaint in run.complaints:
        tell(complaint)
    if not job.since and not training.updates:
        training.inherit(load_policy(job.parent_policy).weights)
    if training.episodes not in (job.since, job.until):  # the latter if only the playing was cut short
        raise errors.RunDirError(
            f"{job.folder}: the checkpoint of {job.since:,} episodes is damaged or gone, and round {job.round} goes on from "
            "it; begin a new run"
        )
    training.play_orders(job.orders)
    while training.episodes < job.until:
        if interrupt:
            return None
        tell(_progress(training.step().row))
    run.save()
    training.save_policy(job.folder)
    network = Network.of(training.learner.weights)
    results = [
        judge_order(
            play_under(network, training.spec, job.config, order, order, "round", job.episodes, job.seed), order, job.config
        )
        for order in job.played_orders
    ]
    write_results(job, results)
    return results


@dataclass(frozen=True)
class CrossJob(NamedJob):
    """Cross-play of one replicate's policy."""

    number: int
    config: TrainConfig
    folder: Path
    trained: int  # episodes, after all rounds
    prompts: tuple[Workflow, ...]  # orders it may be told; none: it is told the one it has to keep
    enforced_orders: tuple[Workflow, ...]
    selection_episodes: int
    episodes: int  # to measure on, others than those
    seed: int


def run_cross(job: CrossJob, tell: TellJob, interrupt: object) -> list[pricing.OrderResult] | None:
    """Return what the policy earns under each order, told the order that serves it best there."""
    with manifest.job_folder(job.folder):
        done = read_results(job, (*job.prompts, *job.enforced_orders))
        if done is not None:
            return done
        network, spec = restore_policy(job)
        results: list[pricing.OrderResult] = []
        for order in job.enforced_orders:
            if interrupt:
                return None
            prompt, purpose = _best_prompt(job, network, spec, order), f"measure/{job.number}"
            played = play_under(network, spec, job.config, order, prompt, purpose, job.episodes, job.seed)
            results.append(judge_order(played, prompt, job.config))
            tell(JobProgress(job.trained, results[-1].mean, results[-1].compliance, done=len(results)))
        write_results(job, results)
        return results


def restore_policy(job: CrossJob) -> tuple[Network, PolicySpec]:
    """Return what the replicate has learned; a damaged policy file is written again from the checkpoint."""
    try:
        policy = load_policy(job.folder)
        if (policy.config, policy.facts["episodes"]) == (job.config.model_dump(mode="json"), job.trained):
            return policy.network, policy.spec
    except (errors.PolicyError, KeyError):
        pass
    with closing(Training(job.config, job.number)) as training:
        checkpoint.restore(job.folder, training, training.identity)
        if training.episodes != job.trained:
            raise errors.RunDirError(f"{job.folder}: its policy is damaged or of another run, and so is its checkpoint")
        training.play_orders(job.enforced_orders)
        training.save_policy(job.folder)
        return Network.of(training.learner.weights), training.spec


def _best_prompt(job: CrossJob, network: Network, spec: PolicySpec, order: Workflow) -> Workflow:
    """Find what serves a policy best under an order: all prompts are tried, the best few again for longer."""
    left = job.prompts or (order,)
    for look, episodes in enumerate((job.selection_episodes, CLOSER * job.selection_episodes)):
        if len(left) == 1:
            break
        played = (
            play_under(network, spec, job.config, order, prompt, f"selection/{look}", episodes, job.seed) for prompt in left
        )
        means = [float(one.returns.mean()) for one in played]
        left = tuple(left[i] for i in np.argsort(means, kind="stable")[::-1][:FINALISTS])
    return left[0]


def play_under(
    network: Network,
    spec: PolicySpec,
    config: TrainConfig,
    order: Workflow,
    prompt: Workflow,
    purpose: str,
    episodes: int,
    seed: int,
) -> evaluation.EpisodeBatch:
    """Play a policy that is told one order and has to keep another."""
    player = PolicyTable(network, (order,), spec=spec, prompts=(prompt,))
    return evaluation.play(player, config.game, episodes=episodes, seed=seed, purpose=purpose, workflows=(order,))


def judge_order(played: evaluation.EpisodeBatch, prompt: Workflow, config: TrainConfig) -> pricing.OrderResult:
    """Say what was earned under an order, and how it was kept. prompt: what the policy was told."""
    (order,), returns, counts = played.rollout.workflows, played.returns, played.counts(config.judging)
    assert counts is not None
    episodes, broken = len(returns), counts.judged - counts.compliant
    rate, error = float(broken.mean()), intervals.standard_error(broken)
    return pricing.OrderResult(
        order=order,
        prompt=prompt,
        mean=float(returns.mean()),
        standard_error=intervals.standard_error(returns),
        tail=float((returns < TAIL).mean()),
        violations=rate,
        violations_high=rate
        + distributions.normal_quantile(distributions.CONFIDENCE) * error
        + 3.0 / episodes,  # the last term: none seen in n is at most 3 / n
        compliance=_share(counts.compliant, counts.judged),
        contested=_share(counts.contested_compliant, counts.contested),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=tuple(played.costs(order.scheme).mean(axis=1).tolist()),
    )


def _share(hits: np.ndarray, of: np.ndarray) -> float | None:
    total = int(of.sum())
    return int(hits.sum()) / total if total else None


def read_results(job: NamedJob, orders: Sequence[Workflow]) -> list[pricing.OrderResult] | None:
    """Return what a job left in its folder, if it is complete and of this very job. orders: those it may speak of."""
    by_name = {str(order): order for order in orders}
    try:
        document = files.read_document(RunFiles(job.folder).result, "result")
        if document["job"] != job.digest:
            return None
        found = (row | {name: by_name[row[name]] for name in ("order", "prompt")} for row in document["results"])
        return [pricing.OrderResult(**row | {"costs": tuple(row["costs"])}) for row in found]
    except (OSError, ValueError, KeyError):
        return None


def write_results(job: NamedJob, results: Sequence[pricing.OrderResult]) -> None:
    rows = [vars(result) | {"order": str(result.order), "prompt": str(result.prompt)} for result in results]
    files.write_document(RunFiles(job.folder).result, "result", {"job": job.digest, "results": rows})
