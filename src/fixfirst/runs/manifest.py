"""What a run is begun with, and reading it back: the manifest, with all that may change the bytes of a result, and the
configuration, whose settings may have older names.
"""

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import tomli_w

from fixfirst.base import errors, files
from fixfirst.runs import layout, sessions
from fixfirst.runs.layout import Kind, RunFiles

SCHEMA = 2  # of a run directory; what version 1 wrote can be looked at
CODE = ("cyborg",)  # settings that name code to be run: no file decides them
_CONFIG_HASH = "config_sha256"  # of the bytes of config.toml
_CPU_INFO = Path("/proc/cpuinfo")
_SOURCE = Path(__file__).resolve().parent.parent

_TABLES = ("training", "game", "judging", "gate", "course", "ppo", "alignment")  # of earlier versions' files
_IN_TABLES = {  # settings that had another name in their table
    ("training", "total_episodes"): "max_episodes",
    ("ppo", "num_envs"): "n_envs",
    ("ppo", "value"): "vf_coef",
    ("alignment", "kind"): "keep",
    ("alignment", "weight"): "alignment_lambda",
    **{("alignment", name): f"alignment_{name}" for name in ("adaptive", "rate", "target", "limit", "explore")},
}
RENAMED = {
    "beginners": "trainings",
    "clip": "clip_coef",
    "ends": "finalists_kept",
    "entropy": "ent_coef",
    "finals": "finalists",
    "free_restores": "restore_cost_warmup_episodes",
    "halvings": "halving_rounds",
    "lines": "survivors",
    "softening": "initial_logit_scale",
    "softer": "initial_logit_scale",
    "starts": "entrants",
    "value_weight": "vf_coef",
}
GONE = {"engine": ("auto", "compiled", None), "minibatches": (1, "1", None)}  # and with which values nothing changes


