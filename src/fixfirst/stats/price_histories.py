"""How prices move from round to round: one that may still fall has no interval.

Defenders learn to keep an order, so a price falls while they learn, and an early one is too high.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fixfirst.base import distributions
from fixfirst.orders.order import Workflow
from fixfirst.stats import pricing
from fixfirst.stats.intervals import MeanInterval
from fixfirst.stats.pricing import Swap

STILL_FALLING = 0.1  # points
BEYOND_CHANCE = 3  # standard errors, of few trainings

Prices = dict[tuple[str, str], np.ndarray]  # of every swap, both ways round: in each replicate, [R]


def prices_by_round(orders: Sequence[Workflow], earned: Sequence[np.ndarray], relevant: Sequence[int]) -> list[Prices]:
    """Return the prices after every round. earned: [R, W] after each, of as many of the orders as there were then."""
    by_round = []
    for values in earned:
        swaps = pricing.price_swaps(orders[: values.shape[1]], values, relevant, sure=False)
        prices = {(swap.first, swap.second): np.array(swap.by_replicate) for swap in swaps}
        by_round.append(prices | {(second, first): -value for (first, second), value in prices.items()})
    return by_round


def history_of(swap: Swap, by_round: Sequence[Prices]) -> np.ndarray:
    """[T, R] the price of a swap after each round that has one, in each replicate."""
    pair = swap.first, swap.second
    return np.array([prices[pair] for prices in by_round if pair in prices])


def with_history(swap: Swap, history: np.ndarray, *, settled: bool, digits: int) -> Swap:
    """Add the price from round to round; without its interval, unless it has settled."""
    means = tuple(round(float(value), digits) for value in history.mean(axis=1))
    if settled:
        return replace(swap, history=means)
    parts = {name: MeanInterval(part.mean, None, None) for name, part in swap.parts.items()}
    return replace(swap, low=None, high=None, parts=parts, falling=True, history=means)


def is_falling(history: np.ndarray) -> bool:
    """Did a price fall in the last third of the rounds, in which rates stay as they are: by more than STILL_FALLING, and by
    more than trainings that differ show by chance? history [T, R].

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


def largest_fall(history: np.ndarray) -> float:
    """Return how much a price may have fallen in the last round, with 95 % confidence. history [T, R]."""
    falls = history[-2] - history[-1]
    error, freedom = pricing.standard_errors(falls[:, None])
    return float(falls.mean() + distributions.t_quantile(freedom, distributions.CONFIDENCE) * error[0])
