"""Running one command. Bad input: one line on stderr, exit code 2. A traceback is a bug.

Ctrl-C, a polite kill (SIGTERM) and a closed terminal (SIGHUP) are answered alike: a run that is being trained saves itself,
one line says how to go on, and the exit code is 130.
"""

import io
import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from fixfirst.base import errors

if TYPE_CHECKING:
    from cyclopts import CycloptsError

FLAGS = {"max_steps": "--steps", "from_policy": "--from"}  # settings whose flag may have another name
INTERRUPTED = 130
MOST_DIGITS = 4  # of a terminal's width: Rich fills lines up to it

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words, stderr, before = sys.argv[1:] if arguments is None else arguments, sys.stderr, _answer_signals()
    try:
        sys.stderr = _Patient(stderr)
        _occupy_standard_files()
        _print_anywhere()
        code = _run(words)
        sys.stdout.flush()
    except errors.FixfirstError as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        return _fail(_as_typed(str(e), words))
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
        print(f"fixfirst: {e if isinstance(e, errors.Interrupted) else 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    finally:
        sys.stderr = stderr
        for number, handler in before.items():
            signal.signal(number, handler)
        if arguments is None and before[signal.SIGINT] in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and written: Python's own end takes no time
    return code if isinstance(code, int) else 0


def _run(arguments: list[str]) -> object:
    """Return what the command returns. Everything is imported in here, where Ctrl-C is answered with one line."""
    if not arguments:
        from fixfirst.cli.runs import welcome

        return welcome()
    _greet(arguments)
    from cyclopts import CycloptsError

    from fixfirst.cli.app import call

    try:
        return call(arguments)
    except CycloptsError as e:
        raise errors.ConfigError(_misuse(e)) from e


# ---------------------------------------------------------------- signals


def _answer_signals() -> dict[signal.Signals, Any]:
    """Listen to the signals that ask to stop, unless somebody else does or they are ignored; returns who did before."""
    answers = {signal.SIGINT: _on_interrupt, signal.SIGTERM: _like_interrupt, signal.SIGHUP: _like_interrupt}
    before = {number: signal.getsignal(number) for number in answers}
    for number, handler in before.items():
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, answers[number])
    return before


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


# ---------------------------------------------------------------- where the output goes


def _occupy_standard_files() -> None:
    """A closed stdin, stdout or stderr would give its number to the next file that is opened, and what is told to that."""
    lost = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    if lost:
        raise errors.ConfigError("stdout is closed; send it to a file or to /dev/null")


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


class _Patient:
    """Stderr, which may be lost: a reader who went away or a full disk ends nothing, it only is not told any more."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream or open(os.devnull, "w")  # noqa: SIM115  as long as the process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._try(self._stream.write, text) or len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, act: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return act(*arguments)
        except OSError:
            self._stream = open(os.devnull, "w")  # noqa: SIM115
            return None


# ---------------------------------------------------------------- what a user is told, in the words that were typed


def _fail(text: str) -> int:
    """Print one line on stderr; returns the exit code of bad input."""
    errors.note(text)
    return 2


def _greet(arguments: list[str]) -> None:
    """Print a first line at once, in a terminal: on a busy machine it takes long to import what a command needs."""
    silent = {"--help", "--help-all", "-h", "--quiet", "-q", "--json"} & set(arguments)
    from fixfirst.cli import COMMANDS

    if (
        arguments[0] in COMMANDS
        and arguments[0] != "runs"
        and not silent
        and sys.stderr.isatty()
        and "numba" not in sys.modules
    ):
        print(f"fixfirst: {arguments[0]} ...", file=sys.stderr, flush=True)


def _misuse(error: "CycloptsError") -> str:
    """Return what is wrong with a command line."""
    unused = getattr(error, "unused_tokens", None)
    if unused and error.command_chain:
        command, extra = " ".join(error.command_chain), ", ".join(map(repr, unused))
        flags = [token for token in unused if token.startswith("-")]
        if flags:  # a command that takes several runs has these among the unused, too
            return f"Unknown option: {flags[0].partition('=')[0]}, see fixfirst {command} --help"
        if command == "evaluate":
            return f"evaluate plays one policy, got also {extra}; to set two side by side: fixfirst compare A B"
        return f"{command} does not know what to do with {extra}: its settings are flags, see fixfirst {command} --help"
    missing = getattr(error, "argument", None)
    if type(error).__name__ == "MissingArgumentError" and missing is not None and error.command_chain:
        return f"{error.command_chain[-1]} needs {missing.name}, see fixfirst {' '.join(error.command_chain)} --help"
    return str(error)


def _as_typed(message: str, arguments: list[str]) -> str:
    """A message that begins with the name of a setting, with the flag instead if that was used: n_envs is --n-envs."""
    found = re.match(r"\w+", message)
    if found is None:
        return message
    typed = {argument.split("=")[0] for argument in arguments if argument.startswith("--")}
    names = (f"--{found[0].replace('_', '-')}", FLAGS.get(found[0], ""))
    return next((name for name in names if name in typed), found[0]) + message[found.end() :]
