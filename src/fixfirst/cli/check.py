"""`fixfirst conform`, `record`, `doctor`, `bench`: is it the same game, what is installed, how fast is it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.cli.shared import Cyborg, Json, app, log
from fixfirst.cyborg.checkout import find_cyborg
from fixfirst.cyborg.recorder import Recording
from fixfirst.game.compiled import announce_compilation

if TYPE_CHECKING:
    from fixfirst.game.conformance import Report


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
    from fixfirst.game import conformance

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


def _counts(report: "Report") -> dict[str, Any]:
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
    from fixfirst.cyborg.recorder import record

    summary = record(find_cyborg(cyborg), out, settings, say=log)
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
    else:
        who = f"{summary.cyborg.variant} ({summary.cyborg.commit or summary.cyborg.version})"
        print(f"{summary.file}: {summary.episodes:,} episodes, {summary.steps:,} steps of CybORG, variant {who}")
    return 0


@app.command(name="doctor")
def doctor_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    from fixfirst.cli import doctor

    findings = doctor.examine(cyborg)
    print(json.dumps(findings, indent=2) if as_json else doctor.table(findings))
    return 0


@app.command(name="bench")
def bench_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Measure the simulator and the worker processes on this machine, and CybORG in the same run where --cyborg says so."""
    from fixfirst.cli import bench

    result = bench.measure(None if cyborg is None else find_cyborg(cyborg), say=log)
    print(json.dumps(result, indent=2) if as_json else bench.table(result))
    return 0
