"""A scenario as one record of tables, the argument by which compiled functions know what they play.

Nothing of a scenario is compiled: whoever plays another one hands over another record. There are two types of records, for
scenarios that fit `SMALL` and for all others (`LARGE`), and so at most two machine codes of everything.

H hosts, S subnets, A actions: the most of a `Size`. E = 8 exploits, on 8 ports, the same in all scenarios. A set of hosts,
subnets or ports is an integer bit mask: bit h stands for host h, bit p for the p-th entry of `PORTS`; the bits behind those
stand for the further ports of a host, of which only counts how many are open, up to three. What is asked of a set in every
step is looked up: loops over members are slow where their number is hard to guess.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fixfirst.game import parts
from fixfirst.game.parts import (
    DECOYS,
    EXPLOITS,
    FREE_VERBS,
    GATE_WORD,
    GREEN_NAMES,
    INVALID_COST,
    MADE_UP,
    MOST_HOSTS,
    PORTS,
)
from fixfirst.game.scenario import Scenario


class Size(NamedTuple):
    """The most that a type of records holds."""

    hosts: int
    subnets: int
    words: int  # of what blue sees: 16 hosts each
    slots: int  # words of 64 decoys, see `action_sets.py`
    host_set: type[np.signedinteger[Any]]  # signed, because Numba turns uint64 - int into a float
    subnet_set: type[np.signedinteger[Any]]

    @property
    def actions(self) -> int:
        return len(FREE_VERBS) + len(HOST_VERBS) * self.hosts


SMALL = Size(15, 7, 1, 2, np.int16, np.int8)
LARGE = Size(MOST_HOSTS, MOST_HOSTS, 4, 8, np.int64, np.int64)


def size_of(scenario: Scenario) -> Size:
    """Return the smallest size that holds a scenario."""
    return SMALL if scenario.num_hosts <= SMALL.hosts and len(scenario.subnets) <= SMALL.subnets else LARGE


def constant(values: object, dtype: type = np.int64) -> np.ndarray:
    """An array that nobody can change."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


# Blue's verbs, by number
HOST_VERBS = ("Analyse", "Remove", "Restore", "Misinform", *(f"Decoy{decoy.name}" for decoy in DECOYS))
_VERBS = FREE_VERBS + HOST_VERBS
SLEEP, MONITOR, ANALYSE, REMOVE, RESTORE, MISINFORM, FIRST_DECOY = range(7)

# Ports and exploits, in the order in which red lists them
MOST_FURTHER_PORTS = 3  # more are seen as so many
EXPLOIT_PORT = constant([1 << PORTS.index(e.port) for e in EXPLOITS])  # [E] mask of one
MISINFORM_PORT = constant([1 << PORTS.index(decoy.opens) for decoy in MADE_UP])  # [5] mask of one


def _fitting(ports: int) -> list[int]:
    """The exploits that red considers when it remembers these ports, heaviest first."""

    def remembered(*wanted: int) -> bool:
        return any(ports >> PORTS.index(port) & 1 for port in wanted)

    fitting = [
        number
        for number, exploit in enumerate(EXPLOITS)
        if remembered(exploit.port) and (not exploit.also_one_of or remembered(*exploit.also_one_of))
    ]
    return sorted(fitting, key=lambda number: -EXPLOITS[number].weight)


_FITTING = [_fitting(ports) for ports in range(2 ** len(PORTS))]
HEAVIEST_EXPLOIT = constant([fitting[0] if fitting else -1 for fitting in _FITTING], np.int8)  # [256] of a set of ports
OTHER_EXPLOITS = constant([sum(1 << e for e in fitting[1:]) for fitting in _FITTING], np.int16)  # [256] mask: all but it
EXPLOITED_PORTS = 2 ** len(PORTS) - 1  # mask

# Sets: eight possible members at a time
BYTE_SIZE = constant([byte.bit_count() for byte in range(256)], np.int8)  # [256]
BYTE_MEMBER = constant(  # [256, 8]: the n-th smallest member
    [sorted(range(8), key=lambda member: (~byte >> member & 1, member)) for byte in range(256)], np.int8
)

# Bits as bytes: bit k of 0..255 becomes byte k
EIGHT_BYTES = constant([sum((bits >> k & 1) << 8 * k for k in range(8)) for bits in range(256)], np.uint64)  # [256]


# B_line follows a script of 15 stages; after a failure it falls back to an earlier one
HOME, FIRST, _SECOND, SECONDS, THIRD, TARGET = range(6)  # whom a stage means, see `_bline_targets`
BLINE_STAGES = (HOME, FIRST, FIRST, FIRST, _SECOND, _SECOND, _SECOND, SECONDS, THIRD, THIRD, THIRD, *[TARGET] * 4)


