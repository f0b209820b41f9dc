"""A scenario is a value: sizes, names and tables follow from the one that was given."""

import pickle
from dataclasses import replace

import pytest

import fixfirst as ff
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.order import UnitScheme
from fixfirst.policy.action_sets import ActionSet, action_sets, decoy_slots
from fixfirst.policy.memory import MemoryScheme, memory_dtype, memory_tables
from fixfirst.policy.spec import PolicySpec

SMALL = replace(CAGE2, name="small", hosts=CAGE2.hosts[:9])  # up to User0


def test_the_built_in_one_has_13_hosts_145_actions_and_52_bits_and_is_one_object_everywhere():
    assert (CAGE2.num_hosts, CAGE2.num_actions, CAGE2.observation_bits) == (13, 145, 52)
    assert CAGE2.action_id("Restore", "Op_Server0") == 139 and str(CAGE2.actions[139]) == "Restore Op_Server0"
    assert pickle.loads(pickle.dumps(CAGE2)) is CAGE2 and pickle.loads(pickle.dumps(SMALL)) == SMALL != CAGE2


def test_what_a_policy_reads_and_chooses_follows_from_its_scenario():
    """9 hosts: 36 bits, four groups of 9, 5 quiet turns; 2 + 11 * 9 actions; 9 unit types in 81 bits."""
    memory, choices = MemoryScheme.parse("act1+last+expl+rest+quiet", SMALL), ActionSet.parse("all", SMALL)
    spec = PolicySpec(memory, choices, UnitScheme.per_host(SMALL), shield=True)
    assert (spec.inputs, spec.actions) == (36 + 4 * 9 + 5 + 9 + 81, 101)
    assert memory_tables(SMALL).effects.shape == (101, 4) and memory_dtype(SMALL) == memory_dtype(CAGE2)
    assert set(action_sets(SMALL)) == {"all", "macros"} and len(decoy_slots(SMALL).listed) == 24
    assert PolicySpec.from_dict(spec.as_dict(), SMALL) == spec
    assert UnitScheme.by_type(SMALL).names == CAGE2.unit_types


def test_parts_of_different_scenarios_make_no_policy():
    with pytest.raises(ff.ConfigError, match="a policy of cage2 cannot have parts of small"):
        PolicySpec(action_set=ActionSet.parse("all", SMALL))


def test_only_cage2_is_played():
    assert ff.Game(scenario="cage2").scenario is ff.Game().scenario is CAGE2
    assert "scenario" not in ff.Game().model_dump()
    with pytest.raises(ff.WorldError, match="unknown scenario 'lab'; use cage2"):
        ff.Game(scenario="lab")


def test_a_game_of_whole_episodes_needs_an_end_and_one_attacker():
    with pytest.raises(ff.ConfigError, match="needs episodes of fixed length"):
        _ = ff.Game(max_steps=None).steps
    with pytest.raises(ff.ConfigError, match="one red agent or mixture must be given for all environments"):
        _ = ff.Game(red_agent=["b_line", "sleep"]).attacker
