"""Remembering and choosing, compiled: how the memory of one environment changes with a turn, and what a choice means.

What is remembered is in `memory.py`, what there is to choose from in `action_sets.py`. A choices.
"""

import numpy as np
from numba import uint64

from fixfirst.base.compile import inlined
from fixfirst.game import chance as dice
from fixfirst.policy.memory import BREAK_INS, DIGITS, EVIDENCE, EXPIRY, LIMIT, QUIET_TURNS, RECHECK

LONG_QUIET = (1 << QUIET_TURNS) - 1
_ACTIVITY = 0x1111111111111111  # of a word of an observation: the first of every host's four bits
RESTORES, ANALYSES, FILLS, CLEARS = range(4)  # columns of `MemoryTables.effects`


@inlined
def remember_one(memory, effects, host_slots, host_scans, listed, view, action, keeping):
    """Remember that blue saw `view`, words of an observation, and took `action` of the world.

    What it sees next is not memory yet. effects, host_slots, host_scans, listed: see `MemoryTables`; keeping: of SHIELDS.
    """
    suspect_one(memory, effects, view, action, keeping)
    active, exploited = active_hosts(view), exploited_hosts(view)
    memory.last_active = active & -active if active else memory.last_active  # with green there may be two
    memory.was_exploited |= exploited
    memory.quiet_turns = 0 if active else (memory.quiet_turns << 1 | 1) & LONG_QUIET
    scanned = active & ~exploited
    while scanned:
        host = dice.first(scanned)
        scanned &= scanned - 1
        memory.was_scanned |= host_scans[host]
        for k in range(len(memory.decoys)):
            memory.decoys_seen[k] |= memory.decoys[k] & host_slots[host, k] & listed[k]
    restored = effects[action, RESTORES]
    for k in range(BREAK_INS - 1, -1, -1):
        fewer = memory.break_ins[k - 1] if k else exploited
        memory.break_ins[k] = (memory.break_ins[k] | fewer & exploited) & ~restored
    memory.was_restored |= restored
    if restored:
        count_one(memory.restores, restored)
    if effects[action, CLEARS] >= 0:
        for k in range(len(memory.decoys)):
            memory.decoys[k] &= ~host_slots[effects[action, CLEARS], k]
    slot = effects[action, FILLS]
    if slot >= 0:
        memory.decoys[slot >> 6] |= uint64(1) << uint64(slot & 63)


@inlined
def count_one(digits, hosts):
    """Add one to the binary numbers of these hosts, one of every bit of digits [DIGITS]; the largest number stays."""
    carry, largest = hosts, hosts
    for k in range(DIGITS):
        largest &= digits[k]
    carry &= ~largest
    for k in range(DIGITS):
        digit = np.int64(digits[k])
        digits[k] = digit ^ carry
        carry &= digit


@inlined
def suspect_one(memory, effects, view, action, keeping):
    """Remember as `remember_one` does, but no more than it takes to know whom to suspect."""
    suspect = suspects(memory, view, keeping)
    if keeping:
        suspect = keep_account(memory, effects, view, action, keeping, suspect)
    memory.suspect = suspect & ~effects[action, RESTORES]
    memory.analysed = effects[action, ANALYSES]
    memory.was_active |= active_hosts(view)


@inlined
def suspects(memory, view, keeping):
    """Return the suspect hosts now that blue sees `view`: exploited, or active again, not restored or analysed since.

    Analyse clears a host whose belief it does not turn to "privileged". keeping: the way may count less (`SHIELDS`).
    """
    return memory.suspect & ~(memory.analysed & ~privileged_hosts(view)) | reasons(memory, view, keeping)


@inlined
def reasons(memory, view, keeping):
    """Return the hosts that `view` itself gives a reason to suspect."""
    seen = exploited_hosts(view)
    if keeping & EVIDENCE:
        return seen
    return seen | active_hosts(view) & (memory.noticed if keeping & RECHECK else memory.was_active)


@inlined
def keep_account(memory, effects, view, action, keeping, suspect):
    """Remember what ways other than the plain one need; return whom they still suspect."""
    cleared = memory.analysed & ~privileged_hosts(view)
    memory.recent |= reasons(memory, view, keeping)
    memory.noticed = (memory.noticed & ~cleared | active_hosts(view)) & ~effects[action, RESTORES]
    expiry, limit = keeping >> EXPIRY & 255, keeping >> LIMIT & 255
    memory.window += 1
    if expiry and memory.window >= expiry:
        suspect &= memory.recent
        memory.recent = 0
        memory.window = 0
    if not suspect or memory.busy >= limit:
        memory.busy = 0
    else:
        memory.busy += 1
    return suspect


@inlined
def is_free(memory, keeping):
    """Return whether this turn is free of the mask: the turns before it were under suspicion for as long as is allowed."""
    limit = keeping >> LIMIT & 255
    return limit > 0 and memory.busy >= limit


@inlined
def active_hosts(view):
    """Return the set of hosts that show activity."""
    hosts = 0
    for k in range(len(view)):
        word = np.int64(view[k])
        hosts |= hosts_of((word | word >> 1) & _ACTIVITY) << 16 * k
    return hosts


@inlined
def exploited_hosts(view):
    """Return the set of hosts that show an exploit."""
    hosts = 0
    for k in range(len(view)):
        word = np.int64(view[k])
        hosts |= hosts_of(word & word >> 1 & _ACTIVITY) << 16 * k
    return hosts


@inlined
def privileged_hosts(view):
    """Return the set of hosts that are believed to be held as root."""
    hosts = 0
    for k in range(len(view)):
        word = np.int64(view[k])
        hosts |= hosts_of(word >> 2 & word >> 3 & _ACTIVITY) << 16 * k
    return hosts


@inlined
def unclean_hosts(view):
    """Return the set of hosts that are believed not clean."""
    hosts = 0
    for k in range(len(view)):
        word = np.int64(view[k])
        hosts |= hosts_of((word >> 2 | word >> 3) & _ACTIVITY) << 16 * k
    return hosts


@inlined
def hosts_of(bits):
    """Move bits 0, 4, 8, ... 60, one per host, together into a set of hosts."""
    bits = (bits | bits >> 3) & 0x0303030303030303
    bits = (bits | bits >> 6) & 0x000F000F000F000F
    bits = (bits | bits >> 12) & 0x000000FF000000FF
    return (bits | bits >> 24) & 0xFFFF


@inlined
def resolve_choice(meanings, shifts, choice, memory):
    """Return the action of the world that a choice is now: a macro places the first decoy that does not stand."""
    codes = meanings.shape[1] >> 1  # of the decoys of a host's list that stand; as many again with the spare one
    spare = standing(memory.decoys, shifts[choice, 1]) & 1
    return meanings[choice, standing(memory.decoys, shifts[choice, 0]) & codes - 1 | spare * codes]


@inlined
def standing(decoys, slot):
    """Return which decoys stand from a slot on, at least eight of them."""
    word, offset = slot >> 6, uint64(slot & 63)
    bits = decoys[word] >> offset
    if word + 1 < len(decoys):
        bits |= decoys[word + 1] << uint64(1) << (uint64(63) - offset)
    return np.int64(bits & uint64(255))
