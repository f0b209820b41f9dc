"""Running one command. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import os
import sys

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

from cyclopts import CycloptsError

from fixfirst.cli import bench, conform, doctor, evaluate, record, report, resume, runs, search, train, watch
from fixfirst.cli.app import app
from fixfirst.errors import FixfirstError, Interrupted

# Imported: that adds them to the app.
COMMANDS = (search, train, evaluate, report, watch, runs, resume, conform, record, bench, doctor)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if not arguments:
            return runs.welcome()
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except (CycloptsError, FixfirstError) as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        print(f"fixfirst: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads our output has seen enough; Python must not try again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as e:
        print(f"fixfirst: {e if isinstance(e, Interrupted) else 'interrupted'}", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0
