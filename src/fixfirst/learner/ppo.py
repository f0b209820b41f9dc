"""PPO (Schulman et al. 2017) over whole episodes: the compiled learner, and what every learner offers.

The compiled one (`gradient.py`) learns from all transitions of an update at once. PyTorch's (`torch_ppo.py`) is its readable
twin, tested to have the same gradients, and serves minibatches and networks of other shapes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fixfirst.errors import ConfigError
from fixfirst.game import NUM_ACTIONS
from fixfirst.learner.batch import aggregate, bits_of_rows, distinct_rows, targets
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.gradient import Settings, learn, values_of_rows
from fixfirst.learner.networks import initial_weights
from fixfirst.play import Network, Rollout, Weights

ALL_ALLOWED = np.empty((0, NUM_ACTIONS), np.bool_)


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


class Learner(Protocol):
    """Networks and optimiser of one training. Everything in and out is NumPy."""

    network: Network  # its weights now

    def start_from(self, weights: Weights) -> None:
        """Take over another policy's weights; the optimiser stays as it is."""
        ...

    def update(self, rollout: Rollout, rewards: np.ndarray, *, entropy: float, progress: float, seed: int) -> UpdateStats:
        """Improve on a rollout. rewards [T, B]: what the learner sees, alignment included.

        entropy: weight of its bonus. progress in [0, 1]: share of the episode budget used. seed: of minibatches.
        """
        ...

    def tensors(self) -> dict[str, np.ndarray]:
        """Weights and the optimiser's moments, by name: all that `restore` needs. The same names for every learner."""
        ...

    def restore(self, tensors: Weights) -> None:
        """Go on from saved tensors."""
        ...


def make_learner(config: PPOConfig, num_inputs: int, seed: int) -> Learner:
    """The learner that a config asks for."""
    if config.uses_torch:
        try:
            from fixfirst.learner.torch_ppo import TorchPPO  # PyTorch is an extra, and takes seconds to import
        except ModuleNotFoundError as e:
            raise ConfigError(
                f"engine {config.engine!r} with minibatches={config.minibatches} learns with PyTorch, which is not installed: "
                "pip install 'fixfirst[torch]'"
            ) from e
        return TorchPPO(config, num_inputs, seed)
    return PPO(config, num_inputs, seed)


def learning_rate(config: PPOConfig, progress: float) -> float:
    """At this share of the episode budget."""
    return config.learning_rate * (1.0 if config.lr_schedule == "constant" else max(1.0 - progress, 0.0))


def named_moments(first: Weights, second: Weights, step: float) -> dict[str, np.ndarray]:
    """Adam's state by name, as checkpoints hold it."""
    moments = {f"adam.exp_avg.{name}": array for name, array in first.items()}
    moments |= {f"adam.exp_avg_sq.{name}": array for name, array in second.items()}
    return moments | {"adam.step": np.array(step, np.float32)}


def part_of(tensors: Weights, prefix: str) -> dict[str, np.ndarray]:
    """The tensors whose name begins with this, by the rest of their name."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


class PPO:
    """The compiled learner; see `Learner`."""

    def __init__(self, config: PPOConfig, num_inputs: int, seed: int):
        self.config = config
        self.network = Network.of(initial_weights(num_inputs, seed))
        self._gradient, self._first, self._second = (Network.zeros(num_inputs) for _ in range(3))
        self._steps = 0

    def start_from(self, weights: Weights) -> None:
        """See `Learner`."""
        self.network.vector[:] = Network.of(weights).vector

    def update(self, rollout: Rollout, rewards: np.ndarray, *, entropy: float, progress: float, seed: int) -> UpdateStats:
        """See `Learner`."""
        config, seen = self.config, distinct_rows(rollout)
        starts = np.empty(len(seen.rows) + 1, np.int64)
        active = np.empty(len(seen.rows) * len(self.network.actor.matrix1), np.int64)
        bits_of_rows(seen.rows, starts, active)
        advantages, returns = targets(config, rewards, self.values(starts, active)[seen.found])
        rows = aggregate(
            starts, active, ALL_ALLOWED, seen.found, rollout.actions, advantages, returns, seen.used, NUM_ACTIONS
        )
        settings, stats = self.settings(rollout.actions.size, entropy, progress), np.empty(5)
        learn(self.network, self._gradient, self._first.vector, self._second.vector, self._steps, rows, settings, stats)
        self._steps += config.epochs
        return UpdateStats(*(stats / rollout.actions.size).tolist(), seen.used, rollout.actions.size)

    def values(self, starts: np.ndarray, active: np.ndarray) -> np.ndarray:
        """[V] what the critic thinks of rows whose set bits are active[starts[v]:starts[v + 1]]."""
        values = np.empty(len(starts) - 1, np.float32)
        values_of_rows(self.network.critic, starts, active, values)
        return values

    def settings(self, transitions: int, entropy: float, progress: float) -> Settings:
        """What steers an update on so many transitions."""
        config = self.config
        return Settings(
            epochs=config.epochs,
            transitions=np.float32(transitions),
            clip=np.float32(config.clip),
            entropy=np.float32(entropy),
            value=np.float32(config.value),
            max_grad_norm=np.float32(config.max_grad_norm),
            learning_rate=learning_rate(config, progress),
            beta1=config.adam_betas[0],
            beta2=config.adam_betas[1],
        )

    def tensors(self) -> dict[str, np.ndarray]:
        """See `Learner`."""
        weights = {f"net.{name}": array for name, array in self.network.as_weights().items()}
        return weights | named_moments(self._first.as_weights(), self._second.as_weights(), self._steps)

    def restore(self, tensors: Weights) -> None:
        """See `Learner`."""
        self.start_from(part_of(tensors, "net."))
        self._first.vector[:] = Network.of(part_of(tensors, "adam.exp_avg.")).vector
        self._second.vector[:] = Network.of(part_of(tensors, "adam.exp_avg_sq.")).vector
        self._steps = int(tensors["adam.step"])
