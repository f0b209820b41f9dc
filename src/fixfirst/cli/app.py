"""The app: its commands, each of which is imported when it is asked for, and what they share."""

import ast
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter, Token

from fixfirst import __version__
from fixfirst.base.errors import in_one_line

COMMANDS = (  # in the order of use
    "search", "train", "resume", "runs", "report",
    "evaluate", "compare", "watch", "export",
    "conform", "record", "bench", "doctor",
)  # fmt: skip

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
    suppress_keyboard_interrupt=False,  # the entry says how to go on
)


def shown(value: Any) -> str | None:
    """A default, as help says it; nothing if there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return (", ".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


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
    """The converter of whole numbers: cyclopts would make 50 of 50.5."""
    return as_whole(tokens[0].value)


SHOWN = Parameter(show_default=shown)
Whole = Annotated[int, Parameter(converter=whole)]

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Quiet = Annotated[bool, Parameter(negative="", help="Show no progress.")]
Cyborg = Annotated[Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")]


def note(text: str) -> None:
    """Print a line that the user should read, on stderr."""
    print(f"fixfirst: {in_one_line(text)}", file=sys.stderr, flush=True)


def log(text: str) -> None:
    """A line about something that takes a while."""
    print(f"fixfirst: {in_one_line(text)} ...", file=sys.stderr, flush=True)


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))


def _docstring(module: str, function: str) -> str | None:
    """What a function says about itself, read and not imported: `fixfirst --help` waits for no command's libraries."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes())
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return ast.get_docstring(found)


for _place, _name in enumerate(COMMANDS):
    app.command(
        f"fixfirst.cli.{_name}:{_name}_command",
        name=_name,
        help=_docstring(_name, f"{_name}_command"),
        sort_key=_place,
        default_parameter=SHOWN,
    )
