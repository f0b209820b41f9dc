"""Remembering and choosing, compiled: how a memory changes with each turn, what a policy reads of it, what a choice means.

What is remembered is in `memory.py`, what there is to choose from in `action_sets.py`. Whoever steps environments in
compiled code takes the pieces for one environment; others take `Memories`. N environments, K words per row, A choices.
"""

import numpy as np
from numba import uint64

from fixfirst.base.compile import compiled, inlined
from fixfirst.base.errors import WorldError
from fixfirst.game.tables import HALF, HALF_BITS
from fixfirst.game.world import actions_array, out_of_range
from fixfirst.policy.action_sets import ALL, CLEARS, LIST_MASK, LISTED, LONGEST_LIST, PLACES, ActionSet
from fixfirst.policy.memory import (
    ACTIVITY,
    ANALYSES,
    HALF_SCANS,
    HALF_SLOTS,
    MEMORY_DTYPE,
    QUIET_TURNS,
    RESTORES,
    MemoryScheme,
)

LONG_QUIET = (1 << QUIET_TURNS) - 1


# ---------------------------------------------------------------- one environment


@inlined
def forget_one(memory):
    """A new episode: nothing has happened yet."""
    memory.act1 = 0
    memory.last = 0
    memory.expl = 0
    memory.rest = 0
    memory.quiet = 0
    memory.decoy = 0
    memory.seen = 0
    memory.scans = 0
    memory.suspect = 0
    memory.analysed = 0


@inlined
def remember_one(memory, word, action):
    """Blue saw `word` and took `action` (one of the 145): both are past now. What it sees next is not memory yet."""
    suspect_one(memory, word, action)
    view = np.int64(word)
    active = hosts_of((view | view >> 1) & ACTIVITY)
    exploited = hosts_of(view & view >> 1 & ACTIVITY)
    scanned = active & ~exploited
    lower, upper = scanned & HALF, scanned >> HALF_BITS
    memory.last = active & -active if active else memory.last  # with green there may be two
    memory.expl |= exploited
    memory.quiet = 0 if active else (memory.quiet << 1 | 1) & LONG_QUIET
    memory.seen |= memory.decoy & (HALF_SLOTS[0, lower] | HALF_SLOTS[1, upper])
    memory.scans |= HALF_SCANS[0, lower] | HALF_SCANS[1, upper]
    memory.rest |= RESTORES[action]
    memory.decoy = memory.decoy & ~CLEARS[action] | PLACES[action]


@inlined
def suspect_one(memory, word, action):
    """As `remember_one`, but no more than what it takes to know whom to suspect."""
    view = np.int64(word)
    memory.suspect = suspects(memory, word) & ~RESTORES[action]
    memory.analysed = ANALYSES[action]
    memory.act1 |= hosts_of((view | view >> 1) & ACTIVITY)


@inlined
def suspects(memory, word):
    """The suspect hosts now that blue sees `word`, as a set: exploited, or active again, not restored or analysed since.

    Analyse clears a host whose belief it does not turn to "privileged".
    """
    view = np.int64(word)
    active, exploited = hosts_of((view | view >> 1) & ACTIVITY), hosts_of(view & view >> 1 & ACTIVITY)
    privileged = hosts_of(view >> 2 & view >> 3 & ACTIVITY)
    return memory.suspect & ~(memory.analysed & ~privileged) | exploited | active & memory.act1


@inlined
def unclean(word):
    """The set of hosts that are believed not clean."""
    view = np.int64(word)
    return hosts_of((view >> 2 | view >> 3) & ACTIVITY)


@inlined
def hosts_of(bits):
    """Bits 0, 4, 8, ... 48, one per host, moved together into a set of hosts."""
    bits = (bits | bits >> 3) & 0x0303030303030303
    bits = (bits | bits >> 6) & 0x000F000F000F000F
    bits = (bits | bits >> 12) & 0x000000FF000000FF
    return (bits | bits >> 24) & 0xFFFF


@inlined
def write_bits(memory, starts, rows, i):
    """OR what a scheme reads of a memory into row i of rows [M, K] uint64. starts [8]: see `MemoryScheme`."""
    write_group(memory.act1, starts[0], rows, i)
    write_group(memory.last, starts[1], rows, i)
    write_group(memory.expl, starts[2], rows, i)
    write_group(memory.rest, starts[3], rows, i)
    write_group(memory.quiet, starts[4], rows, i)
    write_group(memory.decoy & LISTED, starts[5], rows, i)
    write_group(memory.seen, starts[6], rows, i)
    write_group(memory.scans, starts[7], rows, i)


@inlined
def write_group(group, start, rows, i):
    """OR a group's bits into row i from bit `start` on, into two words if need be; not at all if the start is -1."""
    if start < 0:
        return
    bits, word, place = uint64(group), start >> 6, uint64(start & 63)
    rows[i, word] |= bits << place
    beyond = bits >> uint64(1) >> (uint64(63) - place)  # two shifts: one by 64 would be none
    if beyond:
        rows[i, word + 1] |= beyond


@inlined
def resolve_choice(meanings, shifts, choice, memory):
    """The action of the world that a choice is now: a macro places the first decoy of its host that does not stand."""
    spare = memory.decoy >> shifts[choice, 1] & 1
    return meanings[choice, memory.decoy >> shifts[choice, 0] & LIST_MASK | spare << LONGEST_LIST]


