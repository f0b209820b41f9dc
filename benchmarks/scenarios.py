"""Scenarios: how long until one that was just loaded plays, and how fast those of several sizes are.

    python benchmarks/scenarios.py [--scenarios 100] [--steps 1000]

One core, processor time, machine code already compiled: a scenario is data, so nothing is compiled for it.
"""

import argparse
import time

import numpy as np

import fixfirst as ff


def first_step(name: str) -> float:
    """Seconds from a scenario's name to what its first step returns."""
    begun = time.process_time()
    scenario = ff.Scenario.load(name)
    envs = ff.make_vec(1, scenario=scenario)
    envs.reset(seed=0)
    envs.step(np.zeros(1, np.int64))
    return time.process_time() - begun


def many(scenarios: int, steps: int) -> float:
    """Seconds to generate, load and play this many scenarios in one process, one environment each."""
    begun = time.process_time()
    for seed in range(scenarios):
        scenario = ff.Scenario.generate(seed)
        envs = ff.make_vec(1, scenario=scenario)
        envs.reset(seed=0)
        actions = np.random.default_rng(seed).integers(0, scenario.num_actions, (steps, 1))
        for action in actions:
            envs.step(action)
    return time.process_time() - begun


def steps_per_second(scenario: ff.Scenario, num_envs: int = 1_000, steps: int = 200) -> float:
    """Steps of `envs.step` in a second, random actions: the best of five runs."""
    envs = ff.make_vec(num_envs, scenario=scenario)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, scenario.num_actions, (steps, num_envs))
    best = 0.0
    for _ in range(5):
        begun = time.process_time()
        for action in actions:
            envs.step(action)
        best = max(best, num_envs * steps / (time.process_time() - begun))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1_000)
    given = parser.parse_args()
    for name in ("tiny", "office"):
        first_step(name)  # machine code is loaded from disk once per process
    for name in ("tiny", "office"):
        print(f"{name}: {1000 * first_step(name):.0f} ms from its name to the first step")
    spent = many(given.scenarios, given.steps)
    print(f"{given.scenarios} generated scenarios, {given.steps:,} steps each: {spent:.1f} s")
    sizes = [ff.CAGE2, ff.Scenario.load("office"), ff.Scenario.generate(0, hosts=60)]
    for scenario in sizes:
        rate = steps_per_second(scenario)
        print(f"{scenario.name}, {scenario.num_hosts} hosts: {rate / 1e6:.1f} million steps a second of 1,000 environments")


if __name__ == "__main__":
    main()
