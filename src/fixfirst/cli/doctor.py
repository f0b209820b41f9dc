"""`fixfirst doctor`: what this installation looks like."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst import __version__
from fixfirst.base import compile as machine_code, errors, jobs
from fixfirst.cli.app import CyborgFlag, Json, print_json
from fixfirst.cyborg import checkout
from fixfirst.cyborg.variant import identify
from fixfirst.game import game
from fixfirst.game.scenario import Scenario
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
        print(screen.fitted(_as_text(findings).split("\n")))
    return 0


def examine(cyborg: Path | None = None, scenario: str | None = None) -> dict[str, Any]:
    """All findings as one JSON-ready document. A CybORG or a scenario that was asked for and is not there is an error."""
    found = _cyborg(cyborg)
    return {
        "versions": {"fixfirst": __version__, "python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "threads": {"cores": jobs.available_cores()} | {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "kernel": {"cache": str(machine_code.cache_folder()), "compiled": machine_code.is_compiled()},
        "cyborg": found,
    } | ({} if scenario is None else {"scenario": _scenario(game.scenario_named(scenario), found)})


def _as_text(findings: dict[str, Any]) -> str:
    """The same document for people."""
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
