"""Writing files so that a crash leaves either the old or the new one; and what decides their bytes.

A file is written beside its place as `.NAME.PROCESS.tmp`, then put there.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fixfirst.base.files import read_json
from fixfirst.runs.layout import MANIFEST, PAGES

CHECKSUM = "document_sha256"
CONFIG_HASH = "config_sha256"  # of the bytes of config.toml
RUN_HASH = "run_sha256"  # of all settings that decide what a run finds
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)\.tmp")


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file: readers see all of it or nothing of it, also after a power failure."""
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
    if hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def clear_leftovers(folder: Path) -> None:
    """Delete what kills left half-written; for whoever has the folder's lock. A page is written without it, perhaps now."""
    for path, name, process in _temporaries(folder):
        if name not in PAGES or not _is_alive(process):
            path.unlink(missing_ok=True)


def complete_names(folder: Path) -> set[str]:
    """The names in a folder, but for files that are not in their place yet."""
    return {path.name for path in folder.iterdir()} - {path.name for path, _, _ in _temporaries(folder)}


def _temporaries(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """Files that are not in their place yet: where they are, the name they would get, the process that writes them."""
    for path in folder.glob(".*.tmp"):
        if found := _TEMPORARY.fullmatch(path.name):
            yield path, found["name"], int(found["process"])


def _is_alive(process: int) -> bool:
    """Does another process of this number run? Windows cannot be asked without ending it: it may."""
    if sys.platform == "win32":
        return process != os.getpid()
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # somebody else's
    except (ProcessLookupError, OverflowError):
        return False
    return process != os.getpid()


def with_checksum(document: dict[str, Any]) -> dict[str, Any]:
    """A document with a hash of all else it says, however it is laid out: a changed digit is noticed."""
    return document | {CHECKSUM: _document_hash(document)}


def verify_checksum(document: Any) -> dict[str, Any]:
    """It, if it is a table and has the hash it says; ValueError if not. Files of older versions have none."""
    if not isinstance(document, dict):
        raise ValueError("it is not a table")
    if document.get(CHECKSUM, _document_hash(document)) != _document_hash(document):
        raise ValueError(f"its {CHECKSUM} is not that of its contents")
    return document


def read_own_json(path: Path) -> dict[str, Any]:
    """A JSON document that fixfirst wrote, with the hash it says; OSError or ValueError if not."""
    return verify_checksum(read_json(path, own=True))


def check_same_run(document: dict[str, Any], folder: Path) -> None:
    """ValueError if it says that it is of another run than this. Files of older versions do not say."""
    if (said := document.get(RUN_HASH)) and (here := run_hash_of(folder)) and said != here:
        raise ValueError("it is of another run")


def _document_hash(document: dict[str, Any]) -> str:
    return sha256(json.dumps({k: v for k, v in document.items() if k != CHECKSUM}, sort_keys=True).encode())


def run_hash_of(folder: Path) -> str:
    """The hash of the settings that decide what a run finds, as its manifest has it; empty if that says nothing.

    What a run goes on from carries it: rows and answers of another run are noticed, whole as they may be.
    """
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, ValueError):
        return ""
    told = manifest.get(RUN_HASH) if isinstance(manifest, dict) else None
    return told if isinstance(told, str) else ""


def write_json(path: Path, document: Any) -> None:
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def versions() -> dict[str, str]:
    """Of everything that can change a result."""
    found = {}
    for package in ("fixfirst", "numpy", "numba", "torch", "gymnasium"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {"python": platform.python_version(), **found}
