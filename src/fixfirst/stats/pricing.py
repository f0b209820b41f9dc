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
tests/stats/test_pricing.py have their coverage.

Defenders learn to keep an order, so a price falls from round to round while they learn, and an early one is too high: one
that has not settled has no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np

from fixfirst.base import distributions
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.stats import intervals
from fixfirst.stats.intervals import MeanInterval

PRIOR_FREEDOM = 4
LEAST_SPREAD = 0.05  # between trainings, in points of return
RELATIVE_SPREAD = 0.02  # and as a share of the price
LONE_SPREAD = 0.5  # assumed between trainings if there is only one: they may be stuck
DRAWS = 4_000
SERVICE, OWN_RESTORES = "stopped service", "Restore"  # parts of a cost, beside the unit types


class Tier(IntEnum):
    """What an order is beside the best one."""

    GOOD = 1  # as good, within the margin
    UNDECIDED = 2
    WORSE = 3


@dataclass(frozen=True)
class OrderResult:
    """What defenders earn under one order, and how they keep to it, per episode: one of them, or the mean of several.

    It stands for all orders that differ from it only in unit types red never holds.
    """

    workflow: str
    mean: float
    tail: float  # share of episodes that end in disaster
    violations: float  # repairs that truly broke the order
    violations_high: float  # upper bound of 95 %
    compliance: float | None
    contested: float | None
    prompts: tuple[str, ...]  # the order that each defender was given: the one that serves it best
    restores: float
    removes: float
    costs: tuple[float, ...]  # by part: see `part_names`
    standard_error: float | None = None  # over the episodes of one defender
    # Of several, compared with those of other orders:
    low: float | None = None  # simultaneous
    high: float | None = None
    p_best: float | None = None
    p_close: float | None = None  # probability that it costs no more than the margin
    tier: int = Tier.UNDECIDED


@dataclass(frozen=True)
class Swap:
    """What it is worth to fix the unit type `first` before `second`, in points an episode; 95 % for all swaps at once.

    A price that has not settled has no interval: it is what was seen so far.
    """

    first: str
    second: str
    price: float
    low: float | None
    high: float | None
    by_replicate: tuple[float, ...]
    parts: dict[str, MeanInterval] = field(default_factory=dict)  # what parts of the cost make out, together 95 %
    falling: bool = False  # may longer training still lower it?
    history: tuple[float, ...] = ()  # after each round

    def __str__(self) -> str:
        sure = "so far" if self.low is None or self.high is None else f"[{self.low:.2f}, {self.high:.2f}]"
        return f"{self.name}: {self.price:+.2f} {sure}"

    @property
    def name(self) -> str:
        return f"{self.first} before {self.second}"

    @property
    def interval(self) -> MeanInterval:
        return MeanInterval(self.price, self.low, self.high)

    @property
    def is_shown(self) -> bool:
        """Is it shown that the order of the two matters?"""
        return self.interval.exceeds()

    @property
    def at_most(self) -> float:
        """How much it matters at most; of one without an interval nothing is known."""
        return math.inf if self.low is None or self.high is None else max(abs(self.low), abs(self.high))

    def turned(self) -> "Swap":
        """Return it as seen from the other side."""
        parts = {name: -part for name, part in self.parts.items()}
        each, history = (tuple(-value for value in values) for values in (self.by_replicate, self.history))
        return Swap(self.second, self.first, *-self.interval, each, parts, self.falling, history)


