"""Speeds of the simulator on this machine, one core, one thread: what `fixfirst bench` measures and prints.

Everything is measured in one run, so that ratios are fair; actions are drawn before the clock starts.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from fixfirst.actions import NUM_ACTIONS
from fixfirst.cage2.state import STATE_DTYPE
from fixfirst.cage2.vec_env import VecCage2
from fixfirst.errors import FixfirstError

BATCHES = (1, 10, 100, 1_000, 10_000)
RED_AGENTS = ("b_line", "meander")
EPISODE = 100

_START = "import fixfirst as ff; e = ff.make_vec(1); e.reset(seed=0); e.step([0])"
_CYBORG_STEPS = """
import random, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import CybORG as package
from CybORG import CybORG
from CybORG.Agents import B_lineAgent, RedMeanderAgent
from CybORG.Agents.Wrappers import ChallengeWrapper
scenario = str(Path(package.__file__).parent / "Shared" / "Scenarios" / "Scenario2.yaml")
red = {"b_line": B_lineAgent, "meander": RedMeanderAgent}[sys.argv[2]]
env = ChallengeWrapper(env=CybORG(scenario, "sim", agents={"Red": red}), agent_name="Blue")
steps, start = 0, None
for episode in range(6):
    env.reset()
    actions = [random.randrange(145) for _ in range(100)]
    start = start or time.perf_counter()
    for action in actions:
        env.step(action)
    steps += 100
print(steps / (time.perf_counter() - start))
"""


def measure(cyborg: Path | None = None, say: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """All speeds as one JSON-ready document; `say` is told what is being measured."""
    say("compiling with an empty and with a full cache")
    with tempfile.TemporaryDirectory() as empty:
        cold_s, cached_s = start_time(empty), start_time(empty)
    result: dict[str, Any] = {
        "machine": {"cpu": _cpu(), "python": platform.python_version(), "numpy": np.__version__},
        "state_bytes": STATE_DTYPE.itemsize,
        "first_use_s": {"empty_cache": cold_s, "full_cache": cached_s},
        "steps_per_s": {},
        "reset_ns_per_env": {},
    }
    for red in RED_AGENTS:
        say(f"stepping against {red}")
        result["steps_per_s"][red] = {f"make_vec({n})": vector_speed(n, red) for n in BATCHES}
        result["steps_per_s"][red]["gym.make"] = single_speed(red)
        result["reset_ns_per_env"][red] = reset_time_ns(10_000, red)
        if cyborg is not None:
            say(f"stepping CybORG against {red}")
            result["steps_per_s"][red]["CybORG"] = cyborg_speed(cyborg, red)
    if cyborg is not None:
        result["times_cyborg"] = {
            red: {name: speed / speeds["CybORG"] for name, speed in speeds.items() if name != "CybORG"}
            for red, speeds in result["steps_per_s"].items()
        }
    return result


def vector_speed(num_envs: int, red_agent: str, seconds: float = 1.0) -> float:
    """Steps per second through the public `envs.step(actions)`, best of three thirds of `seconds`."""
    envs = VecCage2(num_envs, red_agent=red_agent)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, NUM_ACTIONS, (EPISODE, num_envs))
    for row in actions:
        envs.step(row)
    return max(_rate(lambda: [envs.step(row) for row in actions], EPISODE * num_envs, seconds / 3) for _ in range(3))


def single_speed(red_agent: str, seconds: float = 1.0) -> float:
    """Steps per second of `gym.make` with its default wrappers."""
    env = gym.make("fixfirst/Cage2-v0", red_agent=red_agent)
    actions = np.random.default_rng(0).integers(0, NUM_ACTIONS, EPISODE).tolist()

    def episode() -> None:
        env.reset(seed=0)
        for action in actions:
            env.step(action)

    episode()
    return max(_rate(episode, EPISODE, seconds / 3) for _ in range(3))


def reset_time_ns(num_envs: int, red_agent: str) -> float:
    """Nanoseconds per environment of `envs.reset()`."""
    envs = VecCage2(num_envs, red_agent=red_agent)
    envs.reset(seed=0)
    return 1e9 / _rate(envs.reset, num_envs, 0.3)


def start_time(cache: str) -> float:
    """Seconds from starting Python to the first step done, with machine code cached in the folder `cache`."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _START], check=True, capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": cache}
    )
    return time.perf_counter() - start


def cyborg_speed(checkout: Path, red_agent: str) -> float:
    """Steps per second of CybORG itself, from a checkout (the folder that contains the package `CybORG`, or its parent)."""
    root = next((p for p in (checkout, checkout / "CybORG") if (p / "CybORG" / "__init__.py").is_file()), None)
    if root is None:
        raise FixfirstError(f"{checkout} holds no package CybORG; give the folder of a cage-challenge-2 checkout")
    run = subprocess.run(
        [sys.executable, "-c", _CYBORG_STEPS, str(root), red_agent], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise FixfirstError(
            f"CybORG in {root} does not run: {run.stderr.strip().splitlines()[-1]}; "
            "its needs are installed by: pip install 'fixfirst[cyborg]'"
        )
    return float(run.stdout.split()[-1])


def table(result: dict[str, Any]) -> str:
    """The same document for people."""
    lines = [f"{'steps per second, random actions':34}" + "".join(f"{red:>14}" for red in RED_AGENTS)]
    for name in result["steps_per_s"][RED_AGENTS[0]]:
        lines.append(f"{name:34}" + "".join(f"{result['steps_per_s'][red][name]:14,.0f}" for red in RED_AGENTS))
    for name in result.get("times_cyborg", {}).get(RED_AGENTS[0], ()):
        ratios = "".join(f"{result['times_cyborg'][red][name]:13,.0f}x" for red in RED_AGENTS)
        lines.append(f"{name + ' / CybORG':34}" + ratios)
    lines.append(
        f"{'reset, ns per environment':34}" + "".join(f"{result['reset_ns_per_env'][r]:14,.0f}" for r in RED_AGENTS)
    )
    lines.append(f"state: {result['state_bytes']} bytes per environment")
    first = result["first_use_s"]
    lines.append(
        f"first step after starting Python: {first['empty_cache']:.1f} s compiling, {first['full_cache']:.1f} s cached"
    )
    lines.append(f"machine: {result['machine']['cpu']}, Python {result['machine']['python']}, one core, one thread")
    return "\n".join(lines)


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
