"""What may change the bytes of a result: versions, our own source, and the kind of machine."""

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

CPU_INFO = Path("/proc/cpuinfo")
_SOURCE = Path(__file__).resolve().parent.parent


def versions() -> dict[str, str]:
    """Return the versions of everything that can change a result."""
    versions = {"python": platform.python_version()}
    for package in ("fixfirst", "numpy", "numba", "torch", "gymnasium"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


@cache
def source_sha256() -> str:
    """Return a hash of all our source files: a `git pull` changes it, and not the version."""
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.rglob("*.py")):
        digest.update(f"{path.relative_to(_SOURCE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def machine() -> dict[str, Any]:
    """Return where this is: system, cores, and the CPU by kind, model and features, as far as the system says."""
    facts = {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()}
    cpu = _cpu_info(CPU_INFO)
    return facts | {"model": cpu.get("model name", platform.processor()), "features": sorted(cpu.get("flags", "").split())}


def _cpu_info(path: Path) -> dict[str, str]:
    """Return what Linux says of its first core; nothing elsewhere."""
    try:
        first, _, _ = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def changed_since(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is not as when the run was begun, and may change its bytes."""
    now = {**versions(), **{name: value for name, value in machine().items() if name in ("system", "cpu", "model")}}
    then = {name: value for group in ("versions", "machine") for name, value in dict(manifest.get(group) or {}).items()}
    changes = [f"{name} {here}, was {then[name]}" for name, here in now.items() if then.get(name, here) != here]
    return changes + ["another source code"] * (manifest.get("source_sha256", source_sha256()) != source_sha256())
