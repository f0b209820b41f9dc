"""Running one command. Bad input: one line on stderr, exit code 2. A traceback is a bug.

Ctrl-C, a polite kill (SIGTERM) and a closed terminal (SIGHUP) are answered alike: a run that is being trained saves itself,
one line says how to go on, and the exit code is 130.
"""

import io
import os
import signal
import sys
from types import FrameType
from typing import Any

from fixfirst.base import errors

INTERRUPTED = 130

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    answers = {signal.SIGINT: _on_interrupt, signal.SIGTERM: _like_interrupt, signal.SIGHUP: _like_interrupt}
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in answers}
    for number, handler in before.items():
        if handler in (signal.SIG_DFL, signal.default_int_handler):  # neither ignored nor answered by somebody else
            signal.signal(number, answers[number])
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal or file may know few characters
        code = _run(words)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except errors.FixfirstError as e:
        from fixfirst.cli import app

        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        errors.note(app.as_typed(str(e), words))
    except (BrokenPipeError, SystemExit) as e:  # whoever reads our output has seen enough
        if isinstance(e, SystemExit) and not isinstance(e.__context__, BrokenPipeError):  # Rich makes one of it
            raise
        _forget_output()
        return 0
    except OSError as e:  # what is refused elsewhere is said there: this is our output, or the system's
        _forget_output()
        errors.note(f"{e.filename or 'output'}: {e.strerror or e}")
    except (MemoryError, RecursionError) as e:
        few = "out of memory; fewer environments (--n-envs), workers or episodes need less"
        errors.note(few if isinstance(e, MemoryError) else "nested too deeply")
    except KeyboardInterrupt as e:
        print(f"fixfirst: {e if isinstance(e, errors.Interrupted) else 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arguments is None and before[signal.SIGINT] in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and written: Python's own end takes no time
    return 2


def _run(words: list[str]) -> object:
    """Return what the command returns. Everything is imported in here, where Ctrl-C is answered with one line."""
    from fixfirst.cli import COMMANDS

    if not words:
        from fixfirst.cli.runs import welcome

        welcome()
        return None
    is_long = words[0] in COMMANDS and not {"runs", "--help", "--help-all", "-h", "--quiet", "-q", "--json"} & set(words)
    if is_long and sys.stderr.isatty() and "numba" not in sys.modules:  # on a busy machine its imports take seconds
        print(f"fixfirst: {words[0]} ...", file=sys.stderr, flush=True)
    from fixfirst.cli import app

    return app.call(words)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; or leave at once while something is imported or loaded: it may become another error there."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("importlib._bootstrap", "llvmlite.binding.executionengine"):
            os.write(2, (b"\x1b[?25h" if os.isatty(2) else b"") + b"fixfirst: interrupted\n")  # and show the cursor
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _like_interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do, also where that is ignored, as in the background of a shell."""
    answer = signal.getsignal(signal.SIGINT)
    (answer if callable(answer) else _on_interrupt)(number, frame)


def _forget_output() -> None:
    """Send what is still to be written nowhere: Python must not try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
