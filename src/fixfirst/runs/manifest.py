"""Beginning a run directory, and reading back what it was begun with: the manifest and the configuration."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import tomli_w

from fixfirst.base import errors, files
from fixfirst.runs import layout, provenance, sessions, setting_names
from fixfirst.runs.layout import Kind, RunFiles

SCHEMA = 2  # of a run directory; what version 1 wrote can be looked at
CODE = ("cyborg",)  # settings that name code to be run: no file decides them
_CONFIG_HASH = "config_sha256"  # of the bytes of config.toml


def create_run(folder: Path, kind: Kind, config: dict[str, Any], options: dict[str, Any] | None = None) -> None:
    """Begin a run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    with new_run_folder(folder):
        if isinstance(scenario := config.get("scenario"), dict):
            files.write_atomically(RunFiles(folder).scenario, scenario["file"].encode())
        data = _as_toml(config)
        files.write_atomically(RunFiles(folder).config, data)
        write_manifest(folder, kind, config["seed"], options, **{_CONFIG_HASH: files.sha256(data)})


def write_manifest(folder: Path, kind: Kind, seed: int, options: dict[str, Any] | None, **more: str) -> None:
    """Write what a run is. options: how it was started, beside its configuration."""
    document = {
        "schema": SCHEMA,
        "created": sessions.now(),
        "command": errors.command(*sys.argv[1:]),
        "seed": seed,
        "options": options or {},
        "versions": provenance.versions(),
        "source_sha256": provenance.source_sha256(),
        "machine": provenance.machine(),
        **more,
    }
    run = RunFiles(folder)
    files.write_document(run.study if kind == Kind.STUDY else run.manifest, kind, document)


@contextmanager
def new_run_folder(folder: Path, members: Sequence[str] = ()) -> Iterator[None]:
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
    """Refuse a folder that holds anything but a beginning that was cut short."""
    with errors.writing(folder):
        if not folder.exists() or _cut_short(folder, members):
            return
    is_run = RunFiles(folder).manifest.exists() or RunFiles(folder).study.exists()
    hint = f"go on with it: {errors.command('resume', folder)}" if is_run else "choose another --out"
    raise errors.RunDirError(f"{folder} exists already; {hint}")


def _cut_short(folder: Path, members: Sequence[str]) -> bool:
    """Is there nothing, or beside our lock no more than a config, and of members no more than they begin with?"""
    names = files.complete_names(folder)
    inside: set[str] = set().union(*(files.complete_names(folder / name) for name in names & {*members}))
    begun = {RunFiles.lock, RunFiles.config, RunFiles.scenario}
    return not names or (RunFiles.lock in names and names <= {*begun, *members} and inside <= {*begun, RunFiles.manifest})


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
    return {name: value for name, value in setting_names.flatten(config).items() if name not in CODE}


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
            same = manifest.get(_CONFIG_HASH) == wanted and not provenance.changed_since(manifest)
            if same and sessions.is_finished(folder):
                return folder
    return None


def _as_toml(config: dict[str, Any]) -> bytes:
    return tomli_w.dumps(_without_none(config)).encode()


def _without_none(value: Any) -> Any:
    """Leave out what is None: TOML has no null, a missing key says the same."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value
