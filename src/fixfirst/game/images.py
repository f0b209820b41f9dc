"""Images: what is on a machine. The ten of CybORG are built in; a folder or a scenario file can hold others.

A folder of images has a file `images.yaml` (name of an image -> `path`, the name of a file without .yaml); each file has
one table, `Test_Host`, as CybORG's image files have it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fixfirst.game import parts
from fixfirst.game.documents import Table, as_table, check, read_yaml
from fixfirst.game.parts import Image, Service

PRIVILEGED = {parts.LINUX: "root", parts.WINDOWS: "SYSTEM"}  # by operating system
OT_SERVICE = "OTService"
_KINDS = {"ssh": "ssh", "sshd": "ssh", "sshd.exe": "ssh", "femitter": "ftp", "smb": "smb", "rdp": "rdp", "smtp": "smtp"}
_KINDS |= {"mysql": "mysql", "webserver": "web", "web server": "web", "http": "web", "https": "web"}
# All versions that CybORG knows; HarakaRCE works on each of them.
_VERSIONS = ["haraka 2.7.0", "openssh 1.3", "10.0.17763.1", "samba 3.0.20-debian", "apache tomcat"]
_VERSIONS += ["python simplehttpserver", "smbv1"]
_SMTP_PORT = 25


class _Connection(Table):
    local_port: Annotated[int, Field(ge=0, lt=2**16)]


class _Process(Table):
    name: str | None = Field(None, alias="Process Name")
    type: str | None = Field(None, alias="Process Type")
    version: Any = Field(None, alias="Process Version")
    pid: Any = Field(None, alias="PID")
    username: str | None = Field(None, alias="Username")
    connections: list[_Connection] | None = Field(None, alias="Connections")
    properties: list[Any] | str | None = Field(None, alias="Properties")  # one alone stands as a word


class _User(Table):
    name: str | None = Field(None, alias="Username")
    guessable: Any = Field(False, alias="Bruteforceable")


class _System(Table):
    os: Literal["LINUX", "WINDOWS"] = Field(alias="OSType")
    patches: list[Any] = Field([], alias="Patches")


class _RunningService(Table):
    active: Any = None
    pid: Any = Field(None, alias="PID")


class ImageTable(Table):
    """An image, as CybORG's image files have it."""

    system: _System = Field(alias="System info")
    processes: list[_Process] = Field(alias="Processes")
    users: list[_User] = Field(alias="User Info")
    services: dict[Literal["OTService"], _RunningService] | None = Field(None, alias="Services")

    def image(self, name: str, where: str) -> Image:
        """Return the image that the table describes. where: the file, and the keys to it."""
        os = self.system.os.lower()
        account = self._guessable_account(os, where)
        services, ot_pids = [], []
        for number, process in enumerate(self.processes):
            at = f"{where}.Processes.{number}"
            if process.name == OT_SERVICE:
                check(not process.connections, at, f"{OT_SERVICE} must have no ports, as in CybORG's OP_Server")
                ot_pids.append(process.pid)
            elif process.connections:
                services.append(self._service(process, os, account, at))
        return Image(name, os, tuple(services), self._runs_ot(ot_pids, f"{where}.Services"))

    def _service(self, process: _Process, os: str, account: str | None, where: str) -> Service:
        """Return what a process that listens is to red."""
        ports = tuple(connection.local_port for connection in process.connections or ())
        _check_account(process.username, os, f"{where}.Username")
        word = process.type or process.name
        check(word is not None, where, "has neither a Process Type nor a Process Name")
        kind = _KINDS.get(str(word).lower())
        if kind is None:
            return Service(ports)
        if kind == "ssh":
            return Service(ports, kind, root=account == PRIVILEGED[os], accounts=account is not None)
        if kind == "smtp" and _SMTP_PORT in ports:
            right = str(process.version).lower() in _VERSIONS
            check(right, f"{where}.Process Version", f"{process.version!r} is unknown; use {', '.join(_VERSIONS)}")
        patched = os == parts.LINUX or "MS17_010" in self.system.patches
        immune = (kind == "web" and "rfi" not in (process.properties or ())) or (kind == "smb" and patched)
        return Service(ports, kind, root=process.username == PRIVILEGED[os], immune=immune)

    def _guessable_account(self, os: str, where: str) -> str | None:
        """Return the account whose password SSHBruteForce guesses: the first that is Bruteforceable."""
        for number, user in enumerate(self.users):
            if user.guessable:
                _check_account(user.name, os, f"{where}.User Info.{number}.Username")
                return user.name
        return None

    def _runs_ot(self, pids: list[Any], where: str) -> bool:
        """Return whether the OT service runs: as a process and as an active service of the same process id."""
        service = (self.services or {}).get("OTService")
        if service is None and not pids:
            return False
        right = service is not None and service.active is True and [service.pid] == pids
        check(right, f"{where}.{OT_SERVICE}", "must be active and have the PID of the one process of this name")
        return True


