"""Policies with a memory as users have them: saved, loaded, asked by `act`; trainings in several stages."""

import json

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.errors import ConfigError, PolicyError
from fixfirst.game import ACTIONS
from fixfirst.learner import Training, make_config
from fixfirst.learner.checkpoint import restore_checkpoint, save_checkpoint
from fixfirst.learner.openings import find_opening
from fixfirst.learner.policy_file import load_parent, load_policy, save_policy
from fixfirst.learner.stages import Begin, stages_of
from fixfirst.play import Network, Role

SMALL = {
    "workflow": "none",
    "red_agent": "b_line:0.5,meander:0.5",
    "memory": "full",
    "action_set": "macros",
    "max_steps": 30,
    "n_envs": 10,
    "episodes_per_update": 10,
}
COURSE = {"starts": 2, "start_episodes": 20, "opening": "Decoy User2, Decoy User2", "opening_episodes": 20}


def config(**settings):
    return make_config(**{**SMALL, "total_episodes": 200} | settings)


@pytest.fixture
def policy(tmp_path):
    training = Training(config(opening="Decoy User2, Decoy Enterprise0"))
    training.step()
    save_policy(tmp_path, training, accepted=False)
    return load_policy(tmp_path)


# ---------------------------------------------------------------- act


def test_act_keeps_the_memory_of_a_batch_of_environments(policy):
    """Episodes of 25 steps that begin at different times, against one policy per environment."""
    envs = ff.make_vec(3, red_agent="meander", max_steps=25, autoreset_mode="same_step")
    obs, _ = envs.reset(seed=1)
    single = [load_policy_again(policy) for _ in range(3)]
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


def load_policy_again(policy):
    return ff.Policy(policy.weights, policy.workflow, policy.role, policy.config, policy.facts)


def test_act_plays_what_a_rollout_plays(policy):
    envs = ff.make_vec(5, red_agent="b_line", max_steps=30)
    envs.reset(seed=4)
    played = ff.rollout(envs, policy, 30, greedy=True)
    policy.reset(5)
    for t in range(30):
        assert np.array_equal(policy.act(played.observations[t], greedy=True), played.actions[t])


def test_the_opening_is_played_by_act(policy):
    policy.reset(2)
    first, second = (policy.act(np.zeros((2, 52), int)) for _ in range(2))
    assert [str(ACTIONS[a]) for a in (first[0], second[1])] == ["DecoyFemitter User2", "DecoyHarakaSMPT Enterprise0"]


def test_another_number_of_environments_needs_a_reset(policy):
    policy.reset(2)
    policy.act(np.zeros((2, 52), int))
    with pytest.raises(PolicyError, match=r"remembers 2 environments and got 3 observations; begin .* with reset\(3\)"):
        policy.act(np.zeros((3, 52), int))
    assert policy.act(np.zeros((3, 52), int), episode_start=np.ones(3, bool)).shape == (3,)


def test_observations_are_those_of_the_world_without_memory(policy):
    with pytest.raises(PolicyError, match=r"must be \[N, 52\] bits, got shape \(2, 175\); what a policy remembers"):
        policy.act(np.zeros((2, 175), int))


# ---------------------------------------------------------------- files


def test_a_policy_file_holds_memory_action_set_and_opening(policy, tmp_path):
    told = json.loads((tmp_path / "policy.json").read_text())
    assert told["memory"] == "full" and told["action_set"] == "macros" and (told["inputs"], told["actions"]) == (175, 40)
    assert told["opening"] == ["Decoy User2", "Decoy Enterprise0"]
    assert policy.role == config(opening="Decoy User2, Decoy Enterprise0").role


def test_weights_are_inherited_by_the_same_memory_and_actions_only(policy, tmp_path):
    with pytest.raises(ConfigError, match="has the memory full, the training needs a policy with none"):
        load_parent(tmp_path, Role())
    with pytest.raises(ConfigError, match="has the action set macros, the training needs a policy with all"):
        load_parent(tmp_path, config(action_set="all").role)
    assert load_parent(tmp_path, config().role).weights.keys() == policy.weights.keys()


# ---------------------------------------------------------------- stages


def test_a_course_has_its_stages():
    """Two starts of 20 of 200 episodes; the better goes on for 140; the last 20 have the opening."""
    stages = stages_of(config(**COURSE))
    assert [(stage.begin, stage.episodes, stage.behind, stage.plan) for stage in stages] == [
        (Begin.SCRATCH, 20, 0, 160),
        (Begin.SCRATCH, 20, 0, 160),
        (Begin.BEST_START, 140, 20, 160),
        (Begin.OPENING, 20, 0, 20),
    ]
    assert [stage.progress(0) for stage in stages] == [0, 0, 1 / 8, 0]


