"""Why a repair is in order or not, and why an episode cost what it did: moments made up by hand, and what they give."""

import numpy as np
from approved import approve
from cage2 import HOST_ID, HOST_NAMES, action_id

from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.reporter.reasons import explain_repairs, explain_return

ORDER = Workflow.parse("enterprise > op_server > op_host > user > defender")
USER_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
TWO_TYPES = UnitScheme.from_dict({"server": ["Op_Server0"], "rest": [name for name in HOST_NAMES if name != "Op_Server0"]})
NEEDLESS, FOOTHOLD_TOO = "Restore Enterprise0: User1", "Restore Enterprise0: User0 Enterprise0"
MANY = """Restore User1: User0 User1 Enterprise1
Remove User1: User1 Enterprise1 Enterprise2 Op_Server0
Restore Enterprise1: User0 Enterprise1 User1 User2
Restore Enterprise1: Enterprise1
Restore Enterprise0: User1
Restore User0: User0
Analyse User1: User1 Enterprise1"""
FIXES = "Restore Op_Server0:\nRestore Enterprise0:\nRestore Op_Server0:"
REPAIRS = {  # repairs and the hosts that red held before each, one after the other in one episode
    "no_higher": (MANY, ORDER, {}),
    "top: a needless repair of an urgent type": (NEEDLESS, ORDER, {"rule": "top"}),
    "fixed_types: types that were skipped": (FIXES, ORDER, {"rule": "fixed_types"}),
    "the foothold": (FOOTHOLD_TOO, USER_FIRST, {}),
    "the foothold counts": (FOOTHOLD_TOO, USER_FIRST, {"count_foothold": True}),
    "own grouping": ("Remove User1: User1 Op_Server0", Workflow.parse("server > rest", TWO_TYPES), {}),
}


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
HELD, SEEN = (({"User1": -1}, ("User1",), seen, None) for seen in ((), ("User1",)))
SERVER_HELD, STOPPED = (({"Op_Server0": -10} | cost, ("Op_Server0",), (), None) for cost in ({}, {"impact": -100}))
RESTORES = [({"restore": -10}, (), (), target) for target in ("User1", "User2", "User1")]
RETURNS = {  # label, turns, mean and number of episodes
    "nothing": ("best", [QUIET, QUIET], -3, 200),
    "never seen": ("worst", [QUIET, HELD, HELD, QUIET, HELD], -0.1, 50),
    "seen in part": ("worst", [SEEN, HELD], 0, 2),
    "seen": ("worst", [SEEN], 0, 2),
    "impacts first": ("median", [QUIET, SERVER_HELD, STOPPED, STOPPED], -20, 3),
    "restores": ("worst", RESTORES, 0, 9),
    "one restore": ("beside", RESTORES[:1], 0, 9),
}


def test_reasons_name_what_was_fixed_and_what_waited_by_the_rule_and_the_greatest_cost_with_where_and_since_when():
    texts = []
    for name, (story, order, judging) in REPAIRS.items():
        repairs = [line.split(":") for line in story.splitlines()]
        actions = np.array([action_id(*repair.split()) for repair, _ in repairs])
        held = np.array([sum(1 << HOST_ID[name] for name in hosts.split()) for _, hosts in repairs] + [0], np.int16)
        texts.append(f"=== {name}: {order}")
        for line, verdict in zip(story.splitlines(), explain_repairs(actions, held, order, Judging(**judging)), strict=True):
            texts += [line, f"    {verdict['kind']}: {verdict['reason']}" if verdict else "    nothing"]
    for name, (label, turns, mean, episodes) in RETURNS.items():
        texts += [f"=== {name}", explain_return(label, episode(*turns), mean, episodes)]
    approve("reasons.txt", "\n".join(texts) + "\n")
