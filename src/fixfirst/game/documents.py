"""Files of scenarios and images, read with care: they come from others. And images: what is on a machine.

YAML is read as plain data (no tags), from files of bounded size, with bounds on depth and on what aliases amount to: nine
lines can stand for a billion values. A value is then taken out with its *place*, so that a refusal says where it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import errors, files
from fixfirst.game import parts
from fixfirst.game.parts import Image, Service

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000  # in a file, counting what an alias stands for each time
_DEEPEST = 20  # tables in tables


@dataclass(frozen=True)
class Place:
    """Where in a file something is: `lab.yaml: Hosts.User3.image`."""

    file: str
    path: tuple[str, ...] = ()

    def __truediv__(self, key: str) -> "Place":
        return Place(self.file, (*self.path, key))

    def __str__(self) -> str:
        return f"{self.file}: {'.'.join(self.path)}" if self.path else self.file

    def refuse(self, why: str) -> errors.ScenarioError:
        """Return the error to raise: what is wrong here, and what is right."""
        return errors.ScenarioError(f"{self}: {why}")


def as_table(value: Any, place: Place) -> dict[str, Any]:
    """Return a table whose keys are texts."""
    if not isinstance(value, dict):
        raise place.refuse(f"must be a table, got {short(value)}")
    for key in value:
        if not isinstance(key, str):
            raise place.refuse(f"has the key {short(key)}, which is no text; put it in quotes")
    return value


def as_list(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.refuse(f"must be a list, got {short(value)}")
    return value


def as_text(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise place.refuse(f"must be a string, got {short(value)}")
    return value


def short(value: Any) -> str:
    """Quote a value that came from a file, at most the beginning of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_bytes(path: Path) -> bytes:
    """Return a regular file's contents, if it is small enough for what it should be."""
    try:
        return files.read_file(path, MOST_BYTES)
    except OSError as e:
        raise errors.ScenarioError(f"{path}: cannot be read ({e.strerror})") from e
    except ValueError as e:
        raise errors.ScenarioError(f"{path}: is larger than {MOST_BYTES:,} bytes, which no scenario needs") from e


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds."""
    return parse_yaml(read_bytes(path), str(path))


def parse_yaml(text: str | bytes, name: str) -> Any:
    """Return the values of a YAML text. name: of its file, for errors."""
    import yaml  # 20 ms: only for those who read files

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    place = Place(name)
    try:
        _check_size(yaml, yaml.parse(text, Loader=loader), place)
        return yaml.load(text, Loader=loader)  # a safe loader: plain data only
    except errors.ScenarioError:
        raise
    except yaml.YAMLError as e:
        raise place.refuse(f"is not YAML that can be read ({' '.join(str(e).split())})") from e
    except (UnicodeError, ValueError, RecursionError) as e:  # no Unicode, no date, too many digits
        raise place.refuse(f"is not YAML that can be read ({e})") from e


def _check_size(yaml: Any, events: Any, place: Place) -> None:
    """Refuse a text that is nested too deeply, stands for too many values, or says a key twice."""
    named: dict[str, int] = {}  # anchor -> how many values it stands for; 0 while its end has not come
    open_nodes: list[list[Any]] = []  # [anchor, values so far, keys or None, is a key next?]

    def add(values: int, key: str | None = None) -> None:
        if not open_nodes:
            return
        node = open_nodes[-1]
        node[1] += values
        if node[1] > MOST_VALUES:
            raise place.refuse(f"stands for more than {MOST_VALUES:,} values, which no scenario needs")
        if node[2] is not None:
            if node[3] and key is not None:
                if key in node[2]:
                    raise place.refuse(f"has the key {short(key)} twice in one table")
                node[2].add(key)
            node[3] = not node[3]

    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if not named.get(event.anchor, 1):
                raise place.refuse(f"has an alias *{event.anchor} inside of what it stands for")
            add(named.get(event.anchor, 1))
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                named[event.anchor] = 1
            add(1, event.value if event.value != "<<" else None)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if event.anchor:
                named[event.anchor] = 0
            is_table = isinstance(event, yaml.MappingStartEvent)
            open_nodes.append([event.anchor, 1, set() if is_table else None, is_table])
            if len(open_nodes) > _DEEPEST:
                raise place.refuse(f"is nested more than {_DEEPEST} deep, which no scenario is")
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            anchor, values, _, _ = open_nodes.pop()
            if anchor:
                named[anchor] = values
            add(values)


# ---------------------------------------------------------------- images
#
# A folder of images has a file `images.yaml` (name of an image -> `path`, the name of a file without .yaml); each file has
# one table, `Test_Host`, as CybORG's image files have it. The ten images of CybORG are built in (`parts.py`).


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
