"""What the commands share.

Each command imports what it needs inside itself: PyTorch takes seconds, and `--help` should not wait for it.
"""

import sys
from itertools import count
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from fixfirst import __version__

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
)

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Cyborg = Annotated[Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")]


def unused_folder(name: str) -> Path:
    """runs/<name>, or runs/<name>-2, -3, ... if there are such runs already."""
    name = name.replace(":", "").replace(",", "-")
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(folder for folder in (Path("runs") / name for name in names) if not folder.exists())


def log(text: str) -> None:
    """A line about something that takes a while."""
    print(f"fixfirst: {text} ...", file=sys.stderr, flush=True)