@inlined
def masked(first_macro, slots, memory):
    """The set of choices that are masked, bit c = choice c: macros whose decoys all stand. 0 for a set without macros."""
    full = 0
    for macro in range(len(slots)):
        if memory.decoy & slots[macro] == slots[macro]:
            full |= 1 << (first_macro + macro)
    return full


# ---------------------------------------------------------------- N environments


@compiled
def forget_batch(memories, mask):
    """Forget in the environments of mask [N] bool."""
    for i in range(len(memories)):
        if mask[i]:
            forget_one(memories[i])


@compiled
def remember_batch(memories, words, actions):
    """What was seen, words [N] uint64, and done, actions [N] int64, is past."""
    for i in range(len(memories)):
        remember_one(memories[i], words[i], actions[i])


@compiled
def suspect_batch(memories, words, suspect, dirty):
    """Fill suspect [N] and dirty [N] with the sets of suspect hosts, and of those believed not clean."""
    for i in range(len(memories)):
        suspect[i] = suspects(memories[i], words[i])
        dirty[i] = unclean(words[i])


@compiled
def write_batch(memories, starts, rows):
    """OR what a scheme reads of memories [N] into rows [N, K] uint64."""
    for i in range(len(memories)):
        write_bits(memories[i], starts, rows, i)


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
        full = masked(first_macro, slots, memories[i])
        for choice in range(first_macro, allowed.shape[1]):
            if full >> choice & 1:
                allowed[i, choice] = False


class Memories:
    """What N defenders remember and may choose, for whoever steps a world of N environments from Python.

    records: [N] of MEMORY_DTYPE, values that can be saved and put back. What the scheme does not read, macros may need.
    """

    def __init__(
        self,
        num_envs: int,
        scheme: MemoryScheme | str = "none",
        action_set: ActionSet | str = "all",
        *,
        suspects: bool = False,
    ):
        self.scheme, self.action_set = MemoryScheme.parse(scheme), ActionSet.parse(action_set)
        self.records = np.zeros(num_envs, MEMORY_DTYPE)
        self._worlds_own = self.action_set == ALL
        self.idle = (
            self._worlds_own and not self.scheme.groups and not suspects
        )  # nobody would notice if nothing was remembered
        self._starts = self.scheme.starts
        self._meanings, self._shifts, self._slots = self.action_set.meanings, self.action_set.shifts, self.action_set.slots
        self._nothing_masked = np.ones((num_envs, self.action_set.size), np.bool_)
        self._nothing_masked.setflags(write=False)

    def forget(self, mask: np.ndarray | None = None) -> None:
        """New episodes begin, everywhere or in the environments of mask [N] bool."""
        if mask is None:
            self.records[:] = 0
        elif not self.idle:
            forget_batch(self.records, np.array(mask, np.bool_))

    def remember(self, words: np.ndarray, actions: np.ndarray) -> None:
        """What was seen, words [N] uint64, and done, actions [N] of the world, is past."""
        if not self.idle:
            remember_batch(self.records, np.ascontiguousarray(words), np.ascontiguousarray(actions, np.int64))

    def suspicion(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hosts that are suspect now, and those believed not clean, as sets [N], where words [N] uint64 is seen."""
        suspect, dirty = np.empty((2, len(self.records)), np.int64)
        suspect_batch(self.records, np.ascontiguousarray(words), suspect, dirty)
        return suspect, dirty

    def bits(self) -> np.ndarray:
        """[N, bits] int8: what a policy reads beside the observation."""
        if not self.scheme.groups:
            return np.zeros((len(self.records), 0), np.int8)
        rows = np.zeros((len(self.records), -(-self.scheme.inputs // 64)), np.uint64)
        write_batch(self.records, self._starts, rows)
        bits = np.unpackbits(rows.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        return bits[:, self.scheme.inputs - self.scheme.bits : self.scheme.inputs].view(np.int8)

    def actions_of(self, choices: np.ndarray) -> np.ndarray:
        """The actions of the world [N] that choices [N] mean. Of the world's own actions, the world says what is wrong."""
        if self._worlds_own:
            return choices
        numbers = actions_array(choices, len(self.records))
        actions = np.empty_like(numbers)
        wrong = choose_batch(self._meanings, self._shifts, self.records, numbers, actions)
        if wrong >= 0:
            raise out_of_range(choices, wrong, self.action_set.size)
        return actions

    def masks(self) -> np.ndarray:
        """[N, A] bool: may the choice be taken now? At least one always may."""
        if not self.action_set.masks:
            return self._nothing_masked
        allowed = np.ones_like(self._nothing_masked)
        mask_batch(self._slots, self.records, allowed)
        return allowed

    def checked(self, records: np.ndarray | None) -> np.ndarray:
        """Records that can be put in place of ours, one or one each; of nothing if none are given."""
        try:
            array = np.zeros(1, MEMORY_DTYPE) if records is None else np.asarray(records)
        except ValueError:  # ragged
            array = np.empty(0, object)
        if array.dtype != MEMORY_DTYPE or array.shape not in ((), (1,), self.records.shape):
            raise WorldError(
                f"memories must be 1 or {len(self.records)} records as `memories.records` holds them, "
                f"got shape {array.shape} of {array.dtype if array.dtype != MEMORY_DTYPE else 'the right dtype'}"
            )
        return array
