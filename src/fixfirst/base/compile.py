"""Machine code: compiled once per machine, kept on disk, checked before it is trusted, and announced when it is made.

Numba's own cache misses changes in the tables and functions that an entry point takes from other files, breaks on a
damaged file, and lets every process compile for itself. Ours names its folders after all that the machine code depends
on, keeps a checksum with every file, and has one process compile while others wait for the file.
"""

import contextlib
import hashlib
import inspect
import os
import pickle
import platform
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from fixfirst.base.errors import ConfigError
from fixfirst.base.files import lock

PACKAGE = Path(__file__).parent.parent

# All that ends up in machine code, room by room in the order of the house. Machine code of a room depends on the files
# of that room and of the rooms before it, so that an edit in a late room leaves that of the early ones valid.
SOURCES = (
    "base/compile.py",
    "game/calls.py",
    "game/parts.py",
    "game/scenario.py",
    "game/tables.py",
    "game/state.py",
    "game/chance.py",
    "game/red_view.py",
    "game/attackers.py",
    "game/rules.py",
    "orders/compliance.py",
    "orders/repairs.py",
    "policy/action_sets.py",
    "policy/memory.py",
    "policy/remembering.py",
    "policy/memories.py",
    "policy/vectors.py",
    "policy/network.py",
    "policy/table.py",
    "policy/reds.py",
    "policy/compiled_loop.py",
    "policy/gradient.py",
    "learner/batch.py",
    "searcher/ieee.py",
    "searcher/gp.py",
)
ROOMS = tuple(dict.fromkeys(source.split("/")[0] for source in SOURCES))
SIMULATOR = "game"
_RULES = "game/rules.py"

_ROOT = 0  # the user whom all trust
STALE_DAYS = 30  # a folder of another version is deleted when nobody has used it for so long
ANNOUNCED = "FIXFIRST_TOLD_COMPILING"  # set once the user has been told; child processes inherit it

