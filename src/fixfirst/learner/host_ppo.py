"""PPO for a `HostNetwork`, on one network of machines or on several at once: one update from what was played on each.

T steps, B episodes on each network, V distinct rows, D distinct inputs of hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fixfirst.learner.batch import UpdateBatch, aggregate, distinct_rows, targets
from fixfirst.learner.ppo import UpdateStats, part_of
from fixfirst.play.rollout import Rollout
from fixfirst.policy import host_gradient
from fixfirst.policy.gradient import BackwardScratch, PPONumbers
from fixfirst.policy.host_gradient import HostBack, HostRows, Slopes
from fixfirst.policy.host_network import CODE, HIDDEN, HostNetwork, whole_tiles
from fixfirst.policy.host_player import BLOCK, HostPlayer, HostSide, fold_all
from fixfirst.policy.network import Weights
from fixfirst.settings.ppo import PPOConfig


@dataclass
class ValueScale:
    """Mean and deviation of a network's returns, which differ by a factor of 5: its critic's outputs are in these."""

    mean: float = -8.0
    deviation: float = 6.0

    def follow(self, returns: np.ndarray) -> None:
        """Move towards those of an update."""
        self.mean += _SCALE_RATE * (float(returns.mean()) - self.mean)
        self.deviation += _SCALE_RATE * (max(float(returns.std()), _LEAST_DEVIATION) - self.deviation)


_SCALE_RATE, _LEAST_DEVIATION = 0.2, 0.3


class Lesson(NamedTuple):
    """What was played on one network: rewards [T, B] are what the learner sees."""

    player: HostPlayer
    rollout: Rollout
    rewards: np.ndarray
    scale: ValueScale


class HostBench:
    """What one network of machines adds to an update: its rows, and where their gradient is worked on."""

    def __init__(self, side: HostSide, rows: HostRows, actions: int):
        self.side, self.rows, self.actions = side, rows, actions
        facts, room = side.facts, whole_tiles(int(side.inputs.filled[0]) + 1)
        self._hidden, self._code = (np.zeros((room, width), np.float32) for width in (HIDDEN, CODE))
        self._slopes = Slopes.make(room)
        self._back = HostBack.make(BLOCK, len(facts.unit), facts.num_subnets, facts.num_units)
        self._bench = BackwardScratch.make(actions)

    def encode(self, net: HostNetwork, *, actor: bool = True) -> None:
        """Work out anew what inputs are encoded as, for weights that have changed. actor: else the critic's alone."""
        side, num_hosts = self.side, len(self.side.facts.unit)
        if actor:
            fold_all(net.actor, net.critic, side.facts.network, side.order_facts, side.folded)
            host_gradient.encode_actor(net.actor, side.folded, side.inputs, num_hosts)
        host_gradient.encode_critic(net.critic, side.folded, side.inputs, num_hosts, self._hidden, self._code)

    def values(self, net: HostNetwork) -> np.ndarray:
        """[V] what the critic thinks of the rows; needs `encode`."""
        result = np.empty((len(self.rows.ids), 1), np.float32)
        host_gradient.values_of_rows(net.critic, self.rows, self._code, self.side.work, result)
        return result[:, 0]

    def __len__(self) -> int:
        """How many rows it learns from."""
        return len(self.batch.visits)

    def learn_from(self, batch: UpdateBatch) -> None:
        """Take sums per row and per pair of row and choice."""
        self.batch = batch
        self._old, self._pair_slopes = (np.empty(len(batch.action), np.float32) for _ in range(2))

    def note_odds(self, net: HostNetwork, numbers: PPONumbers) -> None:
        """Take down the log-probabilities of what was chosen, before the first step."""
        span = 0, len(self.batch.visits), np.float32(0)
        self._policy_gradient(net, HostNetwork.zeros(), span, True, numbers, np.zeros(5))

    def add_gradient(
        self,
        net: HostNetwork,
        gradient: HostNetwork,
        span: tuple[int, int, np.float32],
        numbers: PPONumbers,
        stats: np.ndarray,
    ) -> None:
        """Add the gradient of a span of rows: first, end, share of a transition. Needs `encode`, `note_odds`."""
        self._policy_gradient(net, gradient, span, False, numbers, stats)
        work = self._hidden, self._code, self._slopes, numbers, self._back, stats
        host_gradient.value_gradient(net.critic, gradient.critic, self.side, self.rows, self.batch, span, *work)

    def _policy_gradient(
        self,
        net: HostNetwork,
        gradient: HostNetwork,
        span: tuple[int, int, np.float32],
        is_new: bool,
        numbers: PPONumbers,
        stats: np.ndarray,
    ) -> None:
        work = self._slopes, self._old, is_new, self._pair_slopes, numbers, self._back, self._bench, stats
        host_gradient.policy_gradient(net.actor, gradient.actor, self.side, self.rows, self.batch, span, *work)


