"""The app: its commands, each of which is imported when it is asked for; the flags that they share; what is misused."""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, Token, UnusedCliTokensError

from fixfirst import __version__
from fixfirst.base import errors
from fixfirst.cli import COMMANDS

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

    from fixfirst.base import tables

BRIEF = ("search", "train")  # their --help shows what people use, --help-all the rest
_FLAGS = {  # settings whose flag has another name
    "max_steps": "--steps",
    "from_policy": "--from",
    "train_episodes": "--exploit-episodes",
    "starts": "--exploit-starts",
}


class _Rare:
    """How help shows a group of flags that few people need: not, unless everything is asked for."""

    everything = True

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        if self.everything:
            from cyclopts.help import DefaultFormatter  # slow to import, and nobody else needs it

            DefaultFormatter()(console, options, panel)


_rare = _Rare()
_RARE_GROUPS = ("Game", "Order and gate", "Search", "Policy", "Learning", "Stages", "Attackers", "Files", "Workers")
RARE = {name: Group(name, sort_key=rank, help_formatter=_rare) for rank, name in enumerate(_RARE_GROUPS, 1)}

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
    group_parameters=Group("Parameters", sort_key=0),
    suppress_keyboard_interrupt=False,  # the entry says how to go on
)


def default_in_words(value: Any) -> str | None:
    """Return a default, as help says it; nothing if there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(getattr(value, "name", value))


def as_whole(text: str) -> int:
    """100000, 100_000 or 1e5."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if float(text).is_integer():
                return int(float(text))
        raise ValueError(f"must be a whole number, got {text!r}") from None


def whole(kind: Any, tokens: Sequence[Token]) -> int:
    """Convert a whole number: cyclopts would make 50 of 50.5."""
    return as_whole(tokens[0].value)


Whole = Annotated[int, Parameter(converter=whole)]
Switch = Annotated[bool, Parameter(negative="", show_default=lambda on: "yes" if on else "no")]

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Quiet = Annotated[bool, Parameter(name=("--quiet", "-q"), negative="", help="Show no progress.")]
Again = Annotated[Switch, Parameter(group=RARE["Files"], help="Run again, although a finished run has this result.")]
CyborgFlag = Annotated[
    Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")
]


@dataclass(frozen=True)
class TableFiles:
    """Files to which a command also writes its table."""

    csv: Path | None = None
    """Also write the table to this file, with all digits."""
    latex: Path | None = None
    """Also write the table to this file as a LaTeX tabular (booktabs)."""

    def check(self, *inputs: object) -> None:
        """Refuse files that would replace an input or a file of a run, before anything is played."""
        from fixfirst.runs import layout  # brings NumPy, which `fixfirst --help` does not wait for

        for name, path in vars(self).items():
            if path is not None:
                layout.check_output(name, path, *inputs)

    def write(self, result: "tables.Tabular") -> None:
        """Write a result to the files that were named."""
        if self.csv is not None:
            result.to_csv(self.csv)
        if self.latex is not None:
            result.to_latex(self.latex)


Tables = Annotated[TableFiles, Parameter(name="*")]


def say(text: str) -> None:
    """A line about something that takes a while."""
    errors.note(f"{text} ...")


def print_json(document: Any) -> None:
    """Print a document on stdout."""
    print(json.dumps(document, indent=2))


_WORDS = {  # the commands' own, read and not imported: `fixfirst --help` waits for no command's libraries
    node.name: ast.get_docstring(node)
    for file in {*COMMANDS.values()}
    for node in ast.parse(Path(__file__).with_name(f"{file}.py").read_bytes()).body
    if isinstance(node, ast.FunctionDef)
}
for _rank, (_name, _file) in enumerate(COMMANDS.items()):
    app.command(
        f"fixfirst.cli.{_file}:{_name}_command",
        name=_name,
        help=_WORDS[f"{_name}_command"],
        sort_key=_rank,
        default_parameter=Parameter(show_default=default_in_words),
    )
app.register_install_completion_command(help="Teach your shell (bash, zsh or fish) to complete commands and flags.")


def call(arguments: list[str]) -> object:
    """Run the command of these words, which are not empty; returns its exit code, if it has one."""
    command, brief = arguments[0], arguments[0] in BRIEF and "--help-all" not in arguments
    _rare.everything = not brief
    words = ["--help" if word == "--help-all" else word for word in arguments]
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as e:
        raise errors.ConfigError(_explain(e)) from e
    if brief and {"--help", "-h"} & {*words}:
        flags = [argument for argument in app[command].assemble_argument_collection() if argument.show]
        print(f"--help-all shows all {len(flags)}")
    return result


def flag(name: str) -> str:
    """Return a setting as it is typed."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def refuse(mode: str, names: Iterable[str]) -> None:
    """Raise if settings were given, by these names, that do not go with a mode of the command."""
    for name in names:
        raise errors.ConfigError(f"{flag(name)} does not go with {mode}")


def _explain(error: CycloptsError) -> str:
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
