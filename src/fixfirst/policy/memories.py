"""What N defenders remember, may choose and mean, for whoever steps a world of N environments from Python."""

import numpy as np

from fixfirst.base import errors
from fixfirst.base.compile import compiled
from fixfirst.game import base_world
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.decoy_slots import decoy_slots, slot_words
from fixfirst.policy.memory import memory_dtype, memory_groups
from fixfirst.policy.reading import read_rows
from fixfirst.policy.remembering import remember_one, resolve_choice
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
