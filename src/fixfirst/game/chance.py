"""Every chance decision of the world, free or recorded.

A free decision is a pure function of (seed, environment, episode, step, decision): no generator, no hidden state, so an
episode is the same whatever else is in the batch and in whatever order environments are stepped. A recorded one is read
from the environment's record of `chance_dtype` instead. Both go through the functions below; the kernel cannot tell.

key        = mix(mix(seed) + environment * GAMMA)       one per environment, made once per seed
turn       = mix(key + episode * GAMMA) + 16 * step * GAMMA
draw bits  = mix(turn + decision * GAMMA)
mix        = the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
"""

from enum import IntEnum
from functools import cache

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled, inlined
from fixfirst.game.tables import BYTE_MEMBER, BYTE_SIZE, Size


class Decision(IntEnum):
    """The chance decisions of a step, in the order in which they are made; AGENT is made at reset."""

    GREEN = 0  # does green scan?  1/2
    GREEN_HOST = 1  # which of eight hosts
    USER = 2  # B_line's user host, one of four
    ADDRESSES = 3  # Meander's order of addresses: the first admissible one is scanned or attacked
    NAMES = 4  # Meander's order of names: the first admissible one is escalated
    OTHER = 5  # the exploit among all but the heaviest
    TOP = 6  # take the heaviest instead?  3/4
    DETECTED = 7  # is the reverse shell seen?  0.95
    AGENT = 8  # which red agent plays this episode
    MISINFORM = 9  # which service blue's Misinform makes up; made before all others
    WAKES = 10  # does the late attacker begin?  1/20
    REFUSED = 14  # not a decision: a recorded outcome was impossible here and was ignored


P_GREEN_SCANS = 0.5
P_TOP_EXPLOIT = 0.75
P_WAKES = 0.05
VOID_NAME = -2  # a recorded `green_host`: one of green's names that stands for no host


@cache
def chance_dtype(size: Size) -> np.dtype:
    """Return the type of an environment's chances, for scenarios of a size."""
    return np.dtype(
        [
            ("key", np.uint64),  # of free draws
            ("turn", np.uint64),  # of the free draws of one turn, see `begin_turn`
            ("users", np.int64),  # the hosts that B_line chooses its user host from, for users' own attackers
            ("recorded", np.bool_),  # read the outcomes below instead; -1 = not recorded
            ("green", np.int8),
            ("green_host", np.int8),
            ("user", np.int8),
            ("other", np.int8),  # index into EXPLOITS
            ("top", np.int8),
            ("detected", np.int8),
            ("misinform", np.int8),  # index into parts.MADE_UP
            ("addresses", np.int8, size.hosts),
            ("names", np.int8, size.hosts),
        ],
        align=True,
    )


_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_UINT64 = 2**64 - 1
_DECISIONS_PER_STEP = 16


@inlined
def _mix(x):
    x = uint64(x)
    x = (x ^ (x >> uint64(30))) * uint64(_MIX_1)
    x = (x ^ (x >> uint64(27))) * uint64(_MIX_2)
    return x ^ (x >> uint64(31))


@called
def environment_key(seed, environment):
    """Return the key of all free draws of one environment."""
    return _mix(_mix(seed) + uint64(environment) * uint64(_GAMMA))


@inlined
def begin_turn(env, chance):
    """Make chances ready, before the first decision of a turn or a reset: note that none was made, mix what all share."""
    env.chances = 0
    stream = _mix(chance.key + uint64(env.episode) * uint64(_GAMMA))
    chance.turn = stream + uint64(env.step) * uint64(_DECISIONS_PER_STEP * _GAMMA & _UINT64)


@inlined
def _bits(env, chance, decision):
    """Return 64 random bits, and note that this decision was made."""
    env.chances |= 1 << decision
    return _mix(chance.turn + uint64(decision) * uint64(_GAMMA))


@inlined
def _below(bits, n):
    """Return a uniform integer in 0..n-1 from the upper 32 bits (bias below n / 2**32)."""
    return np.int64((bits >> uint64(32)) * uint64(n) >> uint64(32))


@inlined
def _unit(bits):
    """Return a uniform float in [0, 1)."""
    return float(bits >> uint64(11)) * 2.0**-53


@called
def counter_uniform(key, counter):
    """Return a uniform float in [0, 1), a pure function of both."""
    return _unit(_mix(uint64(key) + uint64(counter) * uint64(_GAMMA)))


@compiled
def chance_keys(seed, episode, keys):
    """Fill keys [N] uint64, one per environment, for the draws of one episode by whoever plays in it."""
    for i in range(len(keys)):
        keys[i] = environment_key(environment_key(seed, i), episode)


@compiled
def uniform(keys, when, scale, out):
    """Fill out [N] with draws in [0, scale)."""
    for i in range(len(keys)):
        out[i] = counter_uniform(keys[i], when) * scale[i]


@inlined
def _happens(bits, probability):
    """Return whether a uniform float in [0, 1) is below a probability. Both as multiples of 2**-53, which they are."""
    return bits >> uint64(11) < uint64(probability * 2.0**53)


@inlined
def size(mask):
    """Return how many members a set has."""
    if mask >> 16:  # never, in small scenarios
        return _size_of_many(mask)
    return np.int64(BYTE_SIZE[mask & 255]) + BYTE_SIZE[mask >> 8 & 255]


@inlined
def _size_of_many(mask):
    """Count all bits at once: in pairs, in fours, in eights, and then these."""
    x = mask - (mask >> 1 & 0x5555555555555555)
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333)
    x = x + (x >> 4) & 0x0F0F0F0F0F0F0F0F
    x += x >> 8
    x += x >> 16
    return x + (x >> 32) & 127


