"""The learner's reward for keeping to the order: how its multiplier adapts."""

import pytest

from fixfirst.learner.config import Alignment


def test_the_multiplier_rises_while_compliance_is_below_its_target_and_falls_above():
    """5 + 2 * (0.97 - 0.57) = 5.8; 5 + 2 * (0.97 - 1) = 4.94; within 0..30."""
    alignment = Alignment(kind="penalty")
    assert alignment.adapted(5.0, 0.57) == pytest.approx(5.8)
    assert alignment.adapted(5.0, 1.0) == pytest.approx(4.94)
    assert alignment.adapted(29.0, 0.0) == 30.0
    assert alignment.adapted(0.05, 1.0) == 0.0


def test_the_multiplier_stays_without_evidence_or_when_it_is_fixed():
    assert Alignment(kind="penalty").adapted(5.0, None) == 5.0
    assert Alignment(kind="penalty", adaptive=False).adapted(5.0, 0.1) == 5.0
    assert Alignment(kind="delta").adapted(30.0, 0.1) == 30.0


def test_delta_has_the_published_weight_unless_told_otherwise():
    assert Alignment(kind="delta").weight == 30.0
    assert Alignment(kind="delta", weight=12.0).weight == 12.0
    assert Alignment().kind == "shield" and Alignment(kind="penalty").weight == 2.0
