"""Policies that remember, choose among macros and have an opening: the same in compiled code, step by step and by `act`."""

import numpy as np
import pytest

from fixfirst.base.errors import ConfigError
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.orders.order import FIVE_TYPES, Workflow
from fixfirst.play.rollout import collect
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.compiled_loop import GROUP
from fixfirst.policy.memories import Memories
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.policy.table import FREE, PolicyTable

ORDERS = (Workflow.parse("critical_first"), Workflow.parse("reverse"))
MACROS = ActionSet.parse("macros")


def spec(memory="full", action_set="macros", units=None, opening=()):
    return PolicySpec(MemoryScheme.parse(memory), ActionSet.parse(action_set), units, opening)


ROLES = {
    "full, macros": spec(),
    "full, all actions": spec(action_set="all"),
    "counts, macros": spec("counts"),
    "scans, macros": spec("scans"),
    "no memory, macros": spec("none"),
    "scans, the winner's set": spec("scans", "original"),
    "full, macros, orders": spec(units=FIVE_TYPES),
    "with an opening": spec(opening=MACROS.numbers(["Decoy User2", "Restore User1"])),
}


def network(of, seed=0):
    made = Network.zeros(of.inputs, of.actions)
    made.vector[:] = np.random.default_rng(seed).uniform(-0.4, 0.4, len(made.vector))
    return made


class InSteps(PolicyTable):
    """Its network is hidden, so that it is played step by step."""

    def __init__(self, net, workflows, **options):
        super().__init__(net, workflows, **options)
        self.network = None


def play(player, workflows=(), num_envs=2 * GROUP + 5):
    game = Game(red_agent="b_line:0.5,meander:0.5", max_steps=40, variant="leaderboard")
    world = World(game, num_envs, autoreset="disabled")
    return collect(world, player, world_seed=1, policy_seed=2, first_episode=0, passes=2, workflows=workflows)


@pytest.mark.parametrize("greedy", [False, True], ids=["drawn", "greedy"])
@pytest.mark.parametrize("name", ROLES)
def test_the_compiled_loop_plays_what_is_played_step_by_step(name, greedy):
    chosen = ROLES[name]
    workflows = ORDERS if chosen.units is not None else ()
    net = network(chosen)
    fast, slow = (play(kind(net, workflows, spec=chosen, greedy=greedy), workflows) for kind in (PolicyTable, InSteps))
    for field in ("packed_obs", "held", "actions", "rewards10", "choices"):
        assert np.array_equal(getattr(fast, field), getattr(slow, field)), field
    assert np.array_equal(fast.rows[fast.row_ids], slow.rows[slow.row_ids])  # numbered in another order
    assert len(np.unique(fast.choices)) > 4


@pytest.mark.parametrize("name", ROLES)
def test_a_row_is_the_observation_the_memory_and_the_order(name):
    """The memory of each episode, followed by hand with the actions that were played."""
    chosen = ROLES[name]
    workflows = ORDERS if chosen.units is not None else ()
    rollout = play(PolicyTable(network(chosen), workflows, spec=chosen), workflows, num_envs=9)
    memories = Memories(chosen, 18)
    for t in range(41):
        rows = rollout.rows[rollout.row_ids[t]]
        bits = bits_of(rows, chosen.inputs)
        assert np.array_equal(bits[:, :52], bits_of(rollout.packed_obs[t][:, None], 52))
        assert np.array_equal(bits[:, 52 : chosen.memory.inputs], memories.bits())
        if workflows:
            assert np.array_equal(bits[:, chosen.memory.inputs :], [workflows[i].encode() for i in rollout.assigned])
        if chosen.action_set.masks:
            assert np.array_equal(chosen.allowed(rows), memories.masks())
        if t < 40:
            if t >= len(chosen.opening):
                assert memories.masks()[np.arange(18), rollout.choices[t]].all()  # a masked choice is never taken
            assert np.array_equal(memories.actions_of(rollout.choices[t].astype(int)), rollout.actions[t])
            memories.remember(rollout.packed_obs[t], rollout.actions[t].astype(int))


def test_an_opening_begins_every_episode():
    chosen = ROLES["with an opening"]
    rollout = play(PolicyTable(network(chosen), spec=chosen))
    assert (rollout.choices[0] == chosen.opening[0]).all() and (rollout.choices[1] == chosen.opening[1]).all()
    later = rollout.after(2)
    assert later.actions.shape[0] == 38 and np.array_equal(later.row_ids, rollout.row_ids[2:])


@pytest.mark.parametrize("kind", [PolicyTable, InSteps])
def test_where_an_opening_says_nothing_the_policy_chooses(kind):
    """It wakes, sleeps in the fourth and fifth turn, and wakes again: until then the episodes are those without a lapse."""
    chosen = ROLES["full, macros"]
    (sleep,) = MACROS.numbers(["Sleep"])
    player, lapsing = (kind(network(chosen), (), spec=chosen) for _ in range(2))
    lapsing.begin_with([(FREE, FREE, FREE, sleep, sleep)])
    whole, lapse = play(player), play(lapsing)
    assert np.array_equal(lapse.choices[:3], whole.choices[:3]) and (whole.choices[:3] != sleep).any()
    assert (lapse.choices[3:5] == sleep).all() and (whole.choices[3:5] != sleep).any()
    assert (lapse.choices[5:] != sleep).any()


def test_an_opening_that_is_not_legal_is_refused():
    with pytest.raises(ConfigError, match=r"an opening names choices of 0\.\.39, got 40"):
        spec(opening=(3, 40))
    too_many = ["Decoy User2", "Decoy User3", "Sleep", "Decoy User3"]  # User3's list has one decoy
    with pytest.raises(ConfigError, match="cannot be played: its choice 4, Decoy User3, is masked, as all its decoys"):
        spec(opening=MACROS.numbers(too_many))
    spec(opening=MACROS.numbers([*too_many[:2], "Restore User3", "Decoy User3"]))  # has it again


def test_without_masks_a_macro_may_be_named_as_often_as_one_likes():
    original = ActionSet.parse("original")
    assert spec("scans", original, opening=original.numbers(["Decoy User4"] * 3)).opening == (35, 35, 35)
