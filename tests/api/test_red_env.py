"""The game from red's side as Gymnasium environments: valid, fair, the same as an attacker that a training lets play."""

import warnings

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env
from policies import FIRST_CHAMPION

import fixfirst as ff
from fixfirst.policy.reds import load_red
from fixfirst.policy.spec import words_of
from fixfirst.policy.table import probabilities


def greedy_noise(observations, masks):
    """Choose as the attacker `noise` would, its most probable choice."""
    odds = probabilities(load_red("noise").network)(observations.astype(np.float32))
    return np.where(masks == 1, odds, -1).argmax(axis=1)


def test_gymnasium_finds_nothing_wrong_with_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(render|spec).*")  # there is nothing to see, and one is made by hand
        check_env(ff.RedEnv("react-restore", max_steps=20), skip_render_check=True)


def test_gymnasium_makes_it_by_name_and_masks_are_in_info():
    env = gym.make("fixfirst/Red-v0", against="sleep", max_steps=3)
    observation, info = env.reset(seed=0)
    assert observation.shape == (198,) and info["action_mask"].shape == (44,)
    names = np.array(ff.load_red("noise").spec.names)
    assert list(names[info["action_mask"] == 1]) == ["Discover User", "Scan User0", "Escalate User0", "Sleep"]


def test_the_same_choices_take_what_the_attacker_takes_in_an_evaluation():
    """`noise`, asked from outside, keeps the first champion busy: it restores in nearly every turn."""
    envs = ff.VecRedEnv(FIRST_CHAMPION, 20)
    observations, info = envs.reset(seed=1)
    taken = np.zeros(20)
    for _ in range(100):
        observations, reward, terminated, truncated, info = envs.step(greedy_noise(observations, info["action_mask"]))
        taken += reward
    assert truncated.all() and not terminated.any()
    np.testing.assert_allclose(info["episode_return"], taken, atol=1e-9)
    (row,) = ff.evaluate(FIRST_CHAMPION, greedy=True, red_agent="noise", steps=100, episodes=100, quiet=True)
    assert taken.mean() > 90 and abs(taken.mean() + row.mean) < 15


def test_a_masked_choice_is_a_turn_slept():
    envs = ff.VecRedEnv("sleep", 2, max_steps=5)
    envs.reset(seed=0)
    impact = ff.load_red("noise").spec.names.index("Impact Op_Server0")
    envs.step(np.array([impact, 43]))  # the last choice is to sleep
    first, second = envs.world.get_state()
    assert first["red_verb"] == second["red_verb"] == 0 and first["sleeps"] == 1


def test_episodes_follow_from_the_seed_and_go_on_by_themselves():
    envs, seen = ff.VecRedEnv("champion-current", 3, max_steps=4, greedy=False), []
    for _ in range(2):
        observations, info = envs.reset(seed=7)
        words = [words_of(observations)]
        for _ in range(11):
            observations, _, _, truncated, info = envs.step(info["action_mask"].argmax(axis=1))
            words.append(words_of(observations))
        seen.append(np.array(words))
    np.testing.assert_array_equal(seen[0], seen[1])
    assert truncated.any() is np.False_ and (seen[0][5] == seen[0][0]).all()  # the fifth step begins the next episode
