"""When a training may call its order kept: the gate, by the published rule and by ours."""

import numpy as np
import pytest
from searches import ORDER

from fixfirst.learner.training import Training
from fixfirst.orders.repairs import Counts
from fixfirst.settings.training import make_config


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


def test_the_default_preset_must_show_it_frozen_on_episodes_of_its_own():
    """Its training episodes look perfect, but the untrained policy repairs in any order."""
    assert make_config().gate_rule == "bound"
    assert not passes("default", 50, [10] * 50, max_steps=30, gate_episodes=50, keep="penalty")


@pytest.mark.parametrize("workflow", ["none", "all"])
def test_there_is_no_gate_without_exactly_one_order(workflow):
    assert not passes("parallel-100", 100, [10] * 100, workflow=workflow)
