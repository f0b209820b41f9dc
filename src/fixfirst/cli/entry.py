"""Running one command. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import io
import os
import signal
import sys
from types import FrameType
from typing import TextIO

from fixfirst.base.errors import ConfigError, FixfirstError, Interrupted, in_one_line
from fixfirst.cli.messages import as_typed, fitted, greet, misuse
from fixfirst.cli.starting import INTERRUPTED, leave

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

MOST_DIGITS = 4  # of a terminal's width: Rich fills lines up to it


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    before, errors = signal.getsignal(signal.SIGINT), sys.stderr
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if before in (signal.default_int_handler, leave):  # else somebody has it otherwise, or ignored
            signal.signal(signal.SIGINT, _on_interrupt)
        sys.stderr = _Patient(errors)
        _occupy_standard_files()
        _print_anywhere()
        code = _run(words)
        sys.stdout.flush()
    except FixfirstError as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        return _fail(as_typed(str(e), words))
    except (BrokenPipeError, SystemExit) as e:  # whoever reads our output has seen enough
        if isinstance(e, SystemExit) and not isinstance(e.__context__, BrokenPipeError):  # Rich makes one of the other
            raise
        _forget_output()  # Python must not try again when it exits
        return 0
    except OSError as e:  # what is refused elsewhere is told there: this is our output, or the system's
        _forget_output()
        return _fail(f"{e.filename or 'output'}: {e.strerror or e}")
    except MemoryError:
        return _fail("out of memory; fewer environments (--n-envs), workers or episodes need less")
    except KeyboardInterrupt as e:
        print(f"fixfirst: {e if isinstance(e, Interrupted) else INTERRUPTED}", file=sys.stderr)
        return 130
    finally:
        sys.stderr = errors
        # At the end of the command there is nothing left to interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN if before is leave else before)
    return code if isinstance(code, int) else 0


def _fail(text: str) -> int:
    print(fitted(f"fixfirst: {in_one_line(text)}"), file=sys.stderr)
    return 2


def _occupy_standard_files() -> None:
    """A closed stdin, stdout or stderr would give its number to the next file that is opened, and what is told to that."""
    lost = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    if lost:
        raise ConfigError("stdout is closed; send it somewhere, if only to /dev/null")


def _print_anywhere() -> None:
    """A terminal or file that knows few characters, or no width, gets others than ours, not a traceback."""
    for stream in (sys.stdout, sys.__stderr__):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and (len(columns) > MOST_DIGITS or int(columns) == 0):  # nothing fits into it, or it is no terminal
        del os.environ["COLUMNS"]


def _forget_output() -> None:
    """What is still to be written goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Patient(io.TextIOBase):
    """Stderr, which may be lost: a reader who went away or a full disk ends nothing, it only is not told any more."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            if self._stream is not None:
                self._stream.write(text)
        except OSError:
            self._stream = None
        return len(text)

    def flush(self) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError:
            self._stream = None

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return 2 if self._stream is None else self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8" if self._stream is None else self._stream.encoding


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C. Leave at once while something is imported or loaded."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("importlib._bootstrap", "llvmlite.binding.executionengine"):
            leave(number, frame)
        frame = frame.f_back
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> object:
    """What the command returns. Everything is imported in here, where Ctrl-C is answered with one line."""
    if not arguments:
        from fixfirst.cli.runs import welcome

        return welcome()
    greet(arguments)
    from cyclopts import CycloptsError

    from fixfirst.cli.app import app

    try:
        return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as e:
        raise ConfigError(misuse(e)) from e
