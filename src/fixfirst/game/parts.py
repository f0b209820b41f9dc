"""What a scenario is made of: services, images, hosts, subnets; what is the same in all: exploits, decoys, verbs; variants.

Everything here is a frozen value. An *image* is what CybORG calls the contents of a machine: its operating system and what
listens on it. `scenario.py` puts the parts together; `scenario_reading.py` reads them from files.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LINUX, WINDOWS = "linux", "windows"
# What an exploit meets on a host: nothing of its kind; a shell of a user or of root; a password that can be guessed (of a
# user), or not; a service that it cannot break; a password of root that can be guessed.
NOTHING, USER_SHELL, ROOT_SHELL, GUESSED_PASSWORD, NO_PASSWORD, IMMUNE, GUESSED_ROOT_PASSWORD = range(7)
BITS_PER_HOST = 4  # of blue's view: two of activity, two of belief
RESTORE_COST = 1.0
P_DETECTED = 0.95  # how often a reverse shell is seen
INVALID_COST = 0.1  # of an action that blue cannot take: on a host that is not listed
MOST_HOSTS = 63  # as many as a signed word has bits
TARGET_NAME, HOME_NAME, GATE_WORD = "Op_Server0", "User0", "Enterprise"  # names that CybORG's agents look for
GREEN_NAMES = ("User0", "User1", "User2", "User3", "User4", "Enterprise0", "Enterprise1", "Enterprise2")


@dataclass(frozen=True)
class Service:
    """A process that listens. `kind` is what an exploit looks for; `root` says whose rights an intruder gets."""

    ports: tuple[int, ...]  # one per socket
    kind: str | None = None
    root: bool = False  # ssh: of the account whose password can be guessed
    accounts: bool = True  # ssh only: is there an account whose password can be guessed?
    immune: bool = False  # an exploit of its kind fails here


@dataclass(frozen=True)
class Image:
    """What is on a machine. Two of them are equal if they play alike, whatever they are called."""

    name: str = field(compare=False)
    os: str
    services: tuple[Service, ...]  # in the order of processes: an exploit meets the first of its kind on its port
    runs_ot: bool = False  # the service that Impact stops


@dataclass(frozen=True)
class Finding:
    """What red learns of a host: its address, its subnet, its name, that it runs the OT service."""

    host: str
    address: bool = True
    subnet: bool = False
    name: bool = False
    ot_service: bool = False


@dataclass(frozen=True)
class Host:
    """A machine. `value` is what each step of privileged red access costs blue."""

    name: str
    subnet: int
    unit: str  # its unit type, unless users group hosts themselves; "" where names and subnets give none
    image: Image
    value: float
    reveals: tuple[Finding, ...] = ()  # what red finds here when it escalates, in the order of hosts
    listed: bool = True  # blue sees it in its observation and can act on it
    watched: bool = True  # blue sees events on it
    reached: bool = True  # blue's actions on it have an effect

    @property
    def ports(self) -> frozenset[int]:
        """The ports on which its services listen."""
        return frozenset(port for service in self.image.services for port in service.ports)


OPEN, CLOSED, GATED, FILTERED = "open", "closed", "gated", "filtered"


@dataclass(frozen=True)
class Subnet:
    """A part of the network, as red gets into it from where it starts.

    open: always. closed: never. gated: while red holds a host whose name contains Enterprise. filtered: to some ports only.
    """

    name: str
    hosts: tuple[str, ...]  # in the order of its list, by which B_line finds the third
    reach: Literal["open", "closed", "gated", "filtered"] = "open"
    lets_through: tuple[tuple[int, int], ...] = ()  # filtered: from the first port up to, not including, the second

    def lets(self, port: int) -> bool:
        """Return whether red can see a port of a host in this subnet, when it gets in at all."""
        return self.reach != FILTERED or any(first <= port < end for first, end in self.lets_through)


@dataclass(frozen=True)
class ExploitKind:
    """A way into a host: offered when red remembers `port`, works on a service of `kind` there. Heaviest is preferred."""

    name: str
    port: int
    kind: str
    weight: float
    also_one_of: tuple[int, ...] = ()  # further ports of which red must remember one

    def meets(self, host: Host) -> int:
        """Return what it meets on the host's real services: NOTHING, a shell, a password guessed or not, or IMMUNE."""
        for service in host.image.services:
            if self.port in service.ports and self.kind == service.kind:
                if service.kind == "ssh":
                    guessed = GUESSED_ROOT_PASSWORD if service.root else GUESSED_PASSWORD
                    return guessed if service.accounts else NO_PASSWORD
                return IMMUNE if service.immune else ROOT_SHELL if service.root else USER_SHELL
        return NOTHING

    def takes(self, host: Host) -> bool:
        """Return whether it can get red into the host."""
        return self.meets(host) in (USER_SHELL, ROOT_SHELL, GUESSED_PASSWORD, GUESSED_ROOT_PASSWORD)

    def gives_user_shell(self, host: Host) -> bool:
        """Return whether what it gets is a session of a user, which Remove kills."""
        return self.meets(host) == USER_SHELL


