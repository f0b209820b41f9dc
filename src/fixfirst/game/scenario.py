"""The simulated network as tables: hosts and their services, exploits, decoys, and the three variants of the game.

Every other table of the project (action ids, bit masks, the kernel's arrays) is computed from the ones below.
The rules that act on them are in `kernel.py`, and in words in `docs/model.md`.
"""

from dataclasses import dataclass, replace
from typing import Literal

LINUX, WINDOWS = "linux", "windows"
ENTERPRISE, OPERATIONAL, USER = range(3)  # subnets, in the order in which Meander explores them
SUBNETS = ("Enterprise", "Operational", "User")
UNIT_TYPES = ("user", "op_host", "op_server", "enterprise", "defender")


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

# Index = position in the observation and in the action table.
HOSTS = (
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
)
NUM_HOSTS = len(HOSTS)
HOST_NAMES = tuple(host.name for host in HOSTS)
HOST_ID = {name: index for index, name in enumerate(HOST_NAMES)}

FOOTHOLD = HOST_ID["User0"]
OT_SERVER = HOST_ID["Op_Server0"]
OT_COST = 10.0  # per step with the OT service stopped
RESTORE_COST = 1.0


@dataclass(frozen=True)
class Exploit:
    """A way into a host: offered when red remembers `port`, works on a service of `kind` there. Heaviest is preferred."""

    name: str
    port: int
    kind: str
    weight: float
    also_one_of: tuple[int, ...] = ()  # further ports of which red must remember one


EXPLOITS = (
    Exploit("EternalBlue", 139, "smb", 2.0),
    Exploit("BlueKeep", 3389, "rdp", 1.0),
    Exploit("HTTPRFI", 80, "web", 3.0),
    Exploit("HTTPSRFI", 443, "web", 4.0),
    Exploit("SSHBruteForce", 22, "ssh", 0.1),
    Exploit("SQLInjection", 3390, "mysql", 5.0, also_one_of=(80, 443)),
    Exploit("HarakaRCE", 25, "smtp", 6.0),
    Exploit("FTPDirectoryTraversal", 21, "ftp", 7.0),
)
EXPLOIT_NAMES = tuple(exploit.name for exploit in EXPLOITS)


@dataclass(frozen=True)
class Decoy:
    """A fake service blue can place: on `os` (None: any), when nothing listens on `needs_free`; it listens on `opens`."""

    name: str
    os: str | None
    needs_free: int
    opens: int
    kind: str


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

PORTS = tuple(sorted({p for h in HOSTS for s in h.services for p in s.ports} | {d.opens for d in DECOYS}))

VariantName = Literal["current", "leaderboard", "debugged"]


@dataclass(frozen=True)
class Variant:
    """One release of the game. All three share every rule that is not named here."""

    name: VariantName
    hosts: tuple[Host, ...] = HOSTS
    decoys: tuple[Decoy, ...] = DECOYS
    scans_accumulate: bool = False  # red never forgets a port it once saw listening
    restore_patches_smtp: bool = False  # a restored smtp service resists HarakaRCE
    remove_reports_result: bool = False  # Remove says whether it killed a session, instead of always TRUE
    any_session_costs: bool = False  # unprivileged red access costs as much as privileged
    callback_outranks_scan: bool = False  # a reverse shell is seen even on a busy host


def _debugged_hosts() -> tuple[Host, ...]:
    """The smb service of the enterprise machines answers, and mysql on User3 listens where mysql belongs."""
    better = {SMB_DEAF: SMB, MYSQL_ON_RDP_PORT: MYSQL}
    return tuple(replace(h, services=tuple(better.get(s, s) for s in h.services)) for h in HOSTS)


VARIANTS = (
    Variant("current"),
    Variant("leaderboard", scans_accumulate=True, restore_patches_smtp=True),
    Variant(
        "debugged",
        hosts=_debugged_hosts(),
        decoys=tuple(replace(d, opens=21) if d.name == "Vsftpd" else d for d in DECOYS),
        remove_reports_result=True,
        any_session_costs=True,
        callback_outranks_scan=True,
    ),
)
VARIANT_ID = {variant.name: index for index, variant in enumerate(VARIANTS)}