def test_the_better_start_goes_on():
    training = Training(config(**COURSE))
    ends = []
    for _ in range(2):
        training.step(), training.step()
        ends.append((training.evaluate(f"start/{training._stage}", 2_000).mean, training.learner.weights))
    training.step()
    assert training.stage.begin == Begin.BEST_START
    best = max(ends, key=lambda end: end[0])
    assert training._best[0] == best[0]
    assert all(np.array_equal(training._best[1][f"net.{name}"], array) for name, array in best[1].items())
    assert training.learner.tensors()["adam.step"] == 3 * 4  # its optimiser goes on, too


def test_a_course_ends_with_its_opening_and_within_its_budget():
    training = Training(config(**COURSE))
    while not training.done:
        training.step()
    assert training.episodes == 200 and training.role.opening == training.role.action_set.numbers(["Decoy User2"] * 2)


@pytest.mark.parametrize("updates", [1, 3, 4, 5, 18, 19])
def test_a_course_goes_on_from_any_checkpoint_with_the_same_bits(updates, tmp_path):
    whole, cut = Training(config(**COURSE)), Training(config(**COURSE))
    for _ in range(updates):
        cut.step()
    save_checkpoint(tmp_path, cut)
    again = Training(config(**COURSE))
    assert restore_checkpoint(tmp_path, again) == []
    for training in (whole, again):
        while not training.done:
            training.step()
    assert np.array_equal(whole.learner.policy.vector, again.learner.policy.vector)
    assert whole.role == again.role and whole.updates == again.updates


def test_updates_grow():
    ppo = config(growth=[[30, 2], [70, 5]]).ppo
    assert [ppo.batch_at(episodes) for episodes in (0, 29, 30, 69, 70, 1000)] == [10, 10, 20, 20, 50, 50]
    assert ppo.updates_in(170) == 3 + 2 + 2
    for growth in ((), [[30, 2], [70, 5]], [[0, 3], [35, 4]], [[15, 2], [15, 7], [1_000, 9]]):
        ppo, played = config(growth=growth).ppo, 0
        for updates in range(30):
            after = played + ppo.batch_at(played)
            assert [ppo.updates_in(episodes) for episodes in (played, after - 1, after)] == [updates, updates, updates + 1]
            played = after
    assert ppo.updates_in(10**12) > 10**9  # at once


def test_the_price_of_restore_rises_and_the_worlds_reward_stays():
    training = Training(config(free_restores=100))
    first = training._play()
    seen, restores = training._rewards(first), np.isin(first.actions, range(132, 145))
    assert restores.any() and np.allclose(seen - first.rewards10 / 10, restores * 1.0)
    training._stage_episodes = 50
    assert np.allclose(training._rewards(first) - first.rewards10 / 10, restores * 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"starts": 3}, "3 starts need start_episodes: how many each of them has"),
        ({"opening": "find"}, "opening 'find' needs opening_episodes"),
        ({"opening": "Decoy User9"}, "the action set macros has no choice 'Decoy User9'; did you mean 'Decoy User"),
        ({"opening": "find", "opening_episodes": 10, "action_set": "all"}, "the action set all has none"),
        (
            {"starts": 30, "start_episodes": 20},
            "30 starts of 20 and 0 episodes with the opening are more than the",
        ),
        ({"growth": [[20, 2], [10, 3]]}, r"growth has pairs of \(episodes, factor from 1 on\), episodes in order, got"),
        ({"memory": "elephant"}, "unknown memory 'elephant'; use none, scans, full"),
        ({"row_parts": 2, "engine": "torch"}, "PyTorch's learner cuts by --minibatches, got row_parts=2"),
    ],
)
def test_bad_settings_get_one_line(settings, message):
    with pytest.raises((ConfigError, ff.WorldError), match=message):
        config(**settings)


# ---------------------------------------------------------------- openings


def test_an_opening_that_helps_is_found():
    """A policy that sleeps: against B_line any decoy it never places helps, and the pair that is found earns more."""
    role = config().role
    sleepy = Network.zeros(role.inputs, role.actions)
    sleepy.actor.bias3[0] = 50.0
    game = config(red_agent="b_line", max_steps=30).game
    found = find_opening(sleepy, role, game, seed=3)
    assert found and all(role.action_set.names[choice].startswith("Decoy ") for choice in found)
    assert found == find_opening(sleepy, role, game, seed=3)


def test_no_opening_is_kept_where_none_helps():
    """Without red, a policy that sleeps loses nothing, with decoys or without."""
    role = config().role
    sleepy = Network.zeros(role.inputs, role.actions)
    sleepy.actor.bias3[0] = 50.0
    assert find_opening(sleepy, role, config(red_agent="sleep", max_steps=10).game, seed=3) == ()