@dataclass(frozen=True)
class Decoy:
    """A fake service blue can place: on `os` (None: any), when nothing listens on `needs_free`; it listens on `opens`."""

    name: str
    os: str | None
    needs_free: int
    opens: int
    kind: str | None

    def fits(self, host: Host) -> bool:
        """Does it run on the host's operating system?"""
        return self.os in (None, host.image.os)


class BlueAction(NamedTuple):
    """What an action id stands for; `host` is None for Sleep and Monitor."""

    verb: str
    host: str | None

    def __str__(self) -> str:
        return f"{self.verb} {self.host}" if self.host else self.verb


EXPLOITS = (  # the same in every scenario, as are decoys and verbs; in the order in which red lists them
    ExploitKind("EternalBlue", 139, "smb", 2.0),
    ExploitKind("BlueKeep", 3389, "rdp", 1.0),
    ExploitKind("HTTPRFI", 80, "web", 3.0),
    ExploitKind("HTTPSRFI", 443, "web", 4.0),
    ExploitKind("SSHBruteForce", 22, "ssh", 0.1),
    ExploitKind("SQLInjection", 3390, "mysql", 5.0, also_one_of=(80, 443)),
    ExploitKind("HarakaRCE", 25, "smtp", 6.0),
    ExploitKind("FTPDirectoryTraversal", 21, "ftp", 7.0),
)
PORTS = tuple(sorted(exploit.port for exploit in EXPLOITS))  # that matter one by one: decoys open no others
DECOYS = (
    Decoy("Apache", None, 80, 80, "web"),
    Decoy("Femitter", WINDOWS, 21, 21, "ftp"),
    Decoy("HarakaSMPT", LINUX, 25, 25, "smtp"),
    Decoy("Smss", WINDOWS, 139, 139, "smb"),
    Decoy("SSHD", None, 22, 22, "ssh"),
    Decoy("Svchost", WINDOWS, 3389, 3389, "rdp"),
    Decoy("Tomcat", None, 443, 443, "web"),
    Decoy("Vsftpd", LINUX, 21, 80, "web"),  # checks one port and opens another
)
MADE_UP = (  # what the verb Misinform places: one of those whose port is free, drawn uniformly; two fool no exploit
    Decoy("SSHD", None, 22, 22, "ssh"),
    Decoy("Apache", None, 80, 80, "web"),
    Decoy("SMSS", None, 139, 139, None),
    Decoy("Tomcat", None, 443, 443, "web"),
    Decoy("Svchost", None, 3389, 3389, None),
)
FREE_VERBS = ("Sleep", "Monitor")
REPAIR_VERBS = ("Remove", "Restore")
CAGE2_VERBS = (*FREE_VERBS, "Analyse", "Remove", *(f"Decoy{decoy.name}" for decoy in DECOYS), "Restore")
VERBS = (*CAGE2_VERBS, "Misinform")  # all that blue can have

# What listens on the ten images of CybORG, and the images
SSH = Service((22,), "ssh")
SSH_NO_ACCOUNT = Service((22,), "ssh", accounts=False)
FTP = Service((21,), "ftp", root=True)
RPC = Service((135,))
RDP = Service((3389,), "rdp")
RDP_SYSTEM = Service((3389,), "rdp", root=True)
SMB = Service((445, 139), "smb", root=True)
SMB_DEAF = Service((445, 139))  # listens, but no exploit recognises it
HTTP = Service((80,), "web")
HTTPS = Service((443,), "web")
WEB = Service((80, 443), "web")
SMTP = Service((25,), "smtp", root=True)
MYSQL = Service((3390,), "mysql", root=True)
MYSQL_ON_RDP_PORT = Service((3389,), "mysql", root=True)