@dataclass(frozen=True)
class Prices:
    """All that R replicates say about W orders."""

    swaps: tuple[Swap, ...]
    orders: tuple[OrderResult, ...]  # best first
    spread: float  # between two trainings under one order, as a standard deviation

    def with_histories(self, histories: Sequence[np.ndarray], settled: Sequence[bool], digits: int) -> "Prices":
        """Add to each swap its price after each round; unless all have settled, nothing is said of the best order.

        histories: as of `price_histories`. A swap that has not settled loses its interval.
        """
        swaps, orders = [], self.orders
        for swap, history, is_settled in zip(self.swaps, histories, settled, strict=True):
            swap = replace(swap, history=tuple(round(float(value), digits) for value in history.mean(axis=1)))
            if not is_settled:
                parts = {name: MeanInterval(part.mean, None, None) for name, part in swap.parts.items()}
                swap = replace(swap, low=None, high=None, parts=parts, falling=True)
            swaps.append(swap)
        if not all(settled):
            orders = tuple(replace(o, low=None, high=None, p_best=None, p_close=None, tier=Tier.UNDECIDED) for o in orders)
        return replace(self, swaps=tuple(swaps), orders=orders)


def part_names(scheme: UnitScheme) -> tuple[str, ...]:
    """Return the names of the U + 2 parts of a cost: the unit types, then the service, then Restores."""
    return (*scheme.names, SERVICE, OWN_RESTORES)


def price(
    workflows: Sequence[Workflow],
    results: Sequence[Sequence[OrderResult]],
    relevant: Sequence[int],
    margin: float,
    seed: int,
    *,
    sure: bool = True,
) -> Prices:
    """Price swaps and orders. results [R][W] under these orders.

    relevant: the unit types red holds at some time; orders of the others are not compared. seed: of draws. sure: can
    intervals be given? Else prices and returns are what was seen so far.
    """
    values = np.array([[result.mean for result in replicate] for replicate in results], np.float64)
    costs = np.array([[result.costs for result in replicate] for replicate in results], np.float64)
    between = values.var(axis=0, ddof=1).mean() if len(values) > 1 else LONE_SPREAD**2
    return Prices(
        swaps=price_swaps(workflows, values, relevant, costs, sure=sure),
        orders=_orders(workflows, values, results, margin, seed, sure),
        spread=max(math.sqrt(between), LEAST_SPREAD),
    )


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


def price_swaps(
    workflows: Sequence[Workflow],
    values: np.ndarray,
    relevant: Sequence[int],
    costs: np.ndarray | None = None,
    *,
    sure: bool = True,
) -> tuple[Swap, ...]:
    """Price all pairs of relevant unit types that stand side by side in some orders; the dearest first, none negative.

    costs [R, W, parts]: what the orders cost, part by part; then prices are taken apart, too.
    """
    number = {workflow.order: w for w, workflow in enumerate(workflows)}
    pairs, effects, apart = [], [], []
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
            if costs is not None:
                apart.append((costs[:, backwards] - costs[:, forwards]).mean(axis=1))
    if not pairs:
        return ()
    scheme, samples = workflows[0].scheme, np.array(effects).T  # [R, K]
    means, (lows, highs) = samples.mean(axis=0), _intervals(samples, sure)
    swaps = []
    for k, (a, b) in enumerate(pairs):
        parts = _parts(part_names(scheme), apart[k], sure) if apart and apart[k].size else {}
        each = tuple(samples[:, k].tolist())
        swap = Swap(scheme.names[a], scheme.names[b], float(means[k]), lows[k], highs[k], each, parts)
        swaps.append(swap if swap.price >= 0 else swap.turned())
    return tuple(sorted(swaps, key=lambda swap: -swap.price))


def _parts(names: Sequence[str], samples: np.ndarray, sure: bool) -> dict[str, MeanInterval]:
    """Take a price apart, the largest part first. samples [R, parts]; a part that is 0 in all trainings is left out."""
    there = np.flatnonzero(np.abs(samples).max(axis=0) > 1e-9).tolist()
    lows, highs = _intervals(samples[:, there], sure)
    means = samples.mean(axis=0)
    parts = [(names[p], MeanInterval(float(means[p]), low, high)) for p, low, high in zip(there, lows, highs, strict=True)]
    return dict(sorted(parts, key=lambda part: -abs(part[1].mean)))


