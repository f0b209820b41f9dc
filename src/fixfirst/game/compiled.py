"""Compiling the kernel once per machine, and telling the user when it happens.

Numba's cache notices a change in the file of a function, but not in the tables and functions it uses from other files.
The cache folder is therefore named after a hash of all sources that end up in the machine code.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config

_IN_MACHINE_CODE = ("network", "actions", "tables", "state", "chance", "red_agents", "kernel")
SOURCES = tuple(Path(__file__).with_name(f"{name}.py") for name in _IN_MACHINE_CODE)
_ENTRY_POINTS: list[Any] = []


def cache_folder() -> Path:
    """Where machine code is kept: below NUMBA_CACHE_DIR if set, else in the user's cache folder."""
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update(source.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fixfirst" / f"kernel-{digest.hexdigest()[:16]}"


def compiled(function: Callable[..., Any]) -> Any:
    """Decorator for the kernel's entry points: compiled at first use, cached on disk when a folder can be written."""
    if config.DISABLE_JIT:  # somebody looks at single functions with a debugger
        return function
    dispatcher = numba.njit(function)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())  # read by enable_caching() only; other users of Numba keep their own
    try:
        dispatcher.enable_caching()
    except (RuntimeError, OSError):  # no folder can be written: compile in every process
        pass
    finally:
        config.CACHE_DIR = before
    _ENTRY_POINTS.append(dispatcher)
    return dispatcher


def is_compiled() -> bool:
    """Is the machine code in memory or on disk?"""
    return all(entry.signatures for entry in _ENTRY_POINTS) or any(cache_folder().rglob("*.nbc"))


def announce_compilation() -> None:
    """Say on stderr that the next call compiles, unless it need not."""
    if not is_compiled():
        print("fixfirst: compiling the simulator, once per machine (some ten seconds) ...", file=sys.stderr, flush=True)
