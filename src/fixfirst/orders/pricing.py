"""What an order is worth: from the returns of several trainings to a rule with a price.

R replicates (trainings of their own), W orders, U unit types. values [R, W]: what each training earns under each order, on
fresh episodes of its own, so that the spread over replicates holds all there is: training, selection and chance.

A *swap* (a, b) compares orders that differ in nothing but two neighbours: its price is the mean, over all places in which a
and b stand side by side, of what "a before b" earns more than "b before a". Means over all orders with a before b would mix
in other pairs.

The spread of a price over replicates is estimated from few numbers. So each swap's own variance is drawn towards what is
expected of it, which counts for PRIOR_FREEDOM degrees of freedom:

    variance = (PRIOR_FREEDOM * expected + (R - 1) * own) / (PRIOR_FREEDOM + R - 1)
    expected = the less of  k * (LEAST_SPREAD^2 + share)  and  level + share,    share = (RELATIVE_SPREAD * price)^2

A dear swap is harder to learn, and trainings differ more in it; one that is worth nothing need not inherit that. How much
more trainings differ here, as a factor (k >= 1) or as a level (>= LEAST_SPREAD^2), is the mean over swaps of fourth
powers, so that those which stand out count most. Intervals hold for all swaps at once (Bonferroni); docs/method.md and
tests/orders/test_pricing.py have their coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fixfirst.base import statistics
from fixfirst.orders.compliance import CONFIDENCE
from fixfirst.orders.order import Workflow

PRIOR_FREEDOM = 4
LEAST_SPREAD = 0.05  # between trainings, in points of return
RELATIVE_SPREAD = 0.02  # and as a share of the price
LONE_SPREAD = 0.5  # assumed between trainings if there is only one: they may be stuck
DRAWS = 4_000


@dataclass(frozen=True)
class Swap:
    """What it is worth to fix the unit type `first` before `second`, in points an episode; 95 % for all swaps at once."""

    first: str
    second: str
    price: float
    low: float
    high: float
    by_replicate: tuple[float, ...]

    @property
    def is_shown(self) -> bool:
        """Is it shown that the order of the two matters?"""
        return self.low > 0 or self.high < 0

    @property
    def at_most(self) -> float:
        """How much it matters at most."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class PricedOrder:
    """What a defender earns under one order, and how surely that is as good as under the best."""

    workflow: str
    mean: float
    low: float  # simultaneous
    high: float
    p_best: float
    p_close: float  # probability that it costs no more than the margin
    tier: int  # 1: as good as the best, within the margin; 2: open; 3: worse


@dataclass(frozen=True)
class Prices:
    """All that R replicates say about W orders."""

    swaps: tuple[Swap, ...]
    orders: tuple[PricedOrder, ...]  # best first
    margin: float
    spread: float  # between two trainings under one order, as a standard deviation


def price(workflows: Sequence[Workflow], values: np.ndarray, relevant: Sequence[int], margin: float, seed: int) -> Prices:
    """relevant: the unit types red holds at some time; orders of the others are not compared. seed: of draws."""
    values = np.asarray(values, np.float64)
    return Prices(
        swaps=price_swaps(workflows, values, relevant),
        orders=_orders(workflows, values, margin, seed),
        margin=margin,
        spread=spread_of(values),
    )


def spread_of(values: np.ndarray) -> float:
    """Between two trainings under one order, as a standard deviation."""
    own = values.var(axis=0, ddof=1).mean() if len(values) > 1 else LONE_SPREAD**2
    return max(math.sqrt(own), LEAST_SPREAD)


