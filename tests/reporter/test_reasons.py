"""Why a repair is in order or not, and why an episode cost what it did: moments made up by hand, and what they give."""

import numpy as np
import pytest
from cage2 import HOST_ID, HOST_NAMES, action_id

from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.reporter.reasons import explain_repairs, explain_return

ORDER = "enterprise > op_server > op_host > user > defender"
USER_FIRST = "user > enterprise > op_server > op_host > defender"
TWO_TYPES = UnitScheme.from_dict({"server": ["Op_Server0"], "rest": [name for name in HOST_NAMES if name != "Op_Server0"]})
NEEDLESS = ("Restore Enterprise0", "User1")
FOOTHOLD_TOO = ("Restore Enterprise0", "User0 Enterprise0")


# A repair and the hosts that red held before it, one after the other in one episode; what is said of each.
@pytest.mark.parametrize(
    ("story", "says", "order", "scheme", "judging"),
    [
        (
            [
                ("Restore User1", "User0 User1 Enterprise1"),
                ("Remove User1", "User1 Enterprise1 Enterprise2 Op_Server0"),
                ("Restore Enterprise1", "User0 Enterprise1 User1 User2"),
                ("Restore Enterprise1", "Enterprise1"),
                NEEDLESS,
                ("Restore User0", "User0"),
                ("Analyse User1", "User1 Enterprise1"),
            ],
            [
                "violation: fixed user User1 while enterprise Enterprise1 was held",
                "violation: fixed user User1 while enterprise Enterprise1, Enterprise2 and op_server Op_Server0 were held",
                "in order: fixed enterprise Enterprise1 before user User1, User2",
                "in order: fixed enterprise Enterprise1; nothing more urgent was held",
                "in order: fixed enterprise Enterprise0 (not held) before user User1",
                "not judged: fixed user User0 (the foothold) while nothing needed repair",
                None,
            ],
            *(ORDER, FIVE_TYPES, {}),
        ),
        (  # a needless repair of an urgent type
            [NEEDLESS],
            ["violation: fixed enterprise Enterprise0 (not held) while user User1 was held"],
            *(ORDER, FIVE_TYPES, {"rule": "top"}),
        ),
        (  # types that were skipped are named
            [("Restore Op_Server0", ""), ("Restore Enterprise0", ""), ("Restore Op_Server0", "")],
            [
                "violation: fixed op_server Op_Server0 (not held) before any repair of enterprise",
                "in order: fixed enterprise Enterprise0 (not held); every type above it was fixed before",
                "in order: fixed op_server Op_Server0 (not held); every type above it was fixed before",
            ],
            *(ORDER, FIVE_TYPES, {"rule": "fixed_types"}),
        ),
        (
            [FOOTHOLD_TOO],
            ["in order: fixed enterprise Enterprise0; nothing more urgent was held"],
            *(USER_FIRST, FIVE_TYPES, {}),
        ),
        (
            [FOOTHOLD_TOO],
            ["violation: fixed enterprise Enterprise0 while user User0 was held"],
            *(USER_FIRST, FIVE_TYPES, {"count_foothold": True}),
        ),
        (
            [("Remove User1", "User1 Op_Server0")],
            ["violation: fixed rest User1 while server Op_Server0 was held"],
            *("server > rest", TWO_TYPES, {}),
        ),
    ],
    ids=["no_higher", "top", "fixed_types", "foothold", "foothold counts", "own grouping"],
)
def test_reasons_name_what_was_fixed_and_what_was_waiting_by_the_rule_and_in_the_words_of_the_grouping(
    story, says, order, scheme, judging
):
    actions = np.array([action_id(*repair.split()) for repair, _ in story])
    held = np.array([sum(1 << HOST_ID[name] for name in names.split()) for _, names in story] + [0], np.int16)
    verdicts = explain_repairs(actions, held, Workflow.parse(order, scheme), Judging(**judging))
    assert [verdict and f"{verdict['kind']}: {verdict['reason']}" for verdict in verdicts] == says


def episode(*turns):
    """Moments of (costs, hosts held, hosts believed not clean, blue's target)."""
    moments, total = [], 0
    for step, (costs, held, seen, target) in enumerate([({}, (), (), None), *turns]):
        total += sum(costs.values())
        access = tuple("root" if name in held else "none" for name in HOST_NAMES)
        belief = tuple("user" if name in seen else "clean" for name in HOST_NAMES)
        parts = tuple({"what": what, "tenths": tenths} for what, tenths in costs.items())
        moments.append(
            {"step": step, "blue_target": target, "access": access, "belief": belief, "costs": parts, "return10": total}
        )
    return moments


QUIET = ({}, (), (), None)
HELD = ({"User1": -1}, ("User1",), (), None)
SEEN = ({"User1": -1}, ("User1",), ("User1",), None)
SERVER_HELD = ({"Op_Server0": -10}, ("Op_Server0",), (), None)
STOPPED = ({"Op_Server0": -10, "impact": -100}, ("Op_Server0",), (), None)
RESTORES = [({"restore": -10}, (), (), target) for target in ("User1", "User2", "User1")]
NEVER_SEEN = (
    "red held User1 for 3 steps, the longest time from step 2 to 3, and blue believed it clean all the while (-0.3 of -0.3)."
)
SINCE_WHEN = (
    "3.0 below the mean: the OT service was stopped for 2 steps from step 3 on, red being on Op_Server0 since step 2 "
    "(-20.0 of -23.0)."
)


@pytest.mark.parametrize(
    ("label", "turns", "mean", "episodes", "says"),
    [
        ("best", [QUIET, QUIET], -3, 200, "The best of 200 episodes, 3.0 above the mean: nothing was lost."),
        ("worst", [QUIET, HELD, HELD, QUIET, HELD], -0.1, 50, f"0.2 below the mean: {NEVER_SEEN}"),
        ("worst", [SEEN, HELD], 0, 2, "from step 1 to 2, and blue believed it clean in 1 of these (-0.2 of -0.2)."),
        ("worst", [SEEN], 0, 2, "in step 1, as blue knew (-0.1 of -0.1)."),
        ("median", [QUIET, SERVER_HELD, STOPPED, STOPPED], -20, 3, f"In the middle of 3 episodes, {SINCE_WHEN}"),
        ("worst", RESTORES, 0, 9, "blue spent 3 Restores, 2 of these on User1 (-3.0 of -3.0)."),
        ("beside", RESTORES[:1], 0, 9, "Here, 1.0 below the mean: blue spent 1 Restore of User1 (-1.0 of -1.0)."),
    ],
    ids=["nothing", "never seen", "seen in part", "seen", "impacts first", "restores", "one restore"],
)
def test_the_greatest_cost_is_said_with_where_and_since_when(label, turns, mean, episodes, says):
    assert explain_return(label, episode(*turns), mean, episodes).endswith(says)
