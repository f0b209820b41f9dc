"""New scenarios: drawn at random by a seed, or made from a table of machines.

Random numbers are made of whole numbers only (SplitMix64), so that a seed gives the same network everywhere; a change of
what is drawn must raise GENERATOR, which is part of every draw.
"""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from fixfirst.base import arguments, errors
from fixfirst.game import documents, parts
from fixfirst.game.documents import PRIVILEGED, built_in
from fixfirst.game.parts import Finding, Host, Image, Service, Subnet
from fixfirst.game.scenario_file import VALUES, check_name, default_units

GENERATOR = 1  # the version of what `generated` draws
FEWEST_HOSTS, FEWEST_SUBNETS, MOST_SUBNETS = 8, 2, 8
WORDS = ("None", "Low", "Medium", "High")
Values = Literal["usual", "any"]  # of hosts of a random scenario: see `generated`


@dataclass(frozen=True)
class Machine:
    """A host of a new scenario."""

    name: str
    subnet: str
    image: str
    value: str = "Low"  # of WORDS
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
    known, place = built_in() | (images or {}), {machine.name: number for number, machine in enumerate(machines)}
    subnet_of = {host: subnet for subnet, hosts in lists.items() for host in hosts}
    subnets = sorted(lists, key=lambda subnet: min(place[host] for host in lists[subnet]))
    unit_types, units = default_units(place, {name: subnet_of[name] for name in place}, subnets)
    watched = [machine for machine in machines if machine.watched]
    server = next((m for m in watched if known[m.image] == parts.VELOCIRAPTOR_SERVER), watched[0])
    hosts = []
    for machine in machines:
        image = known[machine.image]
        found = {machine.name: Finding(machine.name, subnet=True, ot_service=image.runs_ot)}
        found |= {name: Finding(name) for name in machine.leads_to}
        reveals = tuple(found[name] for name in sorted(found, key=place.__getitem__))
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
        "green_hosts": tuple(name for name in place if name in parts.GREEN_NAMES),
    }


# ---------------------------------------------------------------- at random

_GAMMA, _MIX_1, _MIX_2, _UINT64 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


@dataclass
class _Draws:
    """Whole numbers from a seed: SplitMix64."""

    state: int = field()

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


# ---------------------------------------------------------------- from a table

_COLUMNS = ("name", "subnet", "image", "os", "services", "value", "leads_to", "role", "watched")
ROLES = ("start", "target", "gateway")
_KNOWN_SERVICES = {
    "ssh": Service((22,), "ssh"),
    "ftp": Service((21,), "ftp", root=True),
    "web": Service((80, 443), "web"),
    "smtp": Service((25,), "smtp", root=True),
    "mysql": Service((3390,), "mysql", root=True),
    "rdp": Service((3389,), "rdp"),
    "smb": Service((445, 139), "smb", root=True),
}
_USUAL_IMAGE = {parts.LINUX: "Gateway", parts.WINDOWS: "windows_user_host1"}


