"""The command line. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from fixfirst import __version__, bench
from fixfirst.cage2 import conformance
from fixfirst.cage2.compiled import announce_compilation
from fixfirst.errors import FixfirstError

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
)

Json = Annotated[bool, Parameter(name="--json", negative="")]


@app.command(name="conform")
def conform(files: Annotated[list[Path], Parameter(negative="")], /, *, as_json: Json = False) -> int:
    """Replay recorded CybORG episodes through the simulator and compare every step.

    Exit code 0: all equal; 1: something differs; 2: a file cannot be read.

    Parameters
    ----------
    files
        Recordings (.jsonl or .jsonl.gz, see docs/conformance.md), e.g. tests/conformance/*.jsonl.gz
    as_json
        One JSON document on stdout instead of a table.
    """
    announce_compilation()
    total = conformance.Report()
    rows = []
    for path in files:
        report = conformance.Report()
        conformance.replay_file(path, report)
        rows.append((path.name, report.episodes, report.steps, len(report.mismatches)))
        total.episodes += report.episodes
        total.steps += report.steps
        total.mismatches += report.mismatches
        if not as_json:
            _row(*rows[-1])
    first = total.mismatches[0] if total.mismatches else None
    if as_json:
        keys = ("file", "episodes", "steps", "mismatches")
        summary = {"episodes": total.episodes, "steps": total.steps, "mismatches": len(total.mismatches)}
        document = {**summary, "first_mismatch": vars(first) if first else None}
        print(json.dumps(document | {"files": [dict(zip(keys, row, strict=True)) for row in rows]}, indent=2))
    else:
        _row("total", total.episodes, total.steps, len(total.mismatches))
        if first:
            print(f"first mismatch: {first}")
    return 1 if first else 0


def _row(name: str, episodes: int, steps: int, mismatches: int) -> None:
    print(f"{name:36} {episodes:6,} episodes {steps:8,} steps {mismatches:5,} mismatches", flush=True)


@app.command(name="bench")
def bench_command(*, cyborg: Path | None = None, as_json: Json = False) -> int:
    """Measure the simulator on this machine: one core, one thread, about half a minute.

    Parameters
    ----------
    cyborg
        A checkout of cage-challenge-2: CybORG is timed in the same run, and the ratio printed.
    as_json
        One JSON document on stdout instead of a table.
    """
    result = bench.measure(cyborg, say=lambda text: print(f"fixfirst: {text} ...", file=sys.stderr, flush=True))
    print(json.dumps(result, indent=2) if as_json else bench.table(result))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, FixfirstError) as e:
        print(f"fixfirst: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fixfirst: interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