def standard_errors(samples: np.ndarray, least: float = LEAST_SPREAD) -> tuple[np.ndarray, int]:
    """[K] of the means over replicates of samples [R, K], and their degrees of freedom. least: spread between trainings."""
    replicates = len(samples)
    if replicates == 1:
        return np.full(samples.shape[1], max(least, LONE_SPREAD)), PRIOR_FREEDOM
    own, share = samples.var(axis=0, ddof=1), (RELATIVE_SPREAD * samples.mean(axis=0)) ** 2
    factor = max(_fourth(own / (least**2 + share)), 1.0)
    level = max(_fourth(np.maximum(own - share, 0.0)), least**2)
    expected = np.minimum(factor * (least**2 + share), level + share)
    freedom = PRIOR_FREEDOM + replicates - 1
    variance = (PRIOR_FREEDOM * expected + (replicates - 1) * own) / freedom
    return np.sqrt(variance / replicates), freedom


def _fourth(values: np.ndarray) -> float:
    """Their mean, of fourth powers."""
    return math.sqrt(math.sqrt(float(np.square(np.square(values)).mean())))


def price_swaps(workflows: Sequence[Workflow], values: np.ndarray, relevant: Sequence[int]) -> tuple[Swap, ...]:
    """Of all pairs of relevant unit types that stand side by side in some orders; the dearest first, none negative."""
    number = {workflow.order: w for w, workflow in enumerate(workflows)}
    pairs, effects = [], []
    for a, b in combinations(sorted(relevant), 2):
        both = [
            (w, number[swapped])
            for order, w in number.items()
            for i in range(len(order) - 1)
            if order[i : i + 2] == (a, b) and (swapped := (*order[:i], b, a, *order[i + 2 :])) in number
        ]
        if both:
            forwards, backwards = zip(*both, strict=True)
            pairs.append((a, b))
            effects.append((values[:, forwards] - values[:, backwards]).mean(axis=1))
    if not pairs:
        return ()
    samples, names = np.array(effects).T, workflows[0].scheme.names  # [R, K]
    error, freedom = standard_errors(samples)
    half = statistics.t_quantile(freedom, 1 - (1 - CONFIDENCE) / 2 / len(pairs)) * error
    found = [
        Swap(names[a], names[b], float(m), float(m - h), float(m + h), tuple(column.tolist()))
        for (a, b), m, h, column in zip(pairs, samples.mean(axis=0), half, samples.T, strict=True)
    ]
    return tuple(sorted((swap if swap.price >= 0 else _turned(swap) for swap in found), key=lambda swap: -swap.price))


def _turned(swap: Swap) -> Swap:
    """The same, seen from the other side."""
    turned = tuple(-value for value in swap.by_replicate)
    return Swap(swap.second, swap.first, -swap.price, -swap.high, -swap.low, turned)


def _orders(workflows: Sequence[Workflow], values: np.ndarray, margin: float, seed: int) -> tuple[PricedOrder, ...]:
    """What one training earns more than another under all orders alike says nothing about orders: it is taken out."""
    count, mean = values.shape[1], values.mean(axis=0)
    error, freedom = standard_errors(values - values.mean(axis=1, keepdims=True))
    half = statistics.t_quantile(freedom, 1 - (1 - CONFIDENCE) / 2 / count) * error
    rng = np.random.default_rng(seed)
    normal, chi2 = rng.standard_normal((DRAWS, count)), rng.chisquare(freedom, (DRAWS, count))
    draws = mean + error * normal / np.sqrt(chi2 / freedom)
    p_best = np.bincount(draws.argmax(axis=1), minlength=count) / DRAWS
    p_close = (draws >= draws.max(axis=1, keepdims=True) - margin).mean(axis=0)
    tiers = np.where(p_close >= CONFIDENCE, 1, np.where(p_close <= 1 - CONFIDENCE, 3, 2))
    rows = [
        PricedOrder(str(w), float(m), float(m - h), float(m + h), float(b), float(c), int(tier))
        for w, m, h, b, c, tier in zip(workflows, mean, half, p_best, p_close, tiers, strict=True)
    ]
    best_first = sorted(range(count), key=lambda w: (-mean[w], workflows[w].number))
    return tuple(rows[w] for w in best_first)
