"""Which order to try next: ask for orders, tell what became of them. Knows nothing of learning.

    strategy = Strategy(StrategyConfig(name="gp_ucb", seed=0))
    for choice in strategy.ask(4):
        strategy.tell(choice.workflow, Outcome.compliant(mean_return=-17.2, standard_error=0.3))

A choice is a function of the configuration, the outcomes told so far and the orders still pending, and of nothing else:
every random number comes from (seed, number of orders asked for so far). Telling a new strategy the same outcomes
therefore gives the same next choices, which is how an interrupted search resumes.

gp_ucb       some random orders, then the largest mean + beta * std of a Gaussian process over orders (`gp.py`)
random       without replacement; once all orders were tried, again from the least tried ones
exhaustive   by number

An order whose trial was not compliant, or failed, gives the GP no return and is not chosen again before every other order
has been tried as often. A compliant order may be chosen again (its returns are averaged) while it is less certain than the
best untried order.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from fixfirst.base import errors
from fixfirst.orders import order
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.stats import ranking

if TYPE_CHECKING:
    from fixfirst.searcher.gp import OrderGP

_Units = tuple[int, ...]  # unit ids, first = fix first

STRATEGIES = ("gp_ucb", "random", "exhaustive")
MAX_SCORED = 5_040  # 7!: up to here every order is scored, beyond a local search looks for good ones
CLIMBS_FROM_BEST, CLIMBS_FROM_RANDOM = 5, 10
NUM_TOP = 3


class _Status(StrEnum):
    """How a trial ended."""

    COMPLIANT = "compliant"
    NON_COMPLIANT = "non_compliant"
    FAILED = "failed"


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial; only a compliant one has a return."""

    status: _Status
    mean_return: float | None = None
    standard_error: float | None = None

    def __post_init__(self) -> None:
        numbers = (self.mean_return, self.standard_error)
        if self.status is not _Status.COMPLIANT:
            if numbers != (None, None):
                raise errors.SearchError(f"a {self.status} trial is told without a return, got {self.mean_return}")
        elif any(number is None or not math.isfinite(number) for number in numbers):
            raise errors.SearchError(f"a compliant trial needs a finite mean return and standard error, got {numbers}")
        elif self.standard_error is not None and self.standard_error < 0:
            raise errors.SearchError(f"a standard error is at least 0, got {self.standard_error}")

    @classmethod
    def compliant(cls, mean_return: float, standard_error: float) -> "TrialOutcome":
        return cls(_Status.COMPLIANT, mean_return, standard_error)


NON_COMPLIANT = TrialOutcome(_Status.NON_COMPLIANT)
FAILED = TrialOutcome(_Status.FAILED)


@dataclass(frozen=True)
class Candidate:
    """An order as the strategy saw it when it chose."""

    workflow: Workflow
    mean: float
    std: float
    ucb: float  # mean + beta * std


@dataclass(frozen=True)
class Choice:
    """An order to try, and why."""

    workflow: Workflow
    how: str  # "ucb", "random" or "exhaustive"; "together" or "swap" in a search with one network
    beta: float | None = None
    top: tuple[Candidate, ...] = ()  # the best three by UCB, the chosen one first; empty when nothing was scored


@dataclass(frozen=True)
class StrategyConfig:
    name: str = "gp_ucb"
    seed: int = 0
    beta: float = 2.0
    beta_schedule: bool = False  # beta_t = sqrt(2 ln(|W| pi^2 t^2 / (6 delta))) for the t-th order asked, instead of beta
    delta: float = 0.1
    initial_orders: int = 8  # random ones, before the GP has a say

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise errors.SearchError(f"strategy {self.name!r} is none of {', '.join(STRATEGIES)}")
        if self.seed < 0:
            raise errors.SearchError(f"a seed is at least 0, got {self.seed}")
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise errors.SearchError(f"beta must be at least 0, got {self.beta}")
        if not 0 < self.delta < 1:
            raise errors.SearchError(f"delta must lie between 0 and 1, got {self.delta}")
        if self.initial_orders < 1:
            raise errors.SearchError(f"the GP needs at least 1 initial order, got {self.initial_orders}")


def scheduled_beta(num_orders: int, t: int, delta: float) -> float:
    """Srinivas et al., ICML 2010, theorem 1: with probability 1 - delta every mean lies within beta_t std."""
    from fixfirst.base import ieee  # here, because Numba comes with it

    return math.sqrt(2 * ieee.log(num_orders * math.pi**2 * t**2 / (6 * delta)))


