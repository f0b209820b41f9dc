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
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors, tables
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.runs.csv_logs import read_rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Status, Trial
from fixfirst.stats.answer import NO_ANSWER, Answer, nothing_shown, round_up
from fixfirst.stats.intervals import mean_interval
from fixfirst.stats.network_facts import NetworkFacts, Pair
from fixfirst.stats.ranking import Ranking, rank, training_spread


@dataclass(frozen=True)
class RankedTrials:
    """How the orders that passed the gate compare."""

    ranking: Ranking  # its errors include the spread
    spread: float  # standard deviation between two trainings of one order, estimated
    best: Trial  # the highest return (ties: the first) of the ranking's first order


def ranking_table(
    found: RankedTrials | None, trials: Sequence[Trial], red_agent: Any = "", *, all_tried: bool = False
) -> tables.Table:
    """Return a row per order that passed the gate, with its best trial, best first; then, if asked for, the other trials."""
    by_order = {trial.workflow: trial for trial in sorted(trials, key=lambda t: (t.accepted, t.return_mean or -math.inf))}
    verdicts = {True: "may be best", False: "worse"}
    ranked = () if found is None else found.ranking.rows
    lines: list[tuple[Any, ...]] = [
        (by_order[str(row.workflow)], row.mean, row.low, row.high, row.maybe_best, verdicts[row.maybe_best])
        for row in ranked
    ]
    for trial in trials if all_tried else ():
        if not by_order[trial.workflow].accepted:
            verdict = "failed" if trial.status == Status.FAILED else "not accepted"
            lines.append((trial, trial.return_mean, trial.return_low, trial.return_high, False, verdict))
    rows = tuple(
        (t.workflow, red_agent, *earned, t.compliance, t.contested_compliance, t.id, t.episodes) for t, *earned in lines
    )
    columns = ("order", "red_agent", "mean", "low", "high", "maybe_best", "verdict", "compliance", "contested")
    kept = (tables.Column(name, name, tables.percent) for name in columns[-2:])
    shown: tuple[str | tables.Column, ...] = (
        "order",
        tables.Column("mean", "return"),
        tables.INTERVAL,
        "verdict",
        *kept,
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

    def table(self) -> tables.Table:
        """Return a row per order, best mean first."""
        marked = () if self.ranking is None else self.ranking.maybe_best
        counts = ("tried", "accepted", "maybe_best")
        rows = tuple(
            (str(o.workflow), o.mean, o.low, o.high, o.tried, o.accepted, o.maybe_best, len(self.best), o.workflow in marked)
            for o in self.orders
        )
        columns = ("order", "mean", "low", "high", *counts, "seeds", "maybe_best_of_all")
        of_seeds = (tables.Column((name, "seeds"), name.replace("_", " "), "{}/{}".format) for name in counts)
        shown: tuple[str | tables.Column, ...] = (
            "order",
            tables.Column("mean", "mean return"),
            tables.INTERVAL,
            *of_seeds,
            "maybe_best_of_all",
        )
        return tables.Table(columns, rows, shown, f"Orders across {len(self.best)} seeds")


def compare_seeds(results: Sequence[SeedResult]) -> list[Comparison]:
    """Return what the seeds say together, for each red agent."""
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


def spread_between_seeds(returns: Sequence[Sequence[float]]) -> tuple[float | None, int]:
    """Pooled standard deviation of an order's returns (one sequence per order), and its degrees of freedom."""
    freedom = sum(len(values) - 1 for values in returns)
    if freedom < 1:
        return None, 0
    squares = sum(float(np.sum((np.array(values) - np.mean(values)) ** 2)) for values in returns)
    return math.sqrt(squares / freedom), freedom


# ---------------------------------------------------------------- in one world
#
# A world is an attacker in a network and a variant, met with some memory; searches in one world differ in their seeds.


FEW_SEEDS = 3  # fewer give no interval


class Verdict(StrEnum):
    """What one search, or one world, says of fixing one unit type before another."""

    SHOWN = "shown"  # it is worth more than the margin
    WITHIN = "within"  # it costs nothing, or no more than the margin
    AGAINST = "against"  # it costs more than the margin
    DIVIDED = "divided"  # seeds contradict each other
    OPEN = "open"


def _judge(answer: Answer, pair: Pair) -> Verdict:
    """Say what one search says of a pair."""
    if not answer.is_settled:
        return Verdict.OPEN
    if set(pair) & set(answer.idle):
        return Verdict.WITHIN  # red never holds one of them: their order is all the same
    swap = answer.worth(*pair)
    if swap is None or swap.low is None or swap.high is None:
        return Verdict.OPEN
    if swap.low > answer.margin:
        return Verdict.SHOWN
    if swap.low >= -answer.margin:
        return Verdict.WITHIN
    return Verdict.AGAINST if swap.high < -answer.margin else Verdict.OPEN


@dataclass(frozen=True)
class SearchedWorld:
    """The searches in one world."""

    attacker: str  # and what else differs between the worlds of a study but the network
    answers: tuple[Answer, ...]
    network: NetworkFacts | None = None  # where worlds of several networks are compared

    @property
    def name(self) -> str:
        return self.attacker if self.network is None else f"{self.attacker} in {self.network.name}"

    def has(self, pair: Pair) -> bool:
        """Are there both unit types?"""
        return {*pair} <= {*self.answers[0].units}

    @property
    def is_settled(self) -> bool:
        """Have more than half of the seeds an answer?"""
        return 2 * sum(answer.is_settled for answer in self.answers) > len(self.answers)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All precedences that some seed shows to matter; the dearest first."""
        prices: dict[Pair, float] = {}
        for answer in self.answers:
            for swap in answer.that_matter if answer.is_settled else ():
                prices.setdefault((swap.first, swap.second), swap.price)
        return sorted(prices, key=lambda pair: (-prices[pair], pair))

    def seeds(self, pair: Pair) -> Counter[Verdict]:
        """Return how many seeds say what of a pair."""
        return Counter(_judge(answer, pair) for answer in self.answers)

    def judge(self, pair: Pair) -> Verdict:
        """Say what its seeds say of a pair: what more than half of them do, and none contradicts."""
        seen = self.seeds(pair)
        if seen[Verdict.AGAINST]:
            return Verdict.DIVIDED if seen[Verdict.SHOWN] else Verdict.AGAINST
        for verdict, votes in (
            (Verdict.SHOWN, seen[Verdict.SHOWN]),
            (Verdict.WITHIN, seen[Verdict.SHOWN] + seen[Verdict.WITHIN]),
        ):
            if 2 * votes > len(self.answers):
                return verdict
        return Verdict.OPEN

    def price(self, pair: Pair) -> float | None:
        """Return what a pair is worth here, over all seeds that have an answer; None where it was not compared."""
        found = [swap.price for a in self.answers if a.is_settled and (swap := a.worth(*pair)) is not None]
        return float(np.mean(found)) if found else None

    def cost(self, pairs: list[Pair]) -> float | None:
        """Return how much less the best order earns that has all of these the right way round; None if there is none."""
        costs = []
        for answer in self.answers if self.is_settled else ():
            held = [(a, b) for a, b in pairs if not {a, b} & {*answer.idle}]
            places = [(order.mean, order.workflow.split(" > ")) for order in answer.orders]
            following = [mean for mean, units in places if all(units.index(a) < units.index(b) for a, b in held)]
            if following:
                costs.append(max(mean for mean, _ in places) - max(following))
        return float(np.mean(costs)) if costs else None

    def worth(self, pair: Pair) -> str:
        """Return what a pair is worth here, over all seeds that have an answer."""
        swaps = [swap for a in self.answers if a.is_settled and (swap := a.worth(*pair)) is not None]
        if len(swaps) == 1:
            return f"{swaps[0].price:.2f} (95 %: {swaps[0].low:.2f} to {swaps[0].high:.2f})"
        mean, low, high = mean_interval([swap.price for swap in swaps])
        if len(swaps) < FEW_SEEDS or low is None or high is None:
            return f"{mean:.2f} (too few seeds for an interval over seeds)"
        return f"{mean:.2f} (95 % over seeds: {low:.2f} to {high:.2f})"

    def doubt(self, pair: Pair) -> str:
        """Return why a pair is not shown to be good here."""
        verdict, (a, b) = self.judge(pair), pair
        if not self.is_settled:
            return "there is no answer yet"
        if verdict == Verdict.AGAINST:
            return f"{b} before {a} is worth {self.worth((b, a))}"
        if verdict == Verdict.DIVIDED:
            return "seeds contradict each other"
        lows = [swap.low for answer in self.answers if (swap := answer.worth(a, b)) is not None and swap.low is not None]
        return f"it may cost up to {round_up(-min(lows))}" if lows else "it is open"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is shown here, and what its seeds do not agree on."""
        count = len(self.answers)
        if count == 1:
            return (self.answers[0].sentences[0],)
        waiting = sum(not answer.is_settled for answer in self.answers)
        texts = [f"{NO_ANSWER} in {waiting} of {count} seeds: {self._next()}."] if waiting else []
        for pair in self.pairs:
            (a, b), seen = pair, self.seeds(pair)
            if self.judge(pair) == Verdict.SHOWN:
                texts.append(
                    f"Fix {a} before {b}, worth {self.worth(pair)}; {seen[Verdict.SHOWN]} of {count} seeds show it."
                )
            if (
                (b, a) not in self.pairs[: self.pairs.index(pair)]
                and len(seen) > 1
                and seen.keys() - {Verdict.OPEN} != {Verdict.SHOWN}
            ):
                words = {
                    Verdict.SHOWN: "show it",
                    Verdict.WITHIN: "show that it makes no difference",
                    Verdict.AGAINST: "show the opposite",
                    Verdict.OPEN: "leave it open",
                }
                said = [f"{seen[verdict]} {text}" for verdict, text in words.items() if seen[verdict]]
                texts.append(f"Seeds disagree about {a} before {b}: of {count}, {errors.list_words(said)}.")
        if not self.pairs and waiting < count:
            known = [answer for answer in self.answers if answer.is_settled]
            bound = round_up(max((s.at_most for answer in known for s in answer.swaps), default=0.0))
            texts.append(f"No {nothing_shown(known)} (less than {bound} in every seed).")
        return tuple(texts)

    def _next(self) -> str:
        return f"try {max(answer.next_episodes for answer in self.answers):,} episodes"
