"""Reading, writing and locking files, with bounds and checksums.

A JSON document of ours carries a checksum of all it says; what fits it is believed. What comes from elsewhere is read
strictly: regular files of a bounded size, UTF-8.

What the system refuses is an OSError, what makes no sense a ValueError; whoever asks adds what the file should have been.
A file is written beside its place as `.NAME.PROCESS.tmp`, then put there: a crash leaves either the old or the new one.
Locks belong to an open file and go with the process, however it ends. Linux's own can be asked for without being taken.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import struct
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

MB = 2**20
LARGEST_FILE = 64 * MB  # arrays: a checkpoint of the widest networks has one
LARGEST_DOCUMENT = 8 * MB  # JSON: those of a run have some kilobytes
LARGEST_SETTINGS = MB  # TOML, which takes a second per megabyte

CHECKSUM = "document_sha256"
_FLOCK = "hhqqi"  # `struct flock`: kind, whence, start, length, process; all zero but the kind means the whole file
_CAN_ASK = hasattr(fcntl, "F_OFD_GETLK")
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)\.tmp")


def open_regular(path: Path, limit: int) -> BufferedReader:
    """Open a regular file of at most `limit` bytes: no pipe that would never answer, no device that never ends."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115  the caller closes it
    try:
        facts = os.fstat(file.fileno())
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        if facts.st_size > limit:
            raise ValueError(f"more than {limit // MB} MB")
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: Path, limit: int = LARGEST_FILE) -> bytes:
    """Return all of a regular file that has at most `limit` bytes."""
    with open_regular(path, limit) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)  # to ask for more would reserve more
        while size < len(data) <= limit and (more := file.read(MB)):  # it grows meanwhile
            data += more
    if len(data) > limit:
        raise ValueError(f"more than {limit // MB} MB")
    return data


def read_json(path: Path) -> Any:
    """Return the document of a JSON file."""
    return parse_json(read_file(path, LARGEST_DOCUMENT))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the document of a TOML file."""
    text = read_file(path, LARGEST_SETTINGS).decode()
    with _depth_bounded():
        return tomllib.loads(text)


def parse_json(data: bytes) -> Any:
    """Return a JSON document."""
    with _depth_bounded():
        return json.loads(data)


@contextmanager
def _depth_bounded() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ValueError("nested too deeply") from None


def sha256(data: bytes) -> str:
    """Return the hash of some bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_document(path: Path, kind: str, document: dict[str, Any]) -> None:
    """Write a JSON document that says its kind, and a checksum of it all."""
    text = json.dumps(with_checksum({"kind": kind, **document}), indent=2)
    write_atomically(path, f"{text}\n".encode())


def read_document(path: Path, kind: str) -> dict[str, Any]:
    """Return what `write_document` wrote; ValueError if it was changed, or is of another kind."""
    document = verify_checksum(read_json(path))
    if document.get("kind", kind) != kind:
        raise ValueError(f"it is not a {kind}")
    return document


def with_checksum(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with a hash of all else it says, however it is laid out."""
    return document | {CHECKSUM: _hash_document(document)}


def verify_checksum(document: Any) -> dict[str, Any]:
    """Return the document if it is a table that fits its checksum; ValueError if not."""
    if not isinstance(document, dict):
        raise ValueError("it is not a table")
    if document.get(CHECKSUM) != _hash_document(document):
        raise ValueError(f"its {CHECKSUM} is not that of its contents")
    return document


def _hash_document(document: dict[str, Any]) -> str:
    return sha256(json.dumps({k: v for k, v in document.items() if k != CHECKSUM}, sort_keys=True).encode())


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file: readers see all of it or nothing of it, also after a power failure."""
    if path.is_dir():  # also "" and ".", which have no name
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    for old, name, process in _temporaries(path.parent):
        if name == path.name and not _is_alive(process):
            old.unlink(missing_ok=True)
    try:
        with open(temporary, "xb") as file:  # never through a link that lies there
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def clear_leftovers(folder: Path, unlocked: Collection[str]) -> None:
    """Delete what kills left half-written; for whoever has the folder's lock.

    unlocked: names of files that are written without the lock, perhaps at this moment.
    """
    for path, name, process in _temporaries(folder):
        if name not in unlocked or not _is_alive(process):
            path.unlink(missing_ok=True)


def complete_names(folder: Path) -> set[str]:
    """Return the names in a folder, but for files that are not in their place yet."""
    return {path.name for path in folder.iterdir()} - {path.name for path, _, _ in _temporaries(folder)}


def _temporaries(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """Yield files that are not in their place yet: where they are, the name they would get, the process that writes them."""
    for path in folder.glob(".*.tmp"):
        if found := _TEMPORARY.fullmatch(path.name):
            yield path, found["name"], int(found["process"])


def _is_alive(process: int) -> bool:
    """Does another process of this number run?"""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # somebody else's
    except (ProcessLookupError, OverflowError):
        return False
    return process != os.getpid()


def lock(file: int | IO[Any], *, wait: bool = False) -> None:
    """Take the lock of an open file, or raise BlockingIOError if somebody has it and we do not wait."""
    if _CAN_ASK:
        how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(file, how, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_taken(descriptor: int) -> bool:
    """Return whether somebody holds the lock: Linux answers that; elsewhere, by taking it for a moment."""
    if _CAN_ASK:
        wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        in_the_way, *_ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
        return bool(in_the_way != fcntl.F_UNLCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
