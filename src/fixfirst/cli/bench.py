"""`fixfirst bench`: speeds on this machine.

The simulator runs on one core with one thread, worker processes on all cores.

Everything is measured in one run, so that ratios are fair; actions are drawn before the clock starts.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
from cyclopts import Parameter

from fixfirst.adapters.envs import VecCage2
from fixfirst.base import errors, jobs
from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout
from fixfirst.game import state, tables
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, SHIPPED_SCENARIOS, Scenario
from fixfirst.game.scenario_names import scenario_named
from fixfirst.play.worlds import make_world

BATCHES = (1, 10, 100, 1_000, 10_000)
_RED_AGENTS = ("b_line", "meander")
EPISODE = 100
WORKER_ENVS = 100
CYBORG_STEPS = 30  # from the start of an episode, everywhere alike: later steps are slower
CYBORG = "CybORG"
CYBORG_IN_ONE = f"CybORG, {WORKER_ENVS} in one process"
CYBORG_IN_WORKERS = f"CybORG, {WORKER_ENVS} in workers"
CYBORG_ROWS = (CYBORG, CYBORG_IN_ONE, CYBORG_IN_WORKERS)

_START = "import sys, fixfirst as ff; e = ff.make_vec(1, scenario=sys.argv[1]); e.reset(seed=0); e.step([0])"


def bench_command(
    *,
    scenario: Annotated[str, Parameter(help=f"The network: {', '.join(SHIPPED_SCENARIOS)} or a file.")] = CAGE2.name,
    cyborg: CyborgFlag = None,
    as_json: Json = False,
) -> int:
    """Measure the simulator and the worker processes on this machine, and CybORG in the same run where --cyborg says so."""
    played = scenario_named(scenario)
    if played.target is None:
        raise errors.ScenarioError(f"{played.name}: speeds are measured against b_line and meander; b_line needs a target")
    folder = None if cyborg is None else checkout.find_cyborg(cyborg)
    if folder is not None:
        checkout.check_images(folder, played)
    result = measure(folder, say=say, scenario=played)
    if as_json:
        print_json(result)
    else:
        print(speed_table(result))
    return 0


def measure(
    cyborg: Path | None = None, say: Callable[[str], None] = lambda text: None, scenario: Scenario = CAGE2
) -> dict[str, Any]:
    """Measure all speeds as one JSON-ready document; `say` is told what is being measured."""
    say("compiling with an empty and with a full cache")
    with tempfile.TemporaryDirectory() as empty:
        cold_s, cached_s = start_time(empty, scenario), start_time(empty, scenario)
    result: dict[str, Any] = {
        "scenario": {"name": scenario.name, "hosts": scenario.num_hosts, "digest": scenario.digest},
        "machine": {"cpu": _cpu(), "python": platform.python_version(), "numpy": np.__version__},
        "state_bytes": state.state_dtype(tables.size_of(scenario)).itemsize,
        "first_use_s": {"empty_cache": cold_s, "full_cache": cached_s},
        "steps_per_s": {},
        "reset_ns_per_env": {},
    }
    for red in _RED_AGENTS:
        say(f"stepping against {red}")
        result["steps_per_s"][red] = {f"make_vec({n})": vector_speed(n, red, scenario=scenario) for n in BATCHES}
        result["steps_per_s"][red]["gym.make"] = single_speed(red, scenario=scenario)
        result["reset_ns_per_env"][red] = reset_time_ns(10_000, red, scenario)
        if cyborg is not None:
            say(f"stepping CybORG against {red}")
            result["steps_per_s"][red] |= cyborg_speeds(cyborg, red, scenario)
    say("stepping in worker processes")
    cost = worker_cost_us(scenario=scenario)
    result["workers"] = {"envs": WORKER_ENVS, "processes": jobs.available_cores(), "cost_us_per_env_step": cost}
    if cyborg is not None:
        result["times_cyborg"] = {
            red: {name: speed / speeds[CYBORG] for name, speed in speeds.items() if name != CYBORG}
            for red, speeds in result["steps_per_s"].items()
        }
    return result


def vector_speed(num_envs: int, red_agent: str, seconds: float = 1.0, scenario: Scenario = CAGE2) -> float:
    """Steps per second through the public `envs.step(actions)`, best of three thirds of `seconds`."""
    envs = VecCage2(num_envs, red_agent=red_agent, scenario=scenario)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, scenario.num_actions, (EPISODE, num_envs))

    def episode() -> None:  # keeps nothing: the memory for a hundred results would cost as much as the steps
        for row in actions:
            envs.step(row)

    episode()
    return max(_rate(episode, EPISODE * num_envs, seconds / 3) for _ in range(3))


def single_speed(red_agent: str, seconds: float = 1.0, scenario: Scenario = CAGE2) -> float:
    """Steps per second of `gym.make` with its default wrappers."""
    env = gym.make("fixfirst/Cage2-v0", red_agent=red_agent, scenario=scenario)
    actions = np.random.default_rng(0).integers(0, scenario.num_actions, EPISODE).tolist()

    def episode() -> None:
        env.reset(seed=0)
        for action in actions:
            env.step(action)

    episode()
    return max(_rate(episode, EPISODE, seconds / 3) for _ in range(3))


def reset_time_ns(num_envs: int, red_agent: str, scenario: Scenario = CAGE2) -> float:
    """Nanoseconds per environment of `envs.reset()`."""
    envs = VecCage2(num_envs, red_agent=red_agent, scenario=scenario)
    envs.reset(seed=0)
    return 1e9 / _rate(envs.reset, num_envs, 0.3)


def start_time(cache: str, scenario: Scenario = CAGE2) -> float:
    """Seconds from starting Python to the first step done, with machine code cached in the folder `cache`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scenario.yaml")
        file.write_text(scenario.to_yaml())
        command = [sys.executable, "-c", _START, CAGE2.name if scenario == CAGE2 else str(file)]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
        return time.perf_counter() - start


