"""The learner's reward for keeping to the order, and how its multiplier adapts."""

import numpy as np
import pytest
from searches import ORDER

from fixfirst.learner.training import Training
from fixfirst.settings.training import Alignment, make_config


@pytest.mark.parametrize(
    ("settings", "multiplier", "compliance", "following"),
    [
        ({"keep": "penalty"}, 5.0, 0.57, 5.8),  # 5 + 2 * (0.97 - 0.57)
        ({"keep": "penalty"}, 5.0, 1.0, 4.94),  # 5 + 2 * (0.97 - 1)
        ({"keep": "penalty"}, 29.0, 0.0, 30.0),  # within 0..30
        ({"keep": "penalty"}, 0.05, 1.0, 0.0),
        ({"keep": "penalty"}, 5.0, None, 5.0),  # no evidence
        ({"keep": "penalty", "alignment_adaptive": False}, 5.0, 0.1, 5.0),
        ({"keep": "delta"}, 30.0, 0.1, 30.0),
    ],
)
def test_the_multiplier_rises_while_compliance_is_below_its_target_and_falls_above(
    settings, multiplier, compliance, following
):
    assert Alignment(**settings).next_multiplier(multiplier, compliance) == pytest.approx(following)


def test_delta_has_the_published_weight_unless_another_is_given():
    assert Alignment(keep="delta").alignment_lambda == 30.0
    assert Alignment(keep="delta", alignment_lambda=12.0).alignment_lambda == 12.0
    assert Alignment().keep == "shield" and Alignment(keep="penalty").alignment_lambda == 2.0


def training(**settings):
    return Training(make_config(n_envs=20, workflow=ORDER, max_steps=40, **settings))


def test_alignment_is_kept_apart_from_the_worlds_reward():
    """The first update plays the same episodes whatever the alignment; only the alignment column differs."""
    none, penalty, delta = (training(keep=keep).step() for keep in ("none", "penalty", "delta"))
    assert none.row.env_reward == penalty.row.env_reward == delta.row.env_reward == none.row.total_reward
    counts, row = penalty.counts, penalty.row
    assert np.array_equal(penalty.alignment, -2.0 * (counts.judged - counts.compliant))
    assert np.allclose(delta.alignment, 30.0 * counts.compliant / np.maximum(counts.judged, 1))
    assert none.row.alignment == 0 > row.alignment and row.total_reward == pytest.approx(row.env_reward + row.alignment)


def test_the_multiplier_adapts_and_the_learner_explores_more_while_it_breaks_the_order():
    """The multiplier moves by 2 * (0.97 - compliance); below 0.97 the entropy bonus is 0.01, else the preset's 0.003."""
    adapting, fixed = training(keep="penalty"), training(keep="penalty", alignment_adaptive=False)
    first = adapting.step()
    assert first.row.compliance < 0.97 and adapting._entropy(first.counts) == 0.01
    in_order = first.counts._replace(compliant=first.counts.judged)
    assert adapting._entropy(in_order) == adapting._entropy(None) == 0.003
    second = adapting.step().row
    assert (first.row.multiplier, second.multiplier) == (2.0, pytest.approx(2 + 2 * (0.97 - first.row.compliance)))
    assert [fixed.step().row.multiplier for _ in range(2)] == [2.0, 2.0]
