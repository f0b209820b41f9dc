"""Accepted orders hold: however often a training is looked at, one that never keeps its order passes in 5 % of all cases."""

import numpy as np
import pytest

from fixfirst.orders.compliance import Compliance, Gate
from fixfirst.orders.repairs import Counts

GATE = Gate(gate_episodes=100)
LOOKS = 40  # of one training
TRAININGS = 200


def episodes(rng, rate):
    """Counts of fresh episodes of a policy that breaks its order at this rate, in some episodes more than in others."""
    judged = rng.poisson(5, GATE.gate_episodes)
    own = rng.beta(10 * rate, 10 * (1 - rate), GATE.gate_episodes)
    nothing = np.zeros_like(judged)
    kept = {"judged": judged, "compliant": judged - rng.binomial(judged, own)}
    return Counts(*(kept.get(name, nothing) for name in Counts._fields))


def passed(rng, rates, confirm):
    """Does a training pass whose policies break their orders at these rates, one after the other?"""
    confirmations = 0
    for rate in rates:
        if GATE.accepts(Compliance.of(episodes(rng, rate))):
            confirmations += 1
            if not confirm or GATE.confirms(episodes(rng, rate), confirmations):
                return True
    return False


def share_passed(rates, trainings=TRAININGS, confirm=True):
    rng = np.random.default_rng(5)
    return np.mean([passed(rng, rates, confirm) for _ in range(trainings)])


def test_a_training_that_hovers_below_the_threshold_is_accepted_in_five_percent_at_most():
    hovering = np.linspace(0.053, 0.0501, LOOKS)
    assert share_passed(hovering) <= 0.05
    assert share_passed(hovering, 50, confirm=False) > 0.5  # without confirmations, nearly all are


def test_a_training_that_learns_its_order_is_still_accepted_soon():
    assert share_passed([0.06, 0.04, 0.03, 0.02, 0.01, 0.01], 50) > 0.95


@pytest.mark.parametrize(("number", "needed"), [(1, 72), (2, 94), (10, 151)])
def test_the_more_often_a_training_was_confirmed_the_more_it_must_show(number, needed):
    """A perfect record of n repairs shows 95 % with an error of 0.95 ** n; it may be 5 % / (number (number + 1))."""
    assert 0.95**needed < 0.05 / (number * (number + 1)) < 0.95 ** (needed - 1)
    for repairs, enough in ((needed, True), (needed - 1, False)):
        perfect = Counts(*(np.ones(repairs, int) for _ in Counts._fields))
        assert GATE.confirms(perfect, number) is enough