def from_rows(path: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the fields of the scenario that a CSV file of machines describes. say: is told every default."""
    return _Table(path, say).fields()


class _Table:
    """Reads a table of machines, guesses what it does not say, and says what it guessed."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self.place, self.say = documents.Place(str(path)), say
        try:
            text = documents.read_bytes(path).decode("utf-8-sig")
            rows = list(csv.reader(io.StringIO(text), strict=True))
        except (UnicodeDecodeError, csv.Error) as e:
            raise self.place.refuse(f"is not a CSV file that can be read ({e})") from e
        header, *lines = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)] or [[]]
        for column in header:
            if column not in _COLUMNS:
                near = errors.did_you_mean(column, _COLUMNS)
                raise self.place.refuse(f"has the column {documents.short(column)}; use {', '.join(_COLUMNS)}{near}")
        for column in ("name", "subnet"):
            if column not in header:
                raise self.place.refuse(f"has no column {column}; use {', '.join(_COLUMNS)}")
        if "image" not in header and "os" not in header:
            raise self.place.refuse("has neither a column image nor a column os: what runs on a machine cannot be guessed")
        if not 1 <= len(lines) <= parts.MOST_HOSTS:
            raise self.place.refuse(f"has {len(lines)} machines; a scenario has 1 to {parts.MOST_HOSTS}")
        self.rows = []
        for number, line in enumerate(lines, start=2):
            if len(line) > len(header):
                raise (self.place / f"row {number}").refuse(f"has {len(line)} cells for {len(header)} columns")
            self.rows.append(dict(zip(header, line, strict=False)) | {"row": str(number)})
        self.images: dict[str, Image] = {}
        self._check_names()

    def _check_names(self) -> None:
        names = [row.get("name", "") for row in self.rows]
        for row in self.rows:
            at = self.place / f"row {row['row']}"
            for column in ("name", "subnet"):
                if not row.get(column):
                    raise at.refuse(f"has no {column}")
                check_name(row[column], at, column)
            if names.count(row["name"]) > 1:
                raise at.refuse(f"{row['name']} is there twice")
            if row.get("role", "") not in ("", *ROLES):
                raise at.refuse(f"role {documents.short(row['role'])} must be {', '.join(ROLES)}, or nothing")

    def fields(self) -> dict[str, Any]:
        start, target, gateways = self._roles()
        new = self._new_names(start, target, gateways)
        links = {row["name"]: self._links(row, new) for row in self.rows}
        subnet_of = {row["name"]: row["subnet"] for row in self.rows}
        if target is not None and not any(target in names for names in links.values()):
            for gateway in gateways:
                links[gateway].append(target)
            if gateways:
                self.say(f"{errors.list_words([new[g] for g in gateways])}: red finds the address of {new[target]} there")
        for name, row in ((row["name"], row) for row in self.rows):
            if gateways and not links[name] and row["subnet"] == subnet_of[start] and name != start and name not in gateways:
                links[name].append(gateways[0])
                self.say(f"{new[name]}: red finds the address of {new[gateways[0]]} there")
        gated = []
        if target is not None and gateways:
            behind = subnet_of[target]
            if behind not in {subnet_of[start], *(subnet_of[g] for g in gateways)}:
                gated = [behind]
                self.say(
                    f"subnet {behind}: red gets in while it holds {errors.list_words([new[g] for g in gateways], 'or')}"
                )
        machines = [
            Machine(
                new[row["name"]],
                row["subnet"],
                self._image(row, row["name"] == target),
                self._value(row, row["name"] == start),
                tuple(new[name] for name in links[row["name"]]),
                self._watched(row),
            )
            for row in self.rows
        ]
        lists: dict[str, list[str]] = {}
        for machine in machines:
            lists.setdefault(machine.subnet, []).append(machine.name)
        return fields_of(machines, lists, new[start], gated, self.images)

    def _roles(self) -> tuple[str, str | None, list[str]]:
        """Return who is start, target and gateway: by the column `role`, else by name."""
        by_role = {role: [row["name"] for row in self.rows if row.get("role") == role] for role in ROLES}
        names = [row["name"] for row in self.rows]
        for role in ("start", "target"):
            if len(by_role[role]) > 1:
                raise self.place.refuse(f"has {len(by_role[role])} machines with the role {role}; at most one has it")
        start = (by_role["start"] or [name for name in names if name == parts.HOME_NAME])[:1]
        if not start:
            raise self.place.refuse("says nowhere where the attacker starts: give one machine the role start")
        target = (by_role["target"] or [name for name in names if name == parts.TARGET_NAME])[:1]
        if not target:
            self.say("no machine has the role target: nothing can be impacted, and b_line cannot play")
        gateways = by_role["gateway"] or [name for name in names if parts.GATE_WORD in name]
        if not gateways:
            self.say("no machine has the role gateway: b_line finds its way by whatever addresses there are")
        return start[0], target[0] if target else None, gateways

    def _new_names(self, start: str, target: str | None, gateways: list[str]) -> dict[str, str]:
        """Return what machines are called in the scenario: agents know some only by name."""
        new = {row["name"]: row["name"] for row in self.rows}
        new[start] = parts.HOME_NAME
        if target is not None:
            new[target] = parts.TARGET_NAME
        for name in gateways:
            if parts.GATE_WORD not in new[name] and name not in (start, target):
                new[name] = f"{parts.GATE_WORD}_{name}"
        for name, called in new.items():
            if list(new.values()).count(called) > 1:
                raise self.place.refuse(f"{name} would be called {called}, as another machine is; give that another name")
            if name != called:
                self.say(f"{name} is called {called}: attackers know it by this name")
        return new

    def _links(self, row: dict[str, str], known: dict[str, str]) -> list[str]:
        names = row.get("leads_to", "").replace(";", " ").split()
        for name in names:
            if name not in known:
                near = errors.did_you_mean(name, known)
                raise (self.place / f"row {row['row']}").refuse(
                    f"leads to {documents.short(name)}, which is no machine{near}"
                )
        return names

    def _value(self, row: dict[str, str], is_start: bool) -> str:
        word = row.get("value", "").capitalize()
        if word in WORDS:
            return word
        if word:
            raise (self.place / f"row {row['row']}").refuse(
                f"value {documents.short(row['value'])} must be {', '.join(WORDS)}"
            )
        usual = "None" if is_start else "Low"
        self.say(f"{row['name']}: value {usual}")
        return usual

    def _watched(self, row: dict[str, str]) -> bool:
        word = row.get("watched", "").lower() or "yes"
        if word not in ("yes", "no"):
            raise (self.place / f"row {row['row']}").refuse(f"watched {documents.short(row['watched'])} must be yes or no")
        return word == "yes"

    def _image(self, row: dict[str, str], is_target: bool) -> str:
        at = self.place / f"row {row['row']}"
        image, os, services = row.get("image", ""), row.get("os", "").lower(), row.get("services", "")
        if image:
            if image not in built_in():
                near = errors.did_you_mean(image, built_in())
                raise at.refuse(f"image {documents.short(image)} is unknown; use {', '.join(built_in())}{near}")
            return image
        if os not in PRIVILEGED:
            raise at.refuse(f"os {documents.short(row.get('os', ''))} must be {' or '.join(PRIVILEGED)}, or give an image")
        words = services.lower().replace(";", " ").split()
        for word in words:
            if word not in _KNOWN_SERVICES:
                near = errors.did_you_mean(word, _KNOWN_SERVICES)
                raise at.refuse(f"service {documents.short(word)} is unknown; use {', '.join(_KNOWN_SERVICES)}{near}")
        if not words:
            usual = "OP_Server" if is_target and os == parts.LINUX else _USUAL_IMAGE[os]
            self.say(f"{row['name']}: image {usual}")
            return usual
        return self._own_image(os, sorted(set(words), key=list(_KNOWN_SERVICES).index), is_target)

    def _own_image(self, os: str, words: list[str], runs_ot: bool) -> str:
        """Return the name of the built-in image with exactly these services, or of a new one."""
        for image in built_in().values():
            kinds = sorted({s.kind or "" for s in image.services})
            if image.os == os and kinds == sorted(words) and image.runs_ot == runs_ot:
                return image.name
        name = "-".join((os, *words, *(["ot"] if runs_ot else [])))
        listen = (replace(_KNOWN_SERVICES[word], immune=word == "smb" and os == parts.LINUX) for word in words)
        if name not in self.images:
            self.images[name] = Image(name, os, tuple(listen), runs_ot)
            self.say(f"image {name} is new: CybORG itself would need it in its folder of images")
        return name
