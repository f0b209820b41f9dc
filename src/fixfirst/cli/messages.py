"""What a user is told, in the words that were typed."""

import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import CycloptsError

# Settings whose flag has another name.
_FLAGS = {"max_steps": "--steps", "from_policy": "--from"}
SLOW = (
    "search",
    "train",
    "resume",
    "report",
    "evaluate",
    "compare",
    "watch",
    "export",
    "conform",
    "record",
    "bench",
    "doctor",
)


def greet(arguments: list[str]) -> None:
    """A first line at once, in a terminal: on a busy machine it takes long to import what a command needs."""
    silent = {"--help", "-h", "--quiet", "--json"} & set(arguments)
    if arguments[0] in SLOW and not silent and sys.stderr.isatty() and "numba" not in sys.modules:
        print(f"fixfirst: {arguments[0]} ...", file=sys.stderr, flush=True)


def misuse(error: "CycloptsError") -> str:
    """What is wrong with a command line."""
    unused = getattr(error, "unused_tokens", None)
    if unused and error.command_chain:
        command, extra = " ".join(error.command_chain), ", ".join(map(repr, unused))
        flags = [token for token in unused if token.startswith("-")]
        if flags:  # a command that takes several runs has these among the unused, too
            return f"Unknown option: {flags[0].partition('=')[0]}, see fixfirst {command} --help"
        return f"{command} does not know what to do with {extra}: its settings are flags, see fixfirst {command} --help"
    return str(error)


def as_typed(message: str, arguments: list[str]) -> str:
    """A message that begins with the name of a setting, with the flag instead if that was used: n_envs is --n-envs."""
    found = re.match(r"\w+", message)
    if found is None:
        return message
    typed = {argument.split("=")[0] for argument in arguments if argument.startswith("--")}
    names = (f"--{found[0].replace('_', '-')}", _FLAGS.get(found[0], ""))
    flag = next((name for name in names if name in typed), found[0])
    return flag + message[found.end() :]


def fitted(text: str) -> str:
    """Lines as wide as the terminal, if stderr is one; nothing is broken inside a word."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
