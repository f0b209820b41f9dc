"""How the red agents decide, compiled: on what they know and on the result of their last action, never on the truth.

A decision is written into the record `env` as `red_verb` and `red_target`; `kernel.py` carries it out.
"""

from typing import Any

import numpy as np

from fixfirst.base.compile import compile_anew, depend_on, inlined, own_piece
from fixfirst.game import chance as dice
from fixfirst.game.own_agents import digest, on_change, own_agents
from fixfirst.game.scenario import ENTERPRISE, OPERATIONAL, USER
from fixfirst.game.state import NO_TARGET, RedAgent, RedVerb, Success
from fixfirst.game.tables import FOOTHOLD, HOST_ID, NUM_HOSTS, OT_SERVER, REVEALED_ID, SUBNET_HOSTS, SUBNETS, unit_mask

ENTERPRISE_UNITS = unit_mask("enterprise")
OPERATIONAL_UNITS = int(SUBNET_HOSTS[OPERATIONAL])


@inlined
def choose_red(env, chance):
    """Red decides on its own knowledge and the result of its last action."""
    if env.red_agent == RedAgent.B_LINE:
        choose_b_line(env, chance)
    elif env.red_agent == RedAgent.MEANDER:
        choose_meander(env, chance)
    elif env.red_agent == RedAgent.SLEEP:
        red_intends(env, RedVerb.SLEEP, NO_TARGET)
    else:
        choose_own(env, chance)


@inlined
def red_intends(env, verb, target):
    env.red_verb = verb
    env.red_target = target


# ---------------------------------------------------------------- those of users


NUM_SUBNETS, NUM_VERBS = len(SUBNETS), len(RedVerb)


@inlined
def is_possible(verb, target):
    """Could red intend this? The rules look things up by both without another check."""
    if verb == RedVerb.DISCOVER:
        return 0 <= target < NUM_SUBNETS
    if verb == RedVerb.SCAN or verb == RedVerb.EXPLOIT or verb == RedVerb.ESCALATE:
        return 0 <= target < NUM_HOSTS
    return verb < NUM_VERBS and NO_TARGET <= target < NUM_HOSTS


def _choice_of_own() -> Any:
    """A function that asks the own red agent whose turn it is; numbered after ours. What cannot be is slept over."""
    scope: dict[str, Any] = {
        "red_intends": red_intends,
        "is_possible": is_possible,
        "SLEEP": RedVerb.SLEEP,
        "NO_TARGET": NO_TARGET,
    }
    lines = ["def choose_own(env, chance):"]
    for number, (name, function) in enumerate(own_agents().items(), start=len(RedAgent)):
        scope[f"agent_{number}"] = own_piece(name, function)
        lines += [f"    if env.red_agent == {number}:", f"        agent_{number}(env, chance)"]
        lines += ["        if is_possible(env.red_verb, env.red_target):", "            return"]
    exec("\n".join([*lines, "    red_intends(env, SLEEP, NO_TARGET)"]), scope)
    return inlined(scope["choose_own"])


def _take_in() -> None:
    """Another own agent: whatever was compiled without it is compiled anew."""
    global choose_own
    choose_own = _choice_of_own()
    compile_anew()


choose_own = _choice_of_own()
on_change(_take_in)
depend_on(digest)


# ---------------------------------------------------------------- B_line

