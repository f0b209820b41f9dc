"""PPO (Schulman et al. 2017) over whole episodes, compiled: it learns from all transitions of an update at once.

A readable twin in PyTorch (`tests/support/torch_oracle.py`) is tested to have the same gradients.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from fixfirst.game.red_view import RedSpec
from fixfirst.learner.batch import aggregate, bits_of_rows, distinct_rows, targets
from fixfirst.play.rollout import Rollout
from fixfirst.policy.gradient import ACTOR, CRITIC, BackwardScratch, PPONumbers, learn, values_of_rows
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.spec import PolicySpec
from fixfirst.settings.ppo import PPOConfig


@dataclass(frozen=True)
class UpdateStats:
    """How an update went; losses of the last epoch."""

    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    rows: int  # distinct rows
    transitions: int


def part_of(tensors: Weights, prefix: str) -> dict[str, np.ndarray]:
    """Return the tensors whose name begins with this, by the rest of their name."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def widen(weights: Weights, inputs: int) -> dict[str, np.ndarray]:
    """Weights of a policy that knows no order, for one that does: it begins by ignoring the workflow's bits, the last."""
    wide = dict(weights)
    for name in ("actor.0.weight", "critic.0.weight"):
        missing = inputs - wide[name].shape[1]
        wide[name] = np.pad(wide[name], ((0, 0), (0, missing)))
    return wide


def scale_logits(weights: Weights, factor: float) -> dict[str, np.ndarray]:
    """Scale the actor's logits by `factor`: below 1 it explores more."""
    scaled = dict(weights)
    for name in ("actor.4.weight", "actor.4.bias"):
        scaled[name] = scaled[name] * np.float32(factor)
    return scaled


class PPO:
    """Networks and optimiser of one training. Everything in and out is NumPy.

    policy: as it is now, to play with.
    """

    def __init__(self, config: PPOConfig, spec: PolicySpec | RedSpec, seed: int):
        self.config, self.spec = config, spec
        self._inputs, self._actions, self._words = spec.inputs, spec.actions, spec.words
        self.policy = Network.drawn(self._inputs, self._actions, seed, config.last_layer)
        self._gradient, self._first, self._second = (Network.zeros(self._inputs, self._actions) for _ in range(3))
        self._benches = BackwardScratch.make(self._actions), BackwardScratch.make(1)
        self._steps = 0

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """All weights by name, as policy files hold them."""
        return self.policy.as_weights()

    def start_from(self, weights: Weights) -> None:
        """Take over another policy's weights; the optimiser stays as it is."""
        self.policy.vector[:] = Network.of(weights).vector

    def update(
        self,
        rollout: Rollout,
        rewards: np.ndarray,
        *,
        entropy: float,
        progress: float,
        seed: int,
        groups: Sequence[int] = (),
        beside: Executor | None = None,
    ) -> UpdateStats:
        """Improve on a rollout. rewards [T, B]: what the learner sees, alignment included.

        entropy: weight of its bonus. progress in [0, 1]: share of the episode budget used. seed: of the order of rows.
        groups: of episodes that are compared among themselves (`targets`). beside: where the critic learns meanwhile, if
        gradients are clipped apart; the numbers are the same.
        """
        config, seen = self.config, distinct_rows(rollout, seed if self.config.row_parts > 1 else None)
        starts = np.empty(len(seen.rows) + 1, np.int64)
        active = np.empty(len(seen.rows) * self._inputs, np.int64)
        bits_of_rows(seen.rows, self._words, starts, active)
        values = np.empty(len(seen.rows), np.float32)  # what the critic thinks of each row
        values_of_rows(self.policy.critic, starts, active, self._benches[1].work, values)
        advantages, returns = targets(config, rewards, values[seen.row_of], groups)
        allowed = self.spec.allowed(seen.rows[: seen.used])
        learned = seen.row_of, rollout.choices, advantages, returns, seen.used, self._actions
        rows = aggregate(starts, active, allowed, *learned)
        numbers, stats = self._numbers(entropy, progress), np.empty(5)
        moments = self._first.vector, self._second.vector
        work = self.policy, self._gradient, *moments, self._steps, rows, numbers, *self._benches, stats
        if beside is None or not config.norms_apart:
            learn(*work, ACTOR | CRITIC)
        else:
            critic = beside.submit(partial(learn, *work, CRITIC))
            learn(*work, ACTOR)
            critic.result()
        self._steps += config.epochs * config.row_parts
        policy_loss, value_loss, spread, approx_kl, clip_fraction = (stats / rollout.actions.size).tolist()
        return UpdateStats(policy_loss, value_loss, spread, approx_kl, clip_fraction, seen.used, rollout.actions.size)

    def _numbers(self, entropy: float, progress: float) -> PPONumbers:
        """Return what steers an update."""
        config = self.config
        return PPONumbers(
            epochs=config.epochs,
            clip=np.float32(config.clip_coef),
            entropy=np.float32(entropy),
            value=np.float32(config.vf_coef),
            max_grad_norm=np.float32(config.max_grad_norm),
            learning_rate=config.learning_rate_at(progress),
            beta1=config.adam_betas[0],
            beta2=config.adam_betas[1],
            parts=config.row_parts,
            split=sum(array.size for array in self.policy.actor) if config.norms_apart else 0,
        )

    def tensors(self) -> dict[str, np.ndarray]:
        """Return weights and the optimiser's moments, by name: all that `restore` needs."""
        parts = {"net": self.policy, "adam.exp_avg": self._first, "adam.exp_avg_sq": self._second}
        named = {f"{part}.{name}": array for part, net in parts.items() for name, array in net.as_weights().items()}
        return named | {"adam.step": np.array(self._steps, np.float32)}

    def restore(self, tensors: Weights) -> None:
        """Go on from saved tensors."""
        self._steps = int(tensors["adam.step"])
        self.start_from(part_of(tensors, "net."))
        self._first.vector[:] = Network.of(part_of(tensors, "adam.exp_avg.")).vector
        self._second.vector[:] = Network.of(part_of(tensors, "adam.exp_avg_sq.")).vector
