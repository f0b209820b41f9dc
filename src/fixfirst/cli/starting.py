"""The first moments of the command `fixfirst`: Ctrl-C gets one line from the first import on, before `main` can answer it.

A program that imports fixfirst is left alone.
"""

import _signal  # type: ignore[import-not-found]  # built in: what `signal` adds to it takes longer to import than all of this
import os
import sys

INTERRUPTED = "interrupted"


def answer_interrupts() -> None:
    """Called before anything else is imported."""
    if _is_the_command() and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, leave)


def _is_the_command() -> bool:
    """Is this process the installed script, or `python -m fixfirst`?"""
    name, said = os.path.basename(sys.argv[0]) if sys.argv else "", sys.orig_argv
    return name == "fixfirst" or (name == "-m" and "-m" in said and said[said.index("-m") + 1 :][:1] == ["fixfirst"])


def leave(number: int, frame: object) -> None:
    """End at once: nothing is lost, and not every library passes an exception on."""
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""
    os.write(2, show_cursor + f"fixfirst: {INTERRUPTED}\n".encode())
    os._exit(130)
