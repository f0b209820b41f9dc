"""`fixfirst conform`: is it the same game?"""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst.base import compile as machine_code
from fixfirst.cli.app import Json, print_json
from fixfirst.cyborg import conformance


def conform_command(files: Annotated[list[Path], Parameter(negative="")], /, *, as_json: Json = False) -> int:
    """Replay recorded CybORG episodes through the simulator and compare every step.

    Exit code 0: all equal; 1: something differs; 2: a file cannot be read.

    Parameters
    ----------
    files
        Recordings (.jsonl or .jsonl.gz, see tests/conformance/README.md), e.g. tests/conformance/*.jsonl.gz
    """
    machine_code.announce_compilation()
    total = conformance.ReplayReport()
    width = min(36, max(len(path.name) for path in files))
    rows = []
    for path in files:
        report = conformance.ReplayReport()
        conformance.check_file(path, report)
        total.add(report)
        rows.append({"file": path.name, **_counts(report)})
        if not as_json:
            _print_row(width, **rows[-1])
    first = total.mismatches[0] if total.mismatches else None
    if as_json:
        print_json({**_counts(total), "first_mismatch": vars(first) if first else None, "files": rows})
    else:
        _print_row(width, "total", **_counts(total))
        for coincidence in total.coincidences:
            print(f"coincidence of process ids, which the model leaves out: {coincidence}")
        if first:
            print(f"first mismatch: {first}")
    return 1 if first else 0


def _counts(report: conformance.ReplayReport) -> dict[str, Any]:
    mismatches, coincidences = len(report.mismatches), len(report.coincidences)
    return {"episodes": report.episodes, "steps": report.steps, "mismatches": mismatches, "coincidences": coincidences}


def _print_row(width: int, file: str, episodes: int, steps: int, mismatches: int, coincidences: int) -> None:
    note = f" {coincidences:3,} coincidences" if coincidences else ""
    print(f"{file:{width}} {episodes:6,} episodes {steps:8,} steps {mismatches:5,} mismatches{note}", flush=True)