def create_run(folder: Path, kind: Kind, config: dict[str, Any], options: dict[str, Any] | None = None) -> None:
    """Begin a run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    with _new_run_folder(folder):
        if isinstance(scenario := config.get("scenario"), dict):
            files.write_atomically(RunFiles(folder).scenario, scenario["file"].encode())
        data = _as_toml(config)
        files.write_atomically(RunFiles(folder).config, data)
        _write_manifest(folder, kind, config["seed"], options, **{_CONFIG_HASH: files.sha256(data)})


@contextmanager
def create_study(folder: Path, seed: int, members: Sequence[str]) -> Iterator[None]:
    """Begin the folder of a study. Its members are begun within; its manifest comes last, so that with it all are there."""
    with _new_run_folder(folder, members):
        yield
        _write_manifest(folder, Kind.STUDY, seed, {"searches": members})


def _write_manifest(folder: Path, kind: Kind, seed: int, options: dict[str, Any] | None, **more: str) -> None:
    """Write what a run is. options: how it was started, beside its configuration."""
    document = {
        "schema": SCHEMA,
        "created": sessions.now(),
        "command": errors.command(*sys.argv[1:]),
        "seed": seed,
        "options": options or {},
        "versions": versions(),
        "source_sha256": source_sha256(),
        "machine": machine(),
        **more,
    }
    run = RunFiles(folder)
    files.write_document(run.study if kind == Kind.STUDY else run.manifest, kind, document)


@contextmanager
def _new_run_folder(folder: Path, members: Sequence[str] = ()) -> Iterator[None]:
    """Make a folder and hold its lock: of several that begin it at once, one is let in, and finds nothing there.

    members: the run directories that will be begun in it.
    """
    check_unused(folder, members)  # before anything is left in somebody's folder
    with errors.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with sessions.locked(folder):
            check_unused(folder, members)
            for name in members:
                RunFiles(folder / name).manifest.unlink(missing_ok=True)
            yield


def check_unused(folder: Path, members: Sequence[str] = ()) -> None:
    """Refuse a folder that holds anything but a beginning that was cut short.

    That has beside our lock no more than a config, and of members no more than they begin with.
    """
    begun = {RunFiles.lock, RunFiles.config, RunFiles.scenario}
    with errors.writing(folder):
        if not folder.exists() or not (names := files.complete_names(folder)):
            return
        inside: set[str] = set().union(*(files.complete_names(folder / name) for name in names & {*members}))
        if RunFiles.lock in names and names <= {*begun, *members} and inside <= {*begun, RunFiles.manifest}:
            return
    is_run = RunFiles(folder).manifest.exists() or RunFiles(folder).study.exists()
    hint = f"go on with it: {errors.command('resume', folder)}" if is_run else "choose another --out"
    raise errors.RunDirError(f"{folder} exists already; {hint}")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run, or of a study, that this version can look at; anything else raises RunDirError."""
    run = RunFiles(folder)
    path = run.study if run.study.exists() else run.manifest
    try:
        manifest = files.read_json(path)
        schema = manifest.get("schema") if isinstance(manifest, dict) else None
        if schema not in (1, SCHEMA):
            raise errors.RunDirError(
                f"{folder}: is a run of another version (schema {schema!r}, this version reads {SCHEMA})"
            )
        if schema == SCHEMA:
            files.verify_checksum(manifest)
        if manifest.get("kind") not in list(Kind):
            raise ValueError("it does not say what kind of run this is")
        return dict(manifest)
    except FileNotFoundError as e:
        raise errors.RunDirError(f"{folder}: is not a run directory ({RunFiles.manifest} is missing)") from e
    except (OSError, ValueError) as e:
        raise errors.RunDirError(f"{path}: cannot be read ({e})") from e


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration a run was begun with; RunDirError if the file was changed since.

    Settings that name code are left out: those come from the person who resumes the run.
    """
    path, manifest = RunFiles(folder).config, read_manifest(folder)
    config = read_settings(path)
    if files.sha256(files.read_file(path)) != manifest.get(_CONFIG_HASH):
        raise errors.RunDirError(f"{path}: was changed since the run began; put it back, or begin a new run with it")
    return {name: value for name, value in flat_settings(config).items() if name not in CODE}


def read_settings(path: Path) -> dict[str, Any]:
    """Return a TOML file as a dict; RunDirError if it cannot be read."""
    try:
        return files.read_toml(path)
    except FileNotFoundError as e:
        raise errors.RunDirError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise errors.RunDirError(f"{path}: cannot be read as TOML ({e})") from e


def finished_like(name: str, config: dict[str, Any]) -> Path | None:
    """Return a finished run of this name with the same settings and seed, of the same versions, source and machine."""
    wanted = files.sha256(_as_toml(config))
    for folder in takewhile(Path.exists, layout.folders_of(name)):
        with suppress(errors.RunDirError, OSError):
            manifest = read_manifest(folder)
            same = manifest.get(_CONFIG_HASH) == wanted and not changed_since(manifest)
            if same and sessions.is_finished(folder):
                return folder
    return None


def _as_toml(config: dict[str, Any]) -> bytes:
    """TOML has no null: a missing key says the same."""
    return tomli_w.dumps({name: value for name, value in config.items() if value is not None}).encode()


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
    """Return where this is: system, cores, and the CPU by kind, model and features, as far as Linux says."""
    lines: list[str] = []
    with suppress(OSError):
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    cpu = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}  # of the first core
    facts = {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()}
    return facts | {"model": cpu.get("model name", platform.processor()), "features": sorted(cpu.get("flags", "").split())}


def changed_since(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is not as when the run was begun, and may change its bytes."""
    now = {**versions(), **{name: value for name, value in machine().items() if name in ("system", "cpu", "model")}}
    then = {name: value for group in ("versions", "machine") for name, value in dict(manifest.get(group) or {}).items()}
    changes = [f"{name} {here}, was {then[name]}" for name, here in now.items() if then.get(name, here) != here]
    return changes + ["another source code"] * (manifest.get("source_sha256", source_sha256()) != source_sha256())


def flat_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the names they have now, in one level, the outermost where there are several of a name.

    `units` is a value, not a table.
    """
    named: list[tuple[str, Any]] = []
    for table in _TABLES:
        if isinstance(content := document.get(table), Mapping):
            named += [(_IN_TABLES.get((table, name), name), value) for name, value in flat_settings(content).items()]
    named += [(name, value) for name, value in document.items() if name not in _TABLES or not isinstance(value, Mapping)]
    return {RENAMED.get(name, name): value for name, value in named if value not in GONE.get(name, ())}
