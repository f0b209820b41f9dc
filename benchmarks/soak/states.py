"""Corrupted states of the game, with array bounds checked; and the memory of a long training."""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from forks import Trouble
from jobs import Job
from storms import notes

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.simulator import World, check_states
from fixfirst.learner.driver import Driver
from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config

AT_ONCE = 500
EACH = 24_000  # in one process: 48 times so many
DRAWN = 3  # networks drawn at random beside CAGE2


def states(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """Corrupted states are refused, or played on without leaving an array: compiled anew, with its bounds checked.

    The first ones are played in the machine code that everybody has.
    """
    play_states(AT_ONCE, rng.randrange(2**31), control=False)
    yield AT_ONCE
    cache = os.environ.get("SOAK_BOUNDS_CACHE", str(folder.parent / "bounds-checked"))
    while True:
        variables = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, str(Path(__file__).parent), "--play-states", str(EACH)]
        played = subprocess.run(
            [*command, "--seed", str(rng.randrange(2**31))], env=variables, capture_output=True, text=True
        )
        notes["on networks drawn at random"] += EACH * DRAWN // (DRAWN + 1)
        yield EACH if played.returncode == 0 else f"exit code {played.returncode}: {played.stderr[-1000:]}"


def play_states(count: int, seed: int, control: bool = True) -> None:
    """Play them on CAGE2, and three of four on networks drawn at random.

    control: in a process that checks bounds, which is shown first, by a state that must be refused and leads astray.
    """
    rng = np.random.default_rng(seed)
    ways = (
        ("b_line", "current", False, 30),
        ("meander", "leaderboard", True, 100),
        ("b_line:0.5,meander:0.5", "debugged", True, None),
    )
    worlds = [
        World(Game(scenario=scenario, red_agent=red, variant=variant, green=green, max_steps=limit), AT_ONCE)
        for red, variant, green, limit in ways
        for scenario in (CAGE2, *(ff.Scenario.generate(int(rng.integers(2**31)), hosts=(8, 60)) for _ in range(DRAWN)))
    ]
    if control:
        astray = World(Game(), 1)
        astray.reset(0)
        astray.inside().states["bline_stage"] = 200
        with contextlib.suppress(IndexError):
            astray.step(np.zeros(1, np.int64))
            sys.exit("bounds are not checked")
    for number in range(-(-count // AT_ONCE)):
        world = worlds[number % len(worlds)]
        world.reset(int(rng.integers(2**32)))
        for _ in range(int(rng.integers(0, 12))):
            world.step(rng.integers(0, world.scenario.num_actions, AT_ONCE))
        corrupted = world.get_state()
        for state in range(AT_ONCE):
            _corrupt(corrupted[state : state + 1], rng)
        good = [state for state in range(AT_ONCE) if _accepted(corrupted[state : state + 1], world.scenario)]
        world.set_state(corrupted[rng.choice(good, AT_ONCE)])
        for _ in range(5):
            world.step(rng.integers(0, world.scenario.num_actions, AT_ONCE))
        world.turns()


def _corrupt(state: np.ndarray, rng: np.random.Generator) -> None:
    """Random bytes anywhere, or a random value in some fields."""
    if rng.random() < 0.3:
        data = state.view(np.uint8)
        data[rng.integers(0, len(data), rng.integers(1, 4))] ^= rng.integers(1, 256, dtype=np.uint8)
        return
    for name in rng.choice(state.dtype.names, rng.integers(1, 4)):
        values = state[name].reshape(-1)
        bits = int(rng.integers(1, 8 * values.dtype.itemsize + 1))
        state[name] = (rng.integers(0, 2 ** min(bits, 62), values.shape)).astype(values.dtype).reshape(state[name].shape)


def _accepted(state: np.ndarray, scenario: Scenario) -> bool:
    try:
        check_states(state, scenario)
    except ff.WorldError:
        return False
    return True


def memory(rng: random.Random, folder: Path, made: list[Job], episodes: int = 1_000_000) -> Iterator[Trouble]:
    """A long training takes no more memory at its end than after its first tenth. A try is 10,000 episodes."""
    while True:
        config = make_config(total_episodes=episodes, workflow="critical_first", n_envs=100, seed=rng.randrange(2**31))
        used: list[float] = []
        training = Training(config)
        with Driver(Path(tempfile.mkdtemp(dir=folder)), training, training.identity, print, config.checkpoint_every) as run:
            for update in run.steps():
                if update.row.episodes % 10_000 == 0:
                    used.append(_resident_mb())
                    yield None
        early, late = max(used[: max(1, len(used) // 10)]), max(used)
        print(f"  memory: {early:.0f} MB in the first tenth, at most {late:.0f} MB", flush=True)
        yield f"{early:.0f} MB grew to {late:.0f} MB" if late > 1.1 * early + 5 else None


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