# IEEE's division, which answers inf where Python's would raise: a loop that may raise is not compiled for wide registers.
# Python's lock is released meanwhile, so that a league's players learn side by side.
_OPTIONS = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, "error_model": "numpy", "nogil": True}
_ENTRY_POINTS: list["EntryPoint"] = []


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls at its first use, and keep it on disk if a folder can be written. A decorator."""
    if config.DISABLE_JIT:  # somebody looks at single functions with a debugger
        return function
    entry_point = EntryPoint(function, targetoptions=_OPTIONS)
    _ENTRY_POINTS.append(entry_point)
    return entry_point


def inlined(function: Callable[..., Any]) -> Any:
    """Put a function as a whole where compiled ones call it, mostly from one place. A decorator.

    Without it a turn takes half as long again: its phases are short beside a call.
    """
    return function if config.DISABLE_JIT else Piece(function, forceinline=True)


def called(function: Callable[..., Any]) -> Any:
    """Let compiled functions call a function, from several places or in long loops, without copies. A decorator."""
    return function if config.DISABLE_JIT else Piece(function, forceinline=False)


def is_compiled() -> bool:
    """Return whether the machine code of the rules is in memory or, undamaged, on disk. Before their import any will do.

    What else the simulator's room compiles, not everybody uses.
    """
    entries = [entry for entry in _ENTRY_POINTS if entry.code.source == _RULES]
    if not entries:
        return any(_read(path) for path in cache_folder().glob(f"{Path(_RULES).stem}.*.nbc"))
    return all(entry.signatures or entry.code.on_disk() for entry in entries)


def announce_compilation() -> None:
    """Say on stderr that the simulator is going to be compiled, unless it need not be, or it was said before.

    Whatever else is compiled says so itself; this is for those who have other things to do before the first step.
    """
    if ANNOUNCED not in os.environ and not is_compiled():
        _announce()


def _announce() -> None:
    if ANNOUNCED not in os.environ:
        os.environ[ANNOUNCED] = "1"
        print("fixfirst: compiling, once per machine (less than a minute) ...", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- where machine code is kept


def cache_folder(room: str = SIMULATOR) -> Path:
    """Return the folder of a room's machine code: below NUMBA_CACHE_DIR if set, else in the user's cache folder.

    A user without a home, as in some containers, has a folder among the temporary files. Raises ConfigError if others could
    put code there: it is run as it is.
    """
    if (chosen := os.environ.get("NUMBA_CACHE_DIR")) or (chosen := os.environ.get("XDG_CACHE_HOME")):
        base = _private(Path(chosen))
    else:
        try:
            base = _private(Path.home() / ".cache")
        except RuntimeError:  # neither HOME nor an entry in passwd
            base = Path(tempfile.gettempdir()) / f"fixfirst-{os.getuid()}"
            with contextlib.suppress(OSError):
                base.mkdir(mode=0o700, exist_ok=True)
            base = _private(base)
    return base / "fixfirst" / f"{room}-{_fingerprint(room)}"


def _private(base: Path) -> Path:
    """Return a folder in which nobody but this user and root can put machine code. Raises ConfigError."""
    for folder, mode in ((base, stat.S_IWOTH | stat.S_ISVTX), (base / "fixfirst", stat.S_IWOTH)):
        with contextlib.suppress(OSError):
            found = folder.stat()
            if found.st_uid not in (_ROOT, os.getuid()) or found.st_mode & mode == stat.S_IWOTH:
                who = "is writable for everybody" if found.st_mode & stat.S_IWOTH else "belongs to somebody else"
                raise ConfigError(f"{folder} {who}: machine code there cannot be trusted; name another NUMBA_CACHE_DIR")
    return base


@cache
def _fingerprint(room: str) -> str:
    """Return a digest of everything that machine code of a room depends on: sources, versions, processor."""
    digest = hashlib.sha256()
    for source in SOURCES:
        if ROOMS.index(source.split("/")[0]) <= ROOMS.index(room):
            digest.update((PACKAGE / source).read_bytes())
    versions = platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__
    digest.update(repr((versions, cpu_target.target_context.codegen().magic_tuple())).encode())
    return digest.hexdigest()[:16]


def _delete_stale(folder: Path) -> None:
    """Delete those of the folders beside this one that no process has used for long."""
    for other in folder.parent.glob("*-" + "[0-9a-f]" * 16):
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > STALE_DAYS * 86_400:
                shutil.rmtree(other)


class MachineCode(NullCache):  # type: ignore[misc]  # Numba is untyped
    """The files of one entry point, in the shape of a Numba cache: one file per signature, none if it lies in no room.

    A file holds a checksum of all that follows, its own place (a file from elsewhere is no good), and the pickled code.
    What cannot be used counts as missing and is replaced; what cannot be written is compiled again in the next process.
    """

    def __init__(self, function: Callable[..., Any]):
        path = Path(inspect.getfile(function)).resolve()
        self.source = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""
        room = self.source.split("/")[0]
        self._folder = cache_folder(room) if room in ROOMS else None
        self._name = f"{path.stem}.{function.__qualname__}"
        self._lock: IO[bytes] | None = None

    @property
    def cache_path(self) -> str | None:
        return None if self._folder is None else str(self._folder)

    def on_disk(self) -> bool:
        """Return whether there is an undamaged file, for whatever signature."""
        return self._folder is not None and any(_read(path) for path in self._folder.glob(f"{self._name}-*.nbc"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None: then this process is the one to compile it, until `release_lock`.

        Numba's caches first import all that Numba can compile and scipy.linalg, which takes half a second.
        """
        found = self._load(sig, target_context)
        if found is None:
            self._wait_for_turn(sig)
            found = self._load(sig, target_context)
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, result: Any) -> None:
        """Keep what was compiled, if it does not refer to this process's memory."""
        if self._folder is None or result.library.has_dynamic_globals or any(not x.can_cache for x in result.lifted):
            return
        with contextlib.suppress(OSError):
            _write(self._path(sig), dumps(result._reduce()))
            _delete_stale(self._folder)

    def release_lock(self) -> None:
        """Release the lock on compiling: other processes then look for the file."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _path(self, sig: Any) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}-{hashlib.sha256(str(sig).encode()).hexdigest()[:16]}.nbc"

    def _load(self, sig: Any, target_context: Any) -> Any:
        if self._folder is None or (code := _read(self._path(sig))) is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(self._folder)  # in use: not stale
        rtsys.initialize(target_context)  # memory that the code may ask for
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # undamaged and yet of no use, whatever the reason: compiling again is always right
            return None

    def _wait_for_turn(self, sig: Any) -> None:
        """Take the lock on a signature's file. The system gives back that of a process that ends, however it ends."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._path(sig).with_suffix(".lock").open("ab")
            try:
                lock(self._lock)
            except BlockingIOError:
                os.environ[ANNOUNCED] = "1"  # whoever has it has said that it compiles
                lock(self._lock, wait=True)
        except OSError:  # nothing can be written here, or the file system knows no locks: every process for itself
            self.release_lock()


class EntryPoint(CPUDispatcher):  # type: ignore[misc]  # Numba is untyped
    """A compiled function whose machine code is kept on disk."""

    def __init__(self, py_func: Callable[..., Any], *args: Any, **options: Any):
        super().__init__(py_func, *args, **options)
        self._cache = self.code = MachineCode(py_func)

    def compile(self, sig: Any) -> Any:
        """Return machine code for a signature: from memory, from disk, or made by one process at a time."""
        try:
            return super().compile(sig)
        finally:
            self.code.release_lock()


class Piece(CPUDispatcher):  # type: ignore[misc]  # Numba is untyped
    """A function for compiled functions only: there is no wrapper by which Python could call it."""

    def __init__(self, function: Callable[..., Any], *, forceinline: bool):
        super().__init__(function, targetoptions=_OPTIONS | {"forceinline": forceinline, "no_cpython_wrapper": True})

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{self.__name__} is called by compiled functions only; NUMBA_DISABLE_JIT=1 makes it a plain one")


# ---------------------------------------------------------------- one file


def _read(path: Path) -> bytes | None:
    """Return the code in a file, or None unless all of it is there as it was written, at this place."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, rest = content[:32], content[32:]
    place, _, code = rest.partition(b"\0")
    return code if checksum == hashlib.sha256(rest).digest() and place == _place(path) else None


def _write(path: Path, code: bytes) -> None:
    """Write a file so that others see all of it or nothing, in place of whatever was there."""
    rest = _place(path) + b"\0" + code
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        unfinished.write_bytes(hashlib.sha256(rest).digest() + rest)
        if path.is_dir():
            shutil.rmtree(path)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _place(path: Path) -> bytes:
    return f"{path.parent.name}/{path.name}".encode()
