"""Weights that are not learned: the first ones, and those made of another policy's. How they are laid out, `play` says."""

import numpy as np

from fixfirst.policy.network import LAYERS, Network, Weights, shapes
from fixfirst.policy.table import chance_keys, uniform


def initial_weights(inputs: int, seed: int, actions: int, last: float = 1.0) -> dict[str, np.ndarray]:
    """Uniform in +-1 / sqrt(inputs of the layer), from counter-based chance: the same numbers on every machine.

    last: factor on the last layers, which decides how sure the first policy is.
    """
    network = Network.zeros(inputs, actions)
    keys, draws = np.empty(len(network.vector), np.uint64), np.empty(len(network.vector))
    chance_keys(seed, 0, keys)
    uniform(keys, 0, np.full(len(keys), 2.0), draws)
    network.vector[:] = draws - 1.0
    weights = network.as_weights()
    for name in shapes(inputs, actions):
        fan_in = weights[name.replace("bias", "weight")].shape[1]
        factor = last if name.split(".")[1] == str(LAYERS[-1]) else 1.0
        weights[name] = weights[name] * np.float32(factor / np.sqrt(fan_in))
    return weights


def widen(weights: Weights, inputs: int) -> dict[str, np.ndarray]:
    """Weights of a policy that knows no order, for one that does: it begins by ignoring the workflow's bits, the last."""
    wide = dict(weights)
    for name in ("actor.0.weight", "critic.0.weight"):
        missing = inputs - wide[name].shape[1]
        wide[name] = np.pad(wide[name], ((0, 0), (0, missing)))
    return wide


def raise_temperature(weights: Weights, factor: float) -> dict[str, np.ndarray]:
    """The same preferences, less sure: the actor's logits times `factor`, so that it explores again."""
    soft = dict(weights)
    for name in ("actor.4.weight", "actor.4.bias"):
        soft[name] = soft[name] * np.float32(factor)
    return soft
