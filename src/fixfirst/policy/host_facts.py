"""What a policy that plays any network reads of a host: facts of the network and of the order, and bits of the moment.

Nothing here has a host's number or name in it, so that the same weights read every host of every network. L hosts that blue
sees, U unit types, I bits of a row, A choices, V = 4 verbs.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from fixfirst.game import parts
from fixfirst.game.chance import P_TOP_EXPLOIT
from fixfirst.game.scenario import Scenario
from fixfirst.orders.order import Workflow
from fixfirst.policy.action_sets import decoy_slots
from fixfirst.policy.memory import BREAK_INS, DIGITS, QUIET_TURNS, memory_groups, scan_hosts
from fixfirst.policy.spec import PolicySpec

READS = 1  # the version of what is read; weights of another one make no sense
MEMORY = "counts+scans"  # what such a policy remembers
VERBS = ("Analyse", "Remove", "Restore", "Decoy")  # of the choices on a host; a decoy is a macro, or Misinform
UNCLEAN, SUSPECT, FORBIDDEN, DOUBTFUL, BLOCKS = 0b1100, 33, 34, 35, 36  # bits of the moment
MOMENT_BITS, NETWORK_FACTS, ORDER_FACTS = 37, 74, 11
_QUIET, _ORDER = -1, -2  # of what the bits are that belong to no host


class HostFacts(NamedTuple):
    """A network for compiled functions, by hosts that blue sees."""

    network: np.ndarray  # [L, NETWORK_FACTS] float32: facts that hold throughout
    bit_host: np.ndarray  # [I] int64: whose bit of the moment a bit of a row is; below 0: the network's or the order's
    bit_number: np.ndarray  # [I] int64: which
    choice_output: np.ndarray  # [A] int64: V * host + verb of a choice; V * L: Sleep
    unit: np.ndarray  # [L] int64: unit types
    subnet: np.ndarray  # [L] int64
    subnet_share: np.ndarray  # [L] float32: 1 / hosts that blue sees in its subnet
    reached_from: np.ndarray  # [L + 1] int64: those that lead to host h are sources[reached_from[h] : reached_from[h + 1]]
    sources: np.ndarray  # int64
    leads_from: np.ndarray  # [L + 1] int64: those that it leads to, likewise
    targets: np.ndarray  # int64
    start: int  # the host where red begins, which cannot be cleaned; -1: blue does not see it
    num_units: int
    num_subnets: int


@cache
def host_facts(spec: PolicySpec) -> HostFacts:
    """Return the facts of a spec's network. The spec has a shield, the memory MEMORY, macros and unit types."""
    assert spec.units is not None
    scenario, listed = spec.scenario, spec.scenario.listed
    place = {host: number for number, host in enumerate(listed)}
    edges = [(place[a], place[b]) for a, b in sorted(_ways(scenario)) if a in place and b in place]
    reached_from, sources = _linked([(b, a) for a, b in edges], len(listed))
    leads_from, targets = _linked(edges, len(listed))
    subnets = sorted({scenario.hosts[host].subnet for host in listed})
    subnet = np.array([subnets.index(scenario.hosts[host].subnet) for host in listed], np.int64)
    bit_host, bit_number = _bits(spec)
    return HostFacts(
        network=_network_facts(spec),
        bit_host=bit_host,
        bit_number=bit_number,
        choice_output=_outputs(spec),
        unit=np.array([spec.units.host_unit[host] for host in listed], np.int64),
        subnet=subnet,
        subnet_share=(1 / np.bincount(subnet)[subnet]).astype(np.float32),
        reached_from=reached_from,
        sources=sources,
        leads_from=leads_from,
        targets=targets,
        start=place.get(scenario.start_id, -1),
        num_units=spec.units.size,
        num_subnets=len(subnets),
    )