def _intervals(samples: np.ndarray, sure: bool) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Ends of the intervals of the means of samples [R, K], which hold for all K at once; None each unless sure."""
    count = samples.shape[1]
    if not sure or not count:
        return (None,) * count, (None,) * count
    error, freedom = standard_errors(samples)
    half = intervals.two_sided(freedom, count) * error
    mean = samples.mean(axis=0)
    return (mean - half).tolist(), (mean + half).tolist()


def _orders(
    workflows: Sequence[Workflow],
    values: np.ndarray,
    results: Sequence[Sequence[OrderResult]],
    margin: float,
    seed: int,
    sure: bool,
) -> tuple[OrderResult, ...]:
    """Average what trainings earned under each order; the best order first."""
    mean = values.mean(axis=0)
    compared = _compare(values, margin, seed) if sure else [{} for _ in workflows]
    orders = []
    for w in sorted(range(len(workflows)), key=lambda w: (-mean[w], workflows[w].number)):
        own = [each[w] for each in results]
        averages: dict[str, Any] = {}  # None where no training has a number
        for name in ("tail", "violations", "compliance", "contested", "restores", "removes"):
            numbers = [value for result in own if (value := getattr(result, name)) is not None]
            averages[name] = float(np.mean(numbers)) if numbers else None
        orders.append(
            OrderResult(
                workflow=own[0].workflow,
                mean=float(mean[w]),
                violations_high=float(max(result.violations_high for result in own)),
                prompts=tuple(prompt for result in own for prompt in result.prompts),
                costs=tuple(np.mean([result.costs for result in own], axis=0).tolist()),
                **averages,
                **compared[w],
            )
        )
    return tuple(orders)


def _compare(values: np.ndarray, margin: float, seed: int) -> list[dict[str, Any]]:
    """Return the interval, the probabilities and the tier of each order.

    What one training earns more than another under all orders alike is taken out: it says nothing about orders.
    """
    count, mean = values.shape[1], values.mean(axis=0)
    error, freedom = standard_errors(values - values.mean(axis=1, keepdims=True))
    half = intervals.two_sided(freedom, count) * error
    rng = np.random.default_rng(seed)
    normal, chi2 = rng.standard_normal((DRAWS, count)), rng.chisquare(freedom, (DRAWS, count))
    draws = mean + error * normal / np.sqrt(chi2 / freedom)
    p_close = (draws >= draws.max(axis=1, keepdims=True) - margin).mean(axis=0)
    columns = {
        "low": mean - half,
        "high": mean + half,
        "p_best": np.bincount(draws.argmax(axis=1), minlength=count) / DRAWS,
        "p_close": p_close,
        "tier": np.select(
            [p_close >= distributions.CONFIDENCE, p_close <= 1 - distributions.CONFIDENCE],
            [Tier.GOOD, Tier.WORSE],
            Tier.UNDECIDED,
        ),
    }
    return [{name: column[w].item() for name, column in columns.items()} for w in range(count)]


def prices_by_round(
    orders: Sequence[Workflow], returns: Sequence[np.ndarray], relevant: Sequence[int]
) -> list[dict[tuple[str, str], np.ndarray]]:
    """Return, after every round, the prices [R] of every swap, both ways round.

    returns: [R, W] after each round, under as many of the orders as there were then.
    """
    by_round = []
    for values in returns:
        swaps = price_swaps(orders[: values.shape[1]], values, relevant, sure=False)
        both = [each for swap in swaps for each in (swap, swap.turned())]
        by_round.append({(swap.first, swap.second): np.array(swap.by_replicate) for swap in both})
    return by_round


def price_histories(
    swaps: Sequence[Swap], orders: Sequence[Workflow], returns: Sequence[np.ndarray], relevant: Sequence[int]
) -> list[np.ndarray]:
    """Return for each swap its price [T, R] after each round that has one, in each replicate. returns: see above."""
    by_round, pairs = prices_by_round(orders, returns, relevant), [(swap.first, swap.second) for swap in swaps]
    return [np.array([prices[pair] for prices in by_round if pair in prices]) for pair in pairs]
