"""The policy: two small networks over 52 observation bits and the bits of the workflow.

I = inputs (52, or 77 with five unit types), A = 145 actions, M = rows. Actor I-64-64-A and critic I-64-64-1, tanh between.
PyTorch learns the weights; playing needs only NumPy, which reads the same memory.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from fixfirst.game.actions import NUM_ACTIONS
from fixfirst.game.kernel import OBSERVATION_BITS
from fixfirst.orders.workflow import UnitScheme
from fixfirst.play.rollout import Probabilities

HIDDEN = 64


class ActorCritic(nn.Module):
    """Separate networks: what to do, and how much reward is still to come."""

    def __init__(self, num_inputs: int, seed: int):
        super().__init__()
        self.actor = _network(num_inputs, NUM_ACTIONS)
        self.critic = _network(num_inputs, 1)
        generator = torch.Generator().manual_seed(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = 1 / math.sqrt(layer.in_features)
                nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)


def _network(num_inputs: int, num_outputs: int) -> nn.Sequential:
    layers = nn.Linear(num_inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, num_outputs)
    return nn.Sequential(*layers)


def num_inputs(scheme: UnitScheme | None) -> int:
    """How many bits a policy reads: the observation, and the order if it follows one."""
    return OBSERVATION_BITS + (0 if scheme is None else scheme.encoding_bits)


def weights_of(net: ActorCritic) -> dict[str, np.ndarray]:
    """All weights by name, sharing the network's memory."""
    return {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}


def widen(weights: Mapping[str, np.ndarray], inputs: int) -> dict[str, np.ndarray]:
    """Weights of a policy that knows no order, for one that does: it begins by ignoring the workflow's bits."""
    wide = dict(weights)
    for name in ("actor.0.weight", "critic.0.weight"):
        missing = inputs - wide[name].shape[1]
        wide[name] = np.pad(wide[name], ((0, 0), (0, missing)))
    return wide


def soften(weights: Mapping[str, np.ndarray], factor: float) -> dict[str, np.ndarray]:
    """The same preferences, less sure: the actor's logits times `factor`, so that it explores again."""
    soft = dict(weights)
    for name in ("actor.4.weight", "actor.4.bias"):
        soft[name] = soft[name] * np.float32(factor)
    return soft


def probabilities(weights: Mapping[str, np.ndarray]) -> Probabilities:
    """The actor as a NumPy function: inputs [M, I] -> probabilities [M, A]. It follows the weights when they change."""
    layers = [(weights[f"actor.{i}.weight"].T, weights[f"actor.{i}.bias"]) for i in (0, 2, 4)]

    def act(inputs: np.ndarray) -> np.ndarray:
        hidden = inputs
        for weight, bias in layers[:-1]:
            hidden = np.tanh(hidden @ weight + bias)
        logits = hidden @ layers[-1][0] + layers[-1][1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    return act
