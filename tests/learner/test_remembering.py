"""Policies with a memory as users have them: saved, loaded, asked by `act`; trainings in several stages."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.errors import ConfigError, PolicyError
from fixfirst.game import ACTIONS
from fixfirst.learner import Training, make_config
from fixfirst.learner.checkpoint import restore_checkpoint, save_checkpoint
from fixfirst.learner.networks import initial_weights
from fixfirst.learner.openings import is_shown_to_help, promising_openings
from fixfirst.learner.policy_file import load_parent, load_policy, save_policy
from fixfirst.learner.stages import Begin, stages_of
from fixfirst.orders import FIVE_TYPES
from fixfirst.play import RANDOM_MACRO, Network, PolicyTable, Role, play, probabilities
from fixfirst.runs import sealed

SMALL = {
    "workflow": "none",
    "red_agent": "b_line:0.5,meander:0.5",
    "memory": "full",
    "action_set": "macros",
    "max_steps": 30,
    "n_envs": 10,
    "episodes_per_update": 10,
}
SEEKING = {
    "starts": 2,
    "start_episodes": 20,
    "opening": "find",
    "tries": 3,
    "try_episodes": 10,
    "final_episodes": 10,
    "opening_episodes": 20,
    "total_episodes": 200,
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


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"opening": ["Decoy User3", "Decoy User3"]},
            "damaged (the opening cannot be played: its choice 2, Decoy User3, is",
        ),
        ({"units": {"a": ["User0"]}}, "damaged (every host needs a unit type"),
        (
            {"units": FIVE_TYPES.as_dict(), "idle": ["printer"]},
            "damaged (idle names 'printer', which is none of the unit types",
        ),
        ({"units": FIVE_TYPES.as_dict(), "idle": 5}, "damaged (idle must be a list of unit types, got 5)"),
        ({"memory": "scans"}, "0.weight is float32 (64, 175), expected float32 (64, 62)"),
        ({"action_set": "original", "opening": []}, "actor.4.weight is float32 (40, 64), expected float32 (36, 64)"),
    ],
)
def test_a_file_that_names_another_memory_action_set_or_opening_is_refused(policy, tmp_path, changes, says):
    facts = json.loads((tmp_path / "policy.json").read_text()) | changes
    (tmp_path / "policy.json").write_text(json.dumps(sealed(facts)))
    with pytest.raises(PolicyError, match=re.escape(says)) as error:
        load_policy(tmp_path)
    assert "\n" not in str(error.value)


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
        ends.append((training.evaluate("scratch", 2_000).mean, training.learner.tensors()))
    training._next_stage()
    assert training.stage.begin == Begin.BEST_START
    best = max(ends, key=lambda end: end[0])[1]
    assert all(np.array_equal(array, best[name]) for name, array in training.learner.tensors().items())
    training.step()
    assert training.learner.tensors()["adam.step"] == 3 * 4  # its optimiser goes on, too


def test_a_course_ends_with_its_opening_and_within_its_budget():
    training = Training(config(**COURSE))
    while not training.done:
        training.step()
    assert training.episodes == 200 and training.role.opening == training.role.action_set.numbers(["Decoy User2"] * 2)


@pytest.mark.parametrize(
    ("updates", "course"), [(1, 0), (3, 0), (4, 0), (5, 0), (18, 0), (19, 0), (11, 1), (14, 1), (16, 1), (17, 1)]
)
def test_a_course_goes_on_from_any_checkpoint_with_the_same_bits(updates, course, tmp_path):
    settings = (COURSE, SEEKING)[course]
    whole, cut = Training(config(**settings)), Training(config(**settings))
    for _ in range(updates):
        cut.step()
    save_checkpoint(tmp_path, cut)
    again = Training(config(**settings))
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
        ({"opening": "Decoy User3, Decoy User3", "opening_episodes": 10}, "its choice 2, Decoy User3, is masked"),
        ({"opening": "Sleep, Sleep", "max_steps": 2}, "an opening of 2 choices leaves nothing to choose in 2 steps"),
        ({"opening": "find", "opening_episodes": 10, "action_set": "all"}, "the action set all has none"),
        (
            {"starts": 30, "start_episodes": 20},
            "580 episodes of starts that are given up, 0 to find an opening and 0 with it leave less than 20 of the",
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


def test_promising_openings_are_those_that_earn_most_as_they_are():
    """A policy that sleeps: against B_line decoys on User hosts, which it never places, help, and none is always tried."""
    role = config().role
    sleepy = Network.zeros(role.inputs, role.actions)
    sleepy.actor.bias3[0] = 50.0
    game = config(red_agent="b_line", max_steps=30).game
    found = promising_openings(sleepy, role, game, seed=3, count=4)
    assert found == promising_openings(sleepy, role, game, seed=3, count=4)
    assert len(found) == 4 and found[0] == ()
    earned = [
        play(
            PolicyTable(sleepy, role=replace(role, opening=o)), game, episodes=1_000, seed=3, purpose="opening"
        ).returns.mean()
        for o in found
    ]
    assert earned[1] >= earned[2] >= earned[3] and earned[1] > earned[0] + 0.5


def test_an_opening_must_be_shown_to_help():
    """Of five, the best is taken for better at 2.33 standard errors (one-sided 5 % / 5 = 1 %)."""
    assert is_shown_to_help(2.33, 1.0, tried=5) and not is_shown_to_help(2.32, 1.0, tried=5)


def test_openings_are_tried_one_by_one_from_the_same_weights():
    """The best start meets random decoys; none and two openings have 10 episodes each, once more; then the best goes on."""
    training = Training(config(**SEEKING))
    begins, openings = [], []
    while not training.done:
        training.step()
        if training._stage_updates == 1:
            begins.append(training.stage.begin)
            openings.append(training.role.opening)
    assert begins == [Begin.SCRATCH] * 2 + [Begin.BEST_START] + [Begin.TRY] * 3 + [Begin.FINAL] * 3 + [Begin.OPENING]
    assert openings[:4] == [(), (), (RANDOM_MACRO, RANDOM_MACRO), ()] and openings[3:6] == [*training._openings]
    assert openings[9] in openings[6:9] and training.episodes == 200


def test_random_decoys_begin_every_episode_differently():
    role = replace(config().role, opening=(RANDOM_MACRO, RANDOM_MACRO))
    network = Network.of(initial_weights(role.inputs, 1, role.actions))
    game = config(max_steps=5).game
    played = play(PolicyTable(network, role=role), game, episodes=2_000, seed=1, purpose="test").rollout
    first_macro = len(role.action_set.actions)
    drawn = np.bincount(played.choices[:2].ravel(), minlength=role.actions)[first_macro:]
    assert drawn.sum() == 4_000 and drawn.min() > 250  # each of the 12 macros some 333 times
    alone = play(PolicyTable(probabilities(network), role=role), game, episodes=2_000, seed=1, purpose="test").rollout
    assert np.array_equal(alone.choices[:2], played.choices[:2])  # step by step, too
