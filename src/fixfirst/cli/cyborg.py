"""CybORG and we: `fixfirst doctor`, what is installed; `record`, CybORG written down; `conform`, is it the same game?"""

import os
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst import __version__
from fixfirst.base import compile as machine_code, errors, jobs
from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout, conformance, recorder
from fixfirst.cyborg.identity import identify
from fixfirst.game.scenario import Scenario
from fixfirst.game.scenario_names import scenario_named
from fixfirst.reporter import screen

PACKAGES = (
    "numpy",
    "numba",
    "gymnasium",
    "torch",
    "botorch",
    "gpytorch",
    "scipy",
    "stable-baselines3",
    "sb3-contrib",
    "onnx",
    "onnxruntime",
    "gym",
    "ray",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NUMBA_NUM_THREADS")


def doctor_command(
    *,
    scenario: Annotated[str | None, Parameter(help="Also check a scenario: can it be read, does CybORG have it?")] = None,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> int:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    findings = examine(cyborg, scenario)
    if as_json:
        print_json(findings)
    else:
        screen.print_lines(*_as_text(findings).split("\n"))
    return 0


def examine(cyborg: Path | None = None, scenario: str | None = None) -> dict[str, Any]:
    """All findings as one JSON-ready document. A CybORG or a scenario that was asked for and is not there is an error."""
    found = _cyborg(cyborg)
    return {
        "versions": {"fixfirst": __version__, "python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "threads": {"cores": jobs.available_cores()} | {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "kernel": {"cache": str(machine_code.cache_folder()), "compiled": machine_code.is_compiled()},
        "cyborg": found,
    } | ({} if scenario is None else {"scenario": _scenario(scenario_named(scenario), found)})


def _as_text(findings: dict[str, Any]) -> str:
    """Return the same document for people."""
    lines = []
    for group, values in findings.items():
        lines.append(group)
        lines += [f"  {name:20} {'-' if value is None else value}" for name, value in values.items()]
    return "\n".join(lines)


def _cyborg(path: Path | None) -> dict[str, Any]:
    asked_for = path is not None or checkout.ENVIRONMENT_VARIABLE in os.environ
    try:
        return {"found": True} | vars(identify(checkout.find_cyborg(path)))
    except errors.CyborgError as e:
        if asked_for:
            raise
        return {"found": False, "reason": str(e)}


def _scenario(scenario: Scenario, cyborg: dict[str, Any]) -> dict[str, Any]:
    """Return what there is to know of a scenario before it is played, and whether the CybORG found can play it."""
    played: str | None = None
    if cyborg["found"]:
        try:
            checkout.check_images(checkout.find_cyborg(cyborg["folder"]), scenario)
            played = "yes"
        except errors.CyborgError as e:
            played = str(e)
    exact = [red for red in ("b_line", "meander", "sleep") if scenario.exact(red)]
    facts: dict[str, Any] = {"name": scenario.name, "hosts": scenario.num_hosts, "digest": scenario.digest}
    return facts | {"as CybORG's": ", ".join(exact), "CybORG has it": played, "notes": len(scenario.notes)}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# ---------------------------------------------------------------- conform


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


# ---------------------------------------------------------------- record


def record_command(
    *,
    out: Path,
    cyborg: CyborgFlag = None,
    settings: Annotated[recorder.Recording, Parameter(name="*")] = recorder.Recording(),
    as_json: Json = False,
) -> int:
    """Play CybORG, write down every step and every chance decision; then `fixfirst conform FILE` replays it.

    Parameters
    ----------
    out
        The recording to write, .jsonl.gz or .jsonl.
    """
    summary = recorder.record(checkout.find_cyborg(cyborg), out, settings, say=say)
    if as_json:
        print_json(asdict(summary))
    else:
        who = f"{summary.cyborg.variant} ({summary.cyborg.commit or summary.cyborg.version})"
        stopped = f"; it stopped in {summary.stops} of them" if summary.stops else ""
        print(f"{summary.file}: {summary.episodes:,} episodes, {summary.steps:,} steps of CybORG, variant {who}{stopped}")
    return 0
