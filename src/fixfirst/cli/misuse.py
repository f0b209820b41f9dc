"""What is wrong with a command line, in the words that were typed."""

import re
from collections.abc import Iterable

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from fixfirst.base import errors

_FLAGS = {  # settings whose flag may have another name
    "max_steps": "--steps",
    "from_policy": "--from",
    "train_episodes": "--exploit-episodes",
    "starts": "--exploit-starts",
}


def flag(name: str) -> str:
    """Return a setting as it is typed."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def refuse(mode: str, names: Iterable[str]) -> None:
    """Raise if settings were given, by these names, that do not go with a mode of the command."""
    for name in names:
        raise errors.ConfigError(f"{flag(name)} does not go with {mode}")


def explain(error: CycloptsError) -> str:
    """Return what is wrong with a command line."""
    command = " ".join(error.command_chain or ())
    hint = f"see fixfirst {command} --help"
    if command and isinstance(error, UnusedCliTokensError):
        extra = ", ".join(map(repr, error.unused_tokens or ()))
        if command == "evaluate":
            return f"evaluate plays one policy, got also {extra}; to set two side by side: fixfirst compare A B"
        return f"{command} does not know what to do with {extra}: its settings are flags, {hint}"
    if command and isinstance(error, MissingArgumentError) and error.argument is not None:
        return f"{command} needs {error.argument.name}, {hint}"
    return str(error)


def as_typed(message: str, words: list[str]) -> str:
    """Return a message with the flag in place of the setting it begins with, if that was used: n_envs is --n-envs."""
    name = re.match(r"\w+", message)
    if name is None:
        return message
    typed = {word.split("=")[0] for word in words if word.startswith("--")}
    flags = (f"--{name[0].replace('_', '-')}", flag(name[0]))
    return next((flag for flag in flags if flag in typed), name[0]) + message[name.end() :]
