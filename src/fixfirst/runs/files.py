"""Writing files so that a crash leaves either the old or the new one; and what decides their bytes."""

import hashlib
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file: readers see all of it or nothing of it, also after a power failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
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
