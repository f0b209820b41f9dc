"""What seeds say together: honest sums, worked by hand."""

from dataclasses import replace
from math import sqrt

import pytest
from fake_search import ORDERS, trial

from fixfirst.orders.order import FIVE_TYPES
from fixfirst.reporter.texts import verdict_over_seeds
from fixfirst.runs.rows import Status
from fixfirst.stats.across_seeds import RankedTrials, SeedResult, compare_seeds, spread_between_seeds

A, B, C, D = ORDERS[:4]


def found(seed, *trials, red_agent="b_line"):
    """A search with these returns; None: not compliant."""
    rows = [
        replace(trial(number, mean), workflow=str(workflow), status=Status.ACCEPTED if mean else Status.NON_COMPLIANT)
        for number, (workflow, mean) in enumerate(trials)
    ]
    return SeedResult(red_agent, seed, FIVE_TYPES, rows, RankedTrials.of(rows, FIVE_TYPES, test_episodes=1000))


def test_the_spread_between_seeds_is_pooled_over_orders():
    """1, 3 differ from 2 by 1 each: 2. 5, 5, 8 from 6 by 1, 1, 2: 6. Together 8, with 1 + 2 degrees of freedom."""
    assert spread_between_seeds([[1.0, 3.0], [5.0, 5.0, 8.0], [40.0]]) == (pytest.approx(sqrt(8 / 3)), 3)
    assert spread_between_seeds([[1.0], [2.0]]) == (None, 0)


def test_what_two_seeds_say_together_and_those_that_disagree_declare_no_winner():
    """A: -10 and -12. B: -30 twice (-29 and -31), and -32. C passed once, at -50, D never."""
    first = found(0, (A, -10.0), (B, -29.0), (B, -31.0), (C, None))
    second = found(1, (B, -32.0), (A, -12.0), (C, -50.0), (D, None))
    (both,) = compare_seeds([first, second])
    shown = [(row["order"], row["tried"], row["accepted"], row["maybe_best"], row["mean"]) for row in both.orders.dicts()]
    counts = [(A, 2, 2, 2, -11.0), (B, 2, 2, 0, -31.0), (C, 2, 1, 0, -50.0), (D, 1, 0, 0, None)]
    assert shown == [(str(order), *rest) for order, *rest in counts]
    assert [(seed, best.workflow, best.mean) for seed, best in both.best.items()] == [(0, A, -10.0), (1, A, -12.0)]
    assert both.spread == pytest.approx(sqrt(2)) and both.freedom == 2  # A and B vary by 2 each
    assert [row.standard_error for row in both.ranking.rows] == [pytest.approx(1), pytest.approx(1), pytest.approx(sqrt(2))]
    assert both.ranking.winner == A
    assert verdict_over_seeds(both).startswith(f"Over seeds: Best order (95 % confidence): {A}, return -11.00")
    assert verdict_over_seeds(both).endswith("degrees of freedom: too few for intervals that say anything)")
    assert "(spread between seeds 1.41, measured with 2 degrees of freedom" in verdict_over_seeds(both)
    _, first, *_, last = both.orders.cells()
    assert first == [str(A), "-11.00", "[-23.71, 1.71]", "2/2", "2/2", "2/2", "yes"]
    assert last == [str(D), "-", "-", "1/2", "0/2", "0/2", "no"]
    # A and B change places: each search alone is sure, the two together are not.
    results = [found(0, (A, -10.0), (B, -20.0)), found(1, (A, -20.0), (B, -10.0))]
    assert [result.standings.ranking.winner for result in results] == [A, B]
    (both,) = compare_seeds(results)
    assert both.ranking.winner is None and both.ranking.maybe_best == (A, B)


def test_without_an_order_seen_twice_nothing_is_claimed_and_a_seed_in_which_nothing_passed_counts_as_having_tried():
    (both,) = compare_seeds([found(0, (A, -10.0)), found(1, (B, -99.0))])
    assert both.ranking is None and both.spread is None
    assert verdict_over_seeds(both).startswith("No order was accepted under two seeds")
    (both,) = compare_seeds([found(0, (A, None)), found(1, (A, -10.0))])
    assert [(row["tried"], row["accepted"]) for row in both.orders.dicts()] == [(2, 1)]
    assert both.best[0] is None and both.best[1].workflow == A
    apart = compare_seeds([found(0, (A, -10.0)), found(0, (A, -20.0), red_agent="meander")])
    assert [(c.red_agent, c.best[0].mean) for c in apart] == [("b_line", -10.0), ("meander", -20.0)]
