"""Policies asked by `act`: one of all orders is told its order, one with a memory keeps it, from files as well.

An order is one for all environments or one for each, at every step anew.
"""

import json
import re

import numpy as np
import pytest
from cage2 import ACTIONS
from policies import untrained

import fixfirst as ff
from fixfirst.base.errors import ConfigError, PolicyError
from fixfirst.base.files import with_checksum
from fixfirst.orders.order import FIVE_TYPES, all_workflows
from fixfirst.policy import trained
from fixfirst.policy.trained import load_parent, load_policy

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
    with pytest.raises(ConfigError, match="this policy knows no order: leave out workflow"):
        untrained().act(np.zeros(52, int), workflow="reverse")
    assert untrained().scheme is None and untrained().act(np.zeros((2, 52), int)).shape == (2,)


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
