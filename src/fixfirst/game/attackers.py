"""How attackers decide, compiled: on what they know and on the result of their last action, never on the truth.

An attacker is a function (env, tables, chance) -> (verb, target). It may change what it remembers in the record `env`;
`rules.py` carries the decision out. It decides before blue acts in the turn, which makes no difference: red sees nothing of
that.
"""

from collections.abc import Iterable

import numpy as np

from fixfirst.base import errors
from fixfirst.base.compile import inlined
from fixfirst.game import calls, chance as dice
from fixfirst.game.red_agents import own_agents
from fixfirst.game.state import LEARNED, NO_TARGET, RedAgent, RedVerb, Success, state_dtype
from fixfirst.game.tables import SMALL, Size


@inlined
def decide_red(env, tables, chance, own):
    """Return the (verb, target) of the attacker that plays this episode. own [256]: addresses, see `own_addresses`."""
    if env.red_agent == RedAgent.B_LINE:
        return decide_b_line(env, tables, chance)
    if env.red_agent == RedAgent.MEANDER:
        return decide_meander(env, tables, chance)
    if env.red_agent == RedAgent.SLEEP:
        return RedVerb.SLEEP, NO_TARGET
    if env.red_agent == RedAgent.LATE:
        return decide_late(env, tables, chance)
    if env.red_agent >= LEARNED:
        return decide_as_written(env, tables)
    return decide_own(env, tables, chance, own)


@inlined
def decide_as_written(env, tables):
    """Return what whoever plays red has written into `env`, or sleep where that is impossible."""
    if is_possible(tables, env.red_verb, env.red_target):
        return np.int64(env.red_verb), np.int64(env.red_target)
    return RedVerb.SLEEP, NO_TARGET


# B_line follows a script of 15 stages; after a failure it falls back to the stage in the third column. Whom a stage means is
# in the record of tables: the user host is left to chance, and all else follows from it.
_BLINE_SCRIPT = (
    # verb             after failure
    (RedVerb.DISCOVER, 0),  # 0: home's subnet
    (RedVerb.SCAN, 1),  # a user host
    (RedVerb.EXPLOIT, 2),
    (RedVerb.ESCALATE, 2),
    (RedVerb.SCAN, 2),  # an enterprise host that is found there
    (RedVerb.EXPLOIT, 2),  # 5
    (RedVerb.ESCALATE, 5),
    (RedVerb.DISCOVER, 5),  # its subnet
    (RedVerb.SCAN, 5),  # the third host there
    (RedVerb.EXPLOIT, 5),
    (RedVerb.ESCALATE, 9),  # 10
    (RedVerb.SCAN, 9),  # the target
    (RedVerb.EXPLOIT, 9),
    (RedVerb.ESCALATE, 12),
    (RedVerb.IMPACT, 13),
)
BLINE_VERB = np.array([verb for verb, _ in _BLINE_SCRIPT])
BLINE_AFTER_FAILURE = np.array([stage for _, stage in _BLINE_SCRIPT])
BLINE_LAST_STAGE = len(_BLINE_SCRIPT) - 1
BLINE_SCAN_USER = 1
BLINE_EXPLOIT_SERVER = 12


@inlined
def decide_b_line(env, tables, chance):
    """Go straight to the operational server: on success the next stage, on failure back to an earlier one."""
    after_success, after_failure = min(env.bline_stage + 1, BLINE_LAST_STAGE), BLINE_AFTER_FAILURE[env.bline_stage]
    stage = after_success if env.red_success == Success.TRUE else after_failure
    if stage == BLINE_EXPLOIT_SERVER and not env.bline_seen_server:
        if env.scan_answered:
            env.bline_seen_server = True
        else:  # the server could not be reached: start over, from the stage after a successful first one
            stage = BLINE_SCAN_USER
    if stage == BLINE_SCAN_USER and env.bline_user == NO_TARGET:
        env.bline_user = dice.user_host(env, chance, tables)
    env.bline_stage = stage
    return BLINE_VERB[stage], np.int64(tables.bline_target[stage, env.bline_user])  # -1 at first: all users mean the same


