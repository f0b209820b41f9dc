"""Where hosts stand on the map of a network, for pictures, the replay page and the terminal alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from fixfirst.game.scenario import Scenario

ROW_HEIGHT = 112
FEW_IN_A_ROW, MOST_IN_A_ROW, SMALL_MAP = 5, 8, 30  # hosts: up to 30, names can be read on a telephone
LETTERS_IN_A_ROW = 72


@dataclass(frozen=True)
class NetworkMap:
    """Where the hosts of a scenario stand, in units of the map. Red comes in at the top, its target is at the bottom."""

    width: int
    height: int
    rows: dict[str, list[tuple[str, ...]]]  # subnet -> its rows of hosts
    subnets: dict[str, tuple[int, int]]  # subnet -> the upper edge of its rows, and their height
    middles: dict[str, tuple[float, float]]  # of hosts
    links: tuple[tuple[str, str], ...]  # from the first of two hosts red learns the address of the second


@cache
def map_of(scenario: Scenario) -> NetworkMap:
    """Return the map of a scenario."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for row in scenario.map_rows or _rows(scenario):
        rows.setdefault(scenario.subnet_names[scenario.hosts[scenario.host_ids[row[0]]].subnet], []).append(row)
    longest = max(len(row) for of_subnet in rows.values() for row in of_subnet)
    width, top = 80 * max(FEW_IN_A_ROW, longest), 0
    subnets, middles = {}, {}
    for subnet, of_subnet in rows.items():
        subnets[subnet] = top, ROW_HEIGHT * len(of_subnet)
        for row in of_subnet:
            for x, name in enumerate(row):
                middles[name] = width / 2 + width / longest * (x - (len(row) - 1) / 2), top + ROW_HEIGHT / 2
            top += ROW_HEIGHT
    links = ((host.name, f.host) for host in scenario.hosts for f in host.reveals if f.host != host.name)
    return NetworkMap(width, top, rows, subnets, middles, tuple(links))


def _rows(scenario: Scenario) -> list[tuple[str, ...]]:
    """Return the hosts of each subnet, in as few rows as they need, of about the same length."""
    first = scenario.hosts[scenario.start_id].subnet
    last = scenario.hosts[scenario.target_id].subnet if scenario.target is not None else -1
    order = sorted(range(len(scenario.subnets)), key=lambda s: (s != first, s == last, s))
    fitting = LETTERS_IN_A_ROW // (max(map(len, scenario.host_names)) + 2)  # names of neighbours must not overlap
    most = FEW_IN_A_ROW if scenario.num_hosts <= SMALL_MAP else max(FEW_IN_A_ROW, min(MOST_IN_A_ROW, fitting))
    return [row for subnet in order for row in _even_rows(scenario.subnets[subnet].hosts, most)]


def _even_rows(hosts: Sequence[str], most: int) -> list[tuple[str, ...]]:
    count = -(-len(hosts) // most)
    return [tuple(hosts[a:b]) for a, b in pairwise(len(hosts) * k // count for k in range(count + 1))]
