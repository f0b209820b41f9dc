"""Policies with a memory as users have them: asked by `act`, saved and loaded, inherited."""

import json
import re

import numpy as np
import pytest
from cage2 import ACTIONS
from policies import untrained

import fixfirst as ff
from fixfirst.base.errors import ConfigError, PolicyError
from fixfirst.base.files import with_checksum
from fixfirst.orders.order import FIVE_TYPES
from fixfirst.policy.trained import load_parent, load_policy

OPENING = ["Decoy User2", "Decoy Enterprise0"]
ROLE = {"memory": "full", "action_set": "macros"}


def make():
    """A policy that remembers and begins with two decoys."""
    return untrained(**ROLE, opening=untrained(**ROLE).spec.action_set.numbers(OPENING))


def test_act_keeps_the_memory_of_a_batch_of_environments():
    """Episodes of 25 steps that begin at different times, against one policy per environment."""
    envs = ff.make_vec(3, red_agent="meander", max_steps=25, autoreset_mode="same_step")
    obs, _ = envs.reset(seed=1)
    policy, single = make(), [make() for _ in range(3)]
    policy.reset(3)
    begins = np.ones(3, bool)
    for step in range(60):
        if step == 10:  # one begins anew before the others
            obs, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
            begins = np.array([False, True, False])
        actions = policy.act(obs, episode_start=begins, greedy=True)
        alone = [one.act(obs[i], episode_start=begins[i : i + 1], greedy=True) for i, one in enumerate(single)]
        assert np.array_equal(actions, alone)
        obs, _, _, begins, _ = envs.step(actions)


def test_the_opening_is_played_by_act_and_another_number_of_environments_needs_a_reset():
    policy, nothing = make(), np.zeros((3, 52), int)
    policy.reset(2)
    first, second = (policy.act(nothing[:2]) for _ in range(2))
    assert [str(ACTIONS[a]) for a in (first[0], second[1])] == ["DecoyFemitter User2", "DecoyHarakaSMPT Enterprise0"]
    with pytest.raises(PolicyError, match=r"remembers 2 environments and got 3 observations; begin .* with reset\(3\)"):
        policy.act(nothing)
    assert policy.act(nothing, episode_start=np.ones(3, bool)).shape == (3,)
    with pytest.raises(PolicyError, match=r"must be \[N, 52\] bits, got shape \(2, 175\); what a policy remembers"):
        policy.act(np.zeros((2, 175), int))


def test_weights_are_inherited_by_the_same_memory_and_actions_only(tmp_path):
    make().save(tmp_path)
    assert load_parent(tmp_path, make().spec).weights.keys() == make().weights.keys()
    with pytest.raises(ConfigError, match="has the memory full, the training needs a policy with none"):
        load_parent(tmp_path, untrained().spec)
    with pytest.raises(ConfigError, match="has the action set macros, the training needs a policy with all"):
        load_parent(tmp_path, untrained(memory="full").spec)


FIVE = {"units": FIVE_TYPES.as_dict()}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"opening": ["Decoy User3"] * 2}, "damaged (the opening cannot be played: its choice 2, Decoy User3, is"),
        (FIVE | {"idle": ["printer"]}, "damaged (idle names 'printer', which is none of the unit types"),
        (FIVE | {"idle": 5}, "damaged (idle must be a list of unit types, got 5)"),
        ({"memory": "scans"}, "0.weight is float32 (64, 175), expected float32 (64, 62)"),
        ({"action_set": "original", "opening": []}, "actor.4.weight is float32 (40, 64), expected float32 (36, 64)"),
    ],
)
def test_a_file_that_names_another_memory_action_set_or_opening_is_refused(tmp_path, changes, says):
    make().save(tmp_path)
    facts = json.loads((tmp_path / "policy.json").read_text())
    shown = {name: facts[name] for name in ("memory", "action_set", "inputs", "actions", "opening")}
    assert shown == ROLE | {"inputs": 175, "actions": 40, "opening": OPENING}
    (tmp_path / "policy.json").write_text(json.dumps(with_checksum(facts | changes)))
    with pytest.raises(PolicyError, match=re.escape(says)):
        load_policy(tmp_path)
