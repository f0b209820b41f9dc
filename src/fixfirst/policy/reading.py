"""Rows, compiled: what a policy reads of the observation, its memory and its suspicion, and which choices are masked.

What a row is, `spec.py` says. N environments, K words per row, W words of an observation.
"""

from numba import uint64

from fixfirst.base.compile import compiled, inlined
from fixfirst.policy.memory import BREAK_INS, DIGITS
from fixfirst.policy.remembering import is_free, suspects, unclean_hosts

# Numba counts references to arrays by atomic operations, for views and for tuples of arrays that are handed on: what is done
# in every step takes whole arrays and numbers.


@inlined
def read_row(memory, starts, listed, keeping, first_macro, slots, remembers, ranked, forbidden, order, view, rows, i):
    """Complete row i of rows [N, row words], which holds the order: observation, memory, suspicion, masked choices.

    view: the words of the observation, or more of them, which are 0.
    """
    words, suspicion = rows.shape[1] - forbidden.shape[2], starts[-1]
    for k in range(min(len(view), words)):
        rows[i, k] |= view[k]
    if remembers:
        write_bits(memory, starts, listed, rows, i)
    if suspicion >= 0:
        suspect, top = suspects(memory, view, keeping), ranked.shape[1] if is_free(memory, keeping) else 0
        write_group(suspect, suspicion, rows, i)
        doubtful = suspect | unclean_hosts(view)
        while top < ranked.shape[1] and not doubtful & ranked[order, top]:
            top += 1
        for k in range(forbidden.shape[2]):
            rows[i, words + k] = forbidden[order, top, k]
    mask_macros(memory, first_macro, slots, rows, i, words)


@compiled
def read_rows(memories, arrays, shields, assigned, words, rows):
    """Complete rows [N, row words] of N environments that see words [N, W] and have to keep orders assigned [N]."""
    starts, first_macro, slots = arrays.starts, arrays.first_macro, arrays.slots
    keeping, remembers = arrays.keeping, arrays.remembers
    ranked, forbidden, listed = shields.ranked, shields.forbidden, arrays.tables.listed
    for i in range(len(words)):
        memory, order, view = memories[i], assigned[i], words[i]
        read_row(memory, starts, listed, keeping, first_macro, slots, remembers, ranked, forbidden, order, view, rows, i)


@inlined
def write_bits(memory, starts, listed, rows, i):
    """OR what a scheme reads of a memory into row i of rows [M, K] uint64.

    starts: see `MemoryScheme`; listed [D]: the slots that are read.
    """
    write_group(memory.was_active, starts[0], rows, i)
    write_group(memory.last_active, starts[1], rows, i)
    write_group(memory.was_exploited, starts[2], rows, i)
    write_group(memory.was_restored, starts[3], rows, i)
    write_group(memory.quiet_turns, starts[4], rows, i)
    for k in range(len(memory.decoys)):
        if starts[5] >= 0 and listed[k]:
            write_group(memory.decoys[k] & listed[k], starts[5] + 64 * k, rows, i)
        if starts[6] >= 0 and listed[k]:
            write_group(memory.decoys_seen[k], starts[6] + 64 * k, rows, i)
    write_group(memory.was_scanned, starts[7], rows, i)
    for k in range(BREAK_INS):
        write_group(memory.break_ins[k], starts[8 + k], rows, i)
    so_many = 0
    for k in range(DIGITS - 1, 0, -1):  # at least 16, 8, 4, 2
        so_many |= memory.restores[k]
        write_group(so_many, starts[7 + BREAK_INS + k], rows, i)


@inlined
def write_group(group, start, rows, i):
    """OR a group's bits into row i from bit `start` on, into two words if need be; not at all if the start is -1."""
    if start < 0:
        return
    bits, word, offset = uint64(group), start >> 6, uint64(start & 63)
    rows[i, word] |= bits << offset
    beyond = bits >> uint64(1) >> (uint64(63) - offset)  # two shifts: one by 64 would be none
    if beyond:
        rows[i, word + 1] |= beyond


@inlined
def mask_macros(memory, first_macro, slots, rows, i, words):
    """Enter the masked choices into row i, behind its words of bits: macros whose decoys all stand."""
    for macro in range(len(slots)):
        if is_full(memory, slots, macro):
            choice = first_macro + macro
            rows[i, words + (choice >> 6)] |= uint64(1) << uint64(choice & 63)


@inlined
def is_full(memory, slots, macro):
    """Return whether all decoys of a macro stand: it is masked."""
    missing = uint64(0)
    for k in range(slots.shape[1]):
        missing |= slots[macro, k] & ~memory.decoys[k]
    return missing == uint64(0)