# B_line follows a script of 15 stages; after a failure it falls back to the stage in the third column.
STAGE_USER, STAGE_ENTERPRISE = -2, -3  # the user host B_line goes through, and the enterprise host behind it
_ENTERPRISE2 = HOST_ID["Enterprise2"]
_BLINE_SCRIPT = (
    # verb             target            after failure
    (RedVerb.DISCOVER, USER, 0),  # 0
    (RedVerb.SCAN, STAGE_USER, 1),
    (RedVerb.EXPLOIT, STAGE_USER, 2),
    (RedVerb.ESCALATE, STAGE_USER, 2),
    (RedVerb.SCAN, STAGE_ENTERPRISE, 2),
    (RedVerb.EXPLOIT, STAGE_ENTERPRISE, 2),  # 5
    (RedVerb.ESCALATE, STAGE_ENTERPRISE, 5),
    (RedVerb.DISCOVER, ENTERPRISE, 5),
    (RedVerb.SCAN, _ENTERPRISE2, 5),
    (RedVerb.EXPLOIT, _ENTERPRISE2, 5),
    (RedVerb.ESCALATE, _ENTERPRISE2, 9),  # 10
    (RedVerb.SCAN, OT_SERVER, 9),
    (RedVerb.EXPLOIT, OT_SERVER, 9),
    (RedVerb.ESCALATE, OT_SERVER, 12),
    (RedVerb.IMPACT, OT_SERVER, 13),
)
BLINE_VERB = np.array([verb for verb, _, _ in _BLINE_SCRIPT])
BLINE_TARGET = np.array([target for _, target, _ in _BLINE_SCRIPT])
BLINE_AFTER_FAILURE = np.array([stage for _, _, stage in _BLINE_SCRIPT])
BLINE_LAST_STAGE = len(_BLINE_SCRIPT) - 1
BLINE_SCAN_USER = 1
BLINE_EXPLOIT_SERVER = 12


@inlined
def choose_b_line(env, chance):
    """Straight to the operational server: on success the next stage, on failure back to an earlier one."""
    succeeded = env.red_success == Success.TRUE
    stage = env.bline_stage
    stage = min(stage + 1, BLINE_LAST_STAGE) if succeeded else BLINE_AFTER_FAILURE[stage]
    if stage == BLINE_EXPLOIT_SERVER and not env.bline_seen_server:
        if env.scan_answered:
            env.bline_seen_server = True
        else:  # the server could not be reached: start over, from the stage after a successful first one
            stage = BLINE_SCAN_USER
    if stage == BLINE_SCAN_USER and env.bline_user == NO_TARGET:
        env.bline_user = dice.first_user(env, chance)
    env.bline_stage = stage

    target = BLINE_TARGET[stage]
    if target == STAGE_USER:
        target = env.bline_user
    elif target == STAGE_ENTERPRISE:
        target = REVEALED_ID[env.bline_user]  # whose address is found on the user host
    red_intends(env, BLINE_VERB[stage], target)


# ---------------------------------------------------------------- Meander


@inlined
def choose_meander(env, chance):
    """Takes the network subnet by subnet: explore, scan, escalate, exploit, in this order of preference."""
    meander_digests_last_result(env)
    if env.escalated >> OT_SERVER & 1:
        red_intends(env, RedVerb.IMPACT, OT_SERVER)
        return
    unexplored = env.known_subnets & ~env.explored_subnets
    if unexplored:
        subnet = dice.first(unexplored)
        env.explored_subnets |= 1 << subnet  # even if it will fail: never tried again
        red_intends(env, RedVerb.DISCOVER, subnet)
        return
    host = dice.pick_address(env, chance, env.known_hosts & ~env.scanned)
    if host >= 0:
        env.scanned |= 1 << host
        red_intends(env, RedVerb.SCAN, host)
        return
    lost = env.breached & ~env.exploited
    host = dice.pick_name(env, chance, (env.breached | 1 << FOOTHOLD) & ~env.escalated & ~lost)
    if host >= 0:
        env.escalated |= 1 << host
        red_intends(env, RedVerb.ESCALATE, host)
        return
    host = dice.pick_address(env, chance, env.known_hosts & ~env.exploited)
    if host >= 0:
        env.exploited |= 1 << host
        red_intends(env, RedVerb.EXPLOIT, host)
    else:
        red_intends(env, RedVerb.SLEEP, NO_TARGET)


@inlined
def meander_digests_last_result(env):
    """A failure makes Meander forget what it believed to hold: after an exploit, a whole subnet of it."""
    if env.red_verb == RedVerb.EXPLOIT:
        if env.red_success == Success.TRUE:
            env.breached |= 1 << env.red_target
            return
        env.exploited &= ~(1 << env.red_target)
        for units in (OPERATIONAL_UNITS, ENTERPRISE_UNITS):
            if env.escalated & units:
                env.escalated &= ~units
                env.exploited &= ~units
                return
    elif env.red_verb == RedVerb.ESCALATE or env.red_verb == RedVerb.IMPACT:
        if env.red_success == Success.FALSE:
            host = 1 << env.red_target
            env.escalated &= ~host
            env.exploited &= ~(host & env.breached)
