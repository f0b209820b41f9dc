"""How fast does a defender learn? The preset parallel-100 end to end, and the rows engine against the plain one.

    python benchmarks/learner.py [--episodes 100000] [--red-agent b_line] [--json]

One process, one thread, one run: 100 environments x 100 steps per update, 4 epochs, with CSV log, TensorBoard and
checkpoints. Then, from the trained policy, both engines in turn on the same updates.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fixfirst.learner import Training, TrainingRun, make_config

WORKFLOW = "enterprise > op_server > op_host > user > defender"


class TimedWorld:
    """A world that knows how long it was busy."""

    def __init__(self, world):
        self._world, self.busy_s = world, 0.0

    def __getattr__(self, name):
        return getattr(self._world, name)

    def step(self, actions):
        start = time.perf_counter()
        ended = self._world.step(actions)
        self.busy_s += time.perf_counter() - start
        return ended


def config_for(args, episodes, engine="auto"):
    return make_config("parallel-100", engine=engine, workflow=WORKFLOW, red_agent=args.red_agent, total_episodes=episodes)


def end_to_end(args, folder):
    """Episodes per second with logging, and where the time went."""
    config = config_for(args, args.episodes)
    collecting, updating = 0.0, 0.0
    with TrainingRun(config, folder, tensorboard=folder / "tb") as run:
        start, training = time.perf_counter(), run.training  # PyTorch is imported by now
        world = training._world = TimedWorld(training.world)
        for update in run.updates():
            collecting += update.row.collection_s
            updating += update.row.update_s
    total = time.perf_counter() - start
    shares = {
        "world": world.busy_s,
        "policy and compliance": collecting - world.busy_s,
        "update": updating,
        "logs, checkpoints, gate": total - collecting - updating,
    }
    print(f"trained {training.episodes:,} episodes, return {update.row.env_reward:.1f}", file=sys.stderr)
    return training, args.episodes / total, {name: seconds / total for name, seconds in shares.items()}


def engine_speed(args, weights, engine, updates=20):
    """Episodes per second of one engine from a settled policy."""
    training = Training(config_for(args, 10**9, engine))
    training.learner.start_from(weights)
    training.step()
    start = time.perf_counter()
    for _ in range(updates):
        training.step()
    return updates * training.config.ppo.episodes_per_update / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--red-agent", default="b_line")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        training, speed, shares = end_to_end(args, Path(folder))
    weights = {name: np.array(array) for name, array in training.learner.weights.items()}
    rows, plain = (engine_speed(args, weights, engine) for engine in ("rows", "plain"))
    result = {
        "episodes": args.episodes,
        "episodes_per_s": speed,
        "share_of_time": shares,
        "settled": {"rows": rows, "plain": plain, "ratio": rows / plain},
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"parallel-100 against {args.red_agent}, {args.episodes:,} episodes with logging: {speed:,.0f} episodes/s")
    print("time: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()))
    print(f"settled policy: rows {rows:,.0f}, plain {plain:,.0f} episodes/s, ratio {rows / plain:.1f}")
    print(f"peak memory: {result['peak_memory_mb']:,.0f} MB")


if __name__ == "__main__":
    main()
