"""Distinct rows, each under its number, with the odds that a network gave: what of a thousand environments is asked.

Observations repeat enormously: environments with the same row need one answer. M rows, K words, A choices.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import compiled, inlined


class RowTable(NamedTuple):
    """Distinct rows in the order in which they were met, C at most, and a hash table that finds them."""

    filled: np.ndarray  # [1] int64: how many there are
    rows: np.ndarray  # [C, K] uint64
    cumulative: np.ndarray  # [C, A] float32: odds of an action or one before it
    likely: np.ndarray  # [C] int64: the most probable action
    slots: np.ndarray  # [a power of two, at least 2 C] int32: open addressing, row's words -> row; -1 = free

    @classmethod
    def empty(cls, capacity: int, words: int, actions: int) -> "RowTable":
        slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        rows, cumulative = np.empty((capacity, words), np.uint64), np.empty((capacity, actions), np.float32)
        return cls(np.zeros(1, np.int64), rows, cumulative, np.empty(capacity, np.int64), slots)

    def with_room(self, more: int) -> "RowTable":
        """Return a table of the same rows that can hold so many more: itself, if there is room."""
        count, capacity = int(self.filled[0]), len(self.rows)
        if count + more <= capacity:
            return self
        larger = RowTable.empty(max(2 * capacity, count + more), self.rows.shape[1], self.cumulative.shape[1])
        larger.cumulative[:count], larger.likely[:count] = self.cumulative[:count], self.likely[:count]
        find_rows(larger, self.rows[:count], np.empty(count, np.int64))
        return larger

    def clear(self) -> None:
        """Forget all rows."""
        self.filled[0] = 0
        self.slots[:] = -1


class Answers:
    """A player that is asked once per distinct row: what it answered stays in its table."""

    table: RowTable

    @property
    def rows(self) -> np.ndarray:
        """[M, row words] all that were met since it was told to forget."""
        return self.table.rows[: self.table.filled[0]]

    def make_room(self, more: int) -> None:
        """Let the table hold so many rows more."""
        self.table = self.table.with_room(more)

    def forget(self) -> None:
        """For networks that have changed."""
        self.table.clear()


@inlined
def find_row(slots, rows, filled, read, i):
    """The number of the row read[i] in a `Table`, entered if it is new. There must be room."""
    mask = uint64(len(slots) - 1)
    mixed = uint64(0)
    for k in range(read.shape[1]):
        mixed = mix_in(mixed, read[i, k])
    slot = mixed & mask
    while slots[slot] >= 0:
        number = np.int64(slots[slot])
        same = True
        for k in range(read.shape[1]):
            if rows[number, k] != read[i, k]:
                same = False
                break
        if same:
            return number
        slot = (slot + uint64(1)) & mask
    number = filled[0]
    slots[slot] = number
    for k in range(read.shape[1]):
        rows[number, k] = read[i, k]
    filled[0] = number + 1
    return number


@inlined
def mix_in(mixed, word):
    """One more word of a hash: multiplied by an odd number, the upper half folded onto the lower."""
    mixed = (mixed ^ word) * uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> uint64(32))


@compiled
def find_rows(table, read, row_ids):
    """Fill row_ids [N] with the numbers of rows read [N, row words]; new ones are entered."""
    for i in range(len(read)):
        row_ids[i] = find_row(table.slots, table.rows, table.filled, read, i)
