"""Images: what is on a machine. The ten of CybORG are built in; a folder or a scenario file can hold others.

A folder of images has a file `images.yaml` (name of an image -> `path`, the name of a file without .yaml); each file has
one table, `Test_Host`, as CybORG's image files have it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.documents import Place, as_list, as_table, as_text, read_yaml
from fixfirst.game.parts import Image, Service

PRIVILEGED = {parts.LINUX: "root", parts.WINDOWS: "SYSTEM"}  # by operating system
OT_SERVICE = "OTService"
_KINDS = {"ssh": "ssh", "sshd": "ssh", "sshd.exe": "ssh", "femitter": "ftp", "smb": "smb", "rdp": "rdp", "smtp": "smtp"}
_KINDS |= {"mysql": "mysql", "webserver": "web", "http": "web", "https": "web"}
# All versions that CybORG knows; HarakaRCE works on each of them.
_VERSIONS = [
    "haraka 2.7.0",
    "openssh 1.3",
    "10.0.17763.1",
    "samba 3.0.20-debian",
    "apache tomcat",
    "python simplehttpserver",
    "smbv1",
]
_SMTP_PORT = 25


def built_in() -> dict[str, Image]:
    """Return the ten images of CybORG, by name."""
    return {image.name: image for image in parts.IMAGES}


class ImageFolder(Mapping[str, Image]):
    """The images of a folder, and the built-in ones that it does not have. A file is read when its image is asked for."""

    def __init__(self, folder: str | Path):
        self._folder = Path(folder)
        index = self._folder / "images.yaml"
        self._place = Place(str(index))
        self._files = as_table(read_yaml(index), self._place)
        self._images = built_in()
        for name in self._files:
            self._images.pop(name, None)  # the folder's is meant

    def __getitem__(self, name: str) -> Image:
        if name not in self._images:
            self._images[name] = self._read(name)
        return self._images[name]

    def __iter__(self) -> Any:
        return iter(dict.fromkeys((*self._files, *self._images)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._files or name in self._images

    def _read(self, name: str) -> Image:
        entry = as_table(self._files[name], self._place / name)
        if "path" not in entry:
            raise (self._place / name).refuse("has no path: the name of a file in this folder, without .yaml")
        stem = as_text(entry["path"], self._place / name / "path")
        if Path(stem).name != stem or stem in ("", ".", ".."):
            raise (self._place / name / "path").refuse(f"{stem!r} must be the name of a file in this folder")
        file = self._folder / f"{stem}.yaml"
        place = Place(str(file))
        table = as_table(read_yaml(file), place)
        if "Test_Host" not in table:
            raise place.refuse(f"has no table Test_Host{errors.did_you_mean('Test_Host', table)}")
        return image_from(name, table["Test_Host"], place / "Test_Host")


def image_from(name: str, document: Any, place: Place) -> Image:
    """Return the image that a table of CybORG's form describes."""
    table = as_table(document, place)
    for key in ("System info", "Processes", "User Info"):
        if key not in table:
            raise place.refuse(f"has no {key!r}{errors.did_you_mean(key, table)}")
    system, at = as_table(table["System info"], place / "System info"), place / "System info"
    os = {"LINUX": parts.LINUX, "WINDOWS": parts.WINDOWS}.get(str(system.get("OSType")))
    if os is None:
        raise (at / "OSType").refuse(f"{system.get('OSType')!r} must be LINUX or WINDOWS")
    patched = "MS17_010" in as_list(system.get("Patches", []), at / "Patches")
    account = _guessable_account(table["User Info"], os, place / "User Info")
    services, ot_pids = [], []
    for number, entry in enumerate(as_list(table["Processes"], place / "Processes")):
        at = place / "Processes" / str(number)
        process = as_table(entry, at)
        ports = _ports(process, at)
        if process.get("Process Name") == OT_SERVICE:
            if ports:
                raise at.refuse(f"{OT_SERVICE} must have no ports, as in CybORG's OP_Server")
            ot_pids.append(process.get("PID"))
        elif ports:
            services.append(_service(process, ports, os, patched, account, at))
    return Image(name, os, tuple(services), _runs_ot(table.get("Services", {}), ot_pids, place / "Services"))


def _ports(process: Mapping[str, Any], place: Place) -> tuple[int, ...]:
    ports = []
    for number, entry in enumerate(as_list(process.get("Connections") or [], place / "Connections")):
        at = place / "Connections" / str(number)
        port = as_table(entry, at).get("local_port")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 2**16:
            raise (at / "local_port").refuse(f"{port!r} must be a port, 0 to 65535")
        ports.append(port)
    return tuple(ports)


def _service(
    process: Mapping[str, Any], ports: tuple[int, ...], os: str, patched: bool, account: str | None, place: Place
) -> Service:
    """Return what a process that listens is to red."""
    user = as_text(process.get("Username"), place / "Username")
    _check_account(user, os, place / "Username")
    word = process.get("Process Type")
    kind = _kind(as_text(process.get("Process Name"), place / "Process Name") if word is None else as_text(word, place))
    if kind is None:
        return Service(ports)
    if kind == "ssh":
        return Service(ports, kind, root=account == PRIVILEGED[os], accounts=account is not None)
    if kind == "smtp" and _SMTP_PORT in ports and str(process.get("Process Version")).lower() not in _VERSIONS:
        raise (place / "Process Version").refuse(
            f"{process.get('Process Version')!r} is none that CybORG can compare; use {', '.join(_VERSIONS)}"
        )
    rfi = "rfi" in (process.get("Properties") or [])
    immune = (kind == "web" and not rfi) or (kind == "smb" and (os == parts.LINUX or patched))
    return Service(ports, kind, root=user == PRIVILEGED[os], immune=immune)


def _kind(word: str) -> str | None:
    lower = word.lower()
    return _KINDS.get(lower) or ("web" if lower.replace(" ", "") == "webserver" else None)


def _guessable_account(users: Any, os: str, place: Place) -> str | None:
    """Return the account whose password SSHBruteForce guesses: the first that is Bruteforceable."""
    for number, entry in enumerate(as_list(users, place)):
        user = as_table(entry, place / str(number))
        if user.get("Bruteforceable"):
            name = as_text(user.get("Username"), place / str(number) / "Username")
            _check_account(name, os, place / str(number) / "Username")
            return name
    return None


def _check_account(user: str, os: str, place: Place) -> None:
    if user in PRIVILEGED.values() and user != PRIVILEGED[os]:
        raise place.refuse(f"{user!r} is no account of {os}; use {PRIVILEGED[os]}")


def _runs_ot(services: Any, pids: list[Any], place: Place) -> bool:
    """Return whether the OT service runs: as a process and as an active service of the same process id."""
    table = as_table(services or {}, place)
    for name in table:
        if name != OT_SERVICE:
            raise (place / name).refuse(f"is unknown; the one service is {OT_SERVICE}")
    if not table and not pids:
        return False
    entry = as_table(table.get(OT_SERVICE), place / OT_SERVICE)
    if len(pids) != 1 or entry.get("active") is not True or entry.get("PID") != pids[0]:
        raise (place / OT_SERVICE).refuse("must be active and have the PID of the one process of this name")
    return True