@cache
def tables_dtype(size: Size) -> np.dtype:
    """Return the type of a scenario's record."""
    hosts, subnets, actions, host_set, subnet_set = size.hosts, size.subnets, size.actions, size.host_set, size.subnet_set
    return np.dtype(
        [
            ("num_hosts", np.int64),
            ("num_subnets", np.int64),
            ("num_actions", np.int64),
            # the release of the game
            ("scans_accumulate", np.bool_),
            ("restore_patches_smtp", np.bool_),
            ("remove_reports_result", np.bool_),
            ("any_session_costs", np.bool_),
            ("callback_outranks_scan", np.bool_),
            # blue
            ("action_verb", np.int8, actions),  # what blue says; SLEEP where that is invalid
            ("action_effect", np.int8, actions),  # what comes of it; SLEEP where blue has no session
            ("action_host", np.int8, actions),  # -1: none
            ("action_success", np.int8, actions),  # Success, unless the outcome says otherwise
            ("action_tenths", np.int16, actions),  # what it costs
            ("place", np.int8, hosts),  # where a host stands in what blue sees, or -1
            ("watched", host_set),  # where blue sees events
            ("decoy_opens", np.int16, (len(DECOYS), hosts)),  # mask; 0: the decoy does not fit the host
            ("decoy_needs_free", np.int16, len(DECOYS)),  # mask
            # the network
            ("host_subnet", np.int8, hosts),
            ("subnet_hosts", host_set, subnets),
            ("open_subnets", subnet_set),  # red always gets there
            ("gated_subnets", subnet_set),  # red gets there while it holds one of:
            ("gates", host_set),
            ("real_ports", np.int16, hosts),  # mask of what listens from the start
            ("passes", np.int16, hosts),  # mask of the ports that let red through
            ("smtp_hosts", host_set),
            ("meets", np.int8, (hosts, len(EXPLOITS))),  # what an exploit finds: NOTHING, a shell ...
            ("decoy_catches", np.int8, (hosts, len(EXPLOITS))),  # would a decoy on its port play the right service?
            ("cost", np.int16, (-(-size.hosts // 8), 256)),  # tenths: the values of eight hosts at a time
            # red
            ("start", host_set),  # the host it holds from the start, for ever
            ("first_hosts", host_set),  # what it knows then: addresses
            ("first_names", host_set),
            ("first_subnets", subnet_set),
            ("reveals_hosts", host_set, hosts),  # what it learns where it escalates
            ("reveals_names", host_set, hosts),
            ("reveals_subnets", subnet_set, hosts),
            ("reveals_ot", np.int8, hosts),
            ("target", np.int8),  # of Impact; -1: there is none
            ("target_runs_ot", np.bool_),
            ("ot_tenths", np.int64),  # what the stopped service costs
            ("detected_below", np.uint64),  # a reverse shell is seen when 53 random bits are below this
            ("users", host_set),  # B_line goes through one of these; if there are none, through:
            ("only_user", np.int8),
            ("bline_target", np.int8, (len(BLINE_STAGES), hosts)),  # by stage and user host
            ("op_names", host_set),  # what Meander forgets after a failure
            ("ent_names", host_set),
            # green
            ("green_hosts", np.int8, 8),  # the hosts of its eight names, in order; then -1 for those without
        ]
    )


@lru_cache(maxsize=1024)
def tables_of(scenario: Scenario, variant: parts.VariantName = "current") -> np.ndarray:
    """Return the record of a scenario in a variant, [1] of `tables_dtype`."""
    block = np.zeros(1, tables_dtype(size_of(scenario)))
    here, release = scenario.by_variant[variant], parts.VARIANTS[variant]
    values: dict[str, object] = {
        "num_hosts": scenario.num_hosts,
        "num_subnets": len(scenario.subnets),
        "num_actions": scenario.num_actions,
        **{name: getattr(release, name) for name in block.dtype.names or () if hasattr(release, name)},
        **_blue(here),
        **_network(here),
        **_red(here),
    }
    for name, value in values.items():
        array: np.ndarray = np.asarray(value)
        part: tuple[Any, ...] = (0, *(slice(length) for length in array.shape))
        block[name][part] = array  # it may be smaller than its field
    block.setflags(write=False)
    return block


def _blue(scenario: Scenario) -> dict[str, object]:
    hosts = [-1 if action.host is None else scenario.host_ids[action.host] for action in scenario.actions]
    rows = (_action(scenario, action.verb, host) for action, host in zip(scenario.actions, hosts, strict=True))
    verbs, effects, successes, tenths = zip(*rows, strict=True)
    by_name = {decoy.name: decoy for decoy in scenario.decoys}
    decoys = [by_name.get(decoy.name, decoy) for decoy in DECOYS]  # in some variants they are others
    return {
        "action_verb": verbs,
        "action_effect": effects,
        "action_host": hosts,
        "action_success": successes,
        "action_tenths": tenths,
        "place": [scenario.listed.index(h) if host.listed else -1 for h, host in enumerate(scenario.hosts)],
        "watched": _set(h for h, host in enumerate(scenario.hosts) if host.watched),
        "decoy_opens": [[_port_set([d.opens]) if d.fits(host) else 0 for host in scenario.hosts] for d in decoys],
        "decoy_needs_free": [_port_set([decoy.needs_free]) for decoy in decoys],
    }


def _action(scenario: Scenario, verb: str, host: int) -> tuple[int, int, int, int]:
    """Return what blue says, what comes of it, how it is reported (`Success`) and what it costs, in tenths."""
    unknown, false, true = -1, 0, 1
    number = _VERBS.index(verb)
    if host < 0:
        return number, number, unknown if number == SLEEP else true, 0
    if not scenario.hosts[host].listed:
        return SLEEP, SLEEP, false, round(10 * INVALID_COST)
    tenths = round(10 * scenario.restore_cost) if number == RESTORE else 0
    return (number, number, true, tenths) if scenario.hosts[host].reached else (number, SLEEP, false, tenths)


def _network(scenario: Scenario) -> dict[str, object]:
    hosts, subnets, decoys = scenario.hosts, scenario.subnets, (*scenario.decoys, *scenario.misinform)
    values = [round(10 * host.value) for host in hosts]
    eights = [values[first : first + 8] for first in range(0, len(values), 8)]
    smtp = (h for h, host in enumerate(hosts) if any(service.kind == "smtp" for service in host.image.services))
    return {
        "host_subnet": [host.subnet for host in hosts],
        "subnet_hosts": [_set(h for h, host in enumerate(hosts) if host.subnet == s) for s in range(len(subnets))],
        "open_subnets": _set(s for s, subnet in enumerate(subnets) if subnet.reach in ("open", "filtered")),
        "gated_subnets": _set(s for s, subnet in enumerate(subnets) if subnet.reach == "gated"),
        "gates": scenario.name_mask(GATE_WORD),
        "real_ports": [_port_set(host.ports) for host in hosts],
        "passes": [_port_set(filter(subnets[host.subnet].lets, {*PORTS, *host.ports})) for host in hosts],
        "smtp_hosts": _set(smtp),
        "meets": [[exploit.meets(host) for exploit in EXPLOITS] for host in hosts],
        # Would a decoy on the exploit's port play the service that the exploit looks for?
        "decoy_catches": [
            [any((d.opens, d.kind) == (exploit.port, exploit.kind) and d.fits(host) for d in decoys) for exploit in EXPLOITS]
            for host in hosts
        ],
        # The values of all hosts of a set in tenths, for every set of the hosts 0-7, of 8-15 and so on.
        "cost": [[sum(value for k, value in enumerate(eight) if byte >> k & 1) for byte in range(256)] for eight in eights],
    }


def _red(scenario: Scenario) -> dict[str, object]:
    target, green = scenario.target_id, sorted(scenario.host_ids[name] for name in scenario.green_hosts or ())
    learned, ids = (scenario.known, *(host.reveals for host in scenario.hosts)), scenario.host_ids  # first, then by host
    hosts = [_set(ids[finding.host] for finding in findings if finding.address) for findings in learned]
    names = [_set(ids[finding.host] for finding in findings if finding.name) for findings in learned]
    subnets = [_set(scenario.hosts[ids[f.host]].subnet for f in findings if f.subnet) for findings in learned]
    return {
        "start": 1 << scenario.start_id,
        "first_hosts": hosts[0],
        "first_names": names[0],
        "first_subnets": subnets[0],
        "reveals_hosts": hosts[1:],
        "reveals_names": names[1:],
        "reveals_subnets": subnets[1:],
        "reveals_ot": [any(finding.ot_service for finding in findings) for findings in learned[1:]],
        "target": target,
        "target_runs_ot": scenario.can_stop_service,
        "ot_tenths": round(10 * scenario.ot_cost),
        "detected_below": int(scenario.detection * 2.0**53),
        "users": _set(scenario.b_line_first),
        "only_user": scenario.host_ids[scenario.home],
        "bline_target": _bline_targets(scenario, size_of(scenario).hosts),
        "op_names": scenario.name_mask("Op"),
        "ent_names": scenario.name_mask("Ent"),
        "green_hosts": (green + [-1] * len(GREEN_NAMES))[: len(GREEN_NAMES)],
    }


def _bline_targets(scenario: Scenario, most: int) -> list[list[int]]:
    """Return B_line's target at each stage, by the user host it goes through, [15, most]."""
    home = scenario.hosts[scenario.host_ids[scenario.home]].subnet
    by_user = []
    for number in range(most):
        user, second, third = scenario.b_line_ways[min(number, scenario.num_hosts - 1)]
        means = {HOME: home, FIRST: user, _SECOND: second, SECONDS: scenario.hosts[second].subnet}
        means |= {THIRD: third, TARGET: scenario.target_id}
        by_user.append([means[stage] for stage in BLINE_STAGES])
    return [list(stage) for stage in zip(*by_user, strict=True)]


def _set(members: Iterable[int]) -> int:
    return sum(1 << member for member in set(members))


def _port_set(ports: Iterable[int]) -> int:
    """Return a set of ports; of those that no exploit wants, only how many."""
    ports = set(ports)
    others = ports.difference(PORTS)
    return _set(map(PORTS.index, ports - others)) | (1 << min(len(others), MOST_FURTHER_PORTS)) - 1 << len(PORTS)
