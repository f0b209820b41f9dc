"""An agent of the user's own, named on the command line: `MODULE:NAME` or `FILE.py:NAME`.

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
    from fixfirst.api import policies


def named_agent(text: str) -> "policies.Who":
    """Return the agent that a word of the command line names, or the word itself where it names a policy."""
    place, colon, name = text.rpartition(":")
    is_file = place.endswith(".py")
    if not colon or Path(text).exists() or not (is_file or all(part.isidentifier() for part in place.split("."))):
        return text
    found: Any = _run_file(Path(place)) if is_file else _import_module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")] if isinstance(found, ModuleType) else []
            raise errors.ConfigError(f"{place} has no {part!r}{errors.did_you_mean(part, known)}")
        found = getattr(found, part)
    from fixfirst.play import agents
    from fixfirst.policy.file import Policy
    from fixfirst.policy.table import PolicyTable

    if isinstance(found, Policy | PolicyTable):
        return found
    if isinstance(found, agents.Agent):
        found.name = text
        return found
    return agents.Agent(found, name=text)


def _import_module(name: str) -> ModuleType:
    sys.path.append(str(Path.cwd()))  # behind all else: a file of theirs replaces none of ours
    try:
        return import_module(name)
    except (Exception, SystemExit) as e:
        if isinstance(e, ModuleNotFoundError) and e.name is not None and (name == e.name or name.startswith(f"{e.name}.")):
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


def _failure(place: str, error: BaseException) -> errors.ConfigError:
    """Return an error of one line, with the traceback of the user's code as a note."""
    failure = errors.ConfigError(f"{place} does not run ({type(error).__name__}: {error})")
    failure.add_note("".join(traceback.format_exception(error)).rstrip())
    return failure
