"""Policies with a memory as users have them: saved, loaded, asked by `act`."""

import json
import re
import shutil

import numpy as np
import pytest
from cage2 import ACTIONS

import fixfirst as ff
from fixfirst.base.errors import ConfigError, PolicyError
from fixfirst.base.files import with_checksum
from fixfirst.learner.training import Training
from fixfirst.orders.order import FIVE_TYPES
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import load_parent, load_policy
from fixfirst.settings.training import make_config


def config(**settings):
    usual = {"workflow": "none", "memory": "full", "action_set": "macros", "max_steps": 30, "total_episodes": 200}
    return make_config(**usual | settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a policy that remembers and begins with two decoys."""
    folder = tmp_path_factory.mktemp("policy")
    training = Training(config(opening="Decoy User2, Decoy Enterprise0", red_agent="b_line:0.5,meander:0.5"))
    training.step()
    training.save_policy(folder)
    return folder


@pytest.fixture
def policy(folder):
    return load_policy(folder)


def test_act_keeps_the_memory_of_a_batch_of_environments(policy, folder):
    """Episodes of 25 steps that begin at different times, against one policy per environment."""
    envs = ff.make_vec(3, red_agent="meander", max_steps=25, autoreset_mode="same_step")
    obs, _ = envs.reset(seed=1)
    single = [load_policy(folder) for _ in range(3)]
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


def test_the_opening_is_played_by_act(policy):
    policy.reset(2)
    first, second = (policy.act(np.zeros((2, 52), int)) for _ in range(2))
    assert [str(ACTIONS[a]) for a in (first[0], second[1])] == ["DecoyFemitter User2", "DecoyHarakaSMPT Enterprise0"]


def test_another_number_of_environments_needs_a_reset_and_observations_are_those_of_the_world_without_memory(policy):
    policy.reset(2)
    policy.act(np.zeros((2, 52), int))
    with pytest.raises(PolicyError, match=r"remembers 2 environments and got 3 observations; begin .* with reset\(3\)"):
        policy.act(np.zeros((3, 52), int))
    assert policy.act(np.zeros((3, 52), int), episode_start=np.ones(3, bool)).shape == (3,)
    with pytest.raises(PolicyError, match=r"must be \[N, 52\] bits, got shape \(2, 175\); what a policy remembers"):
        policy.act(np.zeros((2, 175), int))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PolicySpec(), "has the memory full, the training needs a policy with none"),
        (lambda: config(action_set="all").spec, "has the action set macros, the training needs a policy with all"),
    ],
)
def test_weights_are_inherited_by_the_same_memory_and_actions_only(policy, folder, make, says):
    with pytest.raises(ConfigError, match=says):
        load_parent(folder, make())
    assert load_parent(folder, config().spec).weights.keys() == policy.weights.keys()


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
def test_a_file_that_names_another_memory_action_set_or_opening_is_refused(folder, tmp_path, changes, says):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    facts = json.loads((tmp_path / "policy.json").read_text())
    assert (facts["memory"], facts["action_set"], facts["inputs"], facts["actions"]) == ("full", "macros", 175, 40)
    assert facts["opening"] == ["Decoy User2", "Decoy Enterprise0"]
    (tmp_path / "policy.json").write_text(json.dumps(with_checksum(facts | changes)))
    with pytest.raises(PolicyError, match=re.escape(says)):
        load_policy(tmp_path)
