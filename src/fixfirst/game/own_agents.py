"""Red agents of users, by name. They are compiled into the rules on first use (`red_agents.py`).

    @ff.red_agent("scanner")
    def scanner(env, chance):
        ...

Other processes know them if they are in a file that FIXFIRST_RED_AGENTS names; a module that registers one is added to it:
worker processes find it there.
"""

import hashlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from fixfirst.base.errors import ConfigError, quoted
from fixfirst.game.state import RedAgent

FILES_VARIABLE = "FIXFIRST_RED_AGENTS"
Decide = TypeVar("Decide", bound=Callable[..., None])

_own: dict[str, Callable[..., None]] = {}  # in the order of their numbers
_listeners: list[Callable[[], None]] = []  # told when there is another one
_read: set[str] = set()  # files of the variable


def red_agent(name: str) -> Callable[[Decide], Decide]:
    """Register a red agent of your own: a decorator for a function (env, chance) that decides what red does next.

    The function is compiled by Numba with the rules, on first use (half a minute, once per machine), and calls `intends` of
    `fixfirst.red`, where all it may need is; docs/extend.md tells what is in `env`. From then on the name works wherever a
    red agent is named, also in mixtures. To use it from the command line, name its file in FIXFIRST_RED_AGENTS.

    For example:

        from fixfirst.red import USER, Verb, intends

        @ff.red_agent("looks_around")
        def looks_around(env, chance):
            intends(env, Verb.DISCOVER, USER)
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z]\w*", name):
        raise ConfigError(f"a red agent's name is a word in lower case, got {quoted(name)}")
    if name.upper() in RedAgent.__members__:
        raise ConfigError(f"{name} is one of our red agents; give yours another name")

    def register(function: Decide) -> Decide:
        if not isinstance(function, FunctionType) or len(inspect.signature(function).parameters) != 2:
            raise ConfigError(f"red agent {quoted(name)} must be a function of (env, chance)")
        before = digest()
        _own[name] = function
        _share(function)
        if digest() != before:
            for told in _listeners:
                told()
        return function

    return register


def own_agents() -> dict[str, Callable[..., None]]:
    """All that are registered, also in the files of the variable."""
    for path in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        if path not in _read:
            _run(path)
            _read.add(path)
    return dict(_own)


def on_change(told: Callable[[], None]) -> None:
    """Call this whenever there is another one, or another function for one."""
    _listeners.append(told)


def digest() -> str:
    """Changes with all that own agents are made of; empty without any."""
    if not _own:
        return ""
    sources = [(name, sorted(_sources(function, {}).items())) for name, function in _own.items()]
    return hashlib.sha256(repr(sources).encode()).hexdigest()


def _sources(function: Any, found: dict[str, str]) -> dict[str, str]:
    """The source of a function and of those of the user that it calls, and the values it takes from around it."""
    function = getattr(function, "py_func", function)  # of a compiled one
    if function.__qualname__ not in found:
        found[function.__qualname__] = inspect.getsource(function)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if value is None or str(getattr(value, "__module__", "")).split(".")[0] in ("fixfirst", "numba", "numpy"):
                continue
            if isinstance(getattr(value, "py_func", value), FunctionType):
                _sources(value, found)
            elif not inspect.ismodule(value):
                found[name] = repr(value)
    return found


def _share(function: Callable[..., None]) -> None:
    """Let worker processes find it: they read the file again, unless it is the program that starts them."""
    path = inspect.getsourcefile(function) or ""
    known = os.environ.get(FILES_VARIABLE, "").split(os.pathsep)
    if function.__module__ != "__main__" and Path(path).is_file() and path not in known:
        _read.add(path)
        os.environ[FILES_VARIABLE] = os.pathsep.join(filter(None, [*known, path]))


def _run(path: str) -> None:
    spec = importlib.util.spec_from_file_location(f"fixfirst_red_agents_{len(_read)}", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ConfigError(f"{FILES_VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        where = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename.endswith(path)]
        line = f", line {where[-1]}" if where else ""
        raise ConfigError(f"{FILES_VARIABLE} names {path}, which does not run{line} ({type(e).__name__}: {e})") from e
