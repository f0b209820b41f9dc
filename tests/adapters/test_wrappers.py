"""Gymnasium's own wrappers around our environments: all of those for discrete actions and boxes of bits."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.wrappers import vector

import fixfirst as ff


def as_tensors(envs):
    pytest.importorskip("array_api_compat", reason="Gymnasium asks for it here")
    return vector.NumpyToTorch(envs)


VECTOR_WRAPPERS = {
    "RecordEpisodeStatistics": vector.RecordEpisodeStatistics,
    "NormalizeObservation": vector.NormalizeObservation,
    "NormalizeReward": vector.NormalizeReward,
    "ClipReward": lambda envs: vector.ClipReward(envs, -1, 0),
    "TransformReward": lambda envs: vector.TransformReward(envs, np.float64),
    "TransformObservation": lambda envs: vector.TransformObservation(envs, np.float64),
    "TransformAction": lambda envs: vector.TransformAction(envs, lambda actions: actions),
    "VectorizeTransformObservation": lambda envs: vector.VectorizeTransformObservation(
        envs, wrappers.TransformObservation, func=lambda view: view, observation_space=envs.single_observation_space
    ),
    "DtypeObservation": lambda envs: vector.DtypeObservation(envs, np.float32),
    "FlattenObservation": vector.FlattenObservation,
    "RescaleObservation": lambda envs: vector.RescaleObservation(
        vector.DtypeObservation(envs, np.float32), np.float32(-1), np.float32(1)
    ),
    "DictInfoToList": vector.DictInfoToList,
    "NumpyToTorch": as_tensors,
}


@pytest.mark.parametrize("autoreset_mode", ["next_step", "same_step"])
@pytest.mark.parametrize("name", VECTOR_WRAPPERS)
def test_a_vector_wrapper_of_gymnasium_plays_over_the_end_of_episodes(name, autoreset_mode):
    """Those that change observations refuse the mode same_step, of whatever environment."""
    if "Observation" in name and autoreset_mode == "same_step":
        return
    envs = VECTOR_WRAPPERS[name](ff.make_vec(2, red_agent="meander", max_steps=3, autoreset_mode=autoreset_mode))
    envs.reset(seed=0)
    steps = [envs.step(np.full(2, 132))[3:] for _ in range(7)]  # Restore Defender, -1 each
    assert sum(int(truncated.sum()) for truncated, _ in steps) == 4
    if name == "RecordEpisodeStatistics":
        info = steps[2][1]
        assert info["episode"]["r"].tolist() == info["episode_return"].tolist() and info["episode"]["l"].tolist() == [3, 3]


@pytest.mark.parametrize(
    "wrap", [wrappers.RecordEpisodeStatistics, wrappers.TimeAwareObservation, wrappers.NormalizeReward, wrappers.Autoreset]
)
def test_a_wrapper_of_single_environments_plays_an_episode(wrap):
    env = wrap(gym.make("fixfirst/Cage2-v0", max_steps=3))
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("max_steps", [30, 250])
def test_wrappers_read_how_long_an_episode_is_and_nothing_cuts_it_short(max_steps):
    env = gym.make("fixfirst/Cage2-v0", max_steps=max_steps)
    assert env.spec.max_episode_steps == max_steps and env.unwrapped.spec.id == "fixfirst/Cage2-v0"
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(max_steps)] == [False] * (max_steps - 1) + [True]
    assert gym.make(env.spec).unwrapped.world.game.max_steps == max_steps  # made again from its spec
    assert gym.make("fixfirst/Cage2-v0", max_steps=None).spec.max_episode_steps is None


def test_an_unchanged_script_of_cleanrl_makes_its_environments_by_their_id():
    """What `ppo.py` does: the module before the colon is imported, and statistics are recorded around each environment."""

    def make_env():
        return wrappers.RecordEpisodeStatistics(gym.make("fixfirst:fixfirst/Cage2-v0"))

    envs = gym.vector.SyncVectorEnv([make_env for _ in range(2)])
    envs.reset(seed=1)
    for _ in range(100):
        _, _, _, truncated, info = envs.step(np.zeros(2, int))
    assert truncated.all() and info["_episode"].all() and info["episode"]["l"].tolist() == [100, 100]
