"""Scenario files of CybORG: reading one into the fields of a `Scenario`.

A file has three tables, `Agents`, `Hosts` and `Subnets`. What CybORG reads and what plays no part is in docs/scenarios.md;
what cannot be played exactly is refused, with the place. Keys that play no part are accepted; those that look like slips are
noted (`Scenario.remarks`). Own images can come in a fourth table, `Images`, which CybORG ignores.
"""

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.documents import Table, as_table, check_name, check_one_of
from fixfirst.game.images import OT_SERVICE, PRIVILEGED, ImageTable, built_in
from fixfirst.game.parts import Finding, Host, Image, Subnet
from fixfirst.game.unit_types import default_units

VALUES = {"None": 0.0, "Low": 0.1, "Medium": 1.0, "High": 10.0}
RED_ACTIONS: tuple[str, ...] = ("Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService")
RED_ACTIONS += ("PrivilegeEscalate", "Impact")
REWARD = "HybridAvailabilityConfidentiality"
SERVER, CLIENT, FOOTHOLD, GREEN = "VelociraptorServer", "VelociraptorClient", "RedAbstractSession", "green_session"
_MOST_PORTS = 63 - len(parts.EXPLOITS)  # with those of exploits as many as a signed word has bits
_OF_IMAGES = ("Services", "Processes", "System info", "User Info")
_NOT_MODELLED = ("Processes", "Sessions", "Files")

Value = Literal["None", "Low", "Medium", "High"]


class _Finding(Table):
    """What an agent learns of a host: before it plays, or from another host."""

    interfaces: Literal["All", "IP Address"] | None = Field(None, alias="Interfaces")
    system: Any = Field(None, alias="System info")
    services: Any = Field(None, alias="Services")
    user: Any = Field(None, alias="User info")


class _Host(Table):
    image: str
    confidentiality: Value = Field("Low", alias="ConfidentialityValue")
    availability: Value = Field("Low", alias="AvailabilityValue")
    info: dict[str, _Finding] = Field({})


def _word_or_ranges(inward: Any) -> Any:
    """Check what a rule lets in; return ranges as lists of two ports."""
    if inward in ("all", "None"):
        return inward
    entries = inward if isinstance(inward, list) else [inward]
    ranges = [entry.get("PortRange") if isinstance(entry, dict) else None for entry in entries]
    if not all(isinstance(ports, list) and [*map(type, ports)] == [int, int] for ports in ranges):
        raise ValueError("must be all, None, or a list of PortRange: [first, end], of which `end` itself is not let through")
    return ranges


class _Rule(Table):
    inward: Annotated[Any, BeforeValidator(_word_or_ranges)] = Field(alias="in")


class _Subnet(Table):
    hosts: list[str] = Field(alias="Hosts")
    size: float = Field(alias="Size", ge=-4, lt=2**16)
    rules: dict[str, _Rule] = Field({}, alias="NACLs")


class _Session(Table):
    hostname: str
    name: str | None = None
    type: str | None = None
    username: str | None = None
    parent: str | None = None
    artifacts: list[str] = Field([])


class _Knowledge(Table):
    hosts: dict[str, _Finding] = Field({}, alias="Hosts")


class _Agent(Table):
    subnets: list[str] = Field(alias="AllowedSubnets")
    knows: _Knowledge = Field(_Knowledge(), alias="INT")
    actions: list[str] = Field([])
    sessions: list[_Session] = Field([], alias="starting_sessions")
    reward: str | None = Field(None, alias="reward_calculator_type")
    adversary: str | None = None
    wrappers: list[Any] | None = None


class _File(Table):
    agents: dict[Literal["Blue", "Green", "Red"], _Agent] = Field(alias="Agents")
    hosts: dict[str, _Host] = Field(alias="Hosts")
    subnets: dict[str, _Subnet] = Field(alias="Subnets")
    images: dict[str, ImageTable] = Field({}, alias="Images")
    reward: Any = Field(None, alias="Reward")


def fields_from(document: Any, name: str, file: str, images: Mapping[str, Image] | None = None) -> dict[str, Any]:
    """Return the fields of the `Scenario` that a file's contents describe. file: its name, for errors."""
    return _Reader(as_table(_File, document, file), file, images).fields(name)