class Strategy:
    """Ask for orders, tell outcomes."""

    def __init__(self, config: StrategyConfig, scheme: UnitScheme = order.FIVE_TYPES, idle: tuple[int, ...] = ()):
        self.config = config
        self.scheme = scheme
        self.idle = tuple(sorted(idle))  # unit types whose place does not matter: they come last in every order
        self._units = tuple(unit for unit in range(scheme.size) if unit not in idle)
        self.told: list[tuple[Workflow, TrialOutcome]] = []
        self.pending: list[Workflow] = []
        self._workflows: dict[_Units, Workflow] = {}  # that were named so far
        self._told_gp: tuple[int, OrderGP] | None = None  # of so many told orders; a round asks it several times

    @property
    def num_orders(self) -> int:
        """How many there are to choose from."""
        return math.factorial(len(self._units))

    def all_orders(self) -> Iterator[Workflow]:
        """By number."""
        return (self._workflow(order) for order in self._permutations())

    def _permutations(self) -> Iterator[_Units]:
        return ((*order, *self.idle) for order in permutations(self._units))

    @property
    def num_asked(self) -> int:
        return len(self.told) + len(self.pending)

    def ask(self, n: int = 1) -> list[Choice]:
        """Choose the next n orders, a round: they become pending, and each is chosen knowing that those before it are.

        To resume within a round, tell what came before the round and ask for all of it again.
        """
        if n < 1:
            raise errors.SearchError(f"a round has at least 1 order, got {n}")
        choices = []
        for _ in range(n):
            choices.append(self._choose())
            self.pending.append(choices[-1].workflow)
        return choices

    def tell(self, workflow: Workflow, outcome: TrialOutcome) -> None:
        """What became of an order; it need not have been asked for, so that a ledger can be replayed."""
        if workflow.scheme != self.scheme:
            raise errors.SearchError(f"{workflow} is an order of another unit scheme than {', '.join(self.scheme.names)}")
        if workflow in self.pending:
            self.pending.remove(workflow)
        self.told.append((workflow, outcome))

    def best(self) -> Candidate | None:
        """The tried, compliant order with the highest believed return (ties: lowest number); None before any was told.

        gp_ucb believes its GP, which shrinks a lucky return towards its neighbours; the others the averaged returns.
        """
        if not self._returns():
            return None
        tried, mean, std = ranking.merge(*self._observations())
        if self.config.name == "gp_ucb":
            mean, std = self._gp().predict(tried)
        return self._candidate(tuple(tried[mean.argmax()]), mean.max(), std[mean.argmax()], self._beta())

    def _choose(self) -> Choice:
        if self.config.name == "exhaustive":
            return Choice(self._workflow(self._lowest_number()), "exhaustive")
        distinct = len({order for order, _ in self._returns()})
        if self.config.name == "random" or self.num_asked < self.config.initial_orders or distinct < 2:
            return Choice(self._workflow(self._random()), "random")
        return self._largest_ucb()

    # What has happened so far

    def _returns(self) -> list[tuple[_Units, TrialOutcome]]:
        return [(workflow.order, outcome) for workflow, outcome in self.told if outcome.status is _Status.COMPLIANT]

    def _observations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return orders [n, U], mean returns [n] and standard errors [n] of the compliant trials."""
        orders, outcomes = zip(*self._returns(), strict=True)
        mean = np.array([outcome.mean_return for outcome in outcomes], np.float64)
        return np.array(orders), mean, np.array([outcome.standard_error for outcome in outcomes], np.float64)

    def _gp(self) -> "OrderGP":
        from fixfirst.searcher.gp import OrderGP  # here, because not every strategy needs its compiled code

        if self._told_gp is None or self._told_gp[0] != len(self.told):
            self._told_gp = len(self.told), OrderGP(*self._observations())
        return self._told_gp[1].with_pending(np.array([workflow.order for workflow in self.pending]))

    def _tries(self) -> Counter[_Units]:
        """Return how often each order was told or is pending."""
        return Counter([workflow.order for workflow, _ in self.told] + [workflow.order for workflow in self.pending])

    def _fewest(self, tries: Counter[_Units]) -> int:
        return min(tries.values()) if len(tries) == self.num_orders else 0

    def _beta(self) -> float:
        if self.config.beta_schedule:
            return scheduled_beta(self.num_orders, self.num_asked + 1, self.config.delta)
        return self.config.beta

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, self.num_asked])

    # Ways to choose

    def _lowest_number(self) -> _Units:
        tries = self._tries()
        fewest = self._fewest(tries)
        return next(order for order in self._permutations() if tries[order] == fewest)

    def _random(self) -> _Units:
        """Return one of the least tried orders."""
        tries = self._tries()
        fewest = self._fewest(tries)
        rng = self._rng()
        if self.num_orders <= MAX_SCORED:
            least = [order for order in self._permutations() if tries[order] == fewest]
            return least[rng.integers(len(least))]
        while tries[order := self._shuffled(rng)] > fewest:
            pass
        return order

    def _largest_ucb(self) -> Choice:
        gp, beta = self._gp(), self._beta()
        if self.num_orders <= MAX_SCORED:
            orders = list(self._permutations())
            mean, std = gp.predict(np.array(orders))
        else:
            orders, mean, std = self._climb(gp, beta)
        ucb = mean + beta * std
        ranking = np.argsort(-ucb, kind="stable")  # ties: the first in `orders`, by number if all are scored
        top = self._open(orders, ranking, std)[:NUM_TOP]
        candidates = tuple(self._candidate(orders[i], mean[i], std[i], beta) for i in top)
        return Choice(candidates[0].workflow, "ucb", beta, candidates)

    def _open(self, orders: list[_Units], ranking: np.ndarray, std: np.ndarray) -> list[int]:
        """Return which of the ranked orders may be chosen now, best first."""
        tries = self._tries()
        fewest = self._fewest(tries)
        without_return = Counter(w.order for w, outcome in self.told if outcome.status is not _Status.COMPLIANT)
        pending = {workflow.order for workflow in self.pending}
        allowed = [i for i in ranking if without_return[orders[i]] <= fewest]
        # A round larger than the number of such orders has to repeat some.
        allowed = [i for i in allowed if orders[i] not in pending] or allowed or list(ranking)
        untried = next((i for i in allowed if not tries[orders[i]]), None)
        if untried is None:
            return allowed
        # A tried order teaches more than the best untried one only while it is the less certain of the two. Without
        # this rule a leader more than beta standard deviations above the rest would be repeated for ever.
        return [i for i in allowed if not tries[orders[i]] or std[i] >= std[untried]]

    def _climb(self, gp: "OrderGP", beta: float) -> tuple[list[_Units], np.ndarray, np.ndarray]:
        """Return orders met on the way up the UCB by swaps of neighbours, from the best told orders and from random ones."""
        told = np.unique(self._observations()[0], axis=0)
        best = told[np.argsort(-gp.predict(told).mean, kind="stable")[:CLIMBS_FROM_BEST]]
        rng = self._rng()
        random = [self._shuffled(rng) for _ in range(CLIMBS_FROM_RANDOM)]
        climbers: list[_Units] = [tuple(int(unit) for unit in order) for order in (*best, *random)]
        seen: dict[_Units, tuple[float, float]] = {}
        while climbers:
            around = [[order, *neighbours(order, len(self._units))] for order in climbers]
            new = list(dict.fromkeys(order for orders in around for order in orders if order not in seen))
            if new:
                seen |= dict(zip(new, zip(*gp.predict(np.array(new)), strict=True), strict=True))
            tops = [max(orders, key=lambda order: seen[order][0] + beta * seen[order][1]) for orders in around]
            climbers = list(dict.fromkeys(top for top, order in zip(tops, climbers, strict=True) if top != order))
        mean, std = np.array(list(seen.values())).T
        return list(seen), mean, std

    def _shuffled(self, rng: np.random.Generator) -> _Units:
        return (*(self._units[i] for i in rng.permutation(len(self._units)).tolist()), *self.idle)

    def _workflow(self, order: _Units) -> Workflow:
        if order not in self._workflows:
            self._workflows[order] = Workflow(order, self.scheme)
        return self._workflows[order]

    def _candidate(self, order: _Units, mean: float, std: float, beta: float) -> Candidate:
        workflow = self._workflow(tuple(int(unit) for unit in order))
        return Candidate(workflow, float(mean), float(std), float(mean + beta * std))


def neighbours(order: _Units, first: int | None = None) -> list[_Units]:
    """Return the orders with two neighbouring unit types swapped, of all or of the first ones."""
    count = len(order) if first is None else first
    return [(*order[:i], order[i + 1], order[i], *order[i + 2 :]) for i in range(count - 1)]