@inlined
def first(mask):
    """Return the smallest member of a non-empty set."""
    return nth_member(mask, 0)


@inlined
def nth_member(mask, n):
    """Return the n-th smallest member (from 0) of a set."""
    skipped, rest, rank = 0, np.int64(mask), n
    if rest >> 16:  # never, in small scenarios
        below = _size_of_many(rest & 0xFFFFFFFF)
        if rank >= below:
            skipped, rest, rank = 32, rest >> 32, rank - below
        below = _size_of_many(rest & 0xFFFF)
        if rank >= below:
            skipped, rest, rank = skipped + 16, rest >> 16, rank - below
    below = np.int64(BYTE_SIZE[rest & 255])
    if rank >= below:
        skipped, rest, rank = skipped + 8, rest >> 8, rank - below
    return skipped + BYTE_MEMBER[rest & 255, rank]


@inlined
def _drawn_from(env, chance, decision, mask):
    """Return a uniform member of a non-empty set."""
    return nth_member(mask, _below(_bits(env, chance, decision), size(mask)))


@inlined
def _recorded_of(env, decision, mask, recorded):
    """Return the recorded member of a non-empty set; if it is none, the first one and a note that it was refused."""
    env.chances |= 1 << decision
    if recorded >= 0 and mask >> recorded & 1:
        return int(recorded)
    env.chances |= 1 << Decision.REFUSED
    return int(first(mask))


@inlined
def _recorded_first_of(env, decision, mask, order):
    """Return the member of a non-empty set that comes first in the recorded order."""
    earliest = -1
    for member in order[::-1]:
        if member >= 0 and mask >> member & 1:
            earliest = member
    return _recorded_of(env, decision, mask, earliest)


@inlined
def green_scans(env, chance):
    bits = _bits(env, chance, Decision.GREEN)
    return chance.green == 1 if chance.recorded else _happens(bits, P_GREEN_SCANS)


@inlined
def green_host(env, chance, tables):
    """Return the host of one of green's eight names, or -1 if there is none of that name."""
    drawn = tables.green_hosts[_below(_bits(env, chance, Decision.GREEN_HOST), len(tables.green_hosts))]
    if chance.recorded:
        wanted, drawn = (-1 if chance.green_host == VOID_NAME else chance.green_host), tables.green_hosts[0]
        refused = True
        for host in tables.green_hosts:
            if host == wanted and chance.green_host != -1:
                refused, drawn = False, host
        if refused:
            env.chances |= 1 << Decision.REFUSED
    return np.int64(drawn)


@inlined
def user_host(env, chance, tables):
    """Return the host that B_line goes through; a chance only where it has a choice."""
    if tables.users == 0:
        return np.int64(tables.only_user)
    return _user_of(env, chance, np.int64(tables.users))


@inlined
def any_user(env, chance):
    """Return one of the hosts that B_line may go through. For users' own attackers."""
    return _user_of(env, chance, chance.users)


@inlined
def _user_of(env, chance, users):
    if chance.recorded:
        return _recorded_of(env, Decision.USER, users, chance.user)
    return np.int64(_drawn_from(env, chance, Decision.USER, users))


@inlined
def misinform_service(env, chance, services):
    """Return the service that Misinform makes up, of a non-empty set."""
    if chance.recorded:
        return _recorded_of(env, Decision.MISINFORM, services, chance.misinform)
    return np.int64(_drawn_from(env, chance, Decision.MISINFORM, services))


@inlined
def pick_address(env, chance, mask):
    """Return the host Meander scans or attacks. Its shuffle counts as made even when the set turns out to be empty (-1)."""
    env.chances |= 1 << Decision.ADDRESSES
    if mask == 0:
        return -1
    if chance.recorded:
        return _recorded_first_of(env, Decision.ADDRESSES, mask, chance.addresses)
    return _drawn_from(env, chance, Decision.ADDRESSES, mask)


@inlined
def pick_name(env, chance, mask):
    """Return the host Meander escalates on; as `pick_address`."""
    env.chances |= 1 << Decision.NAMES
    if mask == 0:
        return -1
    if chance.recorded:
        return _recorded_first_of(env, Decision.NAMES, mask, chance.names)
    return _drawn_from(env, chance, Decision.NAMES, mask)


@inlined
def other_exploit(env, chance, others):
    """Return a uniform member of a non-empty set of exploits."""
    if chance.recorded:
        return _recorded_of(env, Decision.OTHER, others, chance.other)
    return _drawn_from(env, chance, Decision.OTHER, others)


@inlined
def takes_top_exploit(env, chance):
    bits = _bits(env, chance, Decision.TOP)
    return chance.top == 1 if chance.recorded else _happens(bits, P_TOP_EXPLOIT)


@inlined
def shell_detected(env, chance, tables):
    bits = _bits(env, chance, Decision.DETECTED)
    return chance.detected == 1 if chance.recorded else bits >> uint64(11) < tables.detected_below


@inlined
def wakes(env, chance):
    return _happens(_bits(env, chance, Decision.WAKES), P_WAKES)


@inlined
def red_agent_of_episode(env, chance, odds):
    """Return the red agent of the episode that begins. odds [4 or more]: cumulative, of `RedAgent` and then own ones."""
    u = _unit(_bits(env, chance, Decision.AGENT))
    for agent in range(len(odds)):
        if u < odds[agent]:
            return agent
    return len(odds) - 1
