"""Why an episode cost what it did: moments made up by hand, and the sentence they give."""

import pytest
from cage2 import HOST_NAMES

from fixfirst.reporter.reasons import explain_return


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
SINCE_WHEN = "the OT service was stopped for 2 steps from step 3 on, red being on Op_Server0 since step 2 (-20.0 of -23.0)."


@pytest.mark.parametrize(
    ("label", "turns", "mean", "episodes", "says"),
    [
        ("best", [QUIET, QUIET], -3.0, 200, "The best of 200 episodes, 3.0 above the mean: nothing was lost."),
        ("worst", [QUIET, HELD, HELD, QUIET, HELD], -0.1, 50, f"The worst of 50 episodes, 0.2 below the mean: {NEVER_SEEN}"),
        ("worst", [SEEN, HELD], 0, 2, "from step 1 to 2, and blue believed it clean in 1 of these"),
        ("worst", [SEEN], 0, 2, "in step 1, as blue knew"),
        (
            "median",
            [QUIET, SERVER_HELD, STOPPED, STOPPED],
            -20.0,
            3,
            f"In the middle of 3 episodes, 3.0 below the mean: {SINCE_WHEN}",
        ),
        ("worst", RESTORES, 0, 9, "blue spent 3 Restores, 2 of these on User1 (-3.0 of -3.0)"),
        ("beside", RESTORES[:1], 0, 9, "blue spent 1 Restore of User1"),
    ],
    ids=["nothing", "never seen", "seen in part", "seen", "impacts first", "restores", "one restore"],
)
def test_the_greatest_cost_is_said_with_where_and_since_when(label, turns, mean, episodes, says):
    text = explain_return(label, episode(*turns), mean, episodes)
    assert text == says if says.endswith(".") else says in text
