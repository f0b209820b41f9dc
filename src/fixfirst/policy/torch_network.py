"""A policy's networks as a PyTorch module."""

import numpy as np
import torch
from torch import nn

from fixfirst.policy.network import HIDDEN, Weights


class ActorCritic(nn.Module):
    """Separate networks: what to do, and how much reward is still to come."""

    def __init__(self, num_inputs: int, num_actions: int):
        super().__init__()
        self.actor = _network(num_inputs, num_actions)
        self.critic = _network(num_inputs, 1)


def _network(num_inputs: int, num_outputs: int) -> nn.Sequential:
    layers = nn.Linear(num_inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, num_outputs)
    return nn.Sequential(*layers)


def module_of(weights: Weights) -> ActorCritic:
    """Return a policy's networks as a PyTorch module: `.actor(inputs [M, I])` gives logits, `.critic(inputs)` values."""
    net = ActorCritic(weights["actor.0.weight"].shape[1], len(weights["actor.4.bias"]))
    net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return net
