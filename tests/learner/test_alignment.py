"""The learner's reward for keeping to the order, and how its multiplier adapts."""

import numpy as np
import pytest

from fixfirst.learner.training import Training
from fixfirst.settings.training import Alignment, make_config

ORDER = "enterprise > op_server > op_host > user > defender"


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


def first_update(**alignment):
    config = make_config(ppo={"num_envs": 20}, workflow=ORDER, max_steps=40, alignment=alignment)
    return Training(config).step()


def test_alignment_is_kept_apart_from_the_worlds_reward():
    """The first update plays the same episodes whatever the alignment; only the alignment column differs."""
    none, penalty, delta = (first_update(kind=kind) for kind in ("none", "penalty", "delta"))
    assert none.row.env_reward == penalty.row.env_reward == delta.row.env_reward == none.row.total_reward
    counts = penalty.counts
    assert np.array_equal(penalty.alignment, -2.0 * (counts.judged - counts.compliant))
    share = counts.compliant / np.maximum(counts.judged, 1)
    assert np.allclose(delta.alignment, 30.0 * share)
    row = penalty.row
    assert none.row.alignment == 0 > row.alignment and row.total_reward == pytest.approx(row.env_reward + row.alignment)


def test_the_multiplier_adapts_from_update_to_update_unless_it_is_fixed():
    config = make_config(ppo={"num_envs": 20}, workflow=ORDER, max_steps=40, keep="penalty")
    training = Training(config)
    first, second = training.step().row, training.step().row
    assert first.multiplier == 2.0 and second.multiplier == pytest.approx(2 + 2 * (0.97 - first.compliance))
    fixed = Training(config.model_copy(update={"alignment_adaptive": False}))
    assert [fixed.step().row.multiplier, fixed.step().row.multiplier] == [2.0, 2.0]


def test_the_learner_explores_more_while_it_breaks_the_order():
    """Entropy bonus 0.01 below the target compliance of 0.97, else the preset's 0.003."""
    training = Training(make_config(ppo={"num_envs": 20}, workflow=ORDER, max_steps=40, keep="penalty"))
    update = training.step()
    assert update.row.compliance < 0.97 and training._entropy(update.counts) == 0.01
    kept = update.counts._replace(compliant=update.counts.judged)
    assert training._entropy(kept) == 0.003 and training._entropy(None) == 0.003
