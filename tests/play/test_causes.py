"""Why an episode cost what it did: moments made up by hand, and the sentence they give."""

from cage2 import HOST_NAMES

from fixfirst.game.drawing import Cost, TurnSummary
from fixfirst.play.episodes import explain_return

SERVER, USER = HOST_NAMES.index("Op_Server0"), HOST_NAMES.index("User1")


def episode(*turns):
    """Moments of (costs, hosts held, hosts believed not clean, blue's target)."""
    moments, total = [], 0
    for step, (costs, held, seen, target) in enumerate([({}, (), (), None), *turns]):
        total += sum(costs.values())
        access = tuple("root" if name in held else "none" for name in HOST_NAMES)
        belief = tuple("user" if name in seen else "clean" for name in HOST_NAMES)
        parts = tuple(Cost(what, tenths) for what, tenths in costs.items())
        empty = ((),) * len(HOST_NAMES)
        words = ("none",) * len(HOST_NAMES)
        moments.append(
            TurnSummary(step, "", None, None, "", target, None, access, belief, words, empty, "running", parts, total)
        )
    return moments


QUIET = ({}, (), (), None)


def test_nothing_lost_is_said_so():
    assert (
        explain_return("best", episode(QUIET, QUIET), -3.0, 200)
        == "The best of 200 episodes, 3.0 above the mean: nothing was lost."
    )


def test_a_host_that_blue_never_saw():
    held = ({"User1": -1}, ("User1",), (), None)
    said = explain_return("worst", episode(QUIET, held, held, QUIET, held), -0.1, 50)
    assert said == (
        "The worst of 50 episodes, 0.2 below the mean: red held User1 for 3 steps, the longest time from step 2 to 3, "
        "and blue believed it clean all the while (-0.3 of -0.3)."
    )


def test_a_host_that_blue_saw_in_part():
    seen, unseen = (({"User1": -1}, ("User1",), names, None) for names in (("User1",), ()))
    assert "from step 1 to 2, and blue believed it clean in 1 of these" in explain_return(
        "worst", episode(seen, unseen), 0, 2
    )
    assert "in step 1, as blue knew" in explain_return("worst", episode(seen), 0, 2)


def test_impacts_come_first_and_say_since_when_red_was_there():
    held = ({"Op_Server0": -10}, ("Op_Server0",), (), None)
    stopped = ({"Op_Server0": -10, "impact": -100}, ("Op_Server0",), (), None)
    said = explain_return("median", episode(QUIET, held, stopped, stopped), -20.0, 3)
    assert said == (
        "In the middle of 3 episodes, 3.0 below the mean: the OT service stood still for 2 steps from step 3 on, red being "
        "on Op_Server0 since step 2 (-20.0 of -23.0)."
    )


def test_restores_say_where():
    turns = [({"restore": -10}, (), (), target) for target in ("User1", "User2", "User1")]
    assert "blue spent 3 Restores, 2 of these on User1 (-3.0 of -3.0)" in explain_return("worst", episode(*turns), 0, 9)
    assert "blue spent 1 Restore of User1" in explain_return("beside", episode(turns[0]), 0, 9)
