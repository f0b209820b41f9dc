"""What each unit type is in a network, whatever it is called: by this, orders of several networks can be compared."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fixfirst.game import parts
from fixfirst.game.scenario import Scenario
from fixfirst.orders.order import UnitScheme

Pair = tuple[str, str]  # of unit types, the first to be fixed first


@dataclass(frozen=True)
class Traits:
    """What a unit type is in one network. Red's foothold apart: it is held from the beginning."""

    hosts: int
    value: float  # what a step costs in which red has the dearest of its hosts; of the target, its service, too
    distance: int | None  # break-ins from its nearest host to the target, along what red finds; None: there is no way
    exploits: float  # that open one of its hosts, on average
    links: int  # hosts elsewhere on which red finds an address of one of its hosts


@dataclass(frozen=True)
class NetworkFacts:
    """What can be compared of a scenario."""

    name: str
    digest: str
    units: dict[str, Traits]
    gated: bool  # is there a gate before the target?

    @classmethod
    def of(cls, scheme: UnitScheme) -> "NetworkFacts":
        """Describe a scenario whose hosts are grouped so."""
        scenario = scheme.scenario
        distances, groups = _distances(scenario), dict[str, list[int]]()
        for host, unit in enumerate(scheme.host_unit):
            if host != scenario.start_id:
                groups.setdefault(scheme.names[unit], []).append(host)
        units = {name: _traits(scenario, groups.get(name, []), distances) for name in scheme.names}
        behind = None if scenario.target is None else scenario.subnets[scenario.hosts[scenario.target_id].subnet].reach
        return cls(scenario.name, scenario.digest, units, behind == "gated")

    def ranked(self, rank: Callable[[Traits], float]) -> list[Pair]:
        """Return all pairs of unit types of which the first has the smaller rank."""
        ranks = [(name, rank(traits)) for name, traits in self.units.items() if traits.hosts]
        return [(a, b) for a, of_a in ranks for b, of_b in ranks if of_a < of_b]


def _distances(scenario: Scenario) -> list[int | None]:
    """Return how many break-ins each host is away from the target, along what red finds."""
    distances: list[int | None] = [None] * scenario.num_hosts
    waiting = deque([] if scenario.target is None else [(scenario.target_id, 0)])
    while waiting:
        reached, distance = waiting.popleft()
        if distances[reached] is None:
            distances[reached] = distance
            waiting += ((n, distance + 1) for n, host in enumerate(scenario.hosts) if _leads(scenario, host, reached))
    return distances


def _leads(scenario: Scenario, host: parts.Host, other: int) -> bool:
    """Does red find the way from one host to another: its address, or a subnet that it can look through?"""
    name, subnet = scenario.hosts[other].name, scenario.hosts[other].subnet
    return any(
        (finding.address and finding.host == name)
        or (finding.subnet and scenario.hosts[scenario.host_ids[finding.host]].subnet == subnet)
        for finding in host.reveals
    )


def _traits(scenario: Scenario, hosts: Sequence[int], distances: Sequence[int | None]) -> Traits:
    names = {scenario.hosts[host].name for host in hosts}
    values = [
        scenario.hosts[host].value + (scenario.ot_cost if scenario.hosts[host].name == scenario.target else 0.0)
        for host in hosts
    ]
    opened = [sum(exploit.takes(scenario.hosts[host]) for exploit in scenario.exploits) for host in hosts]
    links = sum(
        host.name not in names and any(finding.address and finding.host in names for finding in host.reveals)
        for host in scenario.hosts
    )
    return Traits(
        hosts=len(hosts),
        value=round(max(values, default=0.0), 1),
        distance=min((far for host in hosts if (far := distances[host]) is not None), default=None),
        exploits=float(np.mean(opened)) if opened else 0.0,
        links=links,
    )
