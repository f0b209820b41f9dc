"""Prices of swaps from round to round: a price that may still fall has no interval."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fixfirst.orders.order import Pair, Workflow
from fixfirst.stats import pricing

STILL_FALLING = 0.1  # points
BEYOND_CHANCE = 3  # standard errors, of few trainings


def swap_prices(orders: Sequence[Workflow], values: np.ndarray, relevant: Sequence[int]) -> dict[Pair, np.ndarray]:
    """Return the price of every swap in each replicate, [R], both ways round. values [R, W]: what the orders earned."""
    swaps = pricing.price_swaps(orders, values, relevant, sure=False)
    prices = {(swap.first, swap.second): np.array(swap.by_replicate) for swap in swaps}
    return prices | {(second, first): -value for (first, second), value in prices.items()}


def with_history(swap: pricing.Swap, history: np.ndarray, settled: bool, digits: int = 3) -> pricing.Swap:
    """Add the price after each round, [T, R]; unless it has settled, its interval goes."""
    swap = replace(swap, history=tuple(round(float(value), digits) for value in history.mean(axis=1)))
    if settled:
        return swap
    return replace(swap, low=None, high=None, falling=True, parts=tuple(replace(p, low=None, high=None) for p in swap.parts))


def is_falling(history: np.ndarray) -> bool:
    """Did a price fall in the last third of the rounds, in which rates stay as they are: by more than STILL_FALLING, and by
    more than trainings that differ show by chance? history [T, R]: the price after each round, in each training.

    What it fell is that of a straight line through these rounds and the one before them. All trainings play the same
    episodes: single rounds may look dear, or cheap, in all of them.
    """
    if len(history) < 3:
        return True
    rounds = max(len(history) // 3, 2)
    line = np.arange(rounds + 1) - rounds / 2  # its mean is 0
    falls = -rounds * (line[:, None] * history[-rounds - 1 :]).sum(axis=0) / np.square(line).sum()
    error, _ = pricing.standard_errors(falls[:, None])
    return float(falls.mean()) > max(STILL_FALLING, BEYOND_CHANCE * float(error[0]))
