"""Agents of users by name: `MODULE:NAME` or `FILE.py:NAME`.

Only here is code imported by name, and only by a name that somebody typed: what a file says never comes here.
"""

import importlib.util
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fixfirst.base import errors

if TYPE_CHECKING:
    from fixfirst.api.defenders import PolicyLike


def named_agent(text: str) -> "PolicyLike":
    """Return the agent that a word of the command line names, or the word itself where it names a policy."""
    source, colon, name = text.rpartition(":")
    is_file = source.endswith(".py")
    if not colon or Path(text).exists() or not (is_file or all(part.isidentifier() for part in source.split("."))):
        return text
    agent: Any = _run_file(Path(source)) if is_file else _import_module(source)
    for part in name.split("."):
        if not hasattr(agent, part):
            raise errors.ConfigError(f"{source} has no {part!r}{errors.did_you_mean(part, dir(agent))}")
        agent = getattr(agent, part)
    from fixfirst.adapters import agents
    from fixfirst.policy.table import PolicyTable
    from fixfirst.policy.trained import Policy

    if isinstance(agent, Policy | PolicyTable):
        return agent
    if isinstance(agent, agents.Agent):
        agent.name = text
        return agent
    return agents.Agent(agent, name=text)


def _import_module(name: str) -> ModuleType:
    sys.path.append(str(Path.cwd()))  # behind all else: a file of theirs replaces none of ours
    try:
        return import_module(name)
    except (Exception, SystemExit) as e:
        if isinstance(e, ModuleNotFoundError) and f"{name}.".startswith(f"{e.name}."):
            raise errors.ConfigError(f"there is no module {e.name!r} here, nor is one installed") from None
        raise _failure(name, e) from None


def _run_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise errors.ConfigError(f"{path}: there is no such file")
    sys.path.append(str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a name with .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # pickles and dataclasses look there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        raise _failure(str(path), e) from None
    return module


def _failure(source: str, error: BaseException) -> errors.ConfigError:
    """Return an error of one line, with the traceback of the user's code as a note."""
    failure = errors.ConfigError(f"{source} does not run ({type(error).__name__}: {error})")
    failure.add_note("".join(traceback.format_exception(error)).rstrip())
    return failure
