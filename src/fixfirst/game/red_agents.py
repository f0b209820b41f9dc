"""Whom blue plays against: red agents by their names, those of users among them, and mixtures of all.

A mixture is written b_line:0.5,runs/red:0.5, on the command line as in files; `parse_mixture` reads it.

Users register functions of their own by name (`red_agent`). `attackers.py` compiles them on first use; to know their names
needs no compiler. Other processes know them if they are in a file that FIXFIRST_RED_AGENTS names. A module that registers
one adds its file to the variable, where worker processes find it.
"""

import importlib.util
import inspect
import math
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from fixfirst.base import errors
from fixfirst.game import attacker_files
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import RedAgent

FILES_VARIABLE = "FIXFIRST_RED_AGENTS"
Decide = TypeVar("Decide", bound=Callable[..., None])

_own: dict[str, Callable[..., None]] = {}  # red agents of users, in the order of their numbers
_files: set[Path] = set()  # those of the variable whose agents are registered
_ALIASES = {  # CybORG's class names and the spellings met in the field, all in lower case
    "bline": "b_line",
    "b_lineagent": "b_line",
    "redmeanderagent": "meander",
    "redmeander": "meander",
    "sleepagent": "sleep",
}


class Mixture(str):
    """Red agents and how often each is met: a string as files have it, in our own spelling and with seals, parsed once.

    A single name is a mixture of one. weights: by the name of an agent.
    """

    weights: dict[str, float]

    def __new__(cls, text: str, weights: dict[str, float]) -> "Mixture":
        mixture = super().__new__(cls, text)
        mixture.weights = weights
        return mixture

    def __getnewargs__(self) -> Any:  # for copies, also in other processes
        return str(self), self.weights

    @property
    def learned(self) -> tuple[str, ...]:
        """Those that are learned attackers."""
        scripts = script_names()
        return tuple(name for name in self.weights if name not in scripts)

    @property
    def is_built_in(self) -> bool:
        """Whether all are scripts of ours, which are the same everywhere and for ever."""
        return all(name.upper() in RedAgent.__members__ for name in self.weights)


def parse_mixture(text: Any, scenario: Scenario) -> Mixture:
    """Return the mixture that a name, or names with weights, stand for, in any spelling that we know.

    scenario: where it is played; learned attackers get the beginning of their hash: runs/red -> runs/red@1a2b3c4d.
    """
    if isinstance(text, Mixture):
        return text
    if not isinstance(text, str):
        raise errors.WorldError(f"a red agent is given by name, got {text!r}")
    mixture = f"red agent mixture {text!r}"
    weights: dict[str, float] = {}
    spelled = []
    for part in text.split(","):
        name, colon, weight = part.partition(":")
        if not colon and "," in text:
            raise errors.WorldError(f"{mixture} needs a weight for {part.strip()!r}, as in b_line:0.5,meander:0.5")
        try:
            value = float(weight) if colon else 1.0
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise errors.WorldError(f"weight {weight} in {mixture} must be a finite number, at least 0")
        agent = _agent(name, scenario)
        weights[agent] = weights.get(agent, 0.0) + value
        spelled.append(agent + colon + weight.strip())
    if not 0 < sum(weights.values()) < math.inf:
        raise errors.WorldError(f"the weights of {mixture} must have a finite sum above 0")
    return Mixture(",".join(spelled), weights)


def names_listed(text: str) -> list[str]:
    """Return red agents one by one: a plain list of names means one after the other, weights make it one mixture."""
    return [text] if ":" in text else text.split(",")


def script_names() -> tuple[str, ...]:
    """Return all scripts by their numbers: those of `RedAgent`, then users' own."""
    return (*(agent.name.lower() for agent in RedAgent), *own_agents())


def _agent(name: str, scenario: Scenario) -> str:
    """Return the name of a script in our own spelling, or of a learned attacker, sealed."""
    name = name.strip()
    script = _ALIASES.get(name.lower(), name.lower())
    if script in script_names():
        return script
    if (sealed := attacker_files.sealed(name, scenario)) is not None:
        return sealed
    raise errors.WorldError(
        f"unknown red agent {name!r}; use {', '.join(script_names())} (or CybORG's B_lineAgent, "
        "RedMeanderAgent, SleepAgent), a mixture such as b_line:0.5,meander:0.5, or a learned one: "
        f"{', '.join(attacker_files.shipped_reds())}, or the folder of its files"
    )


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
