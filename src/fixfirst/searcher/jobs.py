"""The jobs of searches, wherever they run. A job holds all it needs, its folder all it leaves.

    run_base     train a defender without an order: what trials inherit, and what replicates begin from
    run_trial    train, gate and evaluate one order (`published.py`)
    run_round    train one network on some orders, then play all tried ones
    run_cross    cross-play: find the order that a policy is best told under each order
    run_attack   let attackers learn against a defender under one order (`exploiting.py`)
    run_adapt    let a defender learn against attackers

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
from fixfirst.learner import driver
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.learner.training import Training, share_of
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import load_policy
from fixfirst.runs import rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import intervals
from fixfirst.stats.pricing import OrderResult

TAIL = -60.0  # episodes that earn less are disasters
FINALISTS, CLOSER = 2, 5  # so many of the orders to tell are tried again, on so many times the episodes


class Measured(NamedTuple):
    """How far a job is that is no training of the search: orders measured by cross-play, or episodes against attackers."""

    done: int


Message = str | rows.UpdateRow | Measured  # what a job tells; text: something went wrong and was dealt with
TellJob = Callable[[Message], None]


class NamedJob:
    """A job that knows its name: a result in its folder counts only if it is of this very job."""

    folder: Path

    @property
    def digest(self) -> str:
        """A hash of all that the job's result depends on; where its files are is not part of it."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        facts = {name: _plain(getattr(self, name)) for name in names if name not in ("folder", "parent_policy", "attackers")}
        return files.sha256(json.dumps(facts).encode())

    def result(self) -> dict[str, Any] | None:
        """Return what the job left in its folder, if it is complete and of this very job."""
        try:
            document = files.read_document(RunFiles(self.folder).result, "result")
        except (OSError, ValueError):
            return None
        return document if document.get("job") == self.digest else None


def _plain(value: Any) -> Any:
    """Return a field of a job as JSON can say it."""
    if isinstance(value, TrainConfig):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return str(value) if isinstance(value, Workflow) else value


@dataclass(frozen=True)
class BaseJob(NamedJob):
    """A training without an order, evaluated on the search's test episodes."""

    config: TrainConfig
    folder: Path
    test_episodes: int
    test_seed: int


def run_base(job: BaseJob, tell: TellJob, interrupt: object) -> bool | None:
    """Train the defender that knows no order yet."""
    with sessions.job_folder(job.folder):
        if job.result() is not None:
            driver.delete_checkpoints(job.folder)  # a kill may have come between its result and this
            return True
        started = time.perf_counter()
        with train_in(job.folder, job.config, tell, interrupt, Begin(log=False)) as training:
            if training is None:
                return None
            tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            facts = {"episodes": training.episodes, "seconds": round(seconds, 3)}
            driver.conclude(job.folder, {"job": job.digest, "evaluation": asdict(tested), **facts})
        return True


class OrdersJob(NamedJob):
    """A job that plays one network under several orders."""

    config: TrainConfig
    seed: int  # of the episodes


def play_under(
    job: OrdersJob, network: Network, spec: PolicySpec, order: Workflow, prompt: Workflow, purpose: str, episodes: int
) -> evaluation.EpisodeBatch:
    """Play a policy that is told one order, the prompt, and has to keep another."""
    player = PolicyTable(network, (order,), spec=spec, prompts=(prompt,))
    return evaluation.play(player, job.config.game, episodes=episodes, seed=job.seed, purpose=purpose, workflows=(order,))


def judge_order(played: evaluation.EpisodeBatch, prompt: Workflow, config: TrainConfig) -> OrderResult:
    """Measure what was earned under an order, and how it was kept. prompt: what the policy was told."""
    (order,), returns, counts = played.rollout.workflows, played.returns, played.counts(config)
    assert counts is not None
    episodes, earned = len(returns), intervals.estimate(returns)
    broken = intervals.estimate(counts.judged - counts.compliant)
    return OrderResult(
        workflow=str(order),
        prompts=(str(prompt),),
        mean=earned.mean,
        standard_error=earned.standard_error,
        tail=float((returns < TAIL).mean()),
        violations=broken.mean,
        violations_high=broken.mean
        + distributions.normal_quantile(distributions.CONFIDENCE) * broken.standard_error
        + 3.0 / episodes,  # the last term: none seen in n is at most 3 / n
        compliance=share_of(counts.compliant, counts.judged),
        contested=share_of(counts.contested_compliant, counts.contested),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=tuple(played.costs(order.scheme).mean(axis=1).tolist()),
    )


