"""Which order to try next: ask for orders, tell what became of them. Knows nothing of learning.

    strategy = Strategy(StrategyConfig(name="gp_ucb", seed=0))
    for choice in strategy.ask(4):
        strategy.tell(choice.workflow, mean=-17.2, standard_error=0.3)

A choice is a function of the configuration, the returns told so far and the orders still pending, and of nothing else:
every random number comes from (seed, number of orders asked for so far). Telling a new strategy the same returns
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from fixfirst.base import errors
from fixfirst.orders import order
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.stats import ranking

if TYPE_CHECKING:
    from fixfirst.searcher.gp import Belief, OrderGP

_Units = tuple[int, ...]  # unit ids, first = fix first

STRATEGIES = ("gp_ucb", "random", "exhaustive")
MAX_SCORED = 5_040  # 7!: up to here every order is scored, beyond a local search looks for good ones
CLIMBS_FROM_BEST, CLIMBS_FROM_RANDOM = 5, 10
NUM_TOP = 3
DELTA = 0.1  # of the schedule of beta


@dataclass(frozen=True)
class Choice:
    """An order to try, and why."""

    workflow: Workflow
    how: str  # "ucb", "random" or "exhaustive"; "together" or "swap" in a search with one network
    beta: float | None = None
    top: Mapping[Workflow, "Belief"] = field(default_factory=dict)  # of the best by UCB, the chosen one first; or of none

    def ucb(self, workflow: Workflow) -> float:
        """Return the upper confidence bound of one of the best."""
        assert self.beta is not None  # it is only scored with one
        return float(self.top[workflow].mean + self.beta * self.top[workflow].std)


@dataclass(frozen=True)
class StrategyConfig:
    name: str = "gp_ucb"  # one of STRATEGIES
    seed: int = 0
    beta: float = 2.0
    beta_schedule: bool = False  # beta_t = sqrt(2 ln(|W| pi^2 t^2 / (6 DELTA))) for the t-th order asked, instead of beta
    initial_orders: int = 8  # random ones, before the GP has a say


def scheduled_beta(num_orders: int, t: int) -> float:
    """Srinivas et al., ICML 2010, theorem 1: with probability 1 - DELTA every mean lies within beta_t std."""
    from fixfirst.searcher import ieee  # here, because Numba comes with it

    return math.sqrt(2 * ieee.log(num_orders * math.pi**2 * t**2 / (6 * DELTA)))


class Strategy:
    """Ask for orders, tell what they earned."""

    def __init__(self, config: StrategyConfig, scheme: UnitScheme = order.FIVE_TYPES, idle: tuple[int, ...] = ()):
        self.config = config
        self.scheme = scheme
        self.idle = tuple(sorted(idle))  # unit types whose place does not matter: they come last in every order
        self._units = tuple(unit for unit in range(scheme.size) if unit not in idle)
        self.pending: list[Workflow] = []
        self.returns: list[tuple[Workflow, float, float]] = []  # order, mean and standard error of each compliant trial
        self.without_return: list[Workflow] = []  # orders of the other trials
        self._workflows: dict[_Units, Workflow] = {}  # that were named so far
        self._latest_gp: tuple[int, OrderGP] | None = None  # of so many returns; a round asks it several times

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
        return len(self.returns) + len(self.without_return) + len(self.pending)

    def ask(self, n: int = 1) -> list[Choice]:
        """Choose the next n orders, a round: they become pending, and each is chosen knowing that those before it are.

        To resume within a round, tell what came before the round and ask for all of it again.
        """
        choices = []
        for _ in range(n):
            distinct = len({workflow for workflow, _, _ in self.returns})
            if self.config.name == "exhaustive":
                choice = Choice(self._workflow(self._lowest_number()), "exhaustive")
            elif self.config.name == "random" or self.num_asked < self.config.initial_orders or distinct < 2:
                choice = Choice(self._workflow(self._random()), "random")
            else:
                choice = self._largest_ucb()
            choices.append(choice)
            self.pending.append(choice.workflow)
        return choices

    def tell(self, workflow: Workflow, mean: float | None, standard_error: float = 0.0) -> None:
        """Add what the trial of an order earned; mean None: it was not compliant, or failed.

        The order need not have been asked for, so that a ledger can be replayed.
        """
        if workflow.scheme != self.scheme:
            raise errors.SearchError(f"{workflow} is an order of another unit scheme than {', '.join(self.scheme.names)}")
        if workflow in self.pending:
            self.pending.remove(workflow)
        if mean is None:
            self.without_return.append(workflow)
        else:
            self.returns.append((workflow, mean, standard_error))

    def best(self) -> Workflow | None:
        """Return the compliant order with the highest believed return (ties: lowest number); None before any was told.

        gp_ucb believes its GP, which shrinks a lucky return towards its neighbours; the others the averaged returns.
        """
        if not self.returns:
            return None
        tried, mean, _ = ranking.merge(*self._observations())
        if self.config.name == "gp_ucb":
            mean = self._gp().predict(tried).mean
        return self._workflow(tuple(tried[mean.argmax()].tolist()))

    def _observations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return orders [n, U], mean returns [n] and standard errors [n] of the compliant trials."""
        workflows, means, ses = zip(*self.returns, strict=True)
        return np.array([workflow.order for workflow in workflows]), np.array(means, np.float64), np.array(ses, np.float64)

    def _gp(self) -> "OrderGP":
        from fixfirst.searcher.gp import OrderGP  # here, because not every strategy needs its compiled code

        if self._latest_gp is None or self._latest_gp[0] != len(self.returns):
            self._latest_gp = len(self.returns), OrderGP(*self._observations())
        return self._latest_gp[1].with_pending(np.array([workflow.order for workflow in self.pending]))

    def _tries(self) -> tuple[Counter[_Units], int]:
        """Return how often each order was observed or is pending, and how often the least tried one."""
        compliant = [workflow for workflow, _, _ in self.returns]
        tries = Counter(workflow.order for workflow in (*compliant, *self.without_return, *self.pending))
        return tries, min(tries.values()) if len(tries) == self.num_orders else 0

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, self.num_asked])

    def _lowest_number(self) -> _Units:
        tries, fewest = self._tries()
        return next(order for order in self._permutations() if tries[order] == fewest)

    def _random(self) -> _Units:
        """Return one of the least tried orders."""
        tries, fewest = self._tries()
        rng = self._rng()
        if self.num_orders <= MAX_SCORED:
            least = [order for order in self._permutations() if tries[order] == fewest]
            return least[rng.integers(len(least))]
        while tries[order := self._shuffled(rng)] > fewest:
            pass
        return order

    def _largest_ucb(self) -> Choice:
        from fixfirst.searcher.gp import Belief

        gp, beta = self._gp(), self.config.beta
        if self.config.beta_schedule:
            beta = scheduled_beta(self.num_orders, self.num_asked + 1)
        if self.num_orders <= MAX_SCORED:
            orders = list(self._permutations())
            mean, std = gp.predict(np.array(orders))
        else:
            orders, mean, std = self._climb(gp, beta)
        ucb = mean + beta * std
        ranking = np.argsort(-ucb, kind="stable")  # ties: the first in `orders`, by number if all are scored
        top = self._open(orders, ranking, std)[:NUM_TOP]
        believed = {self._workflow(orders[i]): Belief(mean[i], std[i]) for i in top}
        return Choice(next(iter(believed)), "ucb", beta, believed)

    def _open(self, orders: list[_Units], ranking: np.ndarray, std: np.ndarray) -> list[int]:
        """Return which of the ranked orders may be chosen now, best first."""
        tries, fewest = self._tries()
        pending = {workflow.order for workflow in self.pending}
        failures = Counter(workflow.order for workflow in self.without_return)
        allowed = [i for i in ranking if failures[orders[i]] <= fewest]
        # A round larger than the number of such orders has to repeat some.
        allowed = [i for i in allowed if orders[i] not in pending] or allowed or list(ranking)
        untried = next((i for i in allowed if not tries[orders[i]]), None)
        if untried is None:
            return allowed
        # A tried order teaches more than the best untried one only while it is the less certain of the two. Without
        # this rule a leader more than beta standard deviations above the rest would be repeated for ever.
        return [i for i in allowed if not tries[orders[i]] or std[i] >= std[untried]]

    def _climb(self, gp: "OrderGP", beta: float) -> tuple[list[_Units], np.ndarray, np.ndarray]:
        """Return orders met on the way up the UCB by swaps of neighbours, from the best tried and from random ones."""
        tried = np.unique(self._observations()[0], axis=0)
        best = tried[np.argsort(-gp.predict(tried).mean, kind="stable")[:CLIMBS_FROM_BEST]]
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


def neighbours(order: _Units, first: int | None = None) -> list[_Units]:
    """Return the orders with two neighbouring unit types swapped, of all or of the first ones."""
    count = len(order) if first is None else first
    return [(*order[:i], order[i + 1], order[i], *order[i + 2 :]) for i in range(count - 1)]
