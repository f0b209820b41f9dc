"""Scenario files of CybORG: reading one into the fields of a `Scenario`, and writing one.

A file has three tables, `Agents`, `Hosts` and `Subnets`. What CybORG reads and what plays no part is in docs/scenarios.md;
what cannot be played exactly is refused, with the place. Keys that play no part are accepted; those that look like slips are
noted (`Scenario.remarks`). Own images can come in a fourth table, `Images`, which CybORG ignores.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fixfirst.base import errors
from fixfirst.game import parts, reward as rewards
from fixfirst.game.documents import Place, as_list, as_table, as_text, check_name, short
from fixfirst.game.images import OT_SERVICE, PRIVILEGED, built_in, image_from
from fixfirst.game.parts import Finding, Host, Image, Subnet
from fixfirst.game.unit_types import default_units

VALUES = {"None": 0.0, "Low": 0.1, "Medium": 1.0, "High": 10.0}
_MOST_PORTS = 63 - len(parts.EXPLOITS)  # with those of exploits as many as a signed word has bits
_TABLES = ("Agents", "Hosts", "Subnets")
_HOST_KEYS = ("image", "ConfidentialityValue", "AvailabilityValue", "info")
_OF_IMAGES = ("Services", "Processes", "System info", "User Info")
_SUBNET_KEYS = ("Hosts", "Size", "NACLs")
_AGENTS = ("Blue", "Green", "Red")
_AGENT_KEYS = ("AllowedSubnets", "INT", "actions", "starting_sessions", "reward_calculator_type", "adversary")
RED_ACTIONS = (
    "Sleep",
    "DiscoverRemoteSystems",
    "DiscoverNetworkServices",
    "ExploitRemoteService",
    "PrivilegeEscalate",
    "Impact",
)
_FINDING_KEYS = ("Interfaces", "System info", "Services", "User info")
_NOT_MODELLED = ("Processes", "Sessions", "Files")
REWARD = "HybridAvailabilityConfidentiality"
SERVER, CLIENT, FOOTHOLD, GREEN = "VelociraptorServer", "VelociraptorClient", "RedAbstractSession", "green_session"


def fields_from(document: Any, name: str, file: str, images: Mapping[str, Image] | None = None) -> dict[str, Any]:
    """Return the fields of the `Scenario` that a file's contents describe. file: its name, for errors."""
    return _Reader(document, Place(file), images).fields(name)


