"""Beginning a run directory, and knowing one: its manifest and its configuration."""

import json
import os
import platform
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from fixfirst.base.errors import RunDirError
from fixfirst.base.files import read_file, read_json, read_toml as toml_document
from fixfirst.runs.config_reading import CODE, flatten, result_settings, setting
from fixfirst.runs.files import CONFIG_HASH, RUN_HASH, complete_names, sha256, versions, write_atomically, write_json
from fixfirst.runs.layout import CONFIG, LOCK, MANIFEST, STUDY, Kind
from fixfirst.runs.lock import locked, now

SCHEMA = 1
CPU_INFO = Path("/proc/cpuinfo")


def create_run(folder: Path, kind: Kind, config: dict[str, Any], seed: int, options: dict[str, Any] | None = None) -> None:
    """A new run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    with new_run_folder(folder):
        data = tomli_w.dumps(_without_none(config)).encode()
        write_atomically(folder / CONFIG, data)
        hashes = {CONFIG_HASH: sha256(data), RUN_HASH: _run_hash(kind, tomllib.loads(data.decode()))}
        write_manifest(folder, kind, seed, options, **hashes)


@contextmanager
def new_run_folder(folder: Path, members: Sequence[str] = ()) -> Iterator[None]:
    """A new folder, and its lock: of several that begin it at once, one is let in, and finds nothing there.

    members: the run directories that will be begun in it.
    """
    check_unused(folder, members)  # before anything is left in somebody's folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_unused(folder, members)
            for name in members:
                (folder / name / MANIFEST).unlink(missing_ok=True)
            yield
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e


def check_unused(folder: Path, members: Sequence[str] = ()) -> None:
    """Nothing is ever written over, but for a beginning that was cut short."""
    try:
        if not folder.exists() or _cut_short(folder, members):
            return
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e
    is_run = (folder / MANIFEST).exists() or (folder / STUDY).exists()
    hint = f"go on with it: fixfirst resume {folder}" if is_run else "choose another --out"
    raise RunDirError(f"{folder} exists already; {hint}")


def _cut_short(folder: Path, members: Sequence[str]) -> bool:
    """Is there nothing, or beside our lock no more than a config, and of members no more than they begin with?"""
    names = complete_names(folder)
    inside: set[str] = set().union(*(complete_names(folder / name) for name in names & {*members}))
    return not names or (LOCK in names and names <= {LOCK, CONFIG, *members} and inside <= {LOCK, CONFIG, MANIFEST})


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; RunDirError if it cannot be read."""
    try:
        return toml_document(path)
    except FileNotFoundError as e:
        raise RunDirError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise RunDirError(f"{path}: cannot be read as TOML ({e})") from e


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run, without settings that name code: those come from the person who goes on with it."""
    return {name: value for name, value in flatten(read_toml(folder / CONFIG)).items() if name not in CODE}


def _without_none(value: Any) -> Any:
    """TOML has no null: a missing key says the same."""
    if isinstance(value, dict):
        return {key: _without_none(v) for key, v in value.items() if v is not None}
    return value


def _run_hash(kind: str, config: dict[str, Any]) -> str:
    """Of all settings that decide what a run finds."""
    decides = result_settings(Kind(kind), config) | {"seed": str(setting(config, "seed"))}
    return sha256(json.dumps(decides, sort_keys=True).encode())


def check_config(folder: Path) -> None:
    """Half of a run under one configuration and half under another is none: RunDirError if it was changed."""
    manifest = read_manifest(folder)
    whole, decides = manifest.get(CONFIG_HASH), manifest.get(RUN_HASH)
    if whole is None and decides is None:
        return  # of an earlier version
    if whole is not None and whole != sha256(read_file(folder / CONFIG)):
        raise RunDirError(f"{folder / CONFIG}: was changed since the run began; put it back, or begin a new run with it")
    if whole is None or decides != _run_hash(manifest["kind"], read_toml(folder / CONFIG)):
        raise RunDirError(f"{folder / MANIFEST}: damaged, its hashes are not those of {CONFIG}")


def write_manifest(folder: Path, kind: Kind, seed: int, options: dict[str, Any] | None = None, **more: str) -> None:
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
            **more,
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
        manifest = read_json(path)
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


def refuse_links(folder: Path) -> None:
    """Whoever goes on with a run writes into it: all of it must lie there, and nothing may lead elsewhere."""
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise RunDirError(f"{path}: is a link, a pipe or a device; a run has files and folders only")


def changed_since(manifest: dict[str, Any]) -> list[str]:
    """What is not as when the run was begun and may change its bytes: versions, and the kind of machine."""
    now_here = {**versions(), **{name: machine()[name] for name in ("system", "cpu", "model")}}
    groups = (manifest.get(name) for name in ("versions", "machine"))
    then = {name: value for group in groups if isinstance(group, dict) for name, value in group.items()}
    return [f"{name} {here}, was {then[name]}" for name, here in now_here.items() if then.get(name, here) != here]


def kind_of(folder: Path) -> Kind:
    """What a folder is; anything that is no run raises RunDirError."""
    if (folder / STUDY).exists():
        return Kind.STUDY
    kind = read_manifest(folder)["kind"]
    if kind not in (Kind.TRAIN, Kind.SEARCH):
        raise RunDirError(f"{folder} is not a run of `fixfirst train` or `fixfirst search`")
    return Kind(kind)
