"""Scenario files of CybORG: reading one into the fields of a `Scenario`.

A file has three tables, `Agents`, `Hosts` and `Subnets`. What CybORG reads and what plays no part is in docs/scenarios.md;
what cannot be played exactly is refused, with its place. Keys that play no part are accepted; those that look like slips are
noted (`Scenario.remarks`). Own images can come in a fourth table, `Images`, which CybORG ignores.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.documents import Name, Table, as_table, check, one_of
from fixfirst.game.images import OT_SERVICE, PRIVILEGED, ImageTable
from fixfirst.game.parts import Finding, Host, Image, Subnet

VALUES = {"None": 0.0, "Low": 0.1, "Medium": 1.0, "High": 10.0}
RED_ACTIONS: tuple[str, ...] = ("Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService")
RED_ACTIONS += ("PrivilegeEscalate", "Impact")
SERVER, CLIENT, FOOTHOLD, GREEN = "VelociraptorServer", "VelociraptorClient", "RedAbstractSession", "green_session"
_MOST_PORTS = 63 - len(parts.EXPLOITS)  # with those of exploits as many as a signed word has bits
_REACH: dict[str, Literal["open", "gated", "closed"]] = {"all": "open", "None": "gated", "closed": "closed"}

Value = Literal["None", "Low", "Medium", "High"]
HostName = Annotated[str, one_of("hosts")]


def _names_the_ot_service(services: Any) -> Any:
    if services not in ("All", ["All"], [OT_SERVICE]):
        raise ValueError(f"must be [{OT_SERVICE}] or All")
    return services


class _Known(Table):
    """What an agent knows of a host before it plays."""

    not_modelled: ClassVar[tuple[str, ...]] = ("Processes", "Sessions", "Files")

    interfaces: Literal["All", "IP Address"] | None = Field(None, alias="Interfaces")
    system: Any = Field(None, alias="System info")
    services: Annotated[Any, AfterValidator(_names_the_ot_service)] = Field(None, alias="Services")
    user: Any = Field(None, alias="User info")


class _Revealed(_Known):
    """What red learns of a host from another one."""

    not_modelled = (*_Known.not_modelled, "User info")


class _Host(Table):
    not_modelled = ("Services", "Processes", "System info", "User Info")  # in CybORG they belong to an image

    image: Annotated[str, one_of("images")]
    confidentiality: Value = Field("Low", alias="ConfidentialityValue")
    availability: Value = Field("Low", alias="AvailabilityValue")
    info: dict[HostName, _Revealed] = Field({})


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
    hosts: list[HostName] = Field(alias="Hosts", min_length=1)
    size: float = Field(alias="Size", ge=-4, lt=2**16)
    rules: dict[str, _Rule] = Field({}, alias="NACLs")


class _Session(Table):
    hostname: HostName
    name: str | None = None
    type: str | None = None
    username: str | None = None
    parent: str | None = None
    artifacts: list[str] = Field([])


class _Knowledge(Table):
    hosts: dict[HostName, _Known] = Field({}, alias="Hosts")


class _Agent(Table):
    subnets: list[Annotated[str, one_of("subnets")]] = Field(alias="AllowedSubnets")
    knows: _Knowledge = Field(_Knowledge(), alias="INT")
    actions: list[str] = Field([])
    sessions: list[_Session] = Field([], alias="starting_sessions")
    wrappers: list[Any] | None = Field(None, max_length=0)


class _Blue(_Agent):
    actions: list[Annotated[str, one_of("verbs")]] = Field(min_length=1)
    reward: Literal["HybridAvailabilityConfidentiality"] = Field(alias="reward_calculator_type")
    adversary: Literal["Red"]


class _Agents(Table, extra="forbid"):
    blue: _Blue = Field(alias="Blue")
    green: _Agent | None = Field(None, alias="Green")
    red: _Agent = Field(alias="Red")


class _File(Table):
    hosts: dict[Name, _Host] = Field(alias="Hosts", min_length=1, max_length=parts.MOST_HOSTS)
    subnets: dict[Name, _Subnet] = Field(alias="Subnets")
    agents: _Agents = Field(alias="Agents")
    images: dict[str, ImageTable] = Field({}, alias="Images")
    reward: Any = Field(None, alias="Reward")


def fields_from(document: Any, name: str, file: str, images: Mapping[str, Image] | None = None) -> dict[str, Any]:
    """Return the fields of the `Scenario` that a file's contents describe. file: its name, for errors."""
    return {"name": name} | _Reader(document, file, parts.IMAGES if images is None else images).fields()


def _keys(document: Any, table: str) -> list[str]:
    values = document.get(table) if isinstance(document, dict) else None
    return list(values) if isinstance(values, dict) else []


