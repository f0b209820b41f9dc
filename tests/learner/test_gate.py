"""When a training may call its order kept: the gate, by the published rule and by ours."""

import numpy as np
import pytest

from fixfirst.learner.training import Training
from fixfirst.orders.repairs import Counts
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"


def perfect(episodes, repairs=10):
    """Counts of episodes in which every repair was judged and in order."""
    return Counts(*(np.full(episodes, repairs) for _ in Counts._fields))


def stoppable(preset, workflow=ORDER):
    return Training(make_config(preset, workflow=workflow, max_steps=1))


def test_parallel_25_may_stop_early_after_ten_episodes_per_environment():
    training = stoppable("parallel-25")
    training.latest = perfect(25)
    training.episodes = 9 * 25
    assert not training.passes_gate()
    training.episodes = 10 * 25
    assert training.passes_gate()


@pytest.mark.parametrize(("preset", "episodes"), [("sequential", 1), ("hybrid", 5), ("parallel-100", 100)])
def test_the_other_published_presets_may_stop_after_their_first_update(preset, episodes):
    training = stoppable(preset)
    training.episodes, training.latest = episodes, perfect(episodes)
    assert training.passes_gate()
    training.latest = training.latest._replace(compliant=training.latest.compliant * 9 // 10)
    assert not training.passes_gate()


def test_hybrid_looks_at_the_latest_of_its_five_episodes():
    training = stoppable("hybrid")
    good = perfect(5)
    training.episodes = 5
    training.latest = good._replace(compliant=np.array([0, 0, 0, 0, 10]))
    assert training.passes_gate()
    training.latest = good._replace(compliant=np.array([10, 10, 10, 10, 0]))
    assert not training.passes_gate()


def test_the_default_preset_must_show_it_frozen_on_episodes_of_its_own():
    """Its training episodes look perfect, but the untrained policy repairs in any order."""
    training = Training(make_config(workflow=ORDER, max_steps=30, gate_episodes=50, keep="penalty"))
    training.latest = perfect(50)
    assert training.config.gate_rule == "bound" and not training.passes_gate()


def test_there_is_no_gate_without_exactly_one_order():
    for workflow in ("none", "all"):
        training = stoppable("parallel-100", workflow)
        training.latest, training.episodes = perfect(100), 100
        assert not training.passes_gate()
