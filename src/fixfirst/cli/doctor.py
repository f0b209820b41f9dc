"""`fixfirst doctor`: what is installed, and whether CybORG has a scenario."""

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
from fixfirst.cyborg.identity import identify
from fixfirst.game.scenario_names import scenario_named
from fixfirst.reporter import screen

PACKAGES = "numpy numba gymnasium torch botorch gpytorch scipy stable-baselines3 sb3-contrib onnx onnxruntime gym ray"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NUMBA_NUM_THREADS")


def doctor_command(
    *,
    scenario: Annotated[str | None, Parameter(help="Also check a scenario: can it be read, does CybORG have it?")] = None,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> None:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    plain, ours = _find_cyborg(cyborg), {"fixfirst": __version__, "python": platform.python_version()}
    findings: dict[str, dict[str, Any]] = {
        "versions": ours | {package: _version(package) for package in PACKAGES.split()},
        "threads": {"cores": jobs.available_cores()} | {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "kernel": {"cache": str(machine_code.cache_folder()), "compiled": machine_code.is_compiled()},
        "cyborg": plain,
    }
    if scenario is not None:
        findings["scenario"] = _examine(scenario, plain)
    if as_json:
        print_json(findings)
        return
    lines = []
    for group, values in findings.items():
        lines += [group, *(f"  {name:20} {'-' if value is None else value}" for name, value in values.items())]
    screen.print_lines(*lines)


def _find_cyborg(path: Path | None) -> dict[str, Any]:
    """Return what is known of CybORG. One that was asked for and is not there is an error."""
    try:
        return {"found": True} | vars(identify(checkout.find_cyborg(path)))
    except errors.CyborgError as e:
        if path is not None or checkout.ENVIRONMENT_VARIABLE in os.environ:
            raise
        return {"found": False, "reason": str(e)}


def _examine(name: str, cyborg: dict[str, Any]) -> dict[str, Any]:
    """Return what there is to know of a scenario before it is played, and whether this CybORG can play it."""
    scenario, playable = scenario_named(name), None
    if cyborg["found"]:
        try:
            checkout.check_images(checkout.find_cyborg(cyborg["folder"]), scenario)
            playable = "yes"
        except errors.CyborgError as e:
            playable = str(e)
    exact = ", ".join(red for red in ("b_line", "meander", "sleep") if scenario.exact(red))
    facts = {"name": scenario.name, "hosts": scenario.num_hosts, "digest": scenario.digest}
    return facts | {"as CybORG's": exact, "CybORG has it": playable, "notes": len(scenario.notes)}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
