"""Remembering and choosing, compiled: how a memory changes with each turn, what a policy reads of it, what a choice means.

What is remembered is in `memory.py`, what there is to choose from in `action_sets.py`. Whoever steps environments in
compiled code takes the pieces for one environment; others take `Memories`. N environments, K words per row, A choices.
"""

import numpy as np
from numba import uint64

from fixfirst.base import errors
from fixfirst.base.compile import compiled, inlined
from fixfirst.game import base_world, chance as dice
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.decoy_slots import decoy_slots, slot_words
from fixfirst.policy.memory import BREAK_INS, DIGITS, QUIET_TURNS, memory_dtype, memory_groups
from fixfirst.policy.spec import PolicySpec

LONG_QUIET = (1 << QUIET_TURNS) - 1
_ACTIVITY = 0x1111111111111111  # of a word of an observation: the first of every host's four bits
RESTORES, ANALYSES, FILLS, CLEARS = range(4)  # columns of `MemoryTables.effects`
EVIDENCE, RECHECK, EXPIRY, LIMIT = 1, 2, 8, 16  # of `ShieldWay.code`: two bits, and where two numbers of 8 bits begin


@inlined
def forget_one(memory):
    """Begin an episode: nothing has happened yet."""
    memory.was_active = 0
    memory.last_active = 0
    memory.was_exploited = 0
    memory.was_restored = 0
    memory.quiet_turns = 0
    for k in range(len(memory.decoys)):
        memory.decoys[k] = 0
        memory.decoys_seen[k] = 0
    memory.was_scanned = 0
    for k in range(BREAK_INS):
        memory.break_ins[k] = 0
    for k in range(DIGITS):
        memory.restores[k] = 0
    memory.suspect = 0
    memory.analysed = 0
    memory.recent = 0
    memory.noticed = 0
    memory.window = 0
    memory.busy = 0


@inlined
def remember_one(memory, effects, host_slots, host_scans, listed, view, action, keeping):
    """Remember that blue saw `view`, words of an observation, and took `action` of the world.

    What it sees next is not memory yet. effects, host_slots, host_scans, listed: see `MemoryTables`; keeping: `ShieldWay`.
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

    Analyse clears a host whose belief it does not turn to "privileged". keeping: the way may count less (`ShieldWay`).
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


@inlined
def is_full(memory, slots, macro):
    """Return whether all decoys of a macro stand: it is masked."""
    missing = uint64(0)
    for k in range(slots.shape[1]):
        missing |= slots[macro, k] & ~memory.decoys[k]
    return missing == uint64(0)


@inlined
def mask_macros(memory, first_macro, slots, rows, i, words):
    """Enter the masked choices into row i, behind its words of bits: macros whose decoys all stand."""
    for macro in range(len(slots)):
        if is_full(memory, slots, macro):
            choice = first_macro + macro
            rows[i, words + (choice >> 6)] |= uint64(1) << uint64(choice & 63)


@compiled
def remember_batch(memories, effects, host_slots, host_scans, listed, words, actions, keeping):
    """Remember what was seen, words [N, W] uint64, and done, actions [N] int64."""
    for i in range(len(memories)):
        remember_one(memories[i], effects, host_slots, host_scans, listed, words[i], actions[i], keeping)


@compiled
def write_batch(memories, starts, listed, rows):
    """OR what a scheme reads of memories [N] into rows [N, K] uint64."""
    for i in range(len(memories)):
        write_bits(memories[i], starts, listed, rows, i)


@compiled
def choose_batch(meanings, shifts, memories, choices, actions):
    """Fill actions [N] with what choices [N] mean. Returns -1, or the first environment whose choice is out of range."""
    for i in range(len(choices)):
        if not 0 <= choices[i] < len(shifts):
            return i
        actions[i] = resolve_choice(meanings, shifts, choices[i], memories[i])
    return -1


@compiled
def mask_batch(slots, memories, allowed):
    """Clear the masked choices in allowed [N, A] bool. The macros are the last columns."""
    first_macro = allowed.shape[1] - len(slots)
    for i in range(len(memories)):
        for macro in range(len(slots)):
            if is_full(memories[i], slots, macro):
                allowed[i, first_macro + macro] = False


def word_rows(words: np.ndarray) -> np.ndarray:
    """Return observations as words [N, W], from [N] where one word is enough, for compiled functions."""
    return np.ascontiguousarray(words if words.ndim == 2 else words[:, None])


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
        scheme = self.spec.memory
        if not scheme.groups:
            return np.zeros((len(self.records), 0), np.int8)
        rows = np.zeros((len(self.records), -(-scheme.inputs // 64)), np.uint64)
        write_batch(self.records, self._arrays.starts, self._arrays.tables.listed, rows)
        bits = np.unpackbits(rows.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        return bits[:, scheme.inputs - scheme.bits : scheme.inputs].view(np.int8)

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
        """Return where a choice may be taken now, [N, A] bool. At least one always may."""
        if not self.spec.action_set.masks:
            return self._nothing_masked
        allowed = np.ones_like(self._nothing_masked)
        mask_batch(self._arrays.slots, self.records, allowed)
        return allowed

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