def read_results(job: OrdersJob) -> list[OrderResult] | None:
    """Return what was earned under orders, if the job's folder has it."""
    if (document := job.result()) is None:
        return None
    lists = ("prompts", "costs")
    return [OrderResult(**row | {name: tuple(row[name]) for name in lists}) for row in document["results"]]


def write_results(job: OrdersJob, results: Sequence[OrderResult]) -> None:
    """Leave what was earned under orders in the job's folder."""
    document = {"job": job.digest, "results": [asdict(result) for result in results]}
    files.write_document(RunFiles(job.folder).result, "result", document)


@dataclass(frozen=True)
class RoundJob(OrdersJob):
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


def run_round(job: RoundJob, tell: TellJob, interrupt: object) -> list[OrderResult] | None:
    """Train for a round; return what each order that is played earned."""
    with sessions.job_folder(job.folder):
        if (done := read_results(job)) is not None:
            return done
        with (
            closing(Training(job.config, job.number)) as training,
            driver.Driver(job.folder, training, training.identity, tell) as run,
        ):
            if not job.since and not training.updates:
                training.inherit(load_policy(job.parent_policy).weights)
            if training.episodes not in (job.since, job.until):  # the latter if only the playing was cut short
                raise errors.RunDirError(
                    f"{job.folder}: the checkpoint of {job.since:,} episodes is damaged or gone, and round {job.round} goes "
                    "on from it; begin a new run"
                )
            training.play_orders(job.orders)
            while training.episodes < job.until:
                if interrupt:
                    return None
                tell(training.step().row)
            run.save()
            training.save_policy(job.folder)
            network, spec = Network.of(training.learner.weights), training.spec
        results = []
        for order in job.played_orders:
            played = play_under(job, network, spec, order, order, "round", job.episodes)
            results.append(judge_order(played, order, job.config))
        write_results(job, results)
        return results


@dataclass(frozen=True)
class CrossJob(OrdersJob):
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


def run_cross(job: CrossJob, tell: TellJob, interrupt: object) -> list[OrderResult] | None:
    """Return the returns of the policy under each order, prompted with the order that serves it best there."""
    with sessions.job_folder(job.folder):
        if (done := read_results(job)) is not None:
            return done
        policy, results = load_policy(job.folder), []
        network, spec = policy.network, policy.spec
        for order in job.enforced_orders:
            if interrupt:
                return None
            prompt, purpose = _best_prompt(job, network, spec, order), f"measure/{job.number}"
            played = play_under(job, network, spec, order, prompt, purpose, job.episodes)
            results.append(judge_order(played, prompt, job.config))
            tell(Measured(len(results)))
        write_results(job, results)
        return results


def _best_prompt(job: CrossJob, network: Network, spec: PolicySpec, order: Workflow) -> Workflow:
    """Find what serves a policy best under an order: all prompts are tried, the best few again for longer.

    The policy that is told order A may keep order B better than the one that is told B. This looks on episodes for
    selection; what the best prompt earns is measured on fresh ones.
    """
    left = job.prompts or (order,)
    for look, episodes in enumerate((job.selection_episodes, CLOSER * job.selection_episodes)):
        if len(left) == 1:
            break
        means = []
        for prompt in left:
            played = play_under(job, network, spec, order, prompt, f"selection/{look}", episodes)
            means.append(float(played.returns.mean()))
        left = tuple(left[i] for i in np.argsort(means, kind="stable")[::-1][:FINALISTS])
    return left[0]
