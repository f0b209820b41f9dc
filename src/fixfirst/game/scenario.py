"""The scenario: hosts and their services, exploits, decoys, blue's actions and the three variants, as one frozen value.

Every other table of the project (bit masks, the kernel's arrays, memories, action sets) is computed from a `Scenario`; the
built-in one is `CAGE2`. The rules that act on it are in `rules.py`, and in words in `docs/model.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

LINUX, WINDOWS = "linux", "windows"
NOTHING, USER_SHELL, ROOT_SHELL, GUESSED_PASSWORD, NO_PASSWORD = range(5)  # what an exploit meets on a host
BITS_PER_HOST = 4  # of blue's view: two of activity, two of belief


@dataclass(frozen=True)
class Service:
    """A process that listens. `kind` is what an exploit looks for; `root` says whose rights an intruder gets."""

    ports: tuple[int, ...]
    kind: str | None
    root: bool = False
    accounts: bool = True  # ssh only: is there an account whose password can be guessed?


@dataclass(frozen=True)
class Host:
    """A machine. `value` is what each step of privileged red access costs blue."""

    name: str
    subnet: int
    unit: str
    os: str
    value: float
    services: tuple[Service, ...]
    reveals: str | None = None  # the host whose address red finds here when it escalates

    @property
    def ports(self) -> frozenset[int]:
        """The ports on which its services listen."""
        return frozenset(port for service in self.services for port in service.ports)


@dataclass(frozen=True)
class Exploit:
    """A way into a host: offered when red remembers `port`, works on a service of `kind` there. Heaviest is preferred."""

    name: str
    port: int
    kind: str
    weight: float
    also_one_of: tuple[int, ...] = ()  # further ports of which red must remember one

    def meets(self, host: Host) -> int:
        """Return what it meets on the host's real services: NOTHING, a shell, or a password guessed or not."""
        for service in host.services:
            if self.port in service.ports and self.kind == service.kind:
                if service.kind == "ssh":
                    return GUESSED_PASSWORD if service.accounts else NO_PASSWORD
                return ROOT_SHELL if service.root else USER_SHELL
        return NOTHING


@dataclass(frozen=True)
class Decoy:
    """A fake service blue can place: on `os` (None: any), when nothing listens on `needs_free`; it listens on `opens`."""

    name: str
    os: str | None
    needs_free: int
    opens: int
    kind: str

    def fits(self, host: Host) -> bool:
        """Does it run on the host's operating system?"""
        return self.os in (None, host.os)


class BlueAction(NamedTuple):
    """What an action id stands for; `host` is None for Sleep and Monitor."""

    verb: str
    host: str | None

    def __str__(self) -> str:
        return f"{self.verb} {self.host}" if self.host else self.verb


VariantName = Literal["current", "leaderboard", "debugged"]


@dataclass(frozen=True)
class Variant:
    """One release of the game. All three share every rule that is not named here."""

    name: VariantName
    services: tuple[tuple[Service, Service], ...] = ()  # (as a scenario has it, as it is in this release)
    decoy_opens: tuple[tuple[str, int], ...] = ()  # decoys that open another port than a scenario says
    scans_accumulate: bool = False  # red never forgets a port it once saw listening
    restore_patches_smtp: bool = False  # a restored smtp service resists HarakaRCE
    remove_reports_result: bool = False  # Remove says whether it killed a session, instead of always TRUE
    any_session_costs: bool = False  # unprivileged red access costs as much as privileged
    callback_outranks_scan: bool = False  # a reverse shell is seen even on a busy host


