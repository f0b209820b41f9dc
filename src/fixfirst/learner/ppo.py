"""PPO (Schulman et al. 2017) over whole episodes, compiled: it learns from all transitions of an update at once.

PyTorch's (`torch_ppo.py`) is its readable twin, tested to have the same gradients, and serves minibatches.
"""

import numpy as np

from fixfirst.learner.batch import aggregate, bits_of_rows, distinct_rows, targets
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.gradient import BackwardScratch, PPONumbers, learn, values_of_rows
from fixfirst.learner.interface import UpdateStats, named_moments, part_of
from fixfirst.learner.networks import initial_weights
from fixfirst.play.rollout import Rollout
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.spec import PolicySpec


class PPO:
    """The compiled learner; see `Learner`."""

    def __init__(self, config: PPOConfig, spec: PolicySpec, seed: int):
        self.config, self.spec = config, spec
        self.policy = Network.of(initial_weights(spec.inputs, seed, spec.actions, config.last_layer))
        self._gradient, self._first, self._second = (Network.zeros(spec.inputs, spec.actions) for _ in range(3))
        self._benches = BackwardScratch.make(spec.actions), BackwardScratch.make(1)
        self._steps = 0

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """See `Learner`."""
        return self.policy.as_weights()

    @property
    def is_sound(self) -> bool:
        """See `Learner`."""
        return bool(np.isfinite(self.policy.vector).all())

    def start_from(self, weights: Weights) -> None:
        """See `Learner`."""
        self.policy.vector[:] = Network.of(weights).vector

    def update(self, rollout: Rollout, rewards: np.ndarray, *, entropy: float, progress: float, seed: int) -> UpdateStats:
        """See `Learner`."""
        config, spec, seen = self.config, self.spec, distinct_rows(rollout, seed if self.config.row_parts > 1 else None)
        starts = np.empty(len(seen.rows) + 1, np.int64)
        active = np.empty(len(seen.rows) * spec.inputs, np.int64)
        bits_of_rows(seen.rows, spec.words, starts, active)
        advantages, returns = targets(config, rewards, self.values(starts, active)[seen.found])
        allowed = spec.allowed(seen.rows[: seen.used])
        learned = seen.found, rollout.choices, advantages, returns, seen.used, spec.actions
        rows = aggregate(starts, active, allowed, *learned)
        settings, stats = self.settings(entropy, progress), np.empty(5)
        moments = self._first.vector, self._second.vector
        learn(self.policy, self._gradient, *moments, self._steps, rows, settings, *self._benches, stats)
        self._steps += config.epochs * config.row_parts
        policy_loss, value_loss, spread, approx_kl, clip_fraction = (stats / rollout.actions.size).tolist()
        return UpdateStats(policy_loss, value_loss, spread, approx_kl, clip_fraction, seen.used, rollout.actions.size)

    def values(self, starts: np.ndarray, active: np.ndarray) -> np.ndarray:
        """[V] what the critic thinks of rows whose set bits are active[starts[v]:starts[v + 1]]."""
        values = np.empty(len(starts) - 1, np.float32)
        values_of_rows(self.policy.critic, starts, active, self._benches[1].work, values)
        return values

    def settings(self, entropy: float, progress: float) -> PPONumbers:
        """What steers an update."""
        config = self.config
        return PPONumbers(
            epochs=config.epochs,
            clip=np.float32(config.clip),
            entropy=np.float32(entropy),
            value=np.float32(config.value_weight),
            max_grad_norm=np.float32(config.max_grad_norm),
            learning_rate=config.learning_rate_at(progress),
            beta1=config.adam_betas[0],
            beta2=config.adam_betas[1],
            parts=config.row_parts,
            split=sum(array.size for array in self.policy.actor) if config.norms_apart else 0,
        )

    def tensors(self) -> dict[str, np.ndarray]:
        """See `Learner`."""
        weights = {f"net.{name}": array for name, array in self.weights.items()}
        return weights | named_moments(self._first.as_weights(), self._second.as_weights(), self._steps)

    def restore(self, tensors: Weights) -> None:
        """See `Learner`."""
        self.start_from(part_of(tensors, "net."))
        self._first.vector[:] = Network.of(part_of(tensors, "adam.exp_avg.")).vector
        self._second.vector[:] = Network.of(part_of(tensors, "adam.exp_avg_sq.")).vector
        self._steps = int(tensors["adam.step"])
