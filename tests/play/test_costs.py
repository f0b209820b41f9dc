"""What an episode cost is the sum of its parts: hosts by unit type, the stopped service, Restores."""

import numpy as np
import pytest
from cage2 import action_id, hosts_mask

from fixfirst.game.game_config import Game
from fixfirst.orders.order import UnitScheme
from fixfirst.play.evaluation import count_verb, episode_costs, play
from fixfirst.policy.scripts import make_baseline
from fixfirst.reporter.turn import costs
from fixfirst.stats.pricing import part_names

SCHEME = UnitScheme.by_type()


def test_parts_worked_by_hand():
    """Two steps: Enterprise1 (1) and User1 (0.1) are held after the first, with a Restore (1); then only User1, and the
    service is stopped (10).
    """
    charged = np.array([[0], [hosts_mask("Enterprise1", "User1")], [hosts_mask("User1")]], np.int16)
    actions = np.array([[action_id("Restore", "User2")], [action_id("Remove", "User2")]], np.int16)
    parts = episode_costs(charged, actions, np.array([[-21], [-101]], np.int32), SCHEME)
    expected = {"user": 0.2, "enterprise": 1.0, "stopped service": 10.0, "Restore": 1.0}
    assert dict(zip(part_names(SCHEME), parts[:, 0].tolist(), strict=True)) == {
        name: expected.get(name, 0.0) for name in part_names(SCHEME)
    }
    assert [count_verb(actions, verb, SCHEME).tolist() for verb in ("Restore", "Remove", "Sleep")] == [[1], [1], [0]]


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_parts_add_up_to_what_each_turn_says_it_cost(variant):
    """Of 20 episodes of a defender that does anything: the parts of all turns, taken apart one by one."""
    game = Game(red_agent="meander", variant=variant)
    batch = play(make_baseline("random"), game, episodes=20, seed=0, purpose="test", keep_turns=True)
    parts, names = batch.costs(SCHEME), part_names(SCHEME)
    assert np.array_equal(np.round(10 * parts.sum(axis=0)), -batch.rollout.rewards10.sum(axis=0)) and (parts >= 0).all()
    slow = np.zeros(parts.shape)
    units = {host.name: host.unit for host in SCHEME.scenario.hosts} | {"impact": "stopped service", "restore": "Restore"}
    for turn in batch.turns[1:].ravel().reshape(len(batch.turns) - 1, -1):
        for episode, one in enumerate(turn):
            for cost in costs(one, variant):
                slow[names.index(units[cost["what"]]), episode] -= cost["tenths"] / 10
    assert parts == pytest.approx(slow)
    assert (parts.sum(axis=1) > 0).sum() >= 5