def _check_account(user: str | None, os: str, where: str) -> None:
    right = user is not None and (user not in PRIVILEGED.values() or user == PRIVILEGED[os])
    check(right, where, f"{user!r} is no account of {os}; use {PRIVILEGED[os]}")


def image_document(image: Image) -> dict[str, Any]:
    """Return the table of an image file that plays like this image."""
    windows = image.os == parts.WINDOWS
    root, user = PRIVILEGED[image.os], "NetworkService" if windows else "www-data"
    ssh = [service for service in image.services if service.kind == "ssh"]
    guessed = {service.root for service in ssh if service.accounts}
    users: list[dict[str, Any]] = [{"Username": name} for name in (root, user, "GreenAgent", "ubuntu")]
    if guessed:
        users.insert(0, {"Username": root if guessed == {True} else "pi", "Password": "guess", "Bruteforceable": True})
    processes = [_process_of(service, 1000 + n, root, user) for n, service in enumerate(image.services)]
    table: dict[str, Any] = {
        "System info": {
            "Architecture": "x64",
            "OSDistribution": "WINDOWS_SVR_2008" if windows else "UBUNTU",
            "OSType": image.os.upper(),
            "OSVersion": "W6_1_7601" if windows else "U18_04_3",
        },
        "Processes": processes,
        "User Info": users,
    }
    if any(service.kind == "smb" and service.immune for service in image.services) and windows:
        table["System info"]["Patches"] = ["MS17_010"]
    if image.runs_ot:
        processes.append({"PID": 999, "PPID": 1, "Process Name": OT_SERVICE, "Username": root})
        table["Services"] = {OT_SERVICE: {"active": True, "PID": 999}}
    return table


def _process_of(service: Service, pid: int, root: str, user: str) -> dict[str, Any]:
    words = {"ssh": "ssh", "ftp": "femitter", "web": "webserver", None: "other"}
    table: dict[str, Any] = {
        "Connections": [{"local_address": "0.0.0.0", "local_port": port} for port in service.ports],
        "PID": pid,
        "PPID": 1,
        "Process Name": f"service{pid}",
        "Process Type": words.get(service.kind, service.kind),
        "Username": root if service.root and service.kind != "ssh" else user,
    }
    if service.kind == "web" and not service.immune:
        table["Properties"] = ["rfi"]
    if service.kind == "smtp":
        table["Process Version"] = "haraka 2.7.0"
    return table


class _Entry(Table):
    path: str


class _ImageFile(Table):
    Test_Host: ImageTable


class ImageFolder(Mapping[str, Image]):
    """The images of a folder, and the built-in ones that it does not have. A file is read when its image is asked for."""

    def __init__(self, folder: str | Path):
        self._folder, self._index = Path(folder), str(Path(folder) / "images.yaml")
        entries = read_yaml(Path(self._index))
        check(isinstance(entries, dict), self._index, "must be a table of images")
        self._images: dict[str, Image | _Entry] = dict(parts.IMAGES)
        self._images |= {name: as_table(_Entry, entry, self._index, str(name)) for name, entry in entries.items()}

    def __getitem__(self, name: str) -> Image:
        image = self._images[name]
        if isinstance(image, _Entry):
            right = Path(image.path).name == image.path and image.path not in ("", ".", "..")
            check(right, self._index, f"{name}.path: {image.path!r} must be the name of a file in this folder")
            file = self._folder / f"{image.path}.yaml"
            image = as_table(_ImageFile, read_yaml(file), str(file)).Test_Host.image(name, f"{file}: Test_Host")
            self._images[name] = image
        return image

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)
