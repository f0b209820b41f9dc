"""The networks: two small ones over 52 observation bits and the bits of the workflow, as named arrays.

I = inputs (52, or 77 with five unit types), A = 145 actions, M = rows. Actor I-64-64-A and critic I-64-64-1, tanh between.
A weight matrix is [outputs, inputs]. `ppo.py` learns them; playing needs only NumPy.
"""

from collections.abc import Mapping

import numpy as np

from fixfirst.game import NUM_ACTIONS, OBSERVATION_BITS
from fixfirst.orders import UnitScheme
from fixfirst.play import Probabilities

HIDDEN = 64
LAYERS = (0, 2, 4)  # their names; between them stand the tanh
Weights = Mapping[str, np.ndarray]  # "actor.0.weight" and so on, float32


def num_inputs(scheme: UnitScheme | None) -> int:
    """How many bits a policy reads: the observation, and the order if it follows one."""
    return OBSERVATION_BITS + (0 if scheme is None else scheme.encoding_bits)


def shapes(inputs: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a policy with so many inputs."""
    found: dict[str, tuple[int, ...]] = {}
    for net, outputs in (("actor", NUM_ACTIONS), ("critic", 1)):
        sizes = (inputs, HIDDEN, HIDDEN, outputs)
        for layer, width, height in zip(LAYERS, sizes, sizes[1:], strict=False):
            found |= {f"{net}.{layer}.weight": (height, width), f"{net}.{layer}.bias": (height,)}
    return found


def widen(weights: Weights, inputs: int) -> dict[str, np.ndarray]:
    """Weights of a policy that knows no order, for one that does: it begins by ignoring the workflow's bits."""
    wide = dict(weights)
    for name in ("actor.0.weight", "critic.0.weight"):
        missing = inputs - wide[name].shape[1]
        wide[name] = np.pad(wide[name], ((0, 0), (0, missing)))
    return wide


def soften(weights: Weights, factor: float) -> dict[str, np.ndarray]:
    """The same preferences, less sure: the actor's logits times `factor`, so that it explores again."""
    soft = dict(weights)
    for name in ("actor.4.weight", "actor.4.bias"):
        soft[name] = soft[name] * np.float32(factor)
    return soft


def probabilities(weights: Weights) -> Probabilities:
    """The actor as a NumPy function: inputs [M, I] -> probabilities [M, A]. It follows the weights when they change."""
    layers = [(weights[f"actor.{i}.weight"].T, weights[f"actor.{i}.bias"]) for i in LAYERS]

    def act(inputs: np.ndarray) -> np.ndarray:
        hidden = inputs
        for weight, bias in layers[:-1]:
            hidden = np.tanh(hidden @ weight + bias)
        logits = hidden @ layers[-1][0] + layers[-1][1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    return act
