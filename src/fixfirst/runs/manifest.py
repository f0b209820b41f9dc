"""Beginning a run directory, knowing one, and working on one: manifest, configuration, lock, sessions."""

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

import tomli_w

from fixfirst.base import errors, files, locks
from fixfirst.orders.order import UnitScheme
from fixfirst.runs import layout, setting_names
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import CsvLog, Outcome, SessionRow, read_rows

CPU_INFO = Path("/proc/cpuinfo")
CONFIG_HASH = "config_sha256"  # of the bytes of config.toml
RUNNING = "running"
# Settings that do not decide what a run finds.
NEUTRAL_SETTINGS = ("seed", "cyborg", "tensorboard", "log_episodes", "checkpoint_every")
CODE = ("cyborg",)  # settings that name code to be run: no file decides them
ORPHAN_WAIT_S = 30.0  # for a worker whose driver was killed to notice that it is alone
ASSUMED_TEST_EPISODES = 1_000  # where the configuration does not say


def create_run(
    folder: Path, kind: layout.Kind, config: dict[str, Any], seed: int, options: dict[str, Any] | None = None
) -> None:
    """A new run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    with new_run_folder(folder):
        if isinstance(kept := config.get("scenario"), dict):
            files.write_atomically(RunFiles(folder).scenario, kept["file"].encode())
        data = _as_toml(config)
        files.write_atomically(RunFiles(folder).config, data)
        write_manifest(folder, kind, seed, options, {CONFIG_HASH: files.sha256(data)})


def _as_toml(config: dict[str, Any]) -> bytes:
    return tomli_w.dumps(_without_none(config)).encode()


@contextmanager
def new_run_folder(folder: Path, members: Sequence[str] = ()) -> Iterator[None]:
    """A new folder, and its lock: of several that begin it at once, one is let in, and finds nothing there.

    members: the run directories that will be begun in it.
    """
    check_unused(folder, members)  # before anything is left in somebody's folder
    with errors.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_unused(folder, members)
            for name in members:
                RunFiles(folder / name).manifest.unlink(missing_ok=True)
            yield


def check_unused(folder: Path, members: Sequence[str] = ()) -> None:
    """Nothing is ever written over, but for a beginning that was cut short."""
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


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration a run was begun with; RunDirError if the file was changed since.

    Settings that name code are left out: those come from the person who goes on with the run.
    """
    path, manifest = RunFiles(folder).config, layout.read_manifest(folder)
    config = read_settings(path)
    if files.sha256(files.read_file(path)) != manifest.get(CONFIG_HASH):
        raise errors.RunDirError(f"{path}: was changed since the run began; put it back, or begin a new run with it")
    return {name: value for name, value in setting_names.flatten(config).items() if name not in CODE}


def read_settings(path: Path) -> dict[str, Any]:
    """Return a TOML file as a dict; RunDirError if it cannot be read."""
    try:
        return files.parse_toml(files.read_file(path, files.LARGEST_SETTINGS))
    except FileNotFoundError as e:
        raise errors.RunDirError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise errors.RunDirError(f"{path}: cannot be read as TOML ({e})") from e


def _without_none(value: Any) -> Any:
    """TOML has no null: a missing key says the same."""
    if isinstance(value, dict):
        return {key: _without_none(v) for key, v in value.items() if v is not None}
    return value


def finished_like(name: str, config: dict[str, Any]) -> Path | None:
    """Return a finished run of this name whose files are those of this config: same settings, seed, versions and machine."""
    wanted = files.sha256(_as_toml(config))
    for folder in takewhile(Path.exists, layout.folders_of(name)):
        with suppress(errors.RunDirError, OSError):
            manifest = layout.read_manifest(folder)
            same = manifest.get(CONFIG_HASH) == wanted and not changed_since(manifest)
            if same and last_outcome(folder) == Outcome.FINISHED:
                return folder
    return None


def write_manifest(
    folder: Path,
    kind: layout.Kind,
    seed: int,
    options: dict[str, Any] | None = None,
    more: dict[str, str] | None = None,
) -> None:
    """Write what a run is. options: how it was started, beside its configuration."""
    document = {
        "schema": layout.SCHEMA,
        "created": now(),
        "command": errors.command(*sys.argv[1:]),
        "seed": seed,
        "options": options or {},
        "versions": versions(),
        "machine": machine(),
        **(more or {}),
    }
    files.write_document(folder / (RunFiles.study if kind == layout.Kind.STUDY else RunFiles.manifest), kind, document)


