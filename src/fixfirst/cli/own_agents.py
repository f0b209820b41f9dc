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
    names_code = source.endswith(".py") or all(part.isidentifier() for part in source.split("."))
    if not colon or Path(text).exists() or not names_code:
        return text
    agent: Any = _load(source)
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


def _load(source: str) -> ModuleType:
    """Run a file, or import a module. What fails there is one line, with the traceback of the user's code as a note."""
    path, is_file = Path(source), source.endswith(".py")
    if is_file and not path.is_file():
        raise errors.ConfigError(f"{path}: there is no such file")
    sys.path.append(str(path.parent.resolve() if is_file else Path.cwd()))  # behind all else: theirs replaces none of ours
    try:
        if not is_file:
            return import_module(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None, "a name with .py has a loader"
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)  # pickles and dataclasses look there
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as e:
        if not is_file and isinstance(e, ModuleNotFoundError) and f"{source}.".startswith(f"{e.name}."):
            raise errors.ConfigError(f"there is no module {e.name!r} here, nor is one installed") from None
        failure = errors.ConfigError(f"{source} does not run ({type(e).__name__}: {e})")
        failure.add_note("".join(traceback.format_exception(e)).rstrip())
        raise failure from None
