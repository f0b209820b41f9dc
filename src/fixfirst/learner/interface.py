"""What every learner offers, and what both of ours share."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fixfirst.play.rollout import Rollout
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.table import Probabilities


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

    @property
    def policy(self) -> Network | Probabilities:
        """As it is now, to play with."""
        ...

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """All weights by name, as policy files hold them."""
        ...

    @property
    def is_sound(self) -> bool:
        """Are all weights numbers?"""
        ...

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


def named_moments(first: Weights, second: Weights, step: float) -> dict[str, np.ndarray]:
    """Adam's state by name, as checkpoints hold it."""
    moments = {f"adam.exp_avg.{name}": array for name, array in first.items()}
    moments |= {f"adam.exp_avg_sq.{name}": array for name, array in second.items()}
    return moments | {"adam.step": np.array(step, np.float32)}


def part_of(tensors: Weights, prefix: str) -> dict[str, np.ndarray]:
    """The tensors whose name begins with this, by the rest of their name."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
