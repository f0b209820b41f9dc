"""How attackers decide, compiled: on what they know and on the result of their last action, never on the truth.

An attacker is a function (env, chance) -> (verb, target). It may change what it remembers in the record `env`; `rules.py`
carries the decision out. It decides before blue acts in the turn, which makes no difference: red sees nothing of that.
"""

from collections.abc import Iterable

import numpy as np

from fixfirst.base import errors
from fixfirst.base.compile import CompileError, address_of, call_address, inlined
from fixfirst.game import chance as dice
from fixfirst.game.own_agents import own_agents
from fixfirst.game.scenario import ENTERPRISE, OPERATIONAL, USER
from fixfirst.game.state import LEARNED, NO_TARGET, STATE_DTYPE, RedAgent, RedVerb, Success
from fixfirst.game.tables import FOOTHOLD, HOST_ID, NUM_HOSTS, OT_SERVER, REVEALED_ID, SUBNET_HOSTS, SUBNETS, unit_mask

ENTERPRISE_UNITS = unit_mask("enterprise")
OPERATIONAL_UNITS = int(SUBNET_HOSTS[OPERATIONAL])


@inlined
def decide_red(env, chance, own):
    """Return the (verb, target) of the attacker that plays this episode. own [256]: addresses, see `own_addresses`."""
    if env.red_agent == RedAgent.B_LINE:
        return decide_b_line(env, chance)
    if env.red_agent == RedAgent.MEANDER:
        return decide_meander(env, chance)
    if env.red_agent == RedAgent.SLEEP:
        return RedVerb.SLEEP, NO_TARGET
    if env.red_agent >= LEARNED:
        return decide_as_written(env)
    return decide_own(env, chance, own)


@inlined
def decide_as_written(env):
    """Return what whoever plays red has written into `env`, or sleep where that is impossible."""
    if is_possible(env.red_verb, env.red_target):
        return np.int64(env.red_verb), np.int64(env.red_target)
    return RedVerb.SLEEP, NO_TARGET


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
def decide_b_line(env, chance):
    """Go straight to the operational server: on success the next stage, on failure back to an earlier one."""
    after_success, after_failure = min(env.bline_stage + 1, BLINE_LAST_STAGE), BLINE_AFTER_FAILURE[env.bline_stage]
    stage = after_success if env.red_success == Success.TRUE else after_failure
    if stage == BLINE_EXPLOIT_SERVER and not env.bline_seen_server:
        if env.scan_answered:
            env.bline_seen_server = True
        else:  # the server could not be reached: start over, from the stage after a successful first one
            stage = BLINE_SCAN_USER
    if stage == BLINE_SCAN_USER and env.bline_user == NO_TARGET:
        env.bline_user = dice.first_user(env, chance)
    env.bline_stage = stage

    target = BLINE_TARGET[stage]
    user, enterprise = env.bline_user, REVEALED_ID[env.bline_user]  # whose address is found on the user host
    target = user if target == STAGE_USER else target
    target = enterprise if target == STAGE_ENTERPRISE else target
    return BLINE_VERB[stage], target


# ---------------------------------------------------------------- Meander


@inlined
def decide_meander(env, chance):
    """Take the network subnet by subnet: explore, scan, escalate, exploit, in this order of preference."""
    meander_digests_last_result(env)
    if env.escalated >> OT_SERVER & 1:
        return RedVerb.IMPACT, OT_SERVER
    unexplored = env.known_subnets & ~env.explored_subnets
    if unexplored:
        subnet = dice.first(unexplored)
        env.explored_subnets |= 1 << subnet  # even if it will fail: never tried again
        return RedVerb.DISCOVER, subnet
    host = dice.pick_address(env, chance, env.known_hosts & ~env.scanned)
    if host >= 0:
        env.scanned |= 1 << host
        return RedVerb.SCAN, host
    lost = env.breached & ~env.exploited
    host = dice.pick_name(env, chance, (env.breached | 1 << FOOTHOLD) & ~env.escalated & ~lost)
    if host >= 0:
        env.escalated |= 1 << host
        return RedVerb.ESCALATE, host
    host = dice.pick_address(env, chance, env.known_hosts & ~env.exploited)
    if host >= 0:
        env.exploited |= 1 << host
        return RedVerb.EXPLOIT, host
    return RedVerb.SLEEP, NO_TARGET


@inlined
def meander_digests_last_result(env):
    """Forget after a failure what Meander believed to hold: after an exploit, a whole subnet of it."""
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


# ---------------------------------------------------------------- users' own

NUM_SUBNETS, NUM_VERBS = len(SUBNETS), len(RedVerb)
_ADDRESSES = np.zeros(256, np.int64)  # by an attacker's number; 0: one of ours, or not compiled
_FUNCTIONS: dict[int, object] = {}  # number -> the function that is compiled at its address


@inlined
def intends(env, verb, target):
    """Let red do this next. For attackers of users."""
    env.red_verb = verb
    env.red_target = target


@inlined
def decide_own(env, chance, own):
    """Return what an attacker of a user writes into `env`, or sleep where that is impossible."""
    address = own[env.red_agent]
    if address != 0:
        call_address(address, env, chance)
        return decide_as_written(env)
    return RedVerb.SLEEP, NO_TARGET


@inlined
def is_possible(verb, target):
    """Return whether red can do this. The rules look things up by both without another check."""
    if verb == RedVerb.DISCOVER:
        return 0 <= target < NUM_SUBNETS
    if verb == RedVerb.SCAN or verb == RedVerb.EXPLOIT or verb == RedVerb.ESCALATE:
        return 0 <= target < NUM_HOSTS
    return verb < NUM_VERBS and NO_TARGET <= target < NUM_HOSTS


def own_addresses(numbers: Iterable[int]) -> np.ndarray:
    """Compile those of these attackers that are users' own and return the addresses of all [256], for `decide_red`."""
    own = {number: item for number, item in enumerate(own_agents().items(), start=len(RedAgent))}
    for number in own.keys() & set(numbers):
        name, function = own[number]
        if _FUNCTIONS.get(number) is not function:
            try:
                _ADDRESSES[number] = address_of(function, STATE_DTYPE, dice.CHANCE_DTYPE)
            except CompileError as e:
                raise errors.ConfigError(f"red agent {name!r} {e}; docs/extend.md tells what it may do") from e
            _FUNCTIONS[number] = function
    return _ADDRESSES