class _Reader:
    """Takes a document apart, in the order hosts, subnets, agents."""

    def __init__(self, document: Any, place: Place, images: Mapping[str, Image] | None):
        self.place, self.remarks = place, list[str]()
        self.top = as_table(document, place)
        for key in _TABLES:
            if key not in self.top:
                raise place.refuse(f"has no table {key}{errors.did_you_mean(key, self.top)}")
        self._note_slips(self.top, (*_TABLES, "Images", rewards.TABLE), place)
        self.images = built_in() if images is None else images
        if "Images" in self.top:
            own, at = as_table(self.top["Images"], place / "Images"), place / "Images"
            self.images = {**self.images, **{name: image_from(name, table, at / name) for name, table in own.items()}}

    def fields(self, name: str) -> dict[str, Any]:
        tables, at = self._named(self.top["Hosts"], self.place / "Hosts", "host"), self.place / "Hosts"
        if not 1 <= len(tables) <= parts.MOST_HOSTS:
            raise at.refuse(f"has {len(tables)} hosts; a scenario has 1 to {parts.MOST_HOSTS}")
        self.order = {host: number for number, host in enumerate(tables)}
        for host, table in tables.items():
            self._check_host_keys(table, at / host)
        self.image = {host: self._image(table, at / host) for host, table in tables.items()}
        self.subnet_of, lists = self._subnet_lists()
        agents = self._agents(list(lists))
        start, known = self._red(agents["Red"])
        listed, watched, reached, verbs = self._blue(agents["Blue"])
        green_hosts = self._green(agents["Green"]) if "Green" in agents else None
        numbers = sorted(lists, key=lambda subnet: min(self.order[host] for host in lists[subnet]))
        subnets = tuple(self._subnet(subnet, lists[subnet], self.subnet_of[start]) for subnet in numbers)
        unit_types, units = default_units(self.order, {h: self.subnet_of[h] for h in self.order}, numbers)
        hosts = tuple(
            Host(
                name=host,
                subnet=numbers.index(self.subnet_of[host]),
                unit=units.get(host, ""),
                image=self.image[host],
                value=self._value(table, "ConfidentialityValue", at / host),
                reveals=self._findings(table.get("info", {}), at / host / "info", of_red=False),
                listed=host in listed,
                watched=host in watched,
                reached=host in reached,
            )
            for host, table in tables.items()
        )
        cost = {host: self._value(table, "AvailabilityValue", at / host) for host, table in tables.items()}
        target = parts.TARGET_NAME
        decoys = tuple(decoy for decoy in parts.DECOYS if f"Decoy{decoy.name}" in verbs)
        numbers_of_ports = {port for host in hosts for port in host.ports}
        if len(numbers_of_ports) > _MOST_PORTS:
            raise at.refuse(f"have services on {len(numbers_of_ports)} different ports; at most {_MOST_PORTS}")
        order = list(agents)
        return {
            "name": name,
            "subnets": subnets,
            "hosts": hosts,
            "unit_types": unit_types,
            "start": start,
            "known": known,
            "ot_cost": cost[target] if target in cost and self.image[target].runs_ot else 0.0,
            "verbs": verbs,
            "decoys": decoys,
            "green_hosts": green_hosts,
            "red_before_green": "Green" in order and order.index("Red") < order.index("Green"),
            "remarks": tuple(self.remarks),
        }

    # ---- hosts

    def _named(self, value: Any, place: Place, what: str) -> dict[str, dict[str, Any]]:
        """Return a table of tables whose keys can be names."""
        table = as_table(value, place)
        for name in table:
            check_name(name, place, what)
        return {name: as_table(entry, place / name) for name, entry in table.items()}

    def _check_host_keys(self, table: Mapping[str, Any], place: Place) -> None:
        for key in _OF_IMAGES:
            if key in table:
                raise (place / key).refuse("belongs to an image, not to a host; CybORG would ignore or overwrite it")
        self._note_slips(table, _HOST_KEYS, place)

    def _note_slips(self, table: Mapping[str, Any], known: tuple[str, ...], place: Place) -> None:
        """Note keys that play no part although they look like one that does."""
        absent = [key for key in known if key not in table]
        for key in table:
            if key not in known and (near := errors.did_you_mean(key, absent)):
                self.remarks.append(f"{'.'.join((*place.path, key))} plays no part{near}")

    def _image(self, table: Mapping[str, Any], place: Place) -> Image:
        if "image" not in table:
            raise place.refuse(f"has no image{errors.did_you_mean('image', table)}; use {', '.join(self.images)}")
        name = as_text(table["image"], place / "image")
        if name not in self.images:
            near = errors.did_you_mean(name, self.images)
            raise (place / "image").refuse(f"{short(name)} is unknown; use {', '.join(self.images)}{near}")
        return self.images[name]

    def _value(self, table: Mapping[str, Any], key: str, place: Place) -> float:
        word = table.get(key, "Low")
        if not isinstance(word, str) or word not in VALUES:
            raise (place / key).refuse(f"{short(word)} must be {', '.join(VALUES)} (as words)")
        return VALUES[word]

    def _findings(self, value: Any, place: Place, of_red: bool) -> tuple[Finding, ...]:
        """Return what a table `info` or `INT.Hosts` of Red tells, in the order of hosts."""
        found = {}
        for host, entry in as_table(value, place).items():
            at = self._known_host(host, place)
            table = as_table(entry, at)
            for key in (*_NOT_MODELLED, *(() if of_red else ("User info",))):
                if key in table:
                    raise (at / key).refuse("is not modelled; use Interfaces, System info or Services")
            self._note_slips(table, _FINDING_KEYS, at)
            seen = table.get("Interfaces")
            if "Interfaces" in table and seen not in ("All", "IP Address"):
                raise (at / "Interfaces").refuse(f"{short(seen)} must be All or IP Address")
            ot = "Services" in table and self._names_ot(table["Services"], host, at / "Services")
            finding = Finding(host, seen is not None, seen == "All", "System info" in table, ot and not of_red)
            if finding != Finding(host, address=False):
                found[host] = finding
        return tuple(found[host] for host in sorted(found, key=self.order.__getitem__))

    def _names_ot(self, value: Any, host: str, place: Place) -> bool:
        if value not in ("All", ["All"], [OT_SERVICE]):
            raise place.refuse(f"{short(value)} must be [{OT_SERVICE}] or All")
        if not self.image[host].runs_ot:
            raise place.refuse(f"the image {self.image[host].name} of {host} does not run {OT_SERVICE}; use OP_Server")
        return True

    def _known_host(self, host: Any, place: Place) -> Place:
        if not isinstance(host, str) or host not in self.order:
            near = errors.did_you_mean(host, self.order) if isinstance(host, str) else ""
            raise place.refuse(f"names the host {short(host)}, which is not in Hosts{near}")
        return place / host

    # ---- subnets

    def _subnet_lists(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Return host -> subnet, and subnet -> list of hosts."""
        at = self.place / "Subnets"
        self.subnet_tables = self._named(self.top["Subnets"], at, "subnet")
        owner: dict[str, str] = {}
        lists: dict[str, list[str]] = {}
        for subnet, table in self.subnet_tables.items():
            if subnet == "all":
                raise at.refuse("'all' cannot be the name of a subnet: in NACLs it means every subnet")
            self._note_slips(table, _SUBNET_KEYS, at / subnet)
            for key in ("Hosts", "Size"):
                if key not in table:
                    raise (at / subnet).refuse(f"has no {key}{errors.did_you_mean(key, table)}")
            lists[subnet] = as_list(table["Hosts"], at / subnet / "Hosts")
            if not lists[subnet]:
                raise (at / subnet / "Hosts").refuse("is empty; a subnet has at least one host")
            for host in lists[subnet]:
                self._known_host(host, at / subnet / "Hosts")
                if host in owner:
                    raise (at / subnet / "Hosts").refuse(f"{host} is in {owner[host]} already; every host is in one")
                owner[host] = subnet
        missing = [host for host in self.order if host not in owner]
        if missing:
            raise at.refuse(f"no subnet has {', '.join(missing)}; every host is in one")
        self._check_sizes(lists)
        return owner, lists

    def _check_sizes(self, lists: Mapping[str, list[str]]) -> None:
        """Refuse subnets with too few addresses: CybORG gives each a block of a /16 network."""
        bits = {}
        for subnet, hosts in lists.items():
            size, at = self.subnet_tables[subnet]["Size"], self.place / "Subnets" / subnet / "Size"
            number = isinstance(size, int | float) and not isinstance(size, bool)
            if not number or not -4 <= size < 2**16:
                raise at.refuse(f"{short(size)} must be a number of hosts, such as {len(hosts)}")
            bits[subnet] = _address_bits(size)
            if 2 ** bits[subnet] - 2 < len(hosts):
                enough = subnet_size(len(hosts))
                raise at.refuse(f"{size} gives {2 ** bits[subnet] - 2} addresses for {len(hosts)} hosts; use {enough}")
        widest = max(bits.values())
        if widest > 16 or 2 ** (16 - widest) < len(lists):
            raise (self.place / "Subnets").refuse(
                f"{len(lists)} subnets of the largest Size do not fit into a /16 network, which is what CybORG has"
            )

    def _subnet(self, subnet: str, hosts: list[str], source: str) -> Subnet:
        """Return a subnet with how red gets into it from its own, `source`."""
        table, at = self.subnet_tables[subnet], self.place / "Subnets" / subnet / "NACLs"
        rules = as_table(table.get("NACLs", {}), at)
        for name in rules:
            if name != "all" and name not in self.subnet_tables:
                near = errors.did_you_mean(name, ("all", *self.subnet_tables))
                self.remarks.append(f"Subnets.{subnet}.NACLs.{name} plays no part: there is no such subnet{near}")
        key = source if source in rules else "all"
        if key not in rules:
            return Subnet(subnet, tuple(hosts), "closed")
        at = at / key
        rule = as_table(rules[key], at)
        if "in" not in rule:
            raise at.refuse("has no 'in': all, None, or a list of PortRange")
        inward = rule["in"]
        if inward == "all":
            return Subnet(subnet, tuple(hosts), "open")
        if inward == "None":
            if key == "all":
                raise (at / "in").refuse(f"None stops CybORG under 'all'; put the rule under {source}, where red starts")
            return Subnet(subnet, tuple(hosts), "gated")
        if not isinstance(inward, list):
            raise (at / "in").refuse(f"{short(inward)} must be all, None, or a list of PortRange: [first, end]")
        return Subnet(subnet, tuple(hosts), "filtered", _merged(_port_range(r, at / "in") for r in inward))

    # ---- agents

    def _agents(self, subnets: list[str]) -> dict[str, dict[str, Any]]:
        at = self.place / "Agents"
        agents = as_table(self.top["Agents"], at)
        for name in agents:
            if name not in _AGENTS:
                near = errors.did_you_mean(name, _AGENTS)
                raise at.refuse(f"has the agent {short(name)}; use {', '.join(_AGENTS)}{near}")
        for name in ("Blue", "Red"):
            if name not in agents:
                raise at.refuse(f"has no agent {name}")
        if next(iter(agents)) != "Blue":
            raise at.refuse(f"begins with {next(iter(agents))}; Blue must come first, because events are seen in this order")
        tables = {name: as_table(agent, at / name) for name, agent in agents.items()}
        for name, table in tables.items():
            self._note_slips(table, _AGENT_KEYS, at / name)
            allowed = as_list(table.get("AllowedSubnets"), at / name / "AllowedSubnets")
            unknown = [subnet for subnet in allowed if subnet not in subnets]
            missing = [subnet for subnet in subnets if subnet not in allowed and name != "Green"]
            if unknown or missing:
                what = f"names {short(unknown[0])}, which is not in Subnets" if unknown else f"lacks {', '.join(missing)}"
                raise (at / name / "AllowedSubnets").refuse(f"{what}; use {', '.join(subnets)}")
            if table.get("wrappers"):
                raise (at / name / "wrappers").refuse(f"{short(table['wrappers'])} must be an empty list")
        return tables

    def _int(self, agent: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Return the table INT.Hosts of an agent: what it is told before it plays."""
        told = as_table(agent.get("INT", {}), place / "INT")
        hosts = as_table(told.get("Hosts", {}), place / "INT" / "Hosts")
        for host in hosts:
            as_table(hosts[host], self._known_host(host, place / "INT" / "Hosts"))
        return hosts

    def _sessions(self, agent: Mapping[str, Any], place: Place) -> list[dict[str, Any]]:
        at = place / "starting_sessions"
        sessions = [as_table(s, at / str(n)) for n, s in enumerate(as_list(agent.get("starting_sessions", []), at))]
        for number, session in enumerate(sessions):
            self._known_host(session.get("hostname"), at / str(number) / "hostname")
        return sessions

    def _actions(self, agent: Mapping[str, Any], place: Place) -> list[str]:
        return [as_text(verb, place / "actions") for verb in as_list(agent.get("actions", []), place / "actions")]

    def _blue(self, agent: Mapping[str, Any]) -> tuple[set[str], set[str], set[str], tuple[str, ...]]:
        """Return the hosts that are listed, watched and reached, and blue's verbs."""
        at = self.place / "Agents" / "Blue"
        for key, right in (("reward_calculator_type", REWARD), ("adversary", "Red")):
            if agent.get(key) != right:
                raise (at / key).refuse(f"{short(agent.get(key))} must be {right}")
        told = self._int(agent, at)
        for host, entry in told.items():
            if entry.get("Interfaces") != "All" or "System info" not in entry:
                raise (at / "INT" / "Hosts" / host).refuse("must have Interfaces: All and System info: All")
        sessions, here = self._sessions(agent, at), at / "starting_sessions"
        servers = [session for session in sessions if session.get("parent") is None]
        if len(servers) != 1:
            raise here.refuse(f"has {len(servers)} sessions without a parent; blue has one, of type {SERVER}")
        server = servers[0]
        for number, session in enumerate(sessions):
            right = SERVER if session is server else CLIENT
            if session.get("type") != right:
                raise (here / str(number) / "type").refuse(f"{short(session.get('type'))} must be {right}")
            if session is not server and session["parent"] != server.get("name"):
                raise (here / str(number) / "parent").refuse(
                    f"{short(session['parent'])} must be {short(server.get('name'))}, the name of the {SERVER}"
                )
        if "NetworkConnections" not in as_list(server.get("artifacts", []), here / "artifacts"):
            raise here.refuse(f"the {SERVER} must have NetworkConnections among its artifacts")
        watched = {session["hostname"] for session in sessions if session is not server}
        for host in (server["hostname"], *sorted(watched, key=self.order.__getitem__)):
            if host not in told:
                raise here.refuse(f"has a session on {host}, which is not in Agents.Blue.INT.Hosts; list it there")
        return set(told), watched, watched | {server["hostname"]}, self._verbs(agent, at)

    def _verbs(self, agent: Mapping[str, Any], place: Place) -> tuple[str, ...]:
        verbs, at = self._actions(agent, place), place / "actions"
        if not verbs:
            raise at.refuse(f"is empty; use some of {', '.join(parts.VERBS)}")
        for verb in verbs:
            if verb not in parts.VERBS:
                raise at.refuse(
                    f"{short(verb)} is unknown; use {', '.join(parts.VERBS)}{errors.did_you_mean(verb, parts.VERBS)}"
                )
            if verbs.count(verb) > 1:
                raise at.refuse(f"has {verb} twice")
        clash = [verb for verb in ("DecoySmss", "DecoySvchost") if verb in verbs]
        if "Misinform" in verbs and clash:
            raise at.refuse(f"has Misinform and {clash[0]}; what a port pretends to be would depend on which came")
        return tuple(verbs)

    def _red(self, agent: Mapping[str, Any]) -> tuple[str, tuple[Finding, ...]]:
        """Return where red starts and what it knows."""
        at = self.place / "Agents" / "Red"
        sessions, here = self._sessions(agent, at), at / "starting_sessions"
        if len(sessions) != 1:
            raise here.refuse(f"has {len(sessions)} sessions; red has exactly one")
        session = sessions[0]
        if session.get("type") != FOOTHOLD:
            raise (here / "0" / "type").refuse(f"{short(session.get('type'))} must be {FOOTHOLD}")
        start = session["hostname"]
        account = PRIVILEGED[self.image[start].os]
        if session.get("username") != account:
            os = self.image[start].os.capitalize()
            raise (here / "0" / "username").refuse(f"{short(session.get('username'))} must be {account}: {start} runs {os}")
        told = self._int(agent, at)
        if start not in told:
            raise (at / "INT" / "Hosts").refuse(f"lacks {start}, where red starts")
        actions = self._actions(agent, at)
        missing = [verb for verb in RED_ACTIONS if verb not in actions]
        if missing:
            raise (at / "actions").refuse(f"lacks {', '.join(missing)}")
        return start, self._findings(told, at / "INT" / "Hosts", of_red=True)

    def _green(self, agent: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the hosts that green can scan, of the eight it draws from."""
        at = self.place / "Agents" / "Green"
        told, sessions = self._int(agent, at), self._sessions(agent, at)
        can = sessions and sessions[0].get("type") == GREEN and sessions[0]["hostname"] in told
        if not can or "GreenPortScan" not in self._actions(agent, at):
            return ()
        return tuple(host for host in self.order if host in parts.GREEN_NAMES and "System info" in told.get(host, {}))


def _port_range(rule: Any, place: Place) -> tuple[int, int]:
    ports = as_table(rule, place).get("PortRange")
    if (
        not isinstance(ports, list)
        or len(ports) != 2
        or not all(isinstance(p, int) and not isinstance(p, bool) for p in ports)
    ):
        raise place.refuse(f"PortRange {short(ports)} must be [first, end]; the port `end` itself is not let through")
    return ports[0], ports[1]


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
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
