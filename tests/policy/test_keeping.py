"""Ways to keep an order that an attacker can use less: what raises suspicion, how it ends, when the mask is lifted."""

import numpy as np
import pytest

from fixfirst.base import errors
from fixfirst.game.base_world import pack
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.remembering import Memories
from fixfirst.policy.spec import SHIELDS, PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import make_config

USER_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
SLEEP, RESTORE = CAGE2.action_id("Sleep"), CAGE2.action_id("Restore", "User1")
USER1 = CAGE2.host_names.index("User1")
QUIET, SCAN, EXPLOIT = 0, 1, 3  # the first two bits of a host: no activity, a scan, an exploit


def suspected(way, turns):
    """Whether User1 is suspect in each turn. turns: what is seen of it, and what blue then does."""
    memories, found = Memories(PolicySpec(units=USER_FIRST.scheme, shield=True, keeping=way), 1), []
    for activity, action in turns:
        seen = observed(activity)
        found.append(bool(memories.suspicion(seen)[0][0] >> USER1 & 1))
        memories.remember(seen, np.array([action]))
    return found


def observed(activity):
    bits = np.zeros((1, 52), np.int8)
    bits[0, 4 * USER1 : 4 * USER1 + 2] = {QUIET: (0, 0), SCAN: (1, 0), EXPLOIT: (1, 1)}[activity]
    return pack(bits)


SCANS = [(SCAN, SLEEP)] * 3
BROKEN_IN = [(EXPLOIT, SLEEP)] + [(QUIET, SLEEP)] * 11
REPAIRED = [*[(SCAN, SLEEP)] * 2, (QUIET, RESTORE), (SCAN, SLEEP), (SCAN, SLEEP)]


@pytest.mark.parametrize(
    ("way", "turns", "expected"),
    [
        ("shield", SCANS, [0, 1, 1]),  # activity that comes again
        ("evidence", SCANS, [0, 0, 0]),
        ("evidence", BROKEN_IN, [1] * 12),
        ("shield", BROKEN_IN, [1] * 12),
        ("expiry", BROKEN_IN, [1] * 10 + [0, 0]),  # nothing new in the second five turns
        ("shield", REPAIRED, [0, 1, 1, 1, 1]),
        ("recheck", REPAIRED, [0, 1, 1, 0, 1]),  # after Restore the next scan is the first one
        ("limit", SCANS, [0, 1, 1]),
    ],
)
def test_what_raises_suspicion_and_how_it_ends(way, turns, expected):
    assert suspected(way, turns) == [bool(one) for one in expected]


def test_after_two_turns_under_suspicion_one_turn_is_free_of_the_mask():
    repairs = [a for a in range(145) if CAGE2.repaired_hosts[a] == CAGE2.host_names.index("Enterprise1")]
    spec = PolicySpec(units=USER_FIRST.scheme, shield=True, keeping="limit")
    table = PolicyTable(lambda inputs: np.ones((len(inputs), 145)), (USER_FIRST,), spec=spec)
    memories, allowed = Memories(spec, 1), []
    for _ in range(7):
        row = table.look(memories, observed(EXPLOIT), np.zeros(1, np.int64))
        allowed.append(bool(spec.allowed(table.rows[row])[0, repairs].all()))
        memories.remember(observed(EXPLOIT), np.array([SLEEP]))
    assert allowed == [False, False, True, False, False, True, False]


def test_a_policy_carries_the_way_it_keeps_its_order():
    for way in SHIELDS:
        spec = make_config(workflow=str(USER_FIRST), keep=way).spec
        assert spec.shield and spec.keeping == way and PolicySpec.from_dict(spec.as_dict()) == spec
    assert "keeping" not in PolicySpec(units=UnitScheme.by_type(), shield=True).as_dict()  # as files were before
    with pytest.raises(errors.ConfigError, match="kept by one of shield, evidence"):
        PolicySpec(keeping="hope")
