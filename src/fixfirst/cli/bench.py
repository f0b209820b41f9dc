"""`fixfirst bench`: speeds on this machine, all in one run, on one core; actions are drawn before the clock starts."""

import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
from cyclopts import Parameter

from fixfirst.adapters.envs import VecCage2
from fixfirst.base import errors
from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout
from fixfirst.cyborg.cyborg_game import CyborgGame
from fixfirst.game import scenario_names, state
from fixfirst.game.scenario import CAGE2, Scenario

BATCHES = (1, 10, 100, 1_000, 10_000)
RED_AGENTS = ("b_line", "meander")
STEPS = 100  # of an episode
SECONDS = 1.0


def bench_command(
    *,
    scenario: Annotated[str, Parameter(help="The network, by its name or file.")] = CAGE2.name,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> None:
    """Measure the simulator on this machine, and CybORG in the same run where --cyborg says so."""
    played = scenario_names.scenario_named(scenario)
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
            plain = checkout.load_cyborg(folder)
            with checkout.scenario_file(plain, played) as file:
                other = CyborgGame(plain, scenario=played, file=file)
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
    shape = STEPS if count is None else (STEPS, count)
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
