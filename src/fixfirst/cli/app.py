"""The app: its commands, each of which is imported when it is asked for, and what they share."""

import ast
import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from fixfirst import __version__

COMMANDS = ("search", "train", "evaluate", "report", "watch", "runs", "resume", "conform", "record", "bench", "doctor")

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
    suppress_keyboard_interrupt=False,  # the entry says how to go on
)

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Quiet = Annotated[bool, Parameter(negative="", help="Show no progress.")]
Cyborg = Annotated[Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")]


def log(text: str) -> None:
    """A line about something that takes a while."""
    print(f"fixfirst: {text} ...", file=sys.stderr, flush=True)


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))


def _docstring(module: str, function: str) -> str | None:
    """What a function says about itself, read and not imported: `fixfirst --help` waits for no command's libraries."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes())
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return ast.get_docstring(found)


for _name in COMMANDS:
    app.command(f"fixfirst.cli.{_name}:{_name}_command", name=_name, help=_docstring(_name, f"{_name}_command"))
