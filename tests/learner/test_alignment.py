"""How a training is made to keep its order: the reward and its multiplier; when it may call it kept: the gate."""

import numpy as np
import pytest
from searches import ORDER

from fixfirst.learner.training import Training
from fixfirst.orders.repairs import Counts
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
    given = ({"keep": "delta"}, {"keep": "delta", "alignment_lambda": 12.0}, {"keep": "penalty"})
    assert [Alignment(**settings).alignment_lambda for settings in given] == [30.0, 12.0, 2.0]


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
    assert first.row.compliance < 0.97
    assert [adapting._entropy(share, 0.0) for share in (first.row.compliance, 1.0, None)] == [0.01, 0.003, 0.003]
    second = adapting.step().row
    assert (first.row.multiplier, second.multiplier) == (2.0, pytest.approx(2 + 2 * (0.97 - first.row.compliance)))
    assert [fixed.step().row.multiplier for _ in range(2)] == [2.0, 2.0]


def passes(preset, episodes, compliant, **settings):
    """Does a training pass after so many episodes? compliant: of 10 judged repairs in each episode of the last update."""
    training = Training(make_config(preset, **{"workflow": ORDER, "max_steps": 1} | settings))
    latest = Counts(*(np.full(len(compliant), 10) for _ in Counts._fields))
    training.episodes, training.latest = episodes, latest._replace(compliant=np.array(compliant))
    return training.passes_gate()


@pytest.mark.parametrize(
    ("preset", "episodes", "compliant", "expected"),
    [
        ("parallel-25", 9 * 25, [10] * 25, False),  # ten episodes per environment are needed
        ("parallel-25", 10 * 25, [10] * 25, True),
        ("sequential", 1, [10], True),  # the others may stop after their first update
        ("sequential", 1, [9], False),
        ("hybrid", 5, [0, 0, 0, 0, 10], True),  # it looks at the latest of its five episodes
        ("hybrid", 5, [10, 10, 10, 10, 0], False),
        ("parallel-100", 100, [10] * 100, True),
        ("parallel-100", 100, [9] * 100, False),
    ],
)
def test_the_published_presets_look_at_the_latest_episodes(preset, episodes, compliant, expected):
    assert passes(preset, episodes, compliant) is expected


def test_the_default_preset_must_show_it_frozen_on_episodes_of_its_own_and_nothing_passes_without_exactly_one_order():
    """Its training episodes look perfect, but the untrained policy repairs in any order."""
    assert not any(passes("parallel-100", 100, [10] * 100, workflow=workflow) for workflow in ("none", "all"))
    assert not passes("default", 50, [10] * 50, max_steps=30, gate_episodes=50, keep="penalty")
