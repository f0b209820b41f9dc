"""A frozen policy as a table: asked once per distinct key, its answer remembered as a row.

Observations repeat enormously. A *key* is an observation and the number of a workflow in one uint64; a policy sees nothing
else, so a thousand environments with one key need one answer. Actions are then drawn by counter-based chance keyed by
(seed, environment, episode, step), like those of the world.

N environments, M keys, W workflows, U unit types.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numba import uint64

from fixfirst.game import NUM_ACTIONS, OBSERVATION_BITS, compiled, counter_uniform, environment_key
from fixfirst.orders import Workflow

MAX_WORKFLOWS = 1 << (63 - OBSERVATION_BITS)  # of one rollout: they share a key with the observation

# A policy as a function: inputs [M, 52 + workflow bits] float32 -> probabilities [M, 145].
Probabilities = Callable[[np.ndarray], np.ndarray]


class PolicyTable:
    """A frozen policy that is asked once per distinct (observation, workflow) and then remembered.

    greedy: the most probable action instead of a drawn one.
    """

    def __init__(self, probabilities: Probabilities, workflows: Sequence[Workflow] = (), *, greedy: bool = False):
        self._probabilities = probabilities
        self._bits = workflow_bits(workflows)
        self._greedy = greedy
        self._count = 0
        self._row_keys = np.empty(256, np.uint64)  # [capacity]
        self._cumulative = np.empty((256, NUM_ACTIONS), np.float32)  # [capacity, 145]
        self._slots = np.full(1024, -1, np.int32)  # open addressing: key -> row

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        n = len(words)
        self._make_room(n)
        rows, actions = np.empty(n, np.int32), np.empty(n, np.int64)
        known = self._count
        self._count = find_rows(words, assigned, self._slots, self._row_keys, known, rows)
        if self._count > known:
            self._answer(known)
        draw_actions(self._cumulative, rows, keys, when, actions)
        return actions

    def _answer(self, known: int) -> None:
        """Ask the policy about the rows from `known` on."""
        probabilities = self._probabilities(inputs_of(self._row_keys[known : self._count], self._bits))
        if self._greedy:
            probabilities = probabilities == probabilities.max(axis=1, keepdims=True)
        self._cumulative[known : self._count] = np.cumsum(probabilities, axis=1)

    def _make_room(self, more: int) -> None:
        needed = self._count + more
        if needed > len(self._row_keys):
            capacity = max(2 * len(self._row_keys), needed)
            self._row_keys = np.resize(self._row_keys, capacity)
            self._cumulative = np.resize(self._cumulative, (capacity, NUM_ACTIONS))
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << (4 * needed - 1).bit_length(), -1, np.int32)
            insert_rows(self._slots, self._row_keys, self._count)


class PlainPolicy:
    """The same frozen policy without memory: asked for every environment in every step. The slow twin of `PolicyTable`."""

    def __init__(self, probabilities: Probabilities, workflows: Sequence[Workflow] = ()):
        self._probabilities = probabilities
        self._bits = workflow_bits(workflows)

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        inputs = inputs_of(row_keys(words, assigned), self._bits)
        cumulative = np.cumsum(self._probabilities(inputs), axis=1, dtype=np.float32)
        actions = np.empty(len(words), np.int64)
        draw_actions(cumulative, np.arange(len(words), dtype=np.int32), keys, when, actions)
        return actions


# ---------------------------------------------------------------- keys, and what a policy reads for them


def workflow_bits(workflows: Sequence[Workflow]) -> np.ndarray:
    """[W, U * U] float32 encodings; [1, 0] without workflows."""
    return np.array([w.encode() for w in workflows], np.float32) if workflows else np.empty((1, 0), np.float32)


def row_keys(words: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    """Observation and workflow index in one uint64 each."""
    return words | assigned.astype(np.uint64) << np.uint64(OBSERVATION_BITS)


_SHIFTS = np.arange(OBSERVATION_BITS, dtype=np.uint64)


def inputs_of(keys: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """[M, 52 + workflow bits] float32: what the policy reads for keys [M]."""
    observation = (keys[:, None] >> _SHIFTS & np.uint64(1)).astype(np.float32)
    return np.concatenate([observation, bits[(keys >> np.uint64(OBSERVATION_BITS)).astype(np.int64)]], axis=1)


# ---------------------------------------------------------------- rows and draws, compiled


@compiled
def find_rows(words, assigned, slots, known_keys, count, rows):  # type: ignore[no-untyped-def]
    """Fill rows [N] with the row of every key, appending unknown keys. Returns the new number of rows."""
    mask = uint64(len(slots) - 1)
    for i in range(len(words)):
        key = words[i] | uint64(assigned[i]) << uint64(OBSERVATION_BITS)
        slot = environment_key(key, 0) & mask
        while slots[slot] >= 0 and known_keys[slots[slot]] != key:
            slot = (slot + uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = count
            known_keys[count] = key
            count += 1
        rows[i] = slots[slot]
    return count


@compiled
def insert_rows(slots, known_keys, count):  # type: ignore[no-untyped-def]
    """Enter the first `count` rows into empty slots."""
    mask = uint64(len(slots) - 1)
    for row in range(count):
        slot = environment_key(known_keys[row], 0) & mask
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = row


@compiled
def draw_actions(cumulative, rows, keys, when, actions):  # type: ignore[no-untyped-def]
    """Fill actions [N]: the first action whose cumulative probability exceeds the environment's draw."""
    last = cumulative.shape[1] - 1
    for i in range(len(rows)):
        row = cumulative[rows[i]]
        threshold = counter_uniform(keys[i], when) * row[last]
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if row[middle] > threshold:
                high = middle
            else:
                low = middle + 1
        actions[i] = low


@compiled
def chance_keys(seed, episode, keys):  # type: ignore[no-untyped-def]
    """Fill keys [N] uint64, one per environment, for the draws of one episode."""
    for i in range(len(keys)):
        keys[i] = environment_key(environment_key(seed, i), episode)


@compiled
def uniform(keys, when, scale, out):  # type: ignore[no-untyped-def]
    """Fill out [N] with draws in [0, scale)."""
    for i in range(len(keys)):
        out[i] = counter_uniform(keys[i], when) * scale[i]
