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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors, tables
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.runs.csv_logs import read_rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Status, Trial
from fixfirst.stats.intervals import mean_interval
from fixfirst.stats.ranking import Ranked, Ranking, rank, training_spread


@dataclass(frozen=True)
class RankedTrials:
    """How the orders that passed the gate compare."""

    ranking: Ranking  # its errors include the spread
    spread: float  # standard deviation between two trainings of one order, estimated
    best: Trial  # the highest return (ties: the first) of the ranking's first order

    @classmethod
    def of(cls, trials: Sequence[Trial], scheme: UnitScheme, test_episodes: int) -> "RankedTrials | None":
        """Rank accepted orders by return; None before there is one.

        `best` is of the first order, not of all trials: an order that was lucky once and tried again is judged by all of
        its trials.
        """
        rows = [trial for trial in trials if trial.accepted]
        if not rows:
            return None
        workflows = [Workflow.parse(row.workflow, scheme) for row in rows]
        means, ses = [row.mean for row in rows], [row.return_se or 0.0 for row in rows]
        spread = training_spread(workflows, means, ses)
        ranking = rank(workflows, means, np.hypot(ses, spread).tolist(), [test_episodes] * len(rows))
        first = ranking.rows[0].workflow
        of_first = [row for row, workflow in zip(rows, workflows, strict=True) if workflow == first]
        return cls(ranking, spread, max(of_first, key=lambda row: row.mean))


def ranking_table(
    standings: RankedTrials | None, trials: Sequence[Trial], red_agent: Any = "", *, all_tried: bool = False
) -> tables.Table:
    """Return a row per order that passed the gate, with its best trial, best first; then, if asked for, the other trials."""
    by_order = {trial.workflow: trial for trial in sorted(trials, key=lambda t: (t.accepted, t.return_mean or -math.inf))}
    verdicts = {True: "may be best", False: "worse"}
    ranked = () if standings is None else standings.ranking.rows
    lines: list[tuple[Any, ...]] = [
        (by_order[str(row.workflow)], row.mean, row.low, row.high, row.maybe_best, verdicts[row.maybe_best])
        for row in ranked
    ]
    for trial in trials if all_tried else ():
        if not by_order[trial.workflow].accepted:
            verdict = "failed" if trial.status == Status.FAILED else "not accepted"
            lines.append((trial, trial.return_mean, trial.return_low, trial.return_high, False, verdict))
    rows = tuple(
        (t.workflow, red_agent, *numbers, t.compliance, t.contested_compliance, t.id, t.episodes) for t, *numbers in lines
    )
    columns = ("order", "red_agent", "mean", "low", "high", "maybe_best", "verdict", "compliance", "contested")
    shares = (tables.Column(name, name, tables.percent) for name in columns[-2:])
    shown: tuple[str | tables.Column, ...] = (
        "order",
        tables.Column("mean", "return"),
        tables.INTERVAL,
        "verdict",
        *shares,
        "trial",
        "episodes",
    )
    return tables.Table((*columns, "trial", "episodes"), rows, shown, "All tried orders" if all_tried else "")


def read_trials(folder: Path) -> list[Trial]:
    """Return all rows of a run's ledger, in order."""
    trials = list(read_rows(RunFiles(folder).ledger, Trial))
    for number, trial in enumerate(trials):
        if trial.id != number or (trial.accepted and trial.return_mean is None):
            raise errors.RunDirError(f"{RunFiles(folder).ledger}: line {number + 2} is not of trial {number}, or damaged")
    return trials


class SeedResult(NamedTuple):
    """What one search found."""

    red_agent: str
    seed: int
    scheme: UnitScheme
    trials: Sequence[Trial]
    standings: RankedTrials | None


@dataclass(frozen=True)
class Comparison:
    """The searches against one red agent."""

    red_agent: str
    orders: tables.Table  # best mean first; those never accepted last
    best: dict[int, Ranked | None]  # the first of each seed's ranking; None where no order passed the gate
    ranking: Ranking | None  # pooled; None where no order was accepted under two seeds
    spread: float | None  # standard deviation between seeds
    freedom: int  # degrees of freedom it was measured with


def compare_seeds(results: Sequence[SeedResult]) -> list[Comparison]:
    """Return what the seeds say together, for each red agent."""
    agents = dict.fromkeys(result.red_agent for result in results)
    return [_compare([result for result in results if result.red_agent == agent], agent) for agent in agents]


def _compare(results: Sequence[SeedResult], red_agent: str) -> Comparison:
    counts: dict[str, Counter[Workflow]] = {name: Counter() for name in ("tried", "accepted", "maybe_best")}
    returns: dict[Workflow, list[float]] = {}
    best: dict[int, Ranked | None] = {}
    for result in results:
        became = [(Workflow.parse(trial.workflow, result.scheme), trial.accepted) for trial in result.trials]
        ranked = () if result.standings is None else result.standings.ranking.rows
        counts["tried"].update({workflow for workflow, _ in became})
        counts["accepted"].update({workflow for workflow, accepted in became if accepted})
        counts["maybe_best"].update(row.workflow for row in ranked if row.maybe_best)
        for row in ranked:
            returns.setdefault(row.workflow, []).append(row.mean)
        best[result.seed] = next(iter(ranked), None)
    ranking, (spread, freedom) = None, spread_between_seeds(list(returns.values()))
    if spread is not None:
        means = [float(np.mean(values)) for values in returns.values()]
        ses = [spread / math.sqrt(len(values)) for values in returns.values()]
        ranking = rank(list(returns), means, ses, [freedom + 1] * len(returns))
    return Comparison(red_agent, _orders_table(counts, returns, ranking, len(results)), best, ranking, spread, freedom)


def _orders_table(
    counts: Mapping[str, Counter[Workflow]], returns: Mapping[Workflow, Sequence[float]], ranking: Ranking | None, seeds: int
) -> tables.Table:
    """Return a row per order, best mean first: its mean return over the seeds that accepted it, with a t-interval, and of
    how many seeds it was tried, was accepted, and could not be told from the best of its search.
    """
    marked = () if ranking is None else ranking.maybe_best
    lines = []
    for order in counts["tried"]:
        interval = mean_interval(returns[order]) if order in returns else (None, None, None)
        lines.append((order, *interval, *(count[order] for count in counts.values()), seeds, order in marked))
    lines.sort(key=lambda line: (math.inf if line[1] is None else -line[1], line[0].order))
    columns = ("order", "mean", "low", "high", *counts, "seeds", "maybe_best_of_all")
    of_seeds = (tables.Column((name, "seeds"), name.replace("_", " "), "{}/{}".format) for name in counts)
    mean = tables.Column("mean", "mean return")
    shown: tuple[str | tables.Column, ...] = ("order", mean, tables.INTERVAL, *of_seeds, "maybe_best_of_all")
    return tables.Table(columns, tuple((str(order), *rest) for order, *rest in lines), shown, f"Orders across {seeds} seeds")


def spread_between_seeds(returns: Sequence[Sequence[float]]) -> tuple[float | None, int]:
    """Pooled standard deviation of an order's returns (one sequence per order), and its degrees of freedom."""
    freedom = sum(len(values) - 1 for values in returns)
    if freedom < 1:
        return None, 0
    squares = sum(float(np.sum((np.array(values) - np.mean(values)) ** 2)) for values in returns)
    return math.sqrt(squares / freedom), freedom
