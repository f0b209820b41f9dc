"""What is wrong with a command line, in the words that were typed."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import CycloptsError

FLAGS = {  # settings whose flag may have another name
    "max_steps": "--steps",
    "from_policy": "--from",
    "train_episodes": "--exploit-episodes",
    "starts": "--exploit-starts",
}


def explain(error: "CycloptsError") -> str:
    """Return what is wrong with a command line."""
    command = " ".join(error.command_chain or ())
    hint = f"see fixfirst {command} --help"
    if command and (unused := getattr(error, "unused_tokens", None)):
        extra = ", ".join(map(repr, unused))
        flags = [token for token in unused if token.startswith("-")]
        if flags:  # a command that takes several runs has these among the unused, too
            return f"Unknown option: {flags[0].partition('=')[0]}, {hint}"
        if command == "evaluate":
            return f"evaluate plays one policy, got also {extra}; to set two side by side: fixfirst compare A B"
        return f"{command} does not know what to do with {extra}: its settings are flags, {hint}"
    missing = getattr(error, "argument", None)
    if command and type(error).__name__ == "MissingArgumentError" and missing is not None:
        return f"{command} needs {missing.name}, {hint}"
    return str(error)


def as_typed(message: str, words: list[str]) -> str:
    """Return a message with the flag in place of the setting it begins with, if that was used: n_envs is --n-envs."""
    name = re.match(r"\w+", message)
    if name is None:
        return message
    typed = {word.split("=")[0] for word in words if word.startswith("--")}
    flags = (f"--{name[0].replace('_', '-')}", FLAGS.get(name[0], ""))
    return next((flag for flag in flags if flag in typed), name[0]) + message[name.end() :]
