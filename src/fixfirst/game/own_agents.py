"""Red agents of users: functions that they register by name.

`attackers.py` compiles them on first use; to know their names needs no compiler. Other processes know them if they are in
a file that FIXFIRST_RED_AGENTS names. A module that registers one adds its file to the variable, where worker processes
find it.
"""

import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import TypeVar

from fixfirst.base import errors
from fixfirst.game.state import RedAgent

FILES_VARIABLE = "FIXFIRST_RED_AGENTS"
Decide = TypeVar("Decide", bound=Callable[..., None])

_own: dict[str, Callable[..., None]] = {}  # in the order of their numbers
_files: set[Path] = set()  # those of the variable whose agents are registered


def red_agent(name: str) -> Callable[[Decide], Decide]:
    """Register a red agent of your own: a decorator for a function (env, chance) that decides what red does next.

    The function is compiled by Numba on first use (a second or two in each process), and calls `intends` of `fixfirst.red`,
    where all it may need is; docs/extend.md tells what is in `env`. From then on the name works wherever a red agent is
    named, also in mixtures. To use it from the command line, name its file in FIXFIRST_RED_AGENTS.

    For example:

        from fixfirst.red import USER, Verb, intends

        @ff.red_agent("looks_around")
        def looks_around(env, chance):
            intends(env, Verb.DISCOVER, USER)
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z]\w*", name):
        raise errors.ConfigError(f"a red agent's name is a word in lower case, got {name!r}")
    if name.upper() in RedAgent.__members__:
        raise errors.ConfigError(f"{name} is one of our red agents; give yours another name")

    def register(function: Decide) -> Decide:
        if not isinstance(function, FunctionType) or len(inspect.signature(function).parameters) != 2:
            raise errors.ConfigError(f"red agent {name!r} must be a function of (env, chance)")
        _own[name] = function
        _share(function)
        return function

    return register


def own_agents() -> dict[str, Callable[..., None]]:
    """Return all that are registered, also in the files of the variable, in the order of their numbers."""
    for path in _files_of_the_variable():
        if path.resolve() not in _files:
            _files.add(path.resolve())  # before it runs: it may ask for the agents itself
            if not _is_the_program(path):
                try:
                    _run(path)
                except errors.ConfigError:
                    _files.discard(path.resolve())
                    raise
    return dict(_own)


def _files_of_the_variable() -> list[Path]:
    return [Path(path) for path in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if path]


def _is_the_program(path: Path) -> bool:
    """Return whether this process runs the file as a script, which registers its agents by itself."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    return program is not None and Path(program).resolve() == path.resolve()


def _share(function: Callable[..., None]) -> None:
    """Let worker processes find a function: they read its file, unless it is the program that starts them."""
    path = Path(inspect.getsourcefile(function) or "").resolve()
    if function.__module__ != "__main__" and path.is_file() and path not in {p.resolve() for p in _files_of_the_variable()}:
        _files.add(path)
        os.environ[FILES_VARIABLE] = os.pathsep.join(filter(None, [os.environ.get(FILES_VARIABLE), str(path)]))


def _run(path: Path) -> None:
    """Run a file of the variable. Raises ConfigError, with the line where it stopped."""
    spec = importlib.util.spec_from_file_location(f"fixfirst_red_agents_{len(_files)}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise errors.ConfigError(f"{FILES_VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        where = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename.endswith(str(path))]
        line = f", line {where[-1]}" if where else ""
        raise errors.ConfigError(f"{FILES_VARIABLE} names {path}, which does not run{line} ({type(e).__name__}: {e})") from e
