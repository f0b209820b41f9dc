"""What N defenders remember and read, and what their choices mean: by rows in compiled code, and from Python.

What a row is, `spec.py` says. N environments, K words per row, W words of an observation.
"""

import numpy as np
from numba import uint64

from fixfirst.base import errors
from fixfirst.base.compile import compiled, inlined
from fixfirst.game import base_world
from fixfirst.policy.action_sets import ActionSet, decoy_slots, slot_words
from fixfirst.policy.memory import BREAK_INS, DIGITS, memory_dtype, memory_groups
from fixfirst.policy.remembering import is_free, remember_one, resolve_choice, suspects, unclean_hosts
from fixfirst.policy.spec import PolicySpec, bits_of


class Memories:
    """What N defenders of a spec remember and may choose, for whoever steps a world of N environments from Python.

    records: [N] of `memory_dtype`, values that can be saved and put back. What the scheme does not read, macros may need.
    """

    def __init__(self, spec: PolicySpec, num_envs: int):
        self.spec, self._arrays = spec, spec.arrays
        self.records = np.zeros(num_envs, memory_dtype(spec.scenario))
        self._worlds_own = spec.action_set == ActionSet.parse("all", spec.scenario)
        # nobody would notice if nothing was remembered
        self.idle = self._worlds_own and not spec.memory.groups and not spec.shield
        self._nothing_masked = np.ones((num_envs, spec.actions), np.bool_)
        self._nothing_masked.setflags(write=False)

    def forget(self, mask: np.ndarray | None = None) -> None:
        """Begin new episodes, everywhere or in the environments of mask [N] bool."""
        self.records[slice(None) if mask is None else np.asarray(mask, np.bool_)] = 0

    def remember(self, words: np.ndarray, actions: np.ndarray) -> None:
        """Remember what was seen, words [N] or [N, W] uint64, and done, actions [N] of the world."""
        if not self.idle:
            taken = np.ascontiguousarray(actions, np.int64)
            remember_batch(self.records, *self._arrays.tables, word_rows(words), taken, self._arrays.keeping)

    def bits(self) -> np.ndarray:
        """Return what a policy reads beside the observation, [N, bits] int8."""
        return bits_of(self._rows(), self.spec.memory.inputs)[:, self.spec.scenario.observation_bits :]

    def actions_of(self, choices: np.ndarray) -> np.ndarray:
        """Return the actions of the world [N] that choices [N] mean. What is wrong with its own, the world says."""
        if self._worlds_own:
            return choices
        numbers = base_world.actions_array(choices, len(self.records))
        actions = np.empty_like(numbers)
        wrong = choose_batch(self._arrays.meanings, self._arrays.shifts, self.records, numbers, actions)
        if wrong >= 0:
            raise base_world.out_of_range(choices, wrong, self.spec.actions)
        return actions

    def masks(self) -> np.ndarray:
        """Return where a choice may be taken now, whatever the order, [N, A] bool. At least one always may."""
        if not self.spec.masks:
            return self._nothing_masked
        return self.spec.allowed(self._rows())

    def _rows(self) -> np.ndarray:
        """Return what policies read now but for what they see and the order that they keep, [N, row words]."""
        count, blind = len(self.records), np.zeros((len(self.records), 1), np.uint64)
        rows = np.zeros((count, self.spec.row_words), np.uint64)
        read_rows(self.records, self._arrays, self.spec.shields([]), np.zeros(count, np.int64), blind, rows)
        return rows

    def check(self, records: np.ndarray | None) -> np.ndarray:
        """Return records that can be put in place of ours, one or one each; of nothing if none are given.

        Refused are bits that a group does not have: the compiled code would write them beyond a row.
        """
        right = self.records.dtype
        asked = f"memories must be 1 or {len(self.records)} records as `memories.records` holds them"
        if not isinstance(records, np.ndarray | np.void | None):  # turning it into an array may take all memory
            raise errors.WorldError(f"{asked}, got a {type(records).__name__}")
        array: np.ndarray = np.zeros(1, right) if records is None else np.asarray(records)
        if array.dtype != right or array.shape not in ((), (1,), self.records.shape):
            kind = array.dtype if array.dtype != right else "the right dtype"
            raise errors.WorldError(f"{asked}, got shape {array.shape} of {kind}")
        for group in memory_groups(self.spec.scenario):
            bits = len(group.parts) // group.sets
            if group.name == "decoy":  # the spare slots, too
                bits = len(decoy_slots(self.spec.scenario).number)
            values, every = array[group.field], 2**bits - 1
            full = slot_words(self.spec.scenario, [every])[0] if values.dtype == np.uint64 else values.dtype.type(every)
            if (values & ~full).any():
                raise errors.WorldError(f"memories hold a {group.field} of more than {bits} bits")
        return array


def word_rows(words: np.ndarray) -> np.ndarray:
    """Return observations as words [N, W], from [N] where one word is enough, for compiled functions."""
    return np.ascontiguousarray(words if words.ndim == 2 else words[:, None])


@compiled
def remember_batch(memories, effects, host_slots, host_scans, listed, words, actions, keeping):
    """Remember what was seen, words [N, W] uint64, and done, actions [N] int64."""
    for i in range(len(memories)):
        remember_one(memories[i], effects, host_slots, host_scans, listed, words[i], actions[i], keeping)


@compiled
def choose_batch(meanings, shifts, memories, choices, actions):
    """Fill actions [N] with what choices [N] mean. Returns -1, or the first environment whose choice is out of range."""
    for i in range(len(choices)):
        if not 0 <= choices[i] < len(shifts):
            return i
        actions[i] = resolve_choice(meanings, shifts, choices[i], memories[i])
    return -1


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
