"""What the commands share."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from fixfirst import __version__

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