class _Reader:
    """Reads hosts, then subnets, then agents, and refuses what does not fit together or cannot be played exactly."""

    def __init__(self, document: Any, file: str, images: Mapping[str, Image]):
        self.file, self.hosts, self.agents = file, _keys(document, "Hosts"), _keys(document, "Agents")
        self.tables = as_table(
            _File,
            document,
            file,
            hosts=self.hosts,
            subnets=_keys(document, "Subnets"),
            images=[*_keys(document, "Images"), *images],
            verbs=parts.VERBS,
        )
        self.remarks = list(self.tables.slips())
        own = {name: table.image(name, f"{file}: Images.{name}") for name, table in self.tables.images.items()}
        names = {host: table.image for host, table in self.tables.hosts.items()}
        self.images = {host: own[name] if name in own else images[name] for host, name in names.items()}

    def check(self, right: bool, where: str, why: str) -> None:
        check(right, f"{self.file}: {where}", why)

    def fields(self) -> dict[str, Any]:
        tables, blue, green = self.tables, self.tables.agents.blue, self.tables.agents.green
        subnet_of = self._subnet_of()
        self._check_sizes()
        self._check_agents()
        start, known = self._red(tables.agents.red)
        watched, reached = self._blue(blue)
        names = sorted(tables.subnets, key=lambda name: min(map(self.hosts.index, tables.subnets[name].hosts)))
        unit_types, units = parts.default_units(self.hosts, {host: subnet_of[host] for host in self.hosts}, names)
        hosts = tuple(
            Host(
                name=host,
                subnet=names.index(subnet_of[host]),
                unit=units.get(host, ""),
                image=self.images[host],
                value=VALUES[table.confidentiality],
                reveals=self._findings(table.info, f"Hosts.{host}.info"),
                listed=host in blue.knows.hosts,
                watched=host in watched,
                reached=host in reached,
            )
            for host, table in tables.hosts.items()
        )
        ports, target = {port for host in hosts for port in host.ports}, tables.hosts.get(parts.TARGET_NAME)
        self.check(len(ports) <= _MOST_PORTS, "Hosts", f"have services on {len(ports)} ports; at most {_MOST_PORTS}")
        return {
            "subnets": tuple(self._subnet(subnet, subnet_of[start]) for subnet in names),
            "hosts": hosts,
            "unit_types": unit_types,
            "start": start,
            "known": known,
            "ot_cost": VALUES[target.availability] if target and self.images[parts.TARGET_NAME].runs_ot else 0.0,
            "verbs": tuple(blue.actions),
            "decoys": tuple(decoy for decoy in parts.DECOYS if f"Decoy{decoy.name}" in blue.actions),
            "green_hosts": None if green is None else self._green(green),
            "red_before_green": green is not None and self.agents.index("Red") < self.agents.index("Green"),
            "remarks": tuple(self.remarks),
        }

    def _findings(self, findings: Mapping[str, _Known], where: str) -> tuple[Finding, ...]:
        """Return what a table `info`, or `INT.Hosts` of Red, tells, in the order of hosts."""
        learned = {}
        for host, table in findings.items():
            ot_service = "services" in table.model_fields_set
            why = f"the image {self.images[host].name} of {host} does not run {OT_SERVICE}; use OP_Server"
            self.check(self.images[host].runs_ot or not ot_service, f"{where}.{host}.Services", why)
            named = "system" in table.model_fields_set
            finding = Finding(host, table.interfaces is not None, table.interfaces == "All", named, ot_service)
            if finding != Finding(host, address=False):
                learned[host] = finding
        return tuple(learned[host] for host in self.hosts if host in learned)

    def _subnet_of(self) -> dict[str, str]:
        """Return the subnet of every host; each is in one."""
        owner: dict[str, str] = {}
        self.check("all" not in self.tables.subnets, "Subnets", "'all' cannot be a subnet: in NACLs it means every one")
        for subnet, table in self.tables.subnets.items():
            for host in table.hosts:
                why = f"{host} is in {owner.get(host)} already; every host is in one"
                self.check(host not in owner, f"Subnets.{subnet}.Hosts", why)
                owner[host] = subnet
        missing = [host for host in self.hosts if host not in owner]
        self.check(not missing, "Subnets", f"no subnet has {', '.join(missing)}; every host is in one")
        return owner

    def _check_sizes(self) -> None:
        """Refuse subnets with too few addresses: CybORG gives each a block of a /16 network."""
        subnets = self.tables.subnets
        for subnet, table in subnets.items():
            room, count = 2 ** _address_bits(table.size) - 2, len(table.hosts)
            why = f"{table.size:g} gives {room} addresses for {count} hosts; use {subnet_size(count)}"
            self.check(room >= count, f"Subnets.{subnet}.Size", why)
        widest = max(_address_bits(table.size) for table in subnets.values())
        many = f"{len(subnets)} subnets of the largest Size do not fit into a /16 network, which is what CybORG has"
        self.check(len(subnets) * 2**widest <= 2**16, "Subnets", many)

    def _subnet(self, name: str, source: str) -> Subnet:
        """Return a subnet with how red gets into it from its own, `source`."""
        table, where = self.tables.subnets[name], f"Subnets.{name}.NACLs"
        for other in (rule for rule in table.rules if rule not in ("all", *self.tables.subnets)):
            near = errors.did_you_mean(other, ("all", *self.tables.subnets))
            self.remarks.append(f"{where}.{other} plays no part: there is no such subnet{near}")
        key = source if source in table.rules else "all"
        inward = table.rules[key].inward if key in table.rules else "closed"
        stops = f"None stops CybORG under 'all'; put the rule under {source}, where red starts"
        self.check((key, inward) != ("all", "None"), f"{where}.all.in", stops)
        if isinstance(inward, list):
            return Subnet(name, tuple(table.hosts), "filtered", _merged(inward))
        return Subnet(name, tuple(table.hosts), _REACH[inward])

    def _check_agents(self) -> None:
        first = self.agents[0]
        self.check(first == "Blue", "Agents", f"begins with {first}; Blue must come first: events are seen in this order")
        for name, agent in (("Blue", self.tables.agents.blue), ("Red", self.tables.agents.red)):
            missing = [subnet for subnet in self.tables.subnets if subnet not in agent.subnets]
            self.check(not missing, f"Agents.{name}.AllowedSubnets", f"lacks {', '.join(missing)}")

    def _blue(self, agent: _Agent) -> tuple[set[str], set[str]]:
        """Return the hosts that are watched, and those that are reached."""
        for host, known in agent.knows.hosts.items():
            seen = known.interfaces == "All" and "system" in known.model_fields_set
            self.check(seen, f"Agents.Blue.INT.Hosts.{host}", "must have Interfaces: All and System info: All")
        where, clients = "Agents.Blue.starting_sessions", [s for s in agent.sessions if s.parent is not None]
        servers = [
            s for s in agent.sessions if s.parent is None and s.type == SERVER and "NetworkConnections" in s.artifacts
        ]
        are_its = all((client.type, client.parent) == (CLIENT, server.name) for client in clients for server in servers)
        right = f"must be one {SERVER} without a parent, with NetworkConnections among its artifacts, and {CLIENT}s of it"
        self.check(len(servers) == 1 == len(agent.sessions) - len(clients) and are_its, where, right)
        for session in agent.sessions:
            listed = f"has a session on {session.hostname}, which is not in Agents.Blue.INT.Hosts; list it there"
            self.check(session.hostname in agent.knows.hosts, where, listed)
        for verb in agent.actions:
            self.check(agent.actions.count(verb) == 1, "Agents.Blue.actions", f"has {verb} twice")
        clash = {"DecoySmss", "DecoySvchost"} & set(agent.actions)
        why = f"has Misinform and {', '.join(clash)}; what a port pretends to be would depend on which came"
        self.check(not clash or "Misinform" not in agent.actions, "Agents.Blue.actions", why)
        watched = {client.hostname for client in clients}
        return watched, watched | {servers[0].hostname}

    def _red(self, agent: _Agent) -> tuple[str, tuple[Finding, ...]]:
        """Return where red starts and what it knows."""
        where = "Agents.Red.starting_sessions"
        self.check(len(agent.sessions) == 1, where, f"has {len(agent.sessions)} sessions; red has exactly one")
        (session,) = agent.sessions
        start, os = session.hostname, self.images[session.hostname].os
        right = f"must be of type {FOOTHOLD} and username {PRIVILEGED[os]}: {start} runs {os.capitalize()}"
        self.check((session.type, session.username) == (FOOTHOLD, PRIVILEGED[os]), f"{where}.0", right)
        self.check(start in agent.knows.hosts, "Agents.Red.INT.Hosts", f"lacks {start}, where red starts")
        missing = [verb for verb in RED_ACTIONS if verb not in agent.actions]
        self.check(not missing, "Agents.Red.actions", f"lacks {', '.join(missing)}")
        known = self._findings(agent.knows.hosts, "Agents.Red.INT.Hosts")
        return start, tuple(replace(finding, ot_service=False) for finding in known)  # it knows no service before it plays

    def _green(self, agent: _Agent) -> tuple[str, ...]:
        """Return the hosts that green can scan, of the eight it draws from."""
        first = agent.sessions[0] if agent.sessions else None
        can = first is not None and first.type == GREEN and first.hostname in agent.knows.hosts
        if not can or "GreenPortScan" not in agent.actions:
            return ()
        scanned = {host for host, known in agent.knows.hosts.items() if "system" in known.model_fields_set}
        return tuple(host for host in self.hosts if host in parts.GREEN_NAMES and host in scanned)


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
