"""Two policies in one loop: the same game step by step and compiled, several attackers at once, scripts beside them."""

import numpy as np
import pytest

from fixfirst.game.game import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.game.state import LEARNED
from fixfirst.game.world import World
from fixfirst.learner.ppo import initial_weights
from fixfirst.play.duel import Reds, collect_duel
from fixfirst.policy.file import load_policy
from fixfirst.policy.network import Network
from fixfirst.policy.table import PolicyTable

PLAIN, PICKY = RedSpec(), RedSpec(picky=True)
SEEDS = {"world_seed": 3, "policy_seed": 4, "first_episode": 0}


def network(spec=PLAIN, seed=0):
    return Network.of(initial_weights(spec.inputs, seed, spec.actions))


def duel(reds, weights=(1.0,), player=None, n=20, steps=40):
    world = World(Game(max_steps=steps), n, autoreset="disabled")
    world.meet(reds, weights)
    return collect_duel(world, player or load_policy("champion-current").player(), reds, **SEEDS)


@pytest.fixture(scope="module")
def played():
    return duel(Reds([network()], [PLAIN]))


def test_one_turn_at_a_time_is_the_same_game_as_all_in_one_call(played):
    policy = load_policy("champion-current")
    slowly = duel(Reds([network()], [PLAIN]), player=PolicyTable(policy.probabilities, spec=policy.spec))
    np.testing.assert_array_equal(slowly.blue.actions, played.blue.actions)
    np.testing.assert_array_equal(slowly.blue.rewards10, played.blue.rewards10)
    np.testing.assert_array_equal(slowly.red.choices, played.red.choices)
    np.testing.assert_array_equal(slowly.red.rows[slowly.red.found], played.red.rows[played.red.found])


def test_a_masked_choice_is_never_drawn(played):
    allowed = PLAIN.allowed(played.red.rows)
    assert allowed[played.red.found[:-1], played.red.choices].all()
    assert 0 < allowed.mean() < 1


def test_each_of_several_attackers_plays_as_it_does_alone(played):
    """Plain and picky ones share a table; which one an episode has is drawn like that of scripts."""
    reds = Reds([network(), network(PICKY, 1)], [PLAIN, PICKY])
    both = duel(reds, (1.0, 1.0))
    mine = reds.rows[both.red.found[0], -1] >> np.uint64(56) == 0  # the last byte says whose row it is
    assert 0 < mine.sum() < len(mine)
    np.testing.assert_array_equal(both.red.choices[:, mine], played.red.choices[:, mine])
    assert both.red.choices[:, mine].max() < PLAIN.actions <= both.red.choices[:, ~mine].max()


def test_learned_attackers_keep_beliefs_in_states_that_can_be_put_back():
    """A state in the middle of an episode, put back, leads to the same turns."""
    world, reds = World(Game(), 5, autoreset="disabled"), Reds([network()], [PLAIN])
    world.meet(reds, [1.0])
    world.reset(1)
    for _ in range(20):
        world.step(np.zeros(5, np.int64))
    middle = world.get_state()
    assert (middle["red_agent"] == LEARNED).all() and middle["breached"].any()
    world.step(np.zeros(5, np.int64))
    after = world.get_state()
    world.set_state(middle)
    world.step(np.zeros(5, np.int64))
    assert world.get_state().tobytes() == after.tobytes()
