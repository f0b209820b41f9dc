"""Prices of swaps, tiers, and how often they are right when the truth is known."""

import numpy as np
import pytest

from fixfirst.orders import Workflow, price
from fixfirst.orders.pricing import LEAST_SPREAD, shrunk
from fixfirst.orders.workflow import UnitScheme, all_workflows

HOSTS = list(Workflow.parse("critical_first").scheme.as_dict().values())
THREE = UnitScheme.from_dict({"a": HOSTS[0], "b": HOSTS[1], "c": [*HOSTS[2], *HOSTS[3], *HOSTS[4]]})
ORDERS = list(all_workflows(THREE))  # abc acb bac bca cab cba
RELEVANT = (0, 1, 2)


def before(a, b):
    """[6] 1 where a comes before b."""
    return np.array([float(order.ranks[a] < order.ranks[b]) for order in ORDERS])


def test_a_swap_is_priced_where_nothing_but_two_neighbours_differ():
    """a before b is worth 4 everywhere: the others, which contain it more or less often, are worth nothing."""
    values = np.tile(-14 - 4 * before(1, 0), (3, 1))
    swaps = {(s.first, s.second): s for s in price(ORDERS, values, RELEVANT, 0.5, 0).swaps}
    assert swaps["a", "b"].price == 4 and swaps["a", "b"].is_shown
    others = [swap for pair, swap in swaps.items() if pair != ("a", "b")]
    assert [swap.price for swap in others] == [0, 0] and not any(swap.is_shown for swap in others)
    assert before(0, 2)[before(0, 1) == 1].mean() > 0.5  # what means over all orders would mix in


def test_the_spread_is_never_nothing():
    """Three trainings that agree to the last digit still have an interval, and one training has a wider one."""
    swaps = [price(ORDERS, np.tile(-before(1, 0), (count, 1)), RELEVANT, 0.5, 0).swaps[0] for count in (3, 1)]
    assert 0.05 < swaps[0].high - swaps[0].low < swaps[1].high - swaps[1].low


def test_a_variance_from_few_trainings_is_drawn_towards_the_others():
    variance, freedom = shrunk(np.array([0.0, 0.6]), 0.3, replicates=3)
    assert freedom == 6 and variance.tolist() == pytest.approx([0.2, 0.4])
    assert LEAST_SPREAD > 0


def test_orders_fall_into_tiers():
    values = -14 - 4 * before(1, 0) + 0.05 * np.random.default_rng(0).standard_normal((3, 6))
    found = price(ORDERS, values, RELEVANT, 0.5, 0)
    assert [order.tier for order in found.orders] == [1, 1, 1, 3, 3, 3]
    assert sum(order.p_best for order in found.orders) == pytest.approx(1)
    assert all(order.p_best == 0 for order in found.orders[3:])


@pytest.mark.parametrize("effect", [0.0, 0.5, 4.0])
def test_intervals_hold_and_winners_are_not_declared_by_chance(effect):
    """500 searches of three trainings that differ by 0.1 within and 0.3 between them: all swaps are covered in 94 %."""
    rng, covered, false, wrong = np.random.default_rng(1), 0, 0, 0
    truth = -14 - effect * before(1, 0)
    for number in range(500):
        values = truth + 0.3 * rng.standard_normal((3, 1)) + 0.1 * rng.standard_normal((3, 6))
        found = price(ORDERS, values, RELEVANT, 0.5, number)
        true = {("a", "b"): effect, ("b", "a"): -effect}
        covered += all(s.low <= true.get((s.first, s.second), 0.0) <= s.high for s in found.swaps)
        false += any(s.is_shown and true.get((s.first, s.second), 0.0) <= 0 for s in found.swaps)
        best = truth.max()
        wrong += any(
            (row.tier == 1 and truth[ORDERS.index(row.workflow)] < best - 0.5)
            or (row.tier == 3 and truth[ORDERS.index(row.workflow)] > best - 0.5)
            for row in found.orders
        )
    assert covered / 500 >= 0.94 and false / 500 <= 0.05 and wrong / 500 <= 0.05
