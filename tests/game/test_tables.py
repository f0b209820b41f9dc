"""What the kernel looks up instead of counting is what counting gives."""

import numpy as np
from cage2 import EXPLOIT_NAMES, NUM_HOSTS, hosts_mask, ports_mask

from fixfirst.game import chance, tables
from fixfirst.game.tables import HALF, HALF_BITS, HALF_COST, HEAVIEST_EXPLOIT, OTHER_EXPLOITS

size, nth_member = chance.size.py_func, chance._nth_member.py_func


def test_sizes_and_members_of_every_set_of_hosts():
    for mask in range(2**NUM_HOSTS):
        members = [host for host in range(NUM_HOSTS) if mask >> host & 1]
        assert size(mask) == len(members)
        assert [nth_member(mask, n) for n in range(len(members))] == members


def test_a_set_of_hosts_costs_the_sum_of_its_halves():
    mask = hosts_mask("Defender", "Enterprise1", "Op_Host2", "Op_Server0", "User0", "User4")
    assert HALF_COST[0, mask & HALF] == 1 + 10 + 1 and HALF_COST[1, mask >> HALF_BITS] == 10 + 0 + 1


def test_red_prefers_the_heaviest_exploit_that_fits_the_ports():
    def options(*ports):
        mask = ports_mask(*ports)
        others = [name for e, name in enumerate(EXPLOIT_NAMES) if OTHER_EXPLOITS[mask] >> e & 1]
        return (EXPLOIT_NAMES[HEAVIEST_EXPLOIT[mask]] if HEAVIEST_EXPLOIT[mask] >= 0 else None), others

    assert options(22, 80, 443, 3390, 25) == ("HarakaRCE", ["HTTPRFI", "HTTPSRFI", "SSHBruteForce", "SQLInjection"])
    assert options(22, 3390) == ("SSHBruteForce", [])  # an SQL injection needs a web server as well
    assert options(53, 68) == options() == (None, [])


def test_eight_bits_become_eight_bytes():
    assert np.array_equal(tables.EIGHT_BYTES[[0b1, 0b10000110]].view(np.uint8), [1, *[0] * 7, 0, 1, 1, 0, 0, 0, 0, 1])


def test_tables_cannot_be_changed():
    arrays = {name: table for name, table in vars(tables).items() if isinstance(table, np.ndarray)}
    assert len(arrays) > 20 and not any(table.flags.writeable for table in arrays.values())
