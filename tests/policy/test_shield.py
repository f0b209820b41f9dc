"""The shield: what an order forbids, from what blue knows; and the ways in which an order can be kept."""

import numpy as np
import pytest
from cage2 import ACTIONS, CAGE2, HOST_ID, action_id

from fixfirst.base.errors import ConfigError
from fixfirst.game.parts import REPAIR_VERBS
from fixfirst.orders.order import FIVE_TYPES, Workflow
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.memories import Memories
from fixfirst.policy.network import Network
from fixfirst.policy.spec import SHIELDS, PolicySpec, bits_of
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import make_config

ENTERPRISE_FIRST = Workflow.parse("enterprise > op_server > user > op_host > defender")
USER_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
SCAN, EXPLOIT, UNKNOWN, PRIVILEGED = 0b0001, 0b0011, 0b0100, 0b1100
SLEEP, RESTORE, ANALYSE = action_id("Sleep"), action_id("Restore", "User1"), action_id("Analyse", "User1")
REPAIRS = [a for a in range(145) if CAGE2.repaired_hosts[a] == HOST_ID["Enterprise1"]]


def seen_and_allowed(turns, way="shield"):
    """For each turn: is User1 suspect, and may Enterprise1 be repaired? turns: what is seen of User1, and what blue does."""
    spec = PolicySpec(units=FIVE_TYPES, shield=True, keeping=way)
    table = PolicyTable(lambda inputs: np.ones((len(inputs), 145)), [USER_FIRST], spec=spec)
    memories, suspect, allowed = Memories(spec, 1), [], []
    for seen, action in turns:
        words = np.array([seen << 4 * HOST_ID["User1"]], np.uint64)
        number = table.look(memories, words, np.zeros(1, np.int64))
        row = table.rows[number]
        suspect.append(int(bits_of(row, spec.inputs)[0, 52 + HOST_ID["User1"]]))
        allowed.append(int(spec.allowed(row)[0, REPAIRS].all()))
        memories.remember(words, np.array([action]))
    return suspect, allowed


SCANS = [(SCAN, SLEEP)] * 3
BROKEN_IN = [(EXPLOIT, SLEEP)] + [(0, SLEEP)] * 11
REPAIRED = [*[(SCAN, SLEEP)] * 2, (0, RESTORE), (SCAN, SLEEP), (SCAN, SLEEP)]


@pytest.mark.parametrize(
    ("way", "turns", "expected"),
    [
        ("shield", SCANS, [0, 1, 1]),  # activity that comes again
        ("evidence", SCANS, [0, 0, 0]),
        ("shield", BROKEN_IN, [1] * 12),
        ("evidence", BROKEN_IN, [1] * 12),
        ("expiry", BROKEN_IN, [1] * 10 + [0, 0]),  # nothing new in the second five turns
        ("shield", [(EXPLOIT, RESTORE), (0, SLEEP)], [1, 0]),
        ("shield", [(EXPLOIT, ANALYSE), (0, SLEEP)], [1, 0]),
        ("shield", [(EXPLOIT, ANALYSE), (PRIVILEGED, SLEEP)], [1, 1]),  # it was root
        ("shield", REPAIRED, [0, 1, 1, 1, 1]),
        ("recheck", REPAIRED, [0, 1, 1, 0, 1]),  # after Restore the next scan is the first one
    ],
)
def test_what_raises_suspicion_and_how_it_ends(way, turns, expected):
    """And a user that is suspect forbids repairs of enterprise."""
    assert seen_and_allowed(turns, way) == (expected, [1 - suspect for suspect in expected])


def test_whoever_is_believed_not_clean_counts_too_and_limit_leaves_every_third_turn_free():
    assert seen_and_allowed([(UNKNOWN, SLEEP), (PRIVILEGED, SLEEP), (0, SLEEP)]) == ([0, 0, 0], [0, 0, 1])
    assert seen_and_allowed(SCANS, "limit")[0] == [0, 1, 1]
    assert seen_and_allowed([(EXPLOIT, SLEEP)] * 7, "limit")[1] == [0, 0, 1, 0, 0, 1, 0]


def test_a_policy_carries_the_way_it_keeps_its_order():
    for way in SHIELDS:
        spec = make_config(workflow=str(USER_FIRST), keep=way).spec
        assert spec.shield and spec.keeping == way and PolicySpec.from_dict(spec.as_dict()) == spec
        assert spec.inputs == spec.memory.inputs + 13 + 25  # whom it suspects, and the order
    assert "keeping" not in PolicySpec(units=FIVE_TYPES, shield=True).as_dict()  # as files were before
    with pytest.raises(ConfigError, match="unknown shield 'hope'; use shield, evidence"):
        PolicySpec(keeping="hope")


@pytest.mark.parametrize("name", ["all", "macros"])
def test_repairs_below_the_first_suspected_type_are_forbidden_and_nothing_else(name):
    chosen = ActionSet.parse(name)
    shields = PolicySpec(action_set=chosen, shield=True).shields([ENTERPRISE_FIRST])
    for top, rank in enumerate(ENTERPRISE_FIRST.order):
        assert shields.ranked[0, top] == sum(
            1 << HOST_ID[host] for host in FIVE_TYPES.hosts(rank) if host != "User0"
        )  # red's foothold cannot be cleaned
        for choice, action in enumerate(chosen.actions):
            blue = ACTIONS[action]
            repairs = blue.verb in REPAIR_VERBS and blue.host is not None
            below = repairs and ENTERPRISE_FIRST.ranks[FIVE_TYPES.host_unit[HOST_ID[blue.host]]] > top
            assert bool(int(shields.forbidden[0, top, choice // 64]) >> choice % 64 & 1) == below
    assert not shields.forbidden[0, -1].any()  # nobody is suspected


def test_orders_that_differ_in_idle_types_are_one_and_the_order_that_is_read_may_differ_from_the_one_that_is_kept():
    idle = (FIVE_TYPES.names.index("op_host"), FIVE_TYPES.names.index("defender"))
    spec = PolicySpec(shield=True, idle=idle)
    first = Workflow.parse("defender > op_host > enterprise > op_server > user")
    assert first.with_last(idle) == ENTERPRISE_FIRST.with_last(idle)
    assert np.array_equal(spec.shields([first]).forbidden, spec.shields([ENTERPRISE_FIRST]).forbidden)
    spec = PolicySpec(units=FIVE_TYPES, shield=True)
    network = Network.drawn(spec.inputs, spec.actions, 1)
    player = PolicyTable(network, [USER_FIRST], spec=spec, prompts=[ENTERPRISE_FIRST])
    assert np.array_equal(player.orders, PolicyTable(network, [ENTERPRISE_FIRST], spec=spec).orders)
    assert np.array_equal(player.shields.forbidden, PolicyTable(network, [USER_FIRST], spec=spec).shields.forbidden)
