"""`ff.rollout`: what stepping the environments with the policy's actions gives, in one call."""

import numpy as np
import pytest
from policies import untrained

import fixfirst as ff
from fixfirst.orders.order import FIVE_TYPES

POLICY = untrained(units=FIVE_TYPES, workflow=ff.Workflow.parse("critical_first"))
REMEMBERING = untrained("full", "macros")


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_rollout_is_what_stepping_gives(mode):
    """Two calls of 30 steps through episodes of 20, against 60 steps with the actions they tell, one by one."""
    envs, twin = (ff.make_vec(7, red_agent="meander", max_steps=20, autoreset_mode=mode) for _ in range(2))
    envs.reset(seed=3)
    obs, info = twin.reset(seed=3)
    parts = [ff.rollout(envs, POLICY, 30, seed=5) for _ in range(2)]
    assert np.array_equal(parts[0].packed_obs[-1], parts[1].packed_obs[0])
    for part in parts:
        for t in range(30):
            assert np.array_equal(part.observations[t], obs) and np.array_equal(part.held[t], info["access"] > 0)
            obs, rewards, _, truncated, info = twin.step(part.actions[t])
            assert np.array_equal(part.rewards[t], rewards) and np.array_equal(part.truncated[t], truncated)
    assert np.array_equal(envs.get_state(), twin.get_state())
    assert sum(part.truncated.sum() for part in parts) == 7 * (2 if mode == "next_step" else 3)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_environments_with_the_policys_memory_go_on_remembering(mode):
    """30 steps through episodes of 20, in one call and in two. Then they remember what a twin does that was stepped."""
    made = [{"max_steps": 20, "autoreset_mode": mode, "memory": "full", "action_set": "macros"}] * 3
    envs, halves, twin = (ff.make_vec(7, red_agent="meander", **settings) for settings in made)
    for each in (envs, halves, twin):
        each.reset(seed=3)
    played = ff.rollout(envs, REMEMBERING, 30, seed=5)
    parts = [ff.rollout(halves, REMEMBERING, 15, seed=5) for _ in range(2)]
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
def test_environments_with_another_memory_or_action_set_are_refused(settings, has):
    envs = ff.make_vec(2, **settings)
    envs.reset(seed=0)
    with pytest.raises(ff.ConfigError, match=f"the environments have {has}, the policy has full and macros; make them with"):
        ff.rollout(envs, REMEMBERING, 1)


def test_environments_in_other_processes_are_refused():
    workers = ff.make_vec(2, backend="workers")
    with pytest.raises(ff.ConfigError, match=r"rollout\(\) plays in compiled code: make the environments with"):
        ff.rollout(workers, POLICY, 1)
    workers.close()
