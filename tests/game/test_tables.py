"""What the kernel looks up is what counting gives, and nobody can change it."""

import numpy as np
from cage2 import CAGE2
from numba import njit

from fixfirst.game import chance, tables
from fixfirst.game.tables import tables_of


@njit
def list_members(mask, members):
    """Write the members of a set; return how many there are."""
    for n in range(chance.size(mask)):
        members[n] = chance.nth_member(mask, n)
    return chance.size(mask)


def test_sizes_and_members_of_sets_of_hosts():
    rng, members = np.random.default_rng(0), np.zeros(63, np.int64)
    for mask in (*range(2**15), *rng.integers(0, 2**63, 1_000).tolist(), 2**63 - 1):
        count = list_members(mask, members)
        assert members[:count].tolist() == [host for host in range(63) if mask >> host & 1]


def test_tables_cannot_be_changed():
    arrays = {name: table for name, table in vars(tables).items() if isinstance(table, np.ndarray)}
    assert len(arrays) > 5 and not any(table.flags.writeable for table in (*arrays.values(), tables_of(CAGE2)))
