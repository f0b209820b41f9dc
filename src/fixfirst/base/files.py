"""One layer of trust for files.

What we write carries a checksum over (run, kind, content): a JSON document its own, arrays in the document beside them
, a growing log one per row that covers the row before (`runs/rows.py`), config.toml one in the manifest. What
fits its checksum is believed. What comes from elsewhere is read strictly: regular files of a bounded size, UTF-8, documents
of a bounded depth.

What the system refuses is an OSError, what makes no sense a ValueError; whoever asks adds what the file should have been.
A file is written beside its place as `.NAME.PROCESS.tmp`, then put there: a crash leaves either the old or the new one.
"""

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import stat
import struct
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import numpy as np

from fixfirst.base.errors import PolicyError, quoted

MB = 2**20
LARGEST_FILE = 64 * MB  # arrays: a checkpoint of the widest networks has one
LARGEST_DOCUMENT = 8 * MB  # JSON: those of a run have some kilobytes
LARGEST_SETTINGS = MB  # TOML, which takes a second per megabyte

CHECKSUM = "document_sha256"
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)\.tmp")


# ---------------------------------------------------------------- reading


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
    return parse_toml(read_file(path, LARGEST_SETTINGS))


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return a TOML document."""
    return _parse(lambda: tomllib.loads(data.decode()))


def parse_json(data: bytes) -> Any:
    """Return a JSON document."""
    return _parse(lambda: json.loads(data))


def _parse(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except RecursionError:
        raise ValueError("nested too deeply") from None


# ---------------------------------------------------------------- checksums


def sha256(data: bytes) -> str:
    """Return the hash of some bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_document(path: Path, kind: str, document: dict[str, Any]) -> None:
    """Write a JSON document that says its kind, and a checksum of it all."""
    write_json(path, with_checksum({"kind": kind, **document}))


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


# ---------------------------------------------------------------- writing


def write_json(path: Path, document: Any) -> None:
    """Replace a file by a JSON document."""
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())


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


# ---------------------------------------------------------------- locks
# They go with the process, however it ends. Linux's own belong to the open file and can be asked for without being taken.

_FLOCK = "hhqqi"  # `struct flock`: kind, whence, start, length, process; all zero but the kind means the whole file
_CAN_ASK = hasattr(fcntl, "F_OFD_GETLK")


def lock(file: int | IO[Any], *, wait: bool = False) -> None:
    """Take the lock of an open file, or raise BlockingIOError if somebody has it and we do not wait."""
    if _CAN_ASK:
        how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(file, how, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_taken(descriptor: int) -> bool:
    """Has somebody taken the lock? On Linux only asked, elsewhere found out by taking it for a moment."""
    if _CAN_ASK:
        wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        in_the_way, *_ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
        return bool(in_the_way != fcntl.F_UNLCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


# ---------------------------------------------------------------- named arrays
#
# The safetensors format, and a JSON document beside it that holds both hashes. Never pickles. The format is little: the
# length of a header in 8 bytes, the header (JSON: type, shape and place of each array), the arrays' bytes. It is read and
# written here, with Python and NumPy alone, so that too little memory is an error like any other.


_SCHEMA = 1
_TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "U8": np.uint8}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays in the safetensors format: by name, as the format's own library writes those of one type."""
    header, parts, end = {}, [], 0
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        parts.append(array.tobytes())
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file in the safetensors format; ValueError if it is none. Every byte belongs to one array."""
    first = 8 + int.from_bytes(data[:8], "little")
    if 8 + LARGEST_DOCUMENT < first <= len(data):
        raise ValueError(f"its header has more than {LARGEST_DOCUMENT // MB} MB")
    header = parse_json(data[8:first]) if first <= len(data) else None
    if not isinstance(header, dict):
        raise ValueError("it has no header")
    arrays, place = {}, first
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (begin, end) = np.dtype(_TYPES[facts["dtype"]]), facts["shape"], facts["data_offsets"]
            fits = all(type(size) is int and size >= 0 for size in shape) and first + begin == place <= len(data)
            if not fits or end - begin != math.prod(shape) * kind.itemsize or first + end > len(data):
                raise ValueError
            arrays[name] = np.frombuffer(data[place : first + end], kind).reshape(shape)
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"its array {name[:60]!r} makes no sense, or is of a type that is not read here") from None
        place = first + end
    if place != len(data):
        raise ValueError("its end belongs to no array")
    return arrays


def write_pair(json_path: Path, kind: str, document: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """Write arrays, and a JSON document with their hash and its own: a flipped bit in either is noticed.

    A document that is there already goes first: a kill leaves the pair, or none, but never two files that do not fit.
    """
    data = pack_arrays(tensors)
    json_path.unlink(missing_ok=True)
    write_atomically(json_path.with_suffix(".safetensors"), data)
    write_document(json_path, kind, {"schema": _SCHEMA, "sha256": sha256(data), **document})


def read_pair(json_path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a JSON document and the arrays whose hash it holds."""
    tensor_path = json_path.with_suffix(".safetensors")
    try:
        document = read_document(json_path, kind)
        data = read_file(tensor_path)
    except FileNotFoundError as e:
        raise PolicyError(f"{e.filename}: is missing") from e
    except (OSError, ValueError) as e:
        raise PolicyError(f"{json_path}: cannot be read ({e})") from e
    if document.get("schema") != _SCHEMA:
        raise PolicyError(f"{json_path}: has schema {document.get('schema')!r}, this version reads {_SCHEMA}")
    if document.get("sha256") != sha256(data):
        raise PolicyError(f"{tensor_path}: damaged (its sha256 is not the one in {json_path.name})")
    try:
        return document, unpack_arrays(data)
    except ValueError as e:
        raise PolicyError(f"{tensor_path}: is not a safetensors file of NumPy arrays ({e})") from e


def check_tensors(path: Path | str, arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise PolicyError unless the arrays have these names and shapes, are float32, and finite."""
    if not isinstance(arrays, Mapping):
        raise PolicyError(f"{path}: must be arrays by name, got {quoted(arrays)[:60]}")
    if set(arrays) != set(expected):
        odd = sorted(set(arrays) ^ set(expected))
        raise PolicyError(f"{path}: holds the wrong arrays ({', '.join(odd[:3])}{' ...' if len(odd) > 3 else ''})")
    for name in expected:  # in this order, so that the message does not depend on how the file has them
        array = arrays[name]
        if not isinstance(array, np.ndarray):
            raise PolicyError(f"{path}: {name} must be an array of NumPy, got {quoted(array)[:60]}")
        if array.shape != expected[name] or array.dtype != np.float32:
            raise PolicyError(f"{path}: {name} is {array.dtype} {array.shape}, expected float32 {expected[name]}")
        if not np.isfinite(array).all():
            raise PolicyError(f"{path}: {name} holds values that are not finite")
