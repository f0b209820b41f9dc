"""What the kernel looks up instead of counting is what counting gives."""

import numpy as np
from cage2 import CAGE2, EXPLOIT_NAMES, hosts_mask, ports_mask
from numba import njit

from fixfirst.game import chance, tables
from fixfirst.game.tables import HEAVIEST_EXPLOIT, OTHER_EXPLOITS, tables_of


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


def test_a_set_of_hosts_costs_the_sum_of_its_eights():
    """Defender 0.1, Enterprise1 1, Op_Host2 0.1 and Op_Server0 1; then User0 nothing and User4 0.1."""
    mask, cost = (
        hosts_mask("Defender", "Enterprise1", "Op_Host2", "Op_Server0", "User0", "User4"),
        tables_of(CAGE2)["cost"][0],
    )
    assert cost.shape == (2, 256) and cost[0, mask & 255] == 1 + 10 + 1 + 10 and cost[1, mask >> 8] == 0 + 1


def test_red_prefers_the_heaviest_exploit_that_fits_the_ports():
    def options(*ports):
        mask = ports_mask(*ports)
        others = [name for e, name in enumerate(EXPLOIT_NAMES) if OTHER_EXPLOITS[mask] >> e & 1]
        return (EXPLOIT_NAMES[HEAVIEST_EXPLOIT[mask]] if HEAVIEST_EXPLOIT[mask] >= 0 else None), others

    assert options(22, 80, 443, 3390, 25) == ("HarakaRCE", ["HTTPRFI", "HTTPSRFI", "SSHBruteForce", "SQLInjection"])
    assert options(22, 3390) == ("SSHBruteForce", [])  # an SQL injection needs a web server as well
    assert options() == (None, [])


def test_further_ports_only_count():
    """Defender listens on 22, which an exploit wants, and on 53 and 68, which none does."""
    defender = int(tables_of(CAGE2)["real_ports"][0, 0])
    assert defender & 255 == ports_mask(22) and defender >> 8 == 0b11


def test_eight_bits_become_eight_bytes():
    assert np.array_equal(tables.EIGHT_BYTES[[0b1, 0b10000110]].view(np.uint8), [1, *[0] * 7, 0, 1, 1, 0, 0, 0, 0, 1])


def test_tables_cannot_be_changed():
    arrays = {name: table for name, table in vars(tables).items() if isinstance(table, np.ndarray)}
    assert len(arrays) > 5 and not any(table.flags.writeable for table in (*arrays.values(), tables_of(CAGE2)))
