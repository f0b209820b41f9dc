"""A network's odds of rows, compiled. M rows, I inputs, A choices."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled
from fixfirst.policy.network import (
    INFINITY,
    ONE,
    ZERO,
    LayerBuffers,
    Network,
    exp_nonpositive,
    forward,
    list_bits,
    load_output_layer,
    subtract_row_max,
)
from fixfirst.policy.spec import words_of

# A policy as a function: inputs [M, I] float32 -> probabilities [M, A], or anything proportional to them.
Probabilities = Callable[[np.ndarray], np.ndarray]


class ForwardScratch(NamedTuple):
    """Where one row at a time is answered."""

    work: LayerBuffers
    starts: np.ndarray  # [2] int64
    active: np.ndarray  # [I] int64

    @classmethod
    def make(cls, network: Network) -> "ForwardScratch":
        inputs, actions = network.size
        return cls(LayerBuffers.make(1, actions), np.zeros(2, np.int64), np.zeros(inputs, np.int64))


@called
def answer_row(actor, rows, number, words, scratch):
    """Fill scratch.work.outputs[0] with the odds of all actions for a row. After a change of weights:
    `load_output_layer` first.

    words: of a row's bits; if there are more, they hold the masked choices.
    """
    scratch.starts[1] = list_bits(rows, number, words, scratch.active, 0)
    forward(actor, scratch.starts, scratch.active, 0, 1, scratch.work)
    odds = scratch.work.outputs
    if rows.shape[1] > words:
        for a in range(len(actor.bias3)):
            if rows[number, words + (a >> 6)] >> uint64(a & 63) & uint64(1):
                odds[0, a] = -INFINITY
    subtract_row_max(odds, 1)
    for a in range(odds.shape[1]):
        odds[0, a] = exp_nonpositive(odds[0, a])


@compiled
def odds_of_rows(actor, rows, scratch, odds):
    """Fill odds [M, A] of rows [M, K]."""
    load_output_layer(actor, scratch.work)
    for i in range(len(rows)):
        answer_row(actor, rows, i, rows.shape[1], scratch)
        for a in range(odds.shape[1]):
            odds[i, a] = scratch.work.outputs[0, a]


@called
def enter_odds(odds, cumulative, likely, number, greedy):
    """Enter the odds [1, A] of a row; greedy: only the first of the largest counts."""
    actions, best = cumulative.shape[1], 0
    for a in range(1, actions):
        if odds[0, a] > odds[0, best]:
            best = a
    running = ZERO
    for a in range(actions):
        if not greedy:
            running += odds[0, a]
        elif a == best:
            running = ONE
        cumulative[number, a] = running
    likely[number] = best


def probabilities(network: Network) -> Probabilities:
    """The actor as a function. It follows the weights when they change."""
    scratch = ForwardScratch.make(network)

    def act(inputs: np.ndarray) -> np.ndarray:
        odds = np.empty((len(inputs), network.size[1]), np.float32)
        odds_of_rows(network.actor, words_of(inputs), scratch, odds)
        return odds / odds.sum(axis=1, keepdims=True)

    return act
