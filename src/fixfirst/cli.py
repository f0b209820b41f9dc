"""The command line. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from fixfirst import __version__, bench, doctor
from fixfirst.cage2 import conformance
from fixfirst.cage2.compiled import announce_compilation
from fixfirst.cyborg.checkout import find_cyborg
from fixfirst.cyborg.recorder import Recording, record
from fixfirst.errors import FixfirstError

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
)

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Cyborg = Annotated[Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")]
Settings = Annotated[Recording, Parameter(name="*")]


@app.command(name="conform")
def conform(files: Annotated[list[Path], Parameter(negative="")], /, *, as_json: Json = False) -> int:
    """Replay recorded CybORG episodes through the simulator and compare every step.

    Exit code 0: all equal; 1: something differs; 2: a file cannot be read.

    Parameters
    ----------
    files
        Recordings (.jsonl or .jsonl.gz, see docs/conformance.md), e.g. tests/conformance/*.jsonl.gz
    """
    announce_compilation()
    total = conformance.Report()
    rows = []
    for path in files:
        report = conformance.Report()
        conformance.replay_file(path, report)
        total.add(report)
        rows.append({"file": path.name, **_counts(report)})
        if not as_json:
            _row(**rows[-1])
    first = total.mismatches[0] if total.mismatches else None
    if as_json:
        document = {**_counts(total), "first_mismatch": vars(first) if first else None, "files": rows}
        print(json.dumps(document, indent=2))
    else:
        _row("total", **_counts(total))
        for coincidence in total.coincidences:
            print(f"coincidence of process ids, which the model leaves out: {coincidence}")
        if first:
            print(f"first mismatch: {first}")
    return 1 if first else 0


def _counts(report: conformance.Report) -> dict[str, Any]:
    mismatches, coincidences = len(report.mismatches), len(report.coincidences)
    return {"episodes": report.episodes, "steps": report.steps, "mismatches": mismatches, "coincidences": coincidences}


def _row(file: str, episodes: int, steps: int, mismatches: int, coincidences: int) -> None:
    note = f" {coincidences:3,} coincidences" if coincidences else ""
    print(f"{file:36} {episodes:6,} episodes {steps:8,} steps {mismatches:5,} mismatches{note}", flush=True)


@app.command(name="record")
def record_command(*, out: Path, cyborg: Cyborg = None, settings: Settings = Recording(), as_json: Json = False) -> int:  # noqa: B008  frozen
    """Play CybORG, write down every step and every chance decision; then `fixfirst conform FILE` replays it.

    Parameters
    ----------
    out
        The recording to write, .jsonl.gz or .jsonl.
    """
    summary = record(find_cyborg(cyborg), out, settings, say=_log)
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
    else:
        who = f"{summary.cyborg.variant} ({summary.cyborg.commit or summary.cyborg.version})"
        print(f"{summary.file}: {summary.episodes:,} episodes, {summary.steps:,} steps of CybORG, variant {who}")
    return 0


@app.command(name="doctor")
def doctor_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    findings = doctor.examine(cyborg)
    print(json.dumps(findings, indent=2) if as_json else doctor.table(findings))
    return 0


@app.command(name="bench")
def bench_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Measure the simulator and the worker processes on this machine, and CybORG in the same run where --cyborg says so."""
    result = bench.measure(None if cyborg is None else find_cyborg(cyborg), say=_log)
    print(json.dumps(result, indent=2) if as_json else bench.table(result))
    return 0


def _log(text: str) -> None:
    print(f"fixfirst: {text} ...", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, FixfirstError) as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        print(f"fixfirst: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fixfirst: interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