def order_facts(spec: PolicySpec, workflows: Sequence[Workflow | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return what orders mean for hosts, [S, L, ORDER_FACTS] float32, and ranks of unit types [S, U] int64; None: no order.

    Of a host: that there is an order; the rank of its type; that it is the first; and which part of B_line's first, second
    and third victims and of the target have a type that is ranked before its own, and after it.
    """
    assert spec.units is not None
    scenario, scheme = spec.scenario, spec.units
    unit, roles = np.array(scheme.host_unit), np.zeros((4, scheme.size))
    for role, chances in enumerate(_victims(scenario)):
        np.add.at(roles[role], unit, chances)
    facts = np.zeros((len(workflows), len(scenario.listed), ORDER_FACTS), np.float32)
    ranks = np.full((len(workflows), scheme.size), -1, np.int64)
    for number, workflow in enumerate(workflows):
        if workflow is None:
            continue
        ranks[number] = rank = workflow.with_last(spec.idle).ranks
        before = (roles[:, :, None] * (rank[:, None] < rank)).sum(axis=1)
        after = (roles[:, :, None] * (rank[:, None] > rank)).sum(axis=1)
        by_unit = np.vstack([np.ones(scheme.size), rank / 5, rank == 0, before, after])
        facts[number] = by_unit.T[unit[list(scenario.listed)]]
    return facts, ranks


def _linked(pairs: Sequence[tuple[int, int]], hosts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where each host's partners begin, and the partners."""
    by_host = [[b for a, b in pairs if a == host] for host in range(hosts)]
    return np.cumsum([0, *map(len, by_host)]), np.array([b for partners in by_host for b in partners], np.int64)


def _ways(scenario: Scenario) -> set[tuple[int, int]]:
    """Return from which host red finds its way to which: by addresses that it finds there, and as B_line goes."""
    ways = {
        (number, scenario.host_ids[finding.host])
        for number, host in enumerate(scenario.hosts)
        for finding in host.reveals
        if finding.address
    }
    for first, second, third in _ways_of_b_line(scenario):
        ways |= {(first, second), (second, third)}
        if scenario.target_id >= 0:
            ways.add((third, scenario.target_id))
    return {(a, b) for a, b in ways if a != b}


def _ways_of_b_line(scenario: Scenario) -> list[tuple[int, int, int]]:
    """Return B_line's first, second and third victim for every first one that it may draw."""
    return [scenario.b_line_ways[first] for first in scenario.b_line_first or (scenario.host_ids[scenario.home],)]


def _victims(scenario: Scenario) -> np.ndarray:
    """Return how likely each host is B_line's first, second and third victim, and the target, [4, H]."""
    chances, ways = np.zeros((4, scenario.num_hosts)), _ways_of_b_line(scenario)
    for way in ways:
        for role, host in enumerate(way):
            chances[role, host] += 1 / len(ways)
    if scenario.target_id >= 0:
        chances[3, scenario.target_id] = 1
    return chances


def _network_facts(spec: PolicySpec) -> np.ndarray:
    """Return the facts of each host that blue sees, [L, F] float32."""
    scenario, hosts, target = spec.scenario, spec.scenario.hosts, spec.scenario.target_id
    ways, victims, lists = _ways(scenario), _victims(scenario)[:3], decoy_slots(scenario).listed
    distance = _distances(ways, target, len(hosts))
    home, goal = hosts[scenario.start_id].subnet, hosts[target].subnet if target >= 0 else -1
    decoys = [decoy.name for decoy in parts.DECOYS]
    outputs = set(_outputs(spec).tolist())
    rows = []
    for number, host in enumerate(scenario.listed):
        it, met = hosts[host], [exploit.meets(hosts[host]) for exploit in scenario.exploits]
        value, reach = it.value, scenario.subnets[it.subnet].reach
        leads = [b for a, b in ways if a == host]
        led_by = [a for a, b in ways if b == host]
        draw, offered, heaviest = _draw(scenario, it)
        rows.append(
            [
                *(value == 0, 0 < value <= 0.1, 0.1 < value <= 1, value > 1, min(value, 10) / 3),
                *(host == target, host == scenario.start_id, it.image.runs_ot, it.watched, it.image.os == parts.WINDOWS),
                *(word in it.name for word in (parts.GATE_WORD, "Op", "Ent")),
                *(reach == parts.OPEN, reach == parts.GATED, reach in (parts.CLOSED, parts.FILTERED)),
                *(it.subnet == home, it.subnet == goal, it.subnet / 4, sum(h.subnet == it.subnet for h in hosts) / 10),
                *(kind == parts.USER_SHELL for kind in met),
                *(kind in (parts.ROOT_SHELL, parts.GUESSED_ROOT_PASSWORD) for kind in met),
                *(parts.GUESSED_PASSWORD in met, parts.NO_PASSWORD in met),
                *(*draw, offered / 5, heaviest / 7),
                *(len(leads) / 3, min(len(led_by), 6) / 3, target in leads),
                any(parts.GATE_WORD in hosts[b].name for b in leads),
                any(hosts[a].subnet == home and a != scenario.start_id for a in led_by),
                *(distance[host] == steps for steps in range(4)),
                distance[host] > 3,
                *victims[:, host],
                *(victims[:, host] > 0),
                *(len(hosts) / 20, len(scenario.subnets) / 4),
                *((it.name, decoy) in lists for decoy in decoys),
                *(len(VERBS) * number + verb in outputs for verb in range(len(VERBS))),
            ]
        )
    return np.array(rows, np.float32)


def _distances(ways: set[tuple[int, int]], target: int, hosts: int) -> np.ndarray:
    """Return how many steps each host is away from the target, [H]; infinity: no way leads there."""
    distance = np.full(hosts, np.inf)
    if target >= 0:
        distance[target] = 0
        for _ in range(hosts):
            for a, b in ways:
                distance[a] = min(distance[a], distance[b] + 1)
    return distance


def _draw(scenario: Scenario, host: parts.Host) -> tuple[list[float], int, float]:
    """Return what red's exploit finds on a host without decoys, how many exploits are offered, and the heaviest's weight.

    The chances are of root, of a user's shell, of a guessed password (a shell that Remove does not kill), of nothing. Red
    takes the heaviest with P_TOP_EXPLOIT, else one of the others.
    """
    offered = sorted(
        (e for e in scenario.exploits if e.port in host.ports and (not e.also_one_of or host.ports & set(e.also_one_of))),
        key=lambda exploit: -exploit.weight,
    )
    outcomes = {
        parts.ROOT_SHELL: 0,
        parts.GUESSED_ROOT_PASSWORD: 0,
        parts.USER_SHELL: 1,
        parts.GUESSED_PASSWORD: 2,
    }
    chances = [0.0] * 4
    for number, exploit in enumerate(offered):
        share = 1.0 if len(offered) == 1 else (1 - P_TOP_EXPLOIT) / (len(offered) - 1) if number else P_TOP_EXPLOIT
        chances[outcomes.get(exploit.meets(host), 3)] += share
    return chances, len(offered), offered[0].weight if offered else 0.0


def _outputs(spec: PolicySpec) -> np.ndarray:
    """Return V * host + verb of every choice, [A]; V * L: Sleep."""
    scenario, chosen = spec.scenario, spec.action_set
    place = {scenario.host_names[host]: number for number, host in enumerate(scenario.listed)}
    actions = [scenario.actions[action] for action in chosen.actions]
    named = [("Decoy" if a.verb == "Misinform" else a.verb, a.host) for a in actions] + [("Decoy", h) for h in chosen.macros]
    return np.array(
        [
            len(VERBS) * (len(place) if host is None else place[host]) + (VERBS.index(verb) if host else 0)
            for verb, host in named
        ],
        np.int64,
    )


def _bits(spec: PolicySpec) -> tuple[np.ndarray, np.ndarray]:
    """Return for every bit of a row whose it is and which: its number among the host's bits of the moment."""
    scenario = spec.scenario
    hosts = len(scenario.listed)
    names, decoys = [scenario.host_names[host] for host in scenario.listed], [decoy.name for decoy in parts.DECOYS]
    first = {"act1": 4, "last": 5, "expl": 6, "rest": 7, "scans": 8, "breaks": 9, "again": 9 + BREAK_INS}
    first |= {"decoy": 8 + BREAK_INS + DIGITS, "seen": 8 + BREAK_INS + DIGITS + len(decoys)}
    bits = [(host, bit) for host in range(hosts) for bit in range(parts.BITS_PER_HOST)]
    slots = [(names.index(host), decoys.index(decoy)) for host, decoy in decoy_slots(scenario).listed]
    scanned = [names.index(host) for host in scan_hosts(scenario)]
    for group in memory_groups(scenario):
        if group.name == "quiet":
            bits += [(_QUIET, turn) for turn in range(QUIET_TURNS)]
        elif group.name in ("decoy", "seen"):
            bits += [(host, first[group.name] + decoy) for host, decoy in slots]
        elif group.name == "scans":
            bits += [(host, first["scans"]) for host in scanned]
        else:
            bits += [(host, first[group.name] + count) for count in range(group.sets) for host in range(hosts)]
    bits += [(host, SUSPECT) for host in range(hosts)]
    bits += [(_ORDER, bit) for bit in range(spec.inputs - len(bits))]
    return np.array([host for host, _ in bits]), np.array([bit for _, bit in bits])