def worker_cost_us(num_envs: int = WORKER_ENVS, scenario: Scenario = CAGE2) -> float:
    """What the worker processes cost per environment step, in microseconds: our simulator in them, less it in here."""
    games = (Game(backend=backend, scenario=scenario) for backend in ("simulator", "workers"))
    here, there = (_step_time_us(make_world(game, num_envs)) for game in games)
    return there - here


def _step_time_us(world: BaseWorld) -> float:
    """Microseconds per environment step, best of three."""
    actions = np.random.default_rng(0).integers(0, world.scenario.num_actions, (EPISODE, world.num_envs))

    def episode() -> None:
        for row in actions:
            world.step(row)

    with world:
        world.reset(0)
        episode()
        return 1e6 / max(_rate(episode, actions.size, 0.3) for _ in range(3))


def cyborg_speeds(folder: Path, red_agent: str, scenario: Scenario = CAGE2) -> dict[str, float]:
    """Steps per second of CybORG: one environment in one process, many in one process, many in worker processes.

    Medians of three turns, which alternate, so that a machine that grows slower does so for all; resets are not timed.
    """
    one, many, spread = [], [], []
    game = Game(backend="cyborg", cyborg=str(folder), variant=None, red_agent=red_agent, max_steps=None, scenario=scenario)
    with (
        ProcessPoolExecutor(1, get_context("spawn"), _open_games, (folder, 1, scenario)) as alone,
        ProcessPoolExecutor(1, get_context("spawn"), _open_games, (folder, WORKER_ENVS, scenario)) as together,
        make_world(game, WORKER_ENVS) as world,
    ):
        actions = np.random.default_rng(0).integers(0, scenario.num_actions, (CYBORG_STEPS, WORKER_ENVS))
        for turn in range(3):
            one.append(alone.submit(_play_plain_cyborg, red_agent, turn).result())
            many.append(together.submit(_play_plain_cyborg, red_agent, turn).result())
            world.reset(turn)
            start = time.perf_counter()
            for row in actions:
                world.step(row)
            spread.append(actions.size / (time.perf_counter() - start))
    return {name: statistics.median(speeds) for name, speeds in zip(CYBORG_ROWS, (one, many, spread), strict=True)}


_games: list[checkout.CyborgGame]  # of a process that plays plain CybORG


def _open_games(folder: Path, number: int, scenario: Scenario) -> None:
    global _games
    jobs.follow_parent()
    cyborg = checkout.load_cyborg(folder)
    with checkout.scenario_file(cyborg, scenario) as file:
        _games = [checkout.CyborgGame(cyborg, scenario=scenario, file=file) for _ in range(number)]


def _play_plain_cyborg(red_agent: str, seed: int) -> float:
    """Steps per second of CybORG's own `step`, without anything of ours around it."""
    num_envs, seconds = len(_games), 0.0
    episodes = max(1, 20 // num_envs)
    for episode in range(episodes):
        for number, one in enumerate(_games):
            one.reset(state.RedAgent[red_agent.upper()], [seed, number, episode])
        choices = _games[0].scenario.num_actions
        actions = np.random.default_rng([seed, episode]).integers(0, choices, (CYBORG_STEPS, num_envs)).tolist()
        start = time.perf_counter()
        for row in actions:
            for one, action in zip(_games, row, strict=True):
                one.env.step(action)
        seconds += time.perf_counter() - start
    return episodes * num_envs * CYBORG_STEPS / seconds


def speed_table(result: dict[str, Any]) -> str:
    """Return the same document for people."""
    lines = [f"{'steps per second, random actions':34}" + "".join(f"{red:>14}" for red in _RED_AGENTS)]
    for name in result["steps_per_s"][_RED_AGENTS[0]]:
        lines.append(f"{name:34}" + "".join(f"{result['steps_per_s'][red][name]:14,.0f}" for red in _RED_AGENTS))
    for name in result.get("times_cyborg", {}).get(_RED_AGENTS[0], ()):
        ratios = "".join(f"{_ratio(result['times_cyborg'][red][name]):>13}x" for red in _RED_AGENTS)
        lines.append(f"{name + ' / CybORG':34}" + ratios)
    lines.append(
        f"{'reset, ns per environment':34}" + "".join(f"{result['reset_ns_per_env'][r]:14,.0f}" for r in _RED_AGENTS)
    )
    workers = result["workers"]
    lines.append(
        f"{workers['envs']} environments in {workers['processes']} worker processes: "
        f"{workers['cost_us_per_env_step']:.1f} us per environment step more than in this process"
    )
    lines.append(f"state: {result['state_bytes']} bytes per environment")
    first = result["first_use_s"]
    lines.append(
        f"first step after starting Python: {first['empty_cache']:.1f} s compiling, {first['full_cache']:.1f} s cached"
    )
    lines.append(f"scenario: {result['scenario']['name']}, {result['scenario']['hosts']} hosts")
    lines.append(f"machine: {result['machine']['cpu']}, Python {result['machine']['python']}, one core, one thread")
    return "\n".join(lines)


def _ratio(times: float) -> str:
    return f"{times:.2f}" if times < 10 else f"{times:,.0f}"


def _rate(work: Callable[[], object], amount: int, seconds: float) -> float:
    """Amount per second of `work`, repeated for at least `seconds`."""
    rounds, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or rounds == 0:
        work()
        rounds += 1
    return rounds * amount / elapsed


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
