"""New scenarios: of machines and the subnets they stand in, and drawn by a seed.

Random numbers are made of whole numbers only (SplitMix64), so that a seed gives the same network everywhere; a change of
what is drawn must raise GENERATOR, which is part of every draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from fixfirst.base import arguments, errors
from fixfirst.game import parts
from fixfirst.game.parts import Finding, Host, Image, Subnet
from fixfirst.game.scenario_reading import VALUES

GENERATOR = 1  # the version of what `generated` draws
FEWEST_HOSTS, FEWEST_SUBNETS, MOST_SUBNETS = 8, 2, 8
Values = Literal["usual", "any"]  # of hosts: see `generated`

_GAMMA, _MIX_1, _MIX_2, _UINT64 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


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
    available, number = {**parts.IMAGES, **(images or {})}, {machine.name: n for n, machine in enumerate(machines)}
    subnet_of = {host: subnet for subnet, hosts in lists.items() for host in hosts}
    subnets = sorted(lists, key=lambda subnet: min(map(number.__getitem__, lists[subnet])))
    unit_types, units = parts.default_units(number, {name: subnet_of[name] for name in number}, subnets)
    watched = [machine for machine in machines if machine.watched]
    server = next((m for m in watched if available[m.image] == parts.IMAGES["Velociraptor_Server"]), watched[0])
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
        "ot_cost": VALUES["High"] if target is not None and target.image.runs_ot else 0.0,
        "green_hosts": tuple(name for name in number if name in parts.GREEN_NAMES),
    }


@dataclass
class _Draws:
    """Whole numbers from a seed: SplitMix64."""

    state: int

    def below(self, n: int) -> int:
        """Return a uniform whole number in 0..n-1."""
        self.state = self.state + _GAMMA & _UINT64
        x = self.state
        x = (x ^ x >> 30) * _MIX_1 & _UINT64
        x = (x ^ x >> 27) * _MIX_2 & _UINT64
        return ((x ^ x >> 31) >> 32) * n >> 32

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def one_of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]

    def shuffled(self, items: Sequence[str]) -> list[str]:
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


_USERS = ("windows_user_host1", "windows_user_host2", "linux_user_host1", "linux_user_host2")
_SERVERS = ("Gateway", "Internal", "Internal", "linux_user_host2")
_PLANT = ("Gateway", "linux_decoy_host")


def generated(
    seed: int, hosts: int | tuple[int, int], subnets: int | tuple[int, int], values: Values = "usual"
) -> dict[str, Any]:
    """Return the fields of a random scenario on which B_line and Meander play as CybORG's.

    Red starts on User0. Users lead to an enterprise host each; one enterprise host leads to Op_Server0, which stands in the
    last subnet, mostly behind a gate.

    Usual values are much as in CAGE2: what is nearer to the target is worth more, too. To tell value and place apart,
    values "any" draws Low or Medium for all users, for all enterprise hosts, for all of a further kind.
    """
    arguments.check_choice("values", values, get_args(Values))
    seed = arguments.check_seed("seed", seed)
    fewest, most = _range("hosts", hosts, FEWEST_HOSTS, parts.MOST_HOSTS)
    few, many = _range("subnets", subnets, FEWEST_SUBNETS, MOST_SUBNETS)
    draw = _Draws(GENERATOR * _GAMMA ^ seed & _UINT64)
    count = max(draw.between(fewest, most), few + 4)  # seven hosts that there are always, and one for each further subnet
    zones = draw.between(few, min(many, count - 4))
    names = ["User", "Enterprise", "Operational", *(f"Annex{n}" for n in range(zones - 3))][:zones]
    plant = names[2] if zones > 2 else "Enterprise"
    numbers = {"User": 2, "Enterprise": 3, "Op_Host": 0} | {zone: 1 for zone in names[3:]}
    kinds = ["User", "User", "Enterprise", *(["Op_Host"] if zones > 2 else []), *names[3:]]
    for _ in range(count - sum(numbers.values()) - 2):  # Defender and Op_Server0
        numbers[draw.one_of(kinds)] += 1
    enterprise = [f"Enterprise{n}" for n in range(numbers["Enterprise"])]
    lists = {"User": [f"User{n}" for n in range(numbers["User"])]}
    third = draw.one_of(enterprise)  # the one that B_line finds Op_Server0 from
    others = draw.shuffled([name for name in enterprise if name != third])
    lists["Enterprise"] = [*others[:2], third, *others[2:], "Defender"]
    machines = [Machine("Defender", "Enterprise", "Velociraptor_Server")]
    for name in enterprise:
        leads = (parts.TARGET_NAME,) if name == third else ()
        machines.append(Machine(name, "Enterprise", draw.one_of(_SERVERS), draw.one_of(("Low", "Medium", "Medium")), leads))
    inside = [f"Op_Host{n}" for n in range(numbers["Op_Host"])]
    machines += [Machine(name, plant, draw.one_of(_PLANT)) for name in inside]
    machines.append(Machine(parts.TARGET_NAME, plant, "OP_Server", "Medium"))
    lists[plant] = [*lists.get(plant, []), parts.TARGET_NAME, *inside]
    machines.append(Machine("User0", "User", "windows_user_host1", "None"))
    for name in lists["User"][1:]:
        machines.append(Machine(name, "User", draw.one_of(_USERS), "Low", (draw.one_of(enterprise),)))
    for zone in names[3:]:
        lists[zone] = [f"{zone}_Host{n}" for n in range(numbers[zone])]
        for name in lists[zone]:
            machines.append(Machine(name, zone, draw.one_of(_USERS), "Low", (draw.one_of(enterprise),)))
        door = draw.below(len(enterprise)) + 1  # behind Defender, in the order of machines
        machines[door] = replace(machines[door], leads_to=(*machines[door].leads_to, lists[zone][0]))
    gated = [plant] if zones > 2 and draw.below(4) else []
    if values == "any":
        words = {kind: draw.one_of(("Low", "Medium")) for kind in dict.fromkeys(kinds)}
        kind_of = {f"{kind}{n}": kind for kind in ("User", "Enterprise", "Op_Host") for n in range(numbers[kind])}
        kind_of |= {name: zone for zone in names[3:] for name in lists[zone]}
        drawn = (words.get(kind_of.get(m.name, ""), m.value) if m.name != "User0" else m.value for m in machines)
        machines = [replace(machine, value=value) for machine, value in zip(machines, drawn, strict=True)]
    return fields_of(machines, lists, "User0", gated)


def _range(what: str, value: Any, least: int, most: int) -> tuple[int, int]:
    """Return the bounds that a whole number, or a pair of them, gives."""
    pair = (value, value) if isinstance(value, int) and not isinstance(value, bool) else value
    whole = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(n, int) for n in pair)
    if not whole or not least <= pair[0] <= pair[1] <= most:
        raise errors.ScenarioError(f"{what} must be a whole number in {least}..{most}, or two of them, got {value!r}")
    return pair[0], pair[1]