def versions() -> dict[str, str]:
    """Return the versions of everything that can change a result."""
    found = {}
    for package in ("fixfirst", "numpy", "numba", "torch", "gymnasium"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {"python": platform.python_version(), **found}


def machine() -> dict[str, Any]:
    """Return where this is: system, cores, and the CPU by kind, model and features, as far as the system tells."""
    facts = {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()}
    told = _cpu_info(CPU_INFO)
    return facts | {"model": told.get("model name", platform.processor()), "features": sorted(told.get("flags", "").split())}


def _cpu_info(path: Path) -> dict[str, str]:
    """Return what Linux says of its first core; nothing elsewhere."""
    try:
        first, _, _ = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def changed_since(manifest: dict[str, Any]) -> list[str]:
    """Return what is not as when the run was begun and may change its bytes: versions, and the kind of machine."""
    now_here = {**versions(), **{name: machine()[name] for name in ("system", "cpu", "model")}}
    groups = (manifest.get(name) for name in ("versions", "machine"))
    then = {name: value for group in groups if isinstance(group, dict) for name, value in group.items()}
    return [f"{name} {here}, was {then[name]}" for name, here in now_here.items() if then.get(name, here) != here]


def scheme_of(config: Mapping[str, Any]) -> UnitScheme:
    """Return how a run groups the hosts."""
    return UnitScheme.from_config(config.get("units"), config.get("scenario"))


def result_settings(kind: layout.Kind, config: Mapping[str, Any]) -> dict[str, str]:
    """As text, without those that do not decide what a run finds; with the kind of run."""
    chosen = ("workflow",) if kind == layout.Kind.SEARCH else ()  # by the search itself
    ignored = (*NEUTRAL_SETTINGS, *chosen)
    return {"kind": str(kind)} | {name: str(value) for name, value in config.items() if name not in ignored}


# ---------------------------------------------------------------- lock and sessions


@contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Only one process at a time may use a folder; the lock goes with the process, however it ends."""
    descriptor = os.open(RunFiles(folder).lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                locks.lock(descriptor)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise errors.RunDirError(f"{folder} is in use by another process") from None
                time.sleep(0.05)
        files.clear_leftovers(folder, layout.PAGES)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def job_folder(folder: Path) -> Iterator[None]:
    """Make and lock the folder of a job; one whose driver was killed may need a moment to notice, and to let go."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait_s=ORPHAN_WAIT_S):
        yield


def is_locked(folder: Path) -> bool:
    """Does a process work on it? Only asks: whoever wants to begin just now is not kept from it."""
    try:
        descriptor = os.open(RunFiles(folder).lock, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return locks.is_taken(descriptor)
    finally:
        os.close(descriptor)


def status(folder: Path) -> str:
    """running, finished or interrupted."""
    return RUNNING if is_locked(folder) else last_outcome(folder)


def last_outcome(folder: Path) -> Outcome:
    """Return how the last time at work ended. A kill says nothing."""
    sessions = read_rows(RunFiles(folder).runtime, SessionRow)
    return sessions[-1].outcome if sessions else Outcome.INTERRUPTED


def is_finished(folder: Path) -> bool:
    """Is its end noted?"""
    return last_outcome(folder) == Outcome.FINISHED


class Session:
    """A `with` block in which a run is worked on; leaving it adds a row to runtime.csv. A kill leaves no row."""

    def __init__(self, folder: Path, workers: int = 1):
        self._folder, self._workers = folder, workers
        self._choosing_s = 0.0
        self.finished = False

    def __enter__(self) -> Self:
        self._started, self._clock = now(), time.perf_counter()
        return self

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """What happens inside is the search's own thinking."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._choosing_s += time.perf_counter() - start

    def __exit__(self, *error: object) -> None:
        log = CsvLog(RunFiles(self._folder).runtime, SessionRow)
        log.write(
            SessionRow(
                started=self._started,
                outcome=Outcome.FINISHED if self.finished else Outcome.INTERRUPTED,
                seconds=round(time.perf_counter() - self._clock, 3),
                workers=self._workers,
                choosing_seconds=round(self._choosing_s, 3),
            )
        )
        log.close()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
