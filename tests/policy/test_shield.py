"""The shield: what an order forbids, from what blue knows."""

import numpy as np
import pytest
from cage2 import ACTIONS, HOST_ID, action_id

from fixfirst.game.parts import REPAIR_VERBS
from fixfirst.learner.ppo import initial_weights
from fixfirst.orders.order import FIVE_TYPES, Workflow
from fixfirst.play.evaluation import play
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.answers import probabilities
from fixfirst.policy.network import Network
from fixfirst.policy.remembering import Memories
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import make_config

ENTERPRISE_FIRST = Workflow.parse("enterprise > op_server > user > op_host > defender")
USER_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
SCAN, EXPLOIT, UNKNOWN, PRIVILEGED = 0b0001, 0b0011, 0b0100, 0b1100


def view(**hosts):
    """An observation: four bits per host, activity in the lower two, belief in the upper two."""
    return np.array([sum(bits << 4 * HOST_ID[host] for host, bits in hosts.items())], np.uint64)


def names(hosts):
    return {name for name, host in HOST_ID.items() if hosts >> host & 1}


def suspected(*turns):
    """The suspect hosts after some (observation, action) pairs, before the last action."""
    memories = Memories(PolicySpec(shield=True), 1)
    for words, action in turns[:-1]:
        memories.remember(words, np.array([action]))
    return names(int(memories.suspicion(turns[-1][0])[0][0]))


SLEEP = action_id("Sleep")


def test_an_exploit_makes_suspect_and_so_does_a_second_scan():
    assert suspected((view(User1=SCAN), SLEEP)) == set()
    assert suspected((view(User1=EXPLOIT), SLEEP)) == {"User1"}
    assert suspected((view(User1=SCAN), SLEEP), (view(User1=SCAN), SLEEP)) == {"User1"}
    assert suspected((view(User1=EXPLOIT), SLEEP), (view(), SLEEP)) == {"User1"}  # it stays


def test_restore_clears_and_analyse_clears_unless_it_finds_root():
    exploited = (view(User1=EXPLOIT), action_id("Restore", "User1"))
    assert suspected(exploited, (view(), SLEEP)) == set()
    analysed = (view(User1=EXPLOIT), action_id("Analyse", "User1"))
    assert suspected(analysed, (view(), SLEEP)) == set()
    assert suspected(analysed, (view(User1=PRIVILEGED), SLEEP)) == {"User1"}


def test_whoever_is_believed_not_clean_counts_too():
    seen = view(User1=UNKNOWN, Enterprise0=PRIVILEGED, User2=EXPLOIT)
    assert names(int(Memories(PolicySpec(shield=True), 1).suspicion(seen)[1][0])) == {"User1", "Enterprise0"}


@pytest.mark.parametrize("name", ["all", "macros"])
def test_repairs_below_the_first_suspected_type_are_forbidden_and_nothing_else(name):
    chosen = ActionSet.parse(name)
    shields = PolicySpec(action_set=chosen, shield=True).shields([ENTERPRISE_FIRST])
    for top, rank in enumerate(ENTERPRISE_FIRST.order):
        assert shields.ranked[0, top] == sum(
            1 << HOST_ID[host] for host in FIVE_TYPES.hosts(rank) if host != "User0"
        )  # red's foothold cannot be cleaned
        for choice, action in enumerate(chosen.actions):
            known = ACTIONS[action]
            repairs = known.verb in REPAIR_VERBS and known.host is not None
            below = repairs and ENTERPRISE_FIRST.ranks[FIVE_TYPES.host_unit[HOST_ID[known.host]]] > top
            assert bool(int(shields.forbidden[0, top, choice // 64]) >> choice % 64 & 1) == below
    assert not shields.forbidden[0, -1].any()  # nobody is suspected


def test_idle_types_come_last_and_orders_that_differ_in_them_are_one():
    idle = (FIVE_TYPES.names.index("op_host"), FIVE_TYPES.names.index("defender"))
    spec = PolicySpec(shield=True, idle=idle)
    first = Workflow.parse("defender > op_host > enterprise > op_server > user")
    assert first.with_last(idle) == ENTERPRISE_FIRST.with_last(idle)
    assert np.array_equal(spec.shields([first]).forbidden, spec.shields([ENTERPRISE_FIRST]).forbidden)


@pytest.mark.parametrize("memory", ["none", "full"])
@pytest.mark.parametrize("actions", ["all", "macros"])
def test_a_shielded_policy_is_the_same_compiled_and_step_by_step_and_keeps_to_its_order(memory, actions):
    """Untrained, so that it tries everything: against B_line it repairs often, and hardly ever out of order."""
    config = make_config(workflow=str(USER_FIRST), memory=memory, action_set=actions, max_steps=30)
    spec = config.spec
    assert spec.shield and spec.inputs == spec.memory.inputs + 13 + 25
    network = Network.of(initial_weights(spec.inputs, 1, spec.actions))
    both = [
        play(
            PolicyTable(policy, [USER_FIRST], spec=spec),
            config.game,
            episodes=200,
            seed=1,
            purpose="x",
            workflows=[USER_FIRST],
        )
        for policy in (network, probabilities(network))
    ]
    for name in ("packed_obs", "actions", "choices", "rewards10", "held"):
        assert np.array_equal(*(getattr(played.rollout, name) for played in both)), name
    counts = both[0].counts()
    broken = (counts.judged - counts.compliant).sum()
    assert counts.judged.sum() > 200 and broken / counts.judged.sum() < 0.05


def test_what_a_policy_is_told_may_differ_from_what_it_keeps():
    spec = PolicySpec(units=FIVE_TYPES, shield=True)
    network = Network.of(initial_weights(spec.inputs, 1, spec.actions))
    kept = PolicyTable(network, [USER_FIRST], spec=spec, prompts=[ENTERPRISE_FIRST])
    assert np.array_equal(kept.orders, PolicyTable(network, [ENTERPRISE_FIRST], spec=spec).orders)
    assert np.array_equal(kept.shields.forbidden, PolicyTable(network, [USER_FIRST], spec=spec).shields.forbidden)