@dataclass(frozen=True)
class Scenario:
    """A network, what can be done in it, and what is at stake. A host's position in `hosts` is its id everywhere."""

    name: str
    subnets: tuple[str, ...]  # in the order in which Meander explores them
    hosts: tuple[Host, ...]
    unit_types: tuple[str, ...]
    exploits: tuple[Exploit, ...]  # in the order in which red lists them
    decoys: tuple[Decoy, ...]
    foothold: str  # red holds this host from the start, for ever
    target: str  # the host of the OT service that Impact stops
    ot_cost: float  # per step with the OT service stopped
    restore_cost: float
    map_rows: tuple[tuple[str, ...], ...]  # hosts from top to bottom and from left to right, as pictures show them

    # ---- sizes and names

    @cached_property
    def num_hosts(self) -> int:
        return len(self.hosts)

    @property
    def observation_bits(self) -> int:
        return BITS_PER_HOST * self.num_hosts

    @cached_property
    def host_names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @cached_property
    def host_ids(self) -> Mapping[str, int]:
        """Host name -> id."""
        return MappingProxyType({name: index for index, name in enumerate(self.host_names)})

    @property
    def foothold_id(self) -> int:
        return self.host_ids[self.foothold]

    @property
    def target_id(self) -> int:
        return self.host_ids[self.target]

    @cached_property
    def exploit_names(self) -> tuple[str, ...]:
        return tuple(exploit.name for exploit in self.exploits)

    # ---- blue's actions: two without a host, then blocks of one action per host

    @cached_property
    def host_verbs(self) -> tuple[str, ...]:
        """The verbs of actions on a host, in the order of their blocks."""
        return ("Analyse", "Remove", *(f"Decoy{decoy.name}" for decoy in self.decoys), "Restore")

    @cached_property
    def actions(self) -> tuple[BlueAction, ...]:
        """What each action id stands for."""
        free = tuple(BlueAction(verb, None) for verb in FREE_VERBS)
        return free + tuple(BlueAction(verb, host) for verb in self.host_verbs for host in self.host_names)

    @property
    def num_actions(self) -> int:
        return len(self.actions)

    @cached_property
    def _action_ids(self) -> dict[tuple[str, str | None], int]:
        return {(action.verb, action.host): index for index, action in enumerate(self.actions)}

    def action_id(self, verb: str, host: str | None = None) -> int:
        """Return the id of an action: CAGE2.action_id("Restore", "Op_Server0") == 139."""
        return self._action_ids[verb, host]

    @cached_property
    def repaired_hosts(self) -> tuple[int, ...]:
        """[A] the host that each action removes red from or restores, or -1."""
        repairs = (action.host if action.verb in REPAIR_VERBS else None for action in self.actions)
        return tuple(-1 if host is None else self.host_ids[host] for host in repairs)

    # ---- sets as bit masks: bit h is host h, bit p the p-th of `ports`

    @cached_property
    def ports(self) -> tuple[int, ...]:
        """All ports on which a service or a decoy may listen, in any variant."""
        hosts = {port for scenario in self.by_variant for host in scenario.hosts for port in host.ports}
        return tuple(sorted(hosts | {decoy.opens for scenario in self.by_variant for decoy in scenario.decoys}))

    def hosts_mask(self, *names: str) -> int:
        """Return the set of these hosts."""
        return sum(1 << self.host_ids[name] for name in names)

    def ports_mask(self, *ports: int) -> int:
        """Return the set of these port numbers."""
        return sum(1 << self.ports.index(port) for port in set(ports))

    def unit_mask(self, *units: str) -> int:
        """Return the set of all hosts of these unit types."""
        return self.hosts_mask(*(host.name for host in self.hosts if host.unit in units))

    # ---- variants

    @cached_property
    def by_variant(self) -> tuple["Scenario", ...]:
        """The scenario as each of VARIANTS has it."""
        return tuple(self._in_variant(variant) for variant in VARIANTS)

    def _in_variant(self, variant: Variant) -> "Scenario":
        services, opens = dict(variant.services), dict(variant.decoy_opens)
        hosts = (replace(h, services=tuple(services.get(s, s) for s in h.services)) for h in self.hosts)
        decoys = (replace(d, opens=opens.get(d.name, d.opens)) for d in self.decoys)
        return replace(self, hosts=tuple(hosts), decoys=tuple(decoys))

    # ---- as a value

    def __hash__(self) -> int:
        return hash(self.host_names)  # quick: groupings and orders are keys of many dictionaries

    def __repr__(self) -> str:
        return f"<Scenario {self.name}: {self.num_hosts} hosts>"

    def __reduce__(self) -> Any:
        return "CAGE2" if self is CAGE2 else super().__reduce__()  # the built-in one is the same object in every process


FREE_VERBS = ("Sleep", "Monitor")
REPAIR_VERBS = ("Remove", "Restore")

# ---------------------------------------------------------------- CAGE Challenge 2

ENTERPRISE, OPERATIONAL, USER = range(3)  # its subnets
SSH = Service((22,), "ssh")
SSH_NO_ACCOUNT = Service((22,), "ssh", accounts=False)
FTP = Service((21,), "ftp", root=True)
RPC = Service((135,), None, root=True)
RDP = Service((3389,), "rdp")
RDP_SYSTEM = Service((3389,), "rdp", root=True)
SMB = Service((139, 445), "smb", root=True)
SMB_DEAF = Service((139, 445), None, root=True)  # listens, but no exploit recognises it
WEB = Service((80, 443), "web")
SMTP = Service((25,), "smtp", root=True)
MYSQL = Service((3390,), "mysql", root=True)
MYSQL_ON_RDP_PORT = Service((3389,), "mysql", root=True)
RESOLVER = Service((53, 68), None)

