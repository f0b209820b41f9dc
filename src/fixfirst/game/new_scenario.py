"""New scenarios: of machines and the subnets they stand in, the fields of a `Scenario`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fixfirst.game import parts
from fixfirst.game.images import built_in
from fixfirst.game.parts import Finding, Host, Image, Subnet
from fixfirst.game.scenario_reading import VALUES
from fixfirst.game.unit_types import default_units


@dataclass(frozen=True)
class Machine:
    """A host of a new scenario."""

    name: str
    subnet: str
    image: str
    value: str = "Low"  # of VALUES
    leads_to: tuple[str, ...] = ()  # hosts whose addresses red finds here
    watched: bool = True


def fields_of(
    machines: Sequence[Machine],
    lists: dict[str, list[str]],
    start: str,
    gated: Sequence[str] = (),
    images: dict[str, Image] | None = None,
) -> dict[str, Any]:
    """Return the fields of a `Scenario`, but for its name. lists: subnet -> its hosts in order; gated: those with a gate."""
    available, number = built_in() | (images or {}), {machine.name: n for n, machine in enumerate(machines)}
    subnet_of = {host: subnet for subnet, hosts in lists.items() for host in hosts}
    subnets = sorted(lists, key=lambda subnet: min(map(number.__getitem__, lists[subnet])))
    unit_types, units = default_units(number, {name: subnet_of[name] for name in number}, subnets)
    watched = [machine for machine in machines if machine.watched]
    server = next((m for m in watched if available[m.image] == parts.VELOCIRAPTOR_SERVER), watched[0])
    hosts = []
    for machine in machines:
        image = available[machine.image]
        findings = {machine.name: Finding(machine.name, subnet=True, ot_service=image.runs_ot)}
        findings |= {name: Finding(name) for name in machine.leads_to}
        reveals = tuple(findings[name] for name in number if name in findings)
        reached, subnet = machine.watched or machine is server, subnets.index(subnet_of[machine.name])
        value, unit = VALUES[machine.value], units.get(machine.name, "")
        hosts.append(Host(machine.name, subnet, unit, image, value, reveals, watched=machine.watched, reached=reached))
    target = next((host for host in hosts if host.name == parts.TARGET_NAME), None)
    return {
        "subnets": tuple(Subnet(s, tuple(lists[s]), "gated" if s in gated else "open") for s in subnets),
        "hosts": tuple(hosts),
        "unit_types": unit_types,
        "start": start,
        "known": (Finding(start, subnet=True, name=True),),
        "ot_cost": VALUES["High"] if target is not None and target.runs_ot else 0.0,
        "green_hosts": tuple(name for name in number if name in parts.GREEN_NAMES),
    }
