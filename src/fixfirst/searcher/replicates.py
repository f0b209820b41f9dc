"""The jobs of a replicate, one network trained on all orders.

RoundJob     train on some orders, then play all tried ones
CrossJob     cross-play: the policy that is told order A may keep order B better than the one that is told B; so under
             every order, on episodes for selection, the best order to tell it is looked for, and what it then earns is
             measured on fresh episodes
"""

from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fixfirst.base import errors
from fixfirst.learner import checkpoint
from fixfirst.learner.training import Training
from fixfirst.orders.order import Workflow
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.spec import PolicySpec
from fixfirst.searcher import order_results
from fixfirst.searcher.jobs import JobProgress, SearchJob, TellJob, progress_of
from fixfirst.searcher.order_results import judge_order, play_under
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.pricing import OrderResult

FINALISTS, CLOSER = 2, 5  # so many of the orders to tell are tried again, on so many times the episodes


class State(NamedTuple):
    """A training between two rounds, as its checkpoint holds it."""

    tensors: dict[str, np.ndarray]
    numbers: dict[str, Any]


class RoundResult(NamedTuple):
    """What orders earned after a round; the training's state, unless the result was read from a file."""

    results: list[OrderResult]
    state: State | None = None


def _restore(training: Training, job: "RoundJob | CrossJob") -> list[str]:
    """Go on from the last round, or from its checkpoint; return what was wrong with newer ones."""
    if job.state is None:
        return checkpoint.restore(job.folder, training, training.identity)
    training.restore(*job.state)
    return []


@dataclass(frozen=True)
class RoundJob(SearchJob[RoundResult]):
    """One round of one replicate: train on some orders, then play all that were tried so far."""

    ENDS_TRAINING: ClassVar = False

    number: int  # of the replicate
    round: int
    config: TrainConfig  # of the whole training with orders
    start: Weights | None  # what it starts from in the first round
    state: State | None  # after the round before; None: it lies in the folder
    orders: tuple[Workflow, ...]  # they take turns
    played_orders: tuple[Workflow, ...]  # orders whose returns are asked for
    since: int  # training episodes before this round
    until: int  # and after it
    episodes: int  # on which each of these is played
    seed: int  # of these

    def work(self, tell: TellJob, interrupt: object) -> tuple[RoundResult, dict[str, Any]] | None:
        """Train for a round; return what each order that is played earned."""
        with closing(Training(self.config, self.number)) as training:
            for complaint in _restore(training, self):
                tell(complaint)
            if self.start is not None and not training.updates:
                training.inherit(self.start)
            if training.episodes not in (self.since, self.until):  # the latter if only the playing was cut short
                raise errors.RunDirError(
                    f"{self.folder}: the checkpoint of {self.since:,} episodes is damaged or gone, and round {self.round} "
                    "goes on from it; begin a new run"
                )
            training.play_orders(self.orders)
            while training.episodes < self.until:
                if interrupt:
                    return None
                tell(progress_of(training.step().row))
            checkpoint.save(self.folder, training, training.identity)
            results = self._play(Network.of(training.learner.weights), training.spec)
            state = State(training.tensors(), training.numbers())
            return RoundResult(results, state), order_results.as_document(results)

    def _play(self, network: Network, spec: PolicySpec) -> list[OrderResult]:
        played = (
            play_under(network, spec, self.config, order, order, "round", self.episodes, self.seed)
            for order in self.played_orders
        )
        return [judge_order(batch, order, self.config) for batch, order in zip(played, self.played_orders, strict=True)]

    def read(self, document: dict[str, Any]) -> RoundResult:
        """Return what the orders earned."""
        return RoundResult(order_results.from_document(document, self.played_orders))


@dataclass(frozen=True)
class CrossJob(SearchJob[list[OrderResult]]):
    """Cross-play of one replicate's policy, which is written before."""

    ENDS_TRAINING: ClassVar = False

    number: int
    config: TrainConfig
    state: State | None  # after all rounds; None: it lies in the folder
    trained: int  # episodes, after all rounds
    prompts: tuple[Workflow, ...]  # orders it may be told; none: it is told the one it has to keep
    enforced_orders: tuple[Workflow, ...]
    selection_episodes: int
    episodes: int  # to measure on, others than those
    seed: int

    def work(self, tell: TellJob, interrupt: object) -> tuple[list[OrderResult], dict[str, Any]] | None:
        """Return what the policy earns under each order, told the order that serves it best there."""
        network, spec = self._write_policy()
        results: list[OrderResult] = []
        for order in self.enforced_orders:
            if interrupt:
                return None
            prompt, purpose = self._best_prompt(network, spec, order), f"measure/{self.number}"
            played = play_under(network, spec, self.config, order, prompt, purpose, self.episodes, self.seed)
            results.append(judge_order(played, prompt, self.config))
            tell(JobProgress(self.trained, results[-1].mean, results[-1].compliance, done=len(results)))
        return results, order_results.as_document(results)

    def read(self, document: dict[str, Any]) -> list[OrderResult]:
        """Return what the orders earned."""
        return order_results.from_document(document, (*self.prompts, *self.enforced_orders))

    def _write_policy(self) -> tuple[Network, PolicySpec]:
        with closing(Training(self.config, self.number)) as training:
            _restore(training, self)
            if training.episodes != self.trained:
                raise errors.RunDirError(f"{self.folder}: its last checkpoint is damaged or gone; begin a new run")
            training.play_orders(self.enforced_orders)
            training.save_policy(self.folder)
            return Network.of(training.learner.weights), training.spec

    def _best_prompt(self, network: Network, spec: PolicySpec, order: Workflow) -> Workflow:
        """Find what serves a policy best under an order: all prompts are tried, the best few again for longer."""
        left = self.prompts or (order,)
        for look, episodes in enumerate((self.selection_episodes, CLOSER * self.selection_episodes)):
            if len(left) == 1:
                break
            of_look = f"selection/{look}", episodes, self.seed
            played = (play_under(network, spec, self.config, order, prompt, *of_look) for prompt in left)
            means = [float(batch.returns.mean()) for batch in played]
            left = tuple(left[i] for i in np.argsort(means, kind="stable")[::-1][:FINALISTS])
        return left[0]
