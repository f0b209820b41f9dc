"""Two policies in one loop: the same game step by step and compiled, several attackers at once, scripts beside them."""

import numpy as np
import pytest

from fixfirst.base import errors
from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.game.simulator import World
from fixfirst.game.state import LEARNED, RedAgent
from fixfirst.play import rollout
from fixfirst.play.rollout import collect_duel, make_world
from fixfirst.policy.network import Network
from fixfirst.policy.reds import RedPolicy, Reds, load_red
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import load_policy

PLAIN, PICKY = RedSpec(), RedSpec(picky=True)
CHAMPION = load_policy("champion-current")
COMPILED, IN_STEPS = CHAMPION.player(), PolicyTable(CHAMPION.probabilities, spec=CHAMPION.spec)
SEEDS = {"world_seed": 3, "policy_seed": 4, "first_episode": 0}


def network(spec=PLAIN, seed=0):
    return Network.drawn(spec.inputs, spec.actions, seed)


def duel(reds, weights=(1.0,), player=COMPILED, n=20, steps=40):
    world = World(Game(max_steps=steps), n, autoreset="disabled")
    world.meet(reds, weights)
    return collect_duel(world, player, reds, **SEEDS)


def test_one_turn_at_a_time_or_beside_others_is_the_same_game_as_alone_in_one_call_and_masked_choices_are_never_drawn():
    """Plain and picky attackers share a table; which one an episode has is drawn like that of scripts."""
    played, slowly = (duel(Reds([network()], [PLAIN]), player=player) for player in (COMPILED, IN_STEPS))
    np.testing.assert_array_equal(slowly.blue.actions, played.blue.actions)
    np.testing.assert_array_equal(slowly.blue.rewards10, played.blue.rewards10)
    np.testing.assert_array_equal(slowly.red.choices, played.red.choices)
    np.testing.assert_array_equal(slowly.red.rows[slowly.red.row_ids], played.red.rows[played.red.row_ids])
    allowed = PLAIN.allowed(played.red.rows)
    assert allowed[played.red.row_ids[:-1], played.red.choices].all()
    assert 0 < allowed.mean() < 1

    reds = Reds([network(), network(PICKY, 1)], [PLAIN, PICKY])
    both = duel(reds, (1.0, 1.0))
    mine = reds.rows[both.red.row_ids[0], -1] >> np.uint64(56) == 0  # the last byte says whose row it is
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


def test_an_attacker_that_is_named_plays_step_by_step_and_compiled_as_one_that_a_training_meets():
    noise = load_red("noise")
    met = duel(Reds([noise.network], [noise.spec]), n=10, steps=30)
    for player in (COMPILED, IN_STEPS):
        world = make_world(Game(red_agent="noise", max_steps=30), 10, autoreset="disabled")
        named = rollout.collect(world, player, **SEEDS)
        np.testing.assert_array_equal(named.rewards10, met.blue.rewards10)
        np.testing.assert_array_equal(named.actions, met.blue.actions)


def test_a_mixture_with_a_learned_attacker_plays_scripts_as_a_mixture_of_scripts_does():
    """Who attacks is drawn as before; whatever the learned attacker does, episodes of scripts are the same."""
    seal = load_red("noise").seal
    mixed = make_world(Game(red_agent="b_line:0.5,noise:0.5", max_steps=20), 30, autoreset="disabled")
    alone = make_world(Game(red_agent="b_line:0.5,sleep:0.5", max_steps=20), 30, autoreset="disabled")
    assert mixed.game.red_agent == f"b_line:0.5,noise@{seal}:0.5" and mixed.game.learned == (f"noise@{seal}",)
    first, second = (rollout.collect(w, COMPILED, **SEEDS) for w in (mixed, alone))
    by_script = mixed.get_state()["red_agent"] == RedAgent.B_LINE
    assert 0 < by_script.sum() < 30 and (mixed.get_state()["red_agent"][~by_script] == LEARNED).all()
    np.testing.assert_array_equal(first.rewards10[:, by_script], second.rewards10[:, by_script])
    assert {mixed.game.red_name(n) for n in mixed.get_state()["red_agent"].tolist()} == {"b_line", f"noise@{seal}"}


def test_a_game_knows_its_attacker_again_by_the_beginning_of_its_hash_and_refuses_others_and_defenders(tmp_path):
    RedPolicy(load_red("noise").weights, PLAIN, {}).save(tmp_path / "red")
    game = Game(red_agent=str(tmp_path / "red"))
    assert Game.model_validate(game.model_dump(mode="json")) == game
    assert game.red_agent.endswith(f"@{load_red('noise').seal}")
    RedPolicy(load_red("two-fronts").weights, PLAIN, {}).save(tmp_path / "red")
    with pytest.raises(errors.PolicyError, match="is another attacker than was named"):
        make_world(game, 1)
    with pytest.raises(errors.PolicyError, match="champion: holds a defender, not an attacker"):
        Game(red_agent="champion")
