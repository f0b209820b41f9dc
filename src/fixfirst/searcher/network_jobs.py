"""The jobs of a search with one network for all orders: a round of training, and cross-play in the end.

The policy that is told order A may keep order B better than the one that is told B. So cross-play looks, under every order
and on episodes for selection, for the best order to tell; what that earns is measured on fresh episodes.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fixfirst.base import errors
from fixfirst.learner import driver
from fixfirst.learner.training import Training
from fixfirst.orders.order import Workflow
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import load_policy
from fixfirst.runs import sessions
from fixfirst.searcher.jobs import Measured, OrdersJob, TellJob, judge_order, play_under, read_results, write_results
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.pricing import OrderResult

FINALISTS, CLOSER = 2, 5  # so many of the orders to tell are tried again, on so many times the episodes


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
    """Return what the policy earns under each order, told the order that serves it best there."""
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
    """Find what serves a policy best under an order: all prompts are tried, the best few again for longer."""
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