class HostPPO:
    """A network and its optimiser. Everything in and out is NumPy."""

    def __init__(self, config: PPOConfig, seed: int):
        self.config = config
        self.policy = HostNetwork.drawn(seed)
        self._gradient, self._first, self._second = (HostNetwork.zeros() for _ in range(3))
        self._steps = 0

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """All weights by name, as policy files hold them."""
        return {name: array.copy() for name, array in self.policy.as_weights().items()}

    def update(self, lessons: Sequence[Lesson], *, entropy: float, progress: float, seed: int, parts: int) -> UpdateStats:
        """Improve on what was played, in so many parts of an epoch.

        entropy: weight of its bonus; progress in [0, 1]; seed: of the order of rows.
        """
        config, numbers, stats = self.config, self._numbers(entropy, progress), np.zeros(5)
        benches = self._benches(lessons, seed)
        for bench in benches:
            bench.note_odds(self.policy, numbers)
        for epoch in range(config.epochs):
            stats[:] = 0
            for part in range(parts):
                spans = [(part * rows // parts, (part + 1) * rows // parts) for rows in map(len, benches)]
                visits = (bench.batch.visits[first:end].sum() for bench, (first, end) in zip(benches, spans, strict=True))
                share = np.float32(1 / max(sum(map(float, visits)), 1.0))
                self._gradient.vector[:] = 0
                for bench, (first, end) in zip(benches, spans, strict=True):
                    if epoch or part:
                        bench.encode(self.policy)
                    bench.add_gradient(self.policy, self._gradient, (first, end, share), numbers, stats)
                self._steps += 1
                moments = self._first.vector, self._second.vector
                host_gradient.improve(self.policy.vector, self._gradient.vector, *moments, self._steps, numbers)
        transitions = sum(lesson.rewards.size for lesson in lessons)
        policy_loss, value_loss, spread, approx_kl, clip_fraction = (stats / transitions).tolist()
        return UpdateStats(policy_loss, value_loss, spread, approx_kl, clip_fraction, sum(map(len, benches)), transitions)

    def _benches(self, lessons: Sequence[Lesson], seed: int) -> list[HostBench]:
        """Return every lesson's distinct rows and the sums that they learn from; advantages are compared within a lesson."""
        seen = [distinct_rows(lesson.rollout, seed) for lesson in lessons]
        benches, values = [], []
        for lesson, distinct in zip(lessons, seen, strict=True):
            side, numbers = lesson.player.side, distinct.numbers
            rows = HostRows(np.ascontiguousarray(side.ids[numbers]), side.order[numbers], side.quiet[numbers])
            bench = HostBench(side, rows, lesson.player.spec.actions)
            bench.encode(self.policy, actor=False)
            benches.append(bench)
            worth = bench.values(self.policy) * lesson.scale.deviation + lesson.scale.mean
            values.append(worth[distinct.row_of])
        groups = [lesson.rewards.shape[1] for lesson in lessons]
        rewards = np.concatenate([lesson.rewards for lesson in lessons], axis=1)
        columns = np.cumsum(groups)[:-1]
        by_lesson = (
            np.split(each, columns, axis=1) for each in targets(self.config, rewards, np.concatenate(values, axis=1), groups)
        )
        for lesson, distinct, bench, advantages, returns in zip(lessons, seen, benches, *by_lesson, strict=True):
            lesson.scale.follow(returns)
            scaled, none = (returns - lesson.scale.mean) / lesson.scale.deviation, np.zeros(distinct.used + 1, np.int64)
            spec, choices = lesson.player.spec, lesson.rollout.choices
            allowed = spec.allowed(distinct.rows[: distinct.used])
            of_lesson = distinct.row_of, choices, np.ascontiguousarray(advantages), scaled
            bench.learn_from(aggregate(none, none, allowed, *of_lesson, distinct.used, spec.actions))
        return benches

    def _numbers(self, entropy: float, progress: float) -> PPONumbers:
        config = self.config
        return PPONumbers(
            epochs=1,
            clip=np.float32(config.clip_coef),
            entropy=np.float32(entropy),
            value=np.float32(config.vf_coef),
            max_grad_norm=np.float32(config.max_grad_norm),
            learning_rate=config.learning_rate_at(progress),
            beta1=config.adam_betas[0],
            beta2=config.adam_betas[1],
            parts=1,
            split=sum(array.size for array in self.policy.actor),
        )

    def tensors(self) -> dict[str, np.ndarray]:
        """Return weights and the optimiser's moments, by name: all that `restore` needs."""
        parts = {"net": self.policy, "adam.exp_avg": self._first, "adam.exp_avg_sq": self._second}
        named = {f"{part}.{name}": array.copy() for part, net in parts.items() for name, array in net.as_weights().items()}
        return named | {"adam.step": np.array(self._steps, np.float32)}

    def restore(self, tensors: Weights) -> None:
        """Go on from saved tensors."""
        self._steps = int(tensors["adam.step"])
        for part, net in {"net.": self.policy, "adam.exp_avg.": self._first, "adam.exp_avg_sq.": self._second}.items():
            net.vector[:] = HostNetwork.of(part_of(tensors, part)).vector