_IMAGES = (
    Image("Velociraptor_Server", LINUX, (SSH_NO_ACCOUNT, Service((53, 53)), Service((68,)))),
    Image("Kali_Box", LINUX, (SSH_NO_ACCOUNT, Service((55553,)), Service((68,)), Service((68,)))),
    Image("Gateway", LINUX, (SSH,)),
    Image("linux_decoy_host", LINUX, (SSH,)),
    Image("OP_Server", LINUX, (SSH,), runs_ot=True),
    Image("Internal", WINDOWS, (SSH, RPC, RDP_SYSTEM, SMB_DEAF, WEB)),
    Image("windows_user_host1", WINDOWS, (SSH, FTP)),
    Image("windows_user_host2", WINDOWS, (SMB, RPC, RDP)),
    Image("linux_user_host1", LINUX, (HTTP, MYSQL_ON_RDP_PORT, HTTPS, SMTP)),
    Image("linux_user_host2", LINUX, (SSH, HTTP, MYSQL, HTTPS, SMTP)),
)
IMAGES: Mapping[str, Image] = {image.name: image for image in _IMAGES}

VariantName = Literal["current", "leaderboard", "debugged"]


@dataclass(frozen=True)
class Variant:
    """One release of the game. All three share every rule that is not named here."""

    images: Mapping[Image, Image] = field(default_factory=dict)  # as a scenario has it -> as it is in this release
    decoy_opens: Mapping[str, int] = field(default_factory=dict)  # decoys that open another port than a scenario says
    scans_accumulate: bool = False  # red never forgets a port it once saw listening
    restore_patches_smtp: bool = False  # a restored smtp service resists HarakaRCE
    remove_reports_result: bool = False  # Remove says whether it killed a session, instead of always TRUE
    any_session_costs: bool = False  # unprivileged red access costs as much as privileged
    callback_outranks_scan: bool = False  # a reverse shell is seen even on a busy host


VARIANTS: Mapping[VariantName, Variant] = {
    "current": Variant(),
    "leaderboard": Variant(scans_accumulate=True, restore_patches_smtp=True),
    "debugged": Variant(
        images={
            IMAGES["Internal"]: Image("Internal", WINDOWS, (SSH, RPC, RDP_SYSTEM, SMB, WEB)),
            IMAGES["linux_user_host1"]: Image("linux_user_host1", LINUX, (HTTP, MYSQL, HTTPS, SMTP)),
        },
        decoy_opens={"Vsftpd": 21},
        remove_reports_result=True,
        any_session_costs=True,
        callback_outranks_scan=True,
    ),
}

# Unit types by default: hosts grouped by their names, or by their subnets
_KNOWN_UNITS = ("user", "op_host", "op_server", "enterprise", "defender")
_FEWEST_UNITS, _MOST_UNITS = 2, 8


def default_units(
    hosts: Iterable[str], subnet_of: Mapping[str, str], subnets: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return unit types and host -> unit type: by names without their numbers, else by subnets, else none."""
    by_name = {host: _word(host.rstrip("0123456789_")) for host in hosts}
    present = tuple(dict.fromkeys(by_name.values()))
    names = tuple(unit for unit in _KNOWN_UNITS if unit in present)
    names += tuple(unit for unit in present if unit not in _KNOWN_UNITS)
    if _FEWEST_UNITS <= len(names) <= _MOST_UNITS and "" not in names:
        return names, by_name
    words = {subnet: _word(subnet) for subnet in subnets}
    names = tuple(dict.fromkeys(words.values()))
    if _FEWEST_UNITS <= len(names) <= _MOST_UNITS and "" not in names and len(names) == len(words):
        return names, {host: words[subnet] for host, subnet in subnet_of.items()}
    return (), {}


def _word(name: str) -> str:
    """Return a name as a unit type can be called: a word in lower case."""
    return re.sub(r"[^\w.-]+", "_", name.lower()).lstrip(".-")
