"""`fixfirst bench`: speeds on this machine, all in one run, on one core; `fixfirst doctor`: what is installed here."""

import os
import platform
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from fixfirst import __version__
from fixfirst.base import compile as machine_code, errors, jobs
from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout
from fixfirst.cyborg.identity import identify
from fixfirst.game import game_config, state
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.reporter import screen

BATCHES = (1, 10, 100, 1_000, 10_000)
RED_AGENTS = ("b_line", "meander")
STEPS = 100  # of an episode
SECONDS = 1.0
PACKAGES = "numpy numba gymnasium torch botorch gpytorch scipy stable-baselines3 sb3-contrib onnx onnxruntime gym ray"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NUMBA_NUM_THREADS")


def bench_command(
    *,
    scenario: Annotated[str, Parameter(help="The network, by its name or file.")] = CAGE2.name,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> None:
    """Measure the simulator on this machine, and CybORG in the same run where --cyborg says so."""
    import gymnasium as gym  # doctor need not wait for it

    from fixfirst.adapters.envs import VecCage2
    from fixfirst.cyborg.cyborg_game import open_games

    played = game_config.scenario_named(scenario)
    if played.target is None:
        raise errors.ScenarioError(f"{played.name}: speeds are measured against b_line and meander; b_line needs a target")
    folder = None if cyborg is None else checkout.find_cyborg(cyborg)
    speeds: dict[str, dict[str, float]] = {red: {} for red in RED_AGENTS}
    for red, rates in speeds.items():
        say(f"stepping against {red}")
        for count in BATCHES:
            envs = VecCage2(count, red_agent=red, scenario=played)
            rates[f"make_vec({count})"] = count * _rate(partial(envs.reset, seed=0), envs.step, played, count)
        env = gym.make("fixfirst/Cage2-v0", red_agent=red, scenario=played)
        rates["gym.make"] = _rate(partial(env.reset, seed=0), env.step, played)
        if folder is not None:
            (other,) = open_games(folder, played)
            begin = partial(other.reset, state.RedAgent[red.upper()], [0, 0, 0])
            rates["CybORG"] = _rate(begin, other.env.step, played)
    if as_json:
        machine = {"python": platform.python_version(), "numpy": np.__version__, "processor": platform.processor()}
        print_json({"scenario": played.name, "machine": machine, "steps_per_s": speeds})
        return
    print(f"{'steps per second, random actions':34}" + "".join(f"{red:>14}" for red in RED_AGENTS))
    for name in speeds[RED_AGENTS[0]]:
        print(f"{name:34}" + "".join(f"{speeds[red][name]:14,.0f}" for red in RED_AGENTS))
    print(f"scenario {played.name}, {played.num_hosts} hosts, Python {platform.python_version()}, one core, one thread")


def _rate(begin: Callable[[], Any], step: Callable[[Any], Any], scenario: Scenario, count: int | None = None) -> float:
    """Return how often `step` takes actions per second: the best of the episodes played in a while; begins are not timed."""
    shape = STEPS if count is None else (STEPS, count)  # drawn before the clock starts
    actions = np.random.default_rng(0).integers(0, scenario.num_actions, shape)
    best, end = 0.0, time.perf_counter() + SECONDS
    rows = actions.tolist() if count is None else list(actions)
    while True:
        begin()
        start = time.perf_counter()
        for row in rows:
            step(row)
        best = max(best, STEPS / (time.perf_counter() - start))
        if start > end:
            return best


def doctor_command(
    *,
    scenario: Annotated[str | None, Parameter(help="Also check a scenario: can it be read, does CybORG have it?")] = None,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> None:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    plain, ours = _find_cyborg(cyborg), {"fixfirst": __version__, "python": platform.python_version()}
    installed = {package.name.lower().replace("_", "-"): package.version for package in metadata.distributions()}
    findings: dict[str, dict[str, Any]] = {
        "versions": ours | {package: installed.get(package) for package in PACKAGES.split()},
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
    screen.show(*lines)


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
    scenario, playable = game_config.scenario_named(name), None
    if cyborg["found"]:
        try:
            checkout.check_images(checkout.find_cyborg(cyborg["folder"]), scenario)
            playable = "yes"
        except errors.CyborgError as e:
            playable = str(e)
    exact = ", ".join(red for red in ("b_line", "meander", "sleep") if scenario.exact(red))
    facts = {"name": scenario.name, "hosts": scenario.num_hosts, "digest": scenario.digest}
    return facts | {"as CybORG's": exact, "CybORG has it": playable, "notes": len(scenario.notes)}
