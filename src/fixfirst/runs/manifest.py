"""Beginning a run directory, and knowing one: its manifest and its configuration."""

import json
import os
import platform
import sys
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from fixfirst.errors import RunDirError
from fixfirst.runs.files import versions, write_atomically, write_json
from fixfirst.runs.layout import CONFIG, MANIFEST, STUDY, Kind
from fixfirst.runs.lock import now

SCHEMA = 1
CPU_INFO = Path("/proc/cpuinfo")


def create_run(folder: Path, kind: Kind, config: dict[str, Any], seed: int, options: dict[str, Any] | None = None) -> None:
    """A new run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    try:
        check_unused(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / CONFIG, tomli_w.dumps(_without_none(config)).encode())
        write_manifest(folder, kind, seed, options)
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e


def check_unused(folder: Path) -> None:
    """Nothing is ever written over."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e
    is_run = (folder / MANIFEST).exists() or (folder / STUDY).exists()
    hint = f"go on with it: fixfirst resume {folder}" if is_run else "choose another --out"
    raise RunDirError(f"{folder} exists already; {hint}")


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; RunDirError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise RunDirError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise RunDirError(f"{path}: cannot be read as TOML ({e})") from e


def _without_none(value: Any) -> Any:
    """TOML has no null: a missing key says the same."""
    if isinstance(value, dict):
        return {key: _without_none(v) for key, v in value.items() if v is not None}
    return value


def write_manifest(folder: Path, kind: Kind, seed: int, options: dict[str, Any] | None = None) -> None:
    """options: how the run was started, beside its configuration."""
    write_json(
        folder / (STUDY if kind == Kind.STUDY else MANIFEST),
        {
            "schema": SCHEMA,
            "kind": kind,
            "created": now(),
            "command": "fixfirst " + " ".join(sys.argv[1:]),
            "seed": seed,
            "options": options or {},
            "versions": versions(),
            "machine": machine(),
        },
    )


def machine() -> dict[str, Any]:
    """Where this is: system, cores, and the CPU by kind, model and features, as far as the system tells."""
    facts = {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()}
    told = _cpu_info(CPU_INFO)
    return facts | {"model": told.get("model name", platform.processor()), "features": sorted(told.get("flags", "").split())}


def _cpu_info(path: Path) -> dict[str, str]:
    """What Linux says of its first core; nothing elsewhere."""
    try:
        first, _, _ = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_manifest(folder: Path, file: str = MANIFEST) -> dict[str, Any]:
    """The manifest of a run of this version; anything else raises RunDirError."""
    path = folder / file
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError as e:
        raise RunDirError(f"{folder} is not a run directory ({MANIFEST} is missing)") from e
    except (OSError, ValueError) as e:
        raise RunDirError(f"{path}: cannot be read ({e})") from e
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        came = manifest.get("schema") if isinstance(manifest, dict) else None
        raise RunDirError(f"{folder}: is a run of another version (schema {came!r}, this version reads {SCHEMA})")
    if not isinstance(manifest.get("kind"), str):
        raise RunDirError(f"{path}: damaged, it does not say what kind of run this is")
    return manifest


def kind_of(folder: Path) -> Kind:
    """What a folder is; anything that is no run raises RunDirError."""
    if (folder / STUDY).exists():
        return Kind.STUDY
    kind = read_manifest(folder)["kind"]
    if kind not in (Kind.TRAIN, Kind.SEARCH):
        raise RunDirError(f"{folder} is not a run of `fixfirst train` or `fixfirst search`")
    return Kind(kind)
