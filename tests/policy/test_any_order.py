"""A policy of all orders is told its order when it plays: one for all environments or one for each, at every step anew."""

import numpy as np
import pytest
from policies import untrained

import fixfirst as ff
from fixfirst.orders.order import FIVE_TYPES, all_workflows
from fixfirst.policy import trained

N, STEPS = 12, 30
RED = "b_line:0.5,meander:0.5"
ORDERS = [str(order) for order in list(all_workflows())[::10]]  # 12 of the 120
ROLES = {
    "shield": {"shield": True, "idle": (1, 4)},
    "shield, memory and macros": {"memory": "full", "action_set": "macros", "opening": (30,), "shield": True},
    "read only": {},
}


def policy_of(role, workflow=None):
    return untrained(units=FIVE_TYPES, workflow=None if workflow is None else ff.Workflow.parse(workflow), **ROLES[role])


@pytest.mark.parametrize("role", ROLES)
def test_orders_may_differ_between_environments_and_change_at_any_step_and_what_is_remembered_stays(role):
    """A policy that is given other orders at every step remembers what a policy with one order remembers of the same
    actions: so it answers like one that had its order from the beginning."""
    changing, rng, differ = policy_of(role), np.random.default_rng(0), 0
    steady = {order: policy_of(role, order) for order in ORDERS[:4]}
    envs = ff.make_vec(N, red_agent=RED, max_steps=20, autoreset_mode="same_step")
    (obs, _), starts = envs.reset(seed=1), np.ones(N, bool)
    for _ in range(STEPS):
        given = rng.choice(list(steady), N)
        actions = changing.act(obs, workflow=given, episode_start=starts, seed=7)
        for order, policy in steady.items():
            answers = policy.act(obs, episode_start=starts, seed=7)
            assert np.array_equal(answers[given == order], actions[given == order])
            differ += (answers != actions).sum()
            policy._cache["episodes"].memories.records[:] = changing._cache["episodes"].memories.records
        obs, _, _, starts, _ = envs.step(actions)
    assert differ  # orders matter here


def test_a_rollout_and_the_blue_agent_follow_orders_as_act_does():
    """One per environment; and the agent's may change between two steps."""
    policy = policy_of("shield, memory and macros")
    envs = ff.make_vec(N, red_agent=RED)
    envs.reset(seed=4)
    played = ff.rollout(envs, policy, STEPS, greedy=True, workflow=ORDERS)
    policy.reset(N)
    for t in range(STEPS):
        assert np.array_equal(policy.act(played.observations[t], workflow=ORDERS, greedy=True), played.actions[t])
    policy, twin = (policy_of("shield") for _ in range(2))
    agent = ff.BlueAgent(policy, workflow="reverse")
    twin.reset(1)
    for order, obs in zip(
        ("reverse", "user_priority", "reverse", "enterprise_focus"), played.observations[3:7, 0], strict=True
    ):
        agent.workflow = order
        assert agent.get_action(obs) == twin.act(obs, workflow=order, greedy=True)
    with pytest.raises(ff.WorkflowError, match="did you mean 'reverse'"):
        ff.BlueAgent(policy, workflow="revers")


def test_answers_are_the_same_when_old_ones_are_forgotten(monkeypatch):
    obs = (np.random.default_rng(1).random((10, 40, 52)) < 0.2).astype(int)
    orders = [ORDERS[i % 3] for i in range(40)]
    keeping = policy_of("shield")
    expected = [keeping.act(part, workflow=orders) for part in obs]
    monkeypatch.setattr(trained, "MOST_ROWS", 50)
    forgetting = policy_of("shield")
    assert np.array_equal([forgetting.act(part, workflow=orders) for part in obs], expected)
    assert len(forgetting._cache[False].rows) <= 90


@pytest.mark.parametrize(
    ("workflow", "message"),
    [
        (["reverse"], "workflow must be an order such as .*, or a list with one for each of 2 environments, got 1"),
        (["reverse", None], "environments, got None"),
        (["reverse", "user > user"], "'user > user' must name each of"),
        ({"reverse": 1}, "environments, got {'reverse': 1}"),
        (7, "environments, got 7"),
        (None, "this policy follows any order: say which one"),
    ],
)
def test_wrong_orders_get_one_line_and_leave_the_policy_as_it_was(workflow, message):
    policy = policy_of("shield")
    policy.reset(2)
    with pytest.raises(ff.FixfirstError, match=message):
        policy.act(np.zeros((2, 52), int), workflow=workflow)
    assert policy._cache["episodes"].steps.tolist() == [0, 0]


def test_a_policy_without_an_order_takes_none():
    with pytest.raises(ff.ConfigError, match="this policy knows no order: leave out workflow"):
        untrained().act(np.zeros(52, int), workflow="reverse")
    assert untrained().scheme is None and untrained().act(np.zeros((2, 52), int)).shape == (2,)
