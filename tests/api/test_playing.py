"""`ff.rollout`: what stepping the environments with the policy's actions gives, in one call."""

import numpy as np
import pytest

import fixfirst as ff

TINY = {"n_envs": 10, "max_steps": 20, "total_episodes": 20, "quiet": True, "tensorboard": False}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    out = tmp_path_factory.mktemp("rollout") / "run"
    ff.train(out=out, workflow="critical_first", **TINY)
    return ff.load_policy(out)


@pytest.fixture(scope="module")
def remembering(tmp_path_factory):
    """A policy with memory and macros, hardly trained."""
    out = tmp_path_factory.mktemp("rollout") / "remembering"
    ff.train(out=out, workflow="none", memory="full", action_set="macros", **TINY)
    return ff.load_policy(out)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_rollout_is_what_stepping_gives(policy, mode):
    """Two calls of 30 steps through episodes of 20, against 60 steps with the actions they tell, one by one."""
    envs, twin = (ff.make_vec(7, red_agent="meander", max_steps=20, autoreset_mode=mode) for _ in range(2))
    envs.reset(seed=3)
    obs, info = twin.reset(seed=3)
    parts = [ff.rollout(envs, policy, 30, seed=5) for _ in range(2)]
    assert np.array_equal(parts[0].packed_obs[-1], parts[1].packed_obs[0])
    for part in parts:
        for t in range(30):
            assert np.array_equal(part.observations[t], obs) and np.array_equal(part.held[t], info["access"] > 0)
            obs, rewards, _, truncated, info = twin.step(part.actions[t])
            assert np.array_equal(part.rewards[t], rewards) and np.array_equal(part.truncated[t], truncated)
    assert np.array_equal(envs.get_state(), twin.get_state())
    assert sum(part.truncated.sum() for part in parts) == 7 * (2 if mode == "next_step" else 3)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_environments_with_the_policys_memory_go_on_remembering(remembering, mode):
    """30 steps through episodes of 20, in one call and in two. Then they remember what a twin does that was stepped."""
    made = [{"max_steps": 20, "autoreset_mode": mode, "memory": "full", "action_set": "macros"}] * 3
    envs, halves, twin = (ff.make_vec(7, red_agent="meander", **settings) for settings in made)
    for each in (envs, halves, twin):
        each.reset(seed=3)
    played = ff.rollout(envs, remembering, 30, seed=5)
    parts = [ff.rollout(halves, remembering, 15, seed=5) for _ in range(2)]
    assert np.array_equal(played.actions, np.concatenate([part.actions for part in parts]))
    for actions in played.actions.astype(np.int64):
        choices = [np.argmax([action in row for row in twin.memories.spec.action_set.meanings]) for action in actions]
        twin.step(np.array(choices))
    for each in (envs, halves):
        assert np.array_equal(each.memories.records, twin.memories.records)


@pytest.mark.parametrize(
    ("settings", "has"),
    [
        ({"memory": "scans", "action_set": "macros"}, "the memory scans and the action set macros"),
        ({"memory": "full"}, "the memory full and the action set all"),
    ],
)
def test_environments_with_another_memory_or_action_set_are_refused(remembering, settings, has):
    envs = ff.make_vec(2, **settings)
    envs.reset(seed=0)
    with pytest.raises(ff.ConfigError, match=f"the environments have {has}, the policy has full and macros; make them with"):
        ff.rollout(envs, remembering, 1)


def test_bad_input_gets_one_line(policy):
    envs = ff.make_vec(2)
    with pytest.raises(ff.ResetNeeded):
        ff.rollout(envs, policy, 5)
    envs.reset(seed=0)
    with pytest.raises(ff.WorldError, match="steps must be a whole number, at least 1, got 0"):
        ff.rollout(envs, policy, 0)
    with pytest.raises(ff.WorldError, match=r"seed must be in 0\.\.2\*\*63-1, got -1"):
        ff.rollout(envs, policy, 1, seed=-1)
    with pytest.raises(ff.ConfigError, match="is neither a file or run nor a baseline"):
        ff.rollout(envs, "nowhere", 1)
    workers = ff.make_vec(2, backend="workers")
    with pytest.raises(ff.ConfigError, match="rollout\\(\\) plays in compiled code: make the environments with"):
        ff.rollout(workers, policy, 1)
    workers.close()