ENTERPRISE_WINDOWS = (SSH, RPC, RDP_SYSTEM, SMB_DEAF, WEB)

CAGE2 = Scenario(
    name="cage2",
    subnets=("Enterprise", "Operational", "User"),
    unit_types=("user", "op_host", "op_server", "enterprise", "defender"),
    hosts=(
        Host("Defender", ENTERPRISE, "defender", LINUX, 0.1, (SSH_NO_ACCOUNT, RESOLVER)),
        Host("Enterprise0", ENTERPRISE, "enterprise", LINUX, 1.0, (SSH,)),
        Host("Enterprise1", ENTERPRISE, "enterprise", WINDOWS, 1.0, ENTERPRISE_WINDOWS),
        Host("Enterprise2", ENTERPRISE, "enterprise", WINDOWS, 1.0, ENTERPRISE_WINDOWS, "Op_Server0"),
        Host("Op_Host0", OPERATIONAL, "op_host", LINUX, 0.1, (SSH,)),
        Host("Op_Host1", OPERATIONAL, "op_host", LINUX, 0.1, (SSH,)),
        Host("Op_Host2", OPERATIONAL, "op_host", LINUX, 0.1, (SSH,)),
        Host("Op_Server0", OPERATIONAL, "op_server", LINUX, 1.0, (SSH,)),  # runs the OT service that Impact stops
        Host("User0", USER, "user", WINDOWS, 0.0, (SSH, FTP)),  # red's foothold: held from the start, for ever
        Host("User1", USER, "user", WINDOWS, 0.1, (SSH, FTP), "Enterprise1"),
        Host("User2", USER, "user", WINDOWS, 0.1, (SMB, RPC, RDP), "Enterprise1"),
        Host("User3", USER, "user", LINUX, 0.1, (WEB, MYSQL_ON_RDP_PORT, SMTP), "Enterprise0"),
        Host("User4", USER, "user", LINUX, 0.1, (SSH, WEB, MYSQL, SMTP), "Enterprise0"),
    ),
    exploits=(
        Exploit("EternalBlue", 139, "smb", 2.0),
        Exploit("BlueKeep", 3389, "rdp", 1.0),
        Exploit("HTTPRFI", 80, "web", 3.0),
        Exploit("HTTPSRFI", 443, "web", 4.0),
        Exploit("SSHBruteForce", 22, "ssh", 0.1),
        Exploit("SQLInjection", 3390, "mysql", 5.0, also_one_of=(80, 443)),
        Exploit("HarakaRCE", 25, "smtp", 6.0),
        Exploit("FTPDirectoryTraversal", 21, "ftp", 7.0),
    ),
    decoys=(
        Decoy("Apache", None, 80, 80, "web"),
        Decoy("Femitter", WINDOWS, 21, 21, "ftp"),
        Decoy("HarakaSMPT", LINUX, 25, 25, "smtp"),
        Decoy("Smss", WINDOWS, 139, 139, "smb"),
        Decoy("SSHD", None, 22, 22, "ssh"),
        Decoy("Svchost", WINDOWS, 3389, 3389, "rdp"),
        Decoy("Tomcat", None, 443, 443, "web"),
        Decoy("Vsftpd", LINUX, 21, 80, "web"),  # checks one port and opens another
    ),
    foothold="User0",
    target="Op_Server0",
    ot_cost=10.0,
    restore_cost=1.0,
    map_rows=(  # red comes in at the top and works its way down; hosts that lead to each other stand near each other
        ("User0", "User1", "User2", "User3", "User4"),
        ("Defender", "Enterprise1", "Enterprise2", "Enterprise0"),
        ("Op_Host0", "Op_Host1", "Op_Server0", "Op_Host2"),
    ),
)

VARIANTS = (
    Variant("current"),
    Variant("leaderboard", scans_accumulate=True, restore_patches_smtp=True),
    Variant(
        "debugged",
        services=((SMB_DEAF, SMB), (MYSQL_ON_RDP_PORT, MYSQL)),
        decoy_opens=(("Vsftpd", 21),),
        remove_reports_result=True,
        any_session_costs=True,
        callback_outranks_scan=True,
    ),
)
VARIANT_ID = {variant.name: index for index, variant in enumerate(VARIANTS)}
