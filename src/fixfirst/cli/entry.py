"""Running one command. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import os
import signal
import sys
from types import FrameType

from fixfirst.errors import ConfigError, FixfirstError, Interrupted

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

INTERRUPTED = "interrupted"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else somebody has it otherwise, or ignored
        signal.signal(signal.SIGINT, _on_interrupt)
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except FixfirstError as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        print(f"fixfirst: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads our output has seen enough; Python must not try again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as e:
        print(f"fixfirst: {e if isinstance(e, Interrupted) else INTERRUPTED}", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, before)
    return code if isinstance(code, int) else 0


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C. Leave at once while something is imported or loaded: nothing is lost, and not every library passes it on."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("importlib._bootstrap", "llvmlite.binding.executionengine"):
            show_cursor = b"\x1b[?25h" if sys.stderr.isatty() else b""
            os.write(sys.stderr.fileno(), show_cursor + f"fixfirst: {INTERRUPTED}\n".encode())
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> object:
    """What the command returns. Everything is imported in here, where Ctrl-C is answered with one line."""
    if not arguments:
        from fixfirst.cli.runs import welcome

        return welcome()
    from cyclopts import CycloptsError

    from fixfirst.cli.app import app

    try:
        return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as e:
        raise ConfigError(str(e)) from e