class _Reader:
    """Reads hosts, then subnets, then agents, and refuses what does not fit together or cannot be played exactly."""

    def __init__(self, file: _File, name: str, images: Mapping[str, Image] | None):
        self.file, self.name, self.remarks = file, name, list(file.slips())
        own = {image: table.image(image, f"{name}: Images.{image}") for image, table in file.images.items()}
        self.images = ChainMap(own, built_in() if images is None else {**images})
        self.order = {host: number for number, host in enumerate(file.hosts)}
        self.image: dict[str, Image] = {}

    def check(self, right: bool, place: str, why: str) -> None:
        if not right:
            raise errors.ScenarioError(f"{self.name}: {place}: {why}")

    def check_hosts(self, hosts: Iterable[str], place: str) -> None:
        for host in hosts:
            near = errors.did_you_mean(host, self.order)
            self.check(host in self.order, place, f"names the host {host!r}, which is not in Hosts{near}")

    def fields(self, name: str) -> dict[str, Any]:
        hosts, agents = self.file.hosts, self.file.agents
        self.check(1 <= len(hosts) <= parts.MOST_HOSTS, "Hosts", f"has {len(hosts)} hosts, not 1 to {parts.MOST_HOSTS}")
        for host, table in hosts.items():
            check_name(host, f"{self.name}: Hosts", "host")
            check_one_of(table.image, self.images, f"{self.name}: Hosts.{host}.image")
            self.image[host] = self.images[table.image]
            of_images = [key for key in _OF_IMAGES if key in (table.model_extra or ())]
            self.check(
                not of_images, f"Hosts.{host}", f"{', '.join(of_images)} belongs to an image, not to a host, in CybORG"
            )
        subnet_of = self._subnet_of()
        self._check_sizes()
        self._check_agents()
        start, known = self._red(agents["Red"])
        listed, watched, reached = self._blue(agents["Blue"])
        names = sorted(
            self.file.subnets, key=lambda subnet: min(self.order[host] for host in self.file.subnets[subnet].hosts)
        )
        unit_types, units = default_units(self.order, {host: subnet_of[host] for host in self.order}, names)
        made = tuple(
            Host(
                name=host,
                subnet=names.index(subnet_of[host]),
                unit=units.get(host, ""),
                image=self.image[host],
                value=VALUES[table.confidentiality],
                reveals=self._findings(table.info, f"Hosts.{host}.info", (*_NOT_MODELLED, "User info")),
                listed=host in listed,
                watched=host in watched,
                reached=host in reached,
            )
            for host, table in hosts.items()
        )
        ports, target = {port for host in made for port in host.ports}, hosts.get(parts.TARGET_NAME)
        self.check(len(ports) <= _MOST_PORTS, "Hosts", f"have services on {len(ports)} ports; at most {_MOST_PORTS}")
        order, verbs = list(agents), tuple(agents["Blue"].actions)
        return {
            "name": name,
            "subnets": tuple(self._subnet(subnet, subnet_of[start]) for subnet in names),
            "hosts": made,
            "unit_types": unit_types,
            "start": start,
            "known": known,
            "ot_cost": VALUES[target.availability] if target is not None and self.image[parts.TARGET_NAME].runs_ot else 0.0,
            "verbs": verbs,
            "decoys": tuple(decoy for decoy in parts.DECOYS if f"Decoy{decoy.name}" in verbs),
            "green_hosts": self._green(agents["Green"]) if "Green" in agents else None,
            "red_before_green": "Green" in order and order.index("Red") < order.index("Green"),
            "remarks": tuple(self.remarks),
        }

    def _findings(self, findings: Mapping[str, _Finding], place: str, not_modelled: tuple[str, ...]) -> tuple[Finding, ...]:
        """Return what a table `info` or `INT.Hosts` of Red tells, in the order of hosts."""
        self.check_hosts(findings, place)
        learned = {}
        for host, table in findings.items():
            given = table.model_dump(by_alias=True, exclude_unset=True)
            odd = [key for key in not_modelled if key in given]
            self.check(
                not odd, f"{place}.{host}", f"{', '.join(odd)} is not modelled; use Interfaces, System info or Services"
            )
            if "Services" in given:
                right = table.services in ("All", ["All"], [OT_SERVICE])
                self.check(right, f"{place}.{host}.Services", f"{table.services!r} must be [{OT_SERVICE}] or All")
                why = f"the image {self.image[host].name} of {host} does not run {OT_SERVICE}; use OP_Server"
                self.check(self.image[host].runs_ot, f"{place}.{host}.Services", why)
            ot = "Services" in given and "User info" in not_modelled  # red knows no service before it plays
            seen = table.interfaces
            finding = Finding(host, seen is not None, seen == "All", "System info" in given, ot)
            if finding != Finding(host, address=False):
                learned[host] = finding
        return tuple(learned[host] for host in sorted(learned, key=self.order.__getitem__))

    def _subnet_of(self) -> dict[str, str]:
        """Return the subnet of every host; each is in one."""
        owner: dict[str, str] = {}
        for subnet, table in self.file.subnets.items():
            check_name(subnet, f"{self.name}: Subnets", "subnet")
            self.check(subnet != "all", "Subnets", "'all' cannot be the name of a subnet: in NACLs it means every subnet")
            place = f"Subnets.{subnet}.Hosts"
            self.check(bool(table.hosts), place, "is empty; a subnet has at least one host")
            self.check_hosts(table.hosts, place)
            for host in table.hosts:
                self.check(host not in owner, place, f"{host} is in {owner.get(host)} already; every host is in one")
                owner[host] = subnet
        missing = [host for host in self.order if host not in owner]
        self.check(not missing, "Subnets", f"no subnet has {', '.join(missing)}; every host is in one")
        return owner

    def _check_sizes(self) -> None:
        """Refuse subnets with too few addresses: CybORG gives each a block of a /16 network."""
        for subnet, table in self.file.subnets.items():
            room, count = 2 ** _address_bits(table.size) - 2, len(table.hosts)
            why = f"{table.size:g} gives {room} addresses for {count} hosts; use {subnet_size(count)}"
            self.check(room >= count, f"Subnets.{subnet}.Size", why)
        widest = max(_address_bits(table.size) for table in self.file.subnets.values())
        many = (
            f"{len(self.file.subnets)} subnets of the largest Size do not fit into a /16 network, which is what CybORG has"
        )
        self.check(len(self.file.subnets) * 2**widest <= 2**16, "Subnets", many)

    def _subnet(self, name: str, source: str) -> Subnet:
        """Return a subnet with how red gets into it from its own, `source`."""
        table, place = self.file.subnets[name], f"Subnets.{name}.NACLs"
        for other in (rule for rule in table.rules if rule != "all" and rule not in self.file.subnets):
            near = errors.did_you_mean(other, ("all", *self.file.subnets))
            self.remarks.append(f"{place}.{other} plays no part: there is no such subnet{near}")
        key = source if source in table.rules else "all"
        inward = table.rules[key].inward if key in table.rules else "closed"
        stops = f"None stops CybORG under 'all'; put the rule under {source}, where red starts"
        self.check((key, inward) != ("all", "None"), f"{place}.all.in", stops)
        if isinstance(inward, list):
            return Subnet(name, tuple(table.hosts), "filtered", _merged(inward))
        return Subnet(name, tuple(table.hosts), _REACH[inward])

    def _check_agents(self) -> None:
        agents, subnets = self.file.agents, self.file.subnets
        for name, agent in agents.items():
            place = f"Agents.{name}"
            for subnet in agent.subnets:
                check_one_of(subnet, subnets, f"{self.name}: {place}.AllowedSubnets")
            missing = [subnet for subnet in subnets if subnet not in agent.subnets and name != "Green"]
            self.check(not missing, f"{place}.AllowedSubnets", f"lacks {', '.join(missing)}")
            self.check(not agent.wrappers, f"{place}.wrappers", "must be an empty list")
            self.check_hosts(agent.knows.hosts, f"{place}.INT.Hosts")
            self.check_hosts((session.hostname for session in agent.sessions), f"{place}.starting_sessions")
        self.check("Blue" in agents and "Red" in agents, "Agents", "must have Blue and Red")
        first = next(iter(agents))
        self.check(first == "Blue", "Agents", f"begins with {first}; Blue must come first: events are seen in this order")

    def _blue(self, agent: _Agent) -> tuple[set[str], set[str], set[str]]:
        """Return the hosts that are listed, watched and reached."""
        for key, value, right in (("reward_calculator_type", agent.reward, REWARD), ("adversary", agent.adversary, "Red")):
            self.check(value == right, f"Agents.Blue.{key}", f"{value!r} must be {right}")
        for host, known in agent.knows.hosts.items():
            right_ones = known.interfaces == "All" and "system" in known.model_fields_set
            self.check(right_ones, f"Agents.Blue.INT.Hosts.{host}", "must have Interfaces: All and System info: All")
        place, servers = "Agents.Blue.starting_sessions", [s for s in agent.sessions if s.parent is None]
        count = f"has {len(servers)} sessions without a parent; blue has one, of type {SERVER}"
        self.check(len(servers) == 1, place, count)
        (server,) = servers
        for number, session in enumerate(agent.sessions):
            kind = SERVER if session is server else CLIENT
            self.check(session.type == kind, f"{place}.{number}.type", f"{session.type!r} must be {kind}")
            parent = f"{session.parent!r} must be {server.name!r}, the name of the {SERVER}"
            self.check(session is server or session.parent == server.name, f"{place}.{number}.parent", parent)
            listed = f"has a session on {session.hostname}, which is not in Agents.Blue.INT.Hosts; list it there"
            self.check(session.hostname in agent.knows.hosts, place, listed)
        sees = "NetworkConnections" in server.artifacts
        self.check(sees, place, f"the {SERVER} must have NetworkConnections among its artifacts")
        self._check_verbs(agent.actions, "Agents.Blue.actions")
        watched = {session.hostname for session in agent.sessions if session is not server}
        return set(agent.knows.hosts), watched, watched | {server.hostname}

    def _check_verbs(self, verbs: list[str], place: str) -> None:
        self.check(bool(verbs), place, f"is empty; use some of {', '.join(parts.VERBS)}")
        for verb in verbs:
            check_one_of(verb, parts.VERBS, f"{self.name}: {place}")
            self.check(verbs.count(verb) == 1, place, f"has {verb} twice")
        for clash in {"DecoySmss", "DecoySvchost"} & set(verbs):
            why = f"has Misinform and {clash}; what a port pretends to be would depend on which came"
            self.check("Misinform" not in verbs, place, why)

    def _red(self, agent: _Agent) -> tuple[str, tuple[Finding, ...]]:
        """Return where red starts and what it knows."""
        place = "Agents.Red.starting_sessions"
        self.check(len(agent.sessions) == 1, place, f"has {len(agent.sessions)} sessions; red has exactly one")
        (session,) = agent.sessions
        start = session.hostname
        account, os = PRIVILEGED[self.image[start].os], self.image[start].os.capitalize()
        self.check(session.type == FOOTHOLD, f"{place}.0.type", f"{session.type!r} must be {FOOTHOLD}")
        why = f"{session.username!r} must be {account}: {start} runs {os}"
        self.check(session.username == account, f"{place}.0.username", why)
        self.check(start in agent.knows.hosts, "Agents.Red.INT.Hosts", f"lacks {start}, where red starts")
        missing = [verb for verb in RED_ACTIONS if verb not in agent.actions]
        self.check(not missing, "Agents.Red.actions", f"lacks {', '.join(missing)}")
        return start, self._findings(agent.knows.hosts, "Agents.Red.INT.Hosts", _NOT_MODELLED)

    def _green(self, agent: _Agent) -> tuple[str, ...]:
        """Return the hosts that green can scan, of the eight it draws from."""
        first = agent.sessions[0] if agent.sessions else None
        can = first is not None and first.type == GREEN and first.hostname in agent.knows.hosts
        if not can or "GreenPortScan" not in agent.actions:
            return ()
        scanned = {host for host, known in agent.knows.hosts.items() if "system" in known.model_fields_set}
        return tuple(host for host in self.order if host in parts.GREEN_NAMES and host in scanned)


_REACH: dict[str, Literal["open", "gated", "closed"]] = {"all": "open", "None": "gated", "closed": "closed"}


def _merged(ranges: Iterable[list[int]]) -> tuple[tuple[int, int], ...]:
    """Return the same ports as few ranges, in ascending order."""
    merged: list[tuple[int, int]] = []
    for first, end in sorted((max(first, 0), min(end, 2**16)) for first, end in ranges):
        if first >= end:
            continue
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((first, end))
    return tuple(merged)


def _address_bits(size: float) -> int:
    return max(4, math.floor(math.log2(size + 5)))


def subnet_size(hosts: int) -> int:
    """Return a Size that gives this many hosts addresses."""
    return next(size for size in (hosts, 27, 59, 123) if size >= hosts and 2 ** _address_bits(size) - 2 >= hosts)
