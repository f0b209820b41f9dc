"""What the trials of a search say, and what searches that differ only in their seed say together.

Every seed trains every order anew, after a warm-up of its own and judged on test episodes of its own. So the spread of an
order's returns between seeds is measured, not estimated from neighbouring orders as within one search:

    y_ws   return of order w under seed s, the average of its accepted trials there      n_w   seeds that accepted w
    m_w    mean over those seeds        spread^2 = sum_ws (y_ws - m_w)^2 / freedom       freedom = sum_w (n_w - 1)

The pooled verdict ranks the m_w with standard errors spread / sqrt(n_w) (`ranking.py`). What a seed adds to all orders alike
(its warm-up, its test episodes) is part of the spread: that makes comparisons within a seed too careful, never too bold.
The spread is taken to be the same for all orders. Bad orders vary more, so among the good ones the verdict is again careful.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fixfirst.base import errors, statistics
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.orders.ranking import Ranking, rank, training_spread
from fixfirst.runs.layout import LEDGER
from fixfirst.runs.rows import Trial, read_rows


@dataclass(frozen=True)
class RankedTrials:
    """How the orders that passed the gate compare."""

    ranking: Ranking  # its errors include the spread
    spread: float  # standard deviation between two trainings of one order, estimated
    best: Trial  # the highest return (ties: the first) of the ranking's first order


def read_trials(folder: Path, end: str | None = None) -> list[Trial]:
    """Return all rows of a run's ledger, in order. end: see `read_rows`."""
    trials = read_rows(folder / LEDGER, Trial, end)
    for number, trial in enumerate(trials):
        if trial.id != number or (trial.accepted and trial.return_mean is None):
            raise errors.RunDirError(f"{folder / LEDGER}: line {number + 2} is not of trial {number}, or damaged")
    return trials


def rank_trials(trials: Sequence[Trial], scheme: UnitScheme, test_episodes: int) -> RankedTrials | None:
    """Accepted orders by return; None before there is one.

    `best` is of the first order, not of all trials: an order that was lucky once and tried again is judged by all of its
    trials.
    """
    rows = [trial for trial in trials if trial.accepted]
    if not rows:
        return None
    workflows = [Workflow.parse(row.workflow, scheme) for row in rows]
    means, ses = [row.earned for row in rows], [row.return_se or 0.0 for row in rows]
    spread = training_spread(workflows, means, ses)
    ranking = rank(workflows, means, np.hypot(ses, spread).tolist(), [test_episodes] * len(rows))
    first = ranking.rows[0].workflow
    of_first = [row for row, workflow in zip(rows, workflows, strict=True) if workflow == first]
    return RankedTrials(ranking, spread, max(of_first, key=lambda row: row.earned))


# ---------------------------------------------------------------- across seeds


class SeedResult(NamedTuple):
    """What one search found."""

    red_agent: str
    seed: int
    scheme: UnitScheme
    trials: Sequence[Trial]
    standings: RankedTrials | None


class MeanInterval(NamedTuple):
    """A mean of independent values and its 95 % t-interval, which needs two of them."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OrderAcrossSeeds:
    """What became of one order under the seeds. Counts are of seeds."""

    workflow: Workflow
    tried: int
    accepted: int
    maybe_best: int  # could not be told from the best of its search
    mean: float | None  # of the accepting seeds' returns
    low: float | None  # 95 % t-interval; needs two of them
    high: float | None


@dataclass(frozen=True)
class BestOfSeed:
    """The first order of one search's ranking; None where none passed the gate."""

    seed: int
    workflow: Workflow | None
    mean: float | None


@dataclass(frozen=True)
class Comparison:
    """The searches against one red agent."""

    red_agent: str
    orders: tuple[OrderAcrossSeeds, ...]  # best mean first; those never accepted last
    best: tuple[BestOfSeed, ...]
    ranking: Ranking | None  # pooled; None where no order was accepted under two seeds
    spread: float | None  # standard deviation between seeds
    freedom: int  # degrees of freedom it was measured with


def compare_seeds(results: Sequence[SeedResult]) -> list[Comparison]:
    """What the seeds say together, for each red agent."""
    agents = dict.fromkeys(result.red_agent for result in results)
    return [_compare([result for result in results if result.red_agent == agent], agent) for agent in agents]


def _compare(results: Sequence[SeedResult], red_agent: str) -> Comparison:
    tried: Counter[Workflow] = Counter()
    passed: Counter[Workflow] = Counter()
    maybe_best: Counter[Workflow] = Counter()
    returns: dict[Workflow, list[float]] = {}
    best = []
    for result in results:
        became = [(Workflow.parse(trial.workflow, result.scheme), trial.accepted) for trial in result.trials]
        tried.update({workflow for workflow, _ in became})
        passed.update({workflow for workflow, accepted in became if accepted})
        rows = () if result.standings is None else result.standings.ranking.rows
        for row in rows:
            returns.setdefault(row.workflow, []).append(row.mean)
        maybe_best.update(row.workflow for row in rows if row.maybe_best)
        first = (rows[0].workflow, rows[0].mean) if rows else (None, None)
        best.append(BestOfSeed(result.seed, *first))
    orders = []
    for order in tried:
        mean, low, high = mean_interval(returns[order]) if order in returns else (None, None, None)
        orders.append(OrderAcrossSeeds(order, tried[order], passed[order], maybe_best[order], mean, low, high))
    orders.sort(key=lambda row: (math.inf if row.mean is None else -row.mean, row.workflow.order))
    spread, freedom = spread_between_seeds(list(returns.values()))
    ranking = None
    if spread is not None:
        means = [float(np.mean(values)) for values in returns.values()]
        ses = [spread / math.sqrt(len(values)) for values in returns.values()]
        ranking = rank(list(returns), means, ses, [freedom + 1] * len(returns))
    return Comparison(red_agent, tuple(orders), tuple(best), ranking, spread, freedom)


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Of at least one value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return MeanInterval(mean, None, None)
    half = float(
        statistics.t_quantile(len(values) - 1, (1 + statistics.CONFIDENCE) / 2)
        * np.std(values, ddof=1)
        / math.sqrt(len(values))
    )
    return MeanInterval(mean, mean - half, mean + half)


def spread_between_seeds(returns: Sequence[Sequence[float]]) -> tuple[float | None, int]:
    """Pooled standard deviation of an order's returns (one sequence per order), and its degrees of freedom."""
    freedom = sum(len(values) - 1 for values in returns)
    if freedom < 1:
        return None, 0
    squares = sum(float(np.sum((np.array(values) - np.mean(values)) ** 2)) for values in returns)
    return math.sqrt(squares / freedom), freedom