@inlined
def decide_late(env, tables, chance):
    """Sleep for 19 turns on average, then do as B_line, which never sleeps."""
    if env.red_verb == RedVerb.SLEEP and not dice.wakes(env, chance):
        return RedVerb.SLEEP, NO_TARGET
    return decide_b_line(env, tables, chance)


@inlined
def decide_meander(env, tables, chance):
    """Take the network subnet by subnet: explore, scan, escalate, exploit, in this order of preference."""
    meander_digests_last_result(env, tables)
    if tables.target >= 0 and env.escalated >> tables.target & 1:
        return RedVerb.IMPACT, np.int64(tables.target)
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
    host = dice.pick_name(env, chance, env.known_names & ~env.escalated & ~lost)
    if host >= 0:
        env.escalated |= 1 << host
        return RedVerb.ESCALATE, host
    host = dice.pick_address(env, chance, env.known_hosts & ~env.exploited)
    if host >= 0:
        env.exploited |= 1 << host
        return RedVerb.EXPLOIT, host
    return RedVerb.SLEEP, NO_TARGET


@inlined
def meander_digests_last_result(env, tables):
    """Forget after a failure what Meander believed to hold: after an exploit, all of one kind, by name."""
    if env.red_verb == RedVerb.EXPLOIT:
        if env.red_success == Success.TRUE:
            env.breached |= 1 << env.red_target
            return
        env.exploited &= ~(1 << env.red_target)
        lost = np.int64(tables.op_names) if env.escalated & tables.op_names else np.int64(tables.ent_names)
        if env.escalated & lost:
            env.escalated &= ~lost
            env.exploited &= ~lost
    elif env.red_verb == RedVerb.ESCALATE or env.red_verb == RedVerb.IMPACT:
        if env.red_success == Success.FALSE:
            host = 1 << env.red_target
            env.escalated &= ~host
            env.exploited &= ~(host & env.breached)


NUM_VERBS = len(RedVerb)
_ADDRESSES: dict[Size, np.ndarray] = {}  # [256] by an attacker's number; 0: one of ours, or not compiled
_FUNCTIONS: dict[tuple[Size, int], object] = {}  # size and number -> the function that is compiled at its address


@inlined
def intends(env, verb, target):
    """Let red do this next. For attackers of users."""
    env.red_verb = verb
    env.red_target = target


@inlined
def decide_own(env, tables, chance, own):
    """Return what an attacker of a user writes into `env`, or sleep where that is impossible."""
    address = own[env.red_agent]
    if address != 0:
        calls.call_address(address, env, chance)
        return decide_as_written(env, tables)
    return RedVerb.SLEEP, NO_TARGET


@inlined
def is_possible(tables, verb, target):
    """Return whether red can do this. The rules look things up by both without another check."""
    if verb == RedVerb.DISCOVER:
        return 0 <= target < tables.num_subnets
    if verb == RedVerb.SCAN or verb == RedVerb.EXPLOIT or verb == RedVerb.ESCALATE:
        return 0 <= target < tables.num_hosts
    return verb < NUM_VERBS and NO_TARGET <= target < tables.num_hosts


def own_addresses(numbers: Iterable[int], size: Size = SMALL) -> np.ndarray:
    """Compile those of these attackers that are users' own and return the addresses of all [256], for `decide_red`."""
    own = {number: item for number, item in enumerate(own_agents().items(), start=len(RedAgent))}
    addresses = _ADDRESSES.setdefault(size, np.zeros(256, np.int64))
    for number in own.keys() & set(numbers):
        name, function = own[number]
        if _FUNCTIONS.get((size, number)) is not function:
            try:
                addresses[number] = calls.address_of(function, state_dtype(size), dice.chance_dtype(size))
            except calls.CompileError as e:
                raise errors.ConfigError(f"red agent {name!r} {e}; docs/extend.md tells what it may do") from e
            _FUNCTIONS[size, number] = function
    return addresses
