"""The learner's reward for keeping to the order: how its multiplier adapts."""

import pytest

from fixfirst.settings.training import Alignment


def test_the_multiplier_rises_while_compliance_is_below_its_target_and_falls_above():
    """5 + 2 * (0.97 - 0.57) = 5.8; 5 + 2 * (0.97 - 1) = 4.94; within 0..30."""
    alignment = Alignment(keep="penalty")
    assert alignment.next_multiplier(5.0, 0.57) == pytest.approx(5.8)
    assert alignment.next_multiplier(5.0, 1.0) == pytest.approx(4.94)
    assert alignment.next_multiplier(29.0, 0.0) == 30.0
    assert alignment.next_multiplier(0.05, 1.0) == 0.0


def test_the_multiplier_stays_without_evidence_or_when_it_is_fixed():
    assert Alignment(keep="penalty").next_multiplier(5.0, None) == 5.0
    assert Alignment(keep="penalty", alignment_adaptive=False).next_multiplier(5.0, 0.1) == 5.0
    assert Alignment(keep="delta").next_multiplier(30.0, 0.1) == 30.0


def test_delta_has_the_published_weight_unless_told_otherwise():
    assert Alignment(keep="delta").alignment_lambda == 30.0
    assert Alignment(keep="delta", alignment_lambda=12.0).alignment_lambda == 12.0
    assert Alignment().keep == "shield" and Alignment(keep="penalty").alignment_lambda == 2.0
