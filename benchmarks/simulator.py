"""How fast is the simulator? Steps per second on one core with 1,000 environments and random actions.

    python benchmarks/simulator.py [--against FOLDER] [--rounds 40] [--json]

Three ways to play: `envs.step` (the public interface), `World.step` (the arrays behind it) and a compiled rollout that
plays one environment after the other, chooses its own actions and looks only at the packed observation. Processor time,
best of all rounds. `--against` names the root of another checkout: it is measured in a process of its own, the two taking
turns, so that the ratio holds on a busy machine. A yardstick that has nothing to do with us says how fast the machine was.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit

NUM_ENVS, STEPS = 1_000, 100
RED_AGENTS = ("b_line", "meander")
YARDSTICK = "yardstick: np.sort, millions of numbers"
HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent


def rollout():
    """A compiled function that plays `STEPS` steps in every environment with random actions."""
    from fixfirst.game.attackers import decide_red
    from fixfirst.game.chance import begin_turn, counter_uniform
    from fixfirst.game.rules import next_episode, step_one

    @njit
    def play(states, block, chances, red_odds, own, words, returns10, when):
        tables = block[0]
        for i in range(len(states)):
            env, chance = states[i], chances[i]
            for t in range(when, when + STEPS):
                if env.ended:
                    next_episode(env, tables, chance, red_odds[i])
                action = int(counter_uniform(chance.key, t) * tables.num_actions)
                begin_turn(env, chance)
                red_verb, red_target = decide_red(env, tables, chance, own)
                returns10[i] += step_one(env, tables, action, red_verb, red_target, chance, False, 100)
                words[i] ^= env.observation[0]

    return play


def jobs():
    """What is measured: name -> a function that does `NUM_ENVS * STEPS` of it."""
    from fixfirst.adapters.envs import VecCage2
    from fixfirst.game.game_config import Game
    from fixfirst.game.simulator import World

    actions = np.random.default_rng(0).integers(0, 145, (STEPS, NUM_ENVS))
    numbers = np.random.default_rng(1).random(NUM_ENVS * STEPS)
    play = rollout()
    found = {}
    for red in RED_AGENTS:
        envs, game = VecCage2(NUM_ENVS, red_agent=red), Game(red_agent=red)
        world, own = World(game, NUM_ENVS), World(game, NUM_ENVS)
        envs.reset(seed=0), world.reset(0), own.reset(0)
        words, returns10 = np.zeros(NUM_ENVS, np.uint64), np.zeros(NUM_ENVS, np.int64)
        found[f"envs.step, {red}"] = lambda envs=envs: step_through(envs, actions)
        found[f"World.step, {red}"] = lambda world=world: step_through(world, actions)
        found[f"compiled rollout, {red}"] = lambda own=own, words=words, returns10=returns10: play(
            *own.inside()[:5], words, returns10, 0
        )
    for name, scenario in larger_scenarios().items():
        chosen = np.random.default_rng(0).integers(0, scenario.num_actions, (STEPS, NUM_ENVS))
        for red in RED_AGENTS:
            world = World(Game(red_agent=red, scenario=scenario), NUM_ENVS)
            world.reset(0)
            found[f"World.step, {name}, {red}"] = lambda world=world, chosen=chosen: step_through(world, chosen)
    found[YARDSTICK] = lambda: np.sort(numbers)
    return found


def larger_scenarios():
    """Scenarios of 30 and 60 hosts, by name; none in checkouts that know only one scenario."""
    from fixfirst.game.scenario import Scenario

    if not hasattr(Scenario, "load"):
        return {}
    office = Scenario.load("office")

    def twin(name):
        return f"{name}x"

    def doubled(host):
        return replace(host, name=twin(host.name), reveals=tuple(replace(f, host=twin(f.host)) for f in host.reveals))

    hosts = (*office.hosts, *map(doubled, office.hosts))
    subnets = tuple(replace(subnet, hosts=(*subnet.hosts, *map(twin, subnet.hosts))) for subnet in office.subnets)
    both = replace(office, name="two offices", hosts=hosts, subnets=subnets)
    return {f"{len(scenario.hosts)} hosts": scenario for scenario in (office, both)}


def step_through(world, actions):
    """Without keeping what comes back: the memory for a hundred results would cost as much as the steps."""
    for row in actions:
        world.step(row)


def serve():
    """Measure everything once per line of stdin, and say the seconds as one line of JSON."""
    work = jobs()
    for job in work.values():
        job()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps({name: min(seconds(job) for _ in range(3)) for name, job in work.items()}), flush=True)


def seconds(job):
    start = time.process_time()
    job()
    return time.process_time() - start


def measure(checkouts, rounds):
    """Millions per second of everything in every checkout (name -> root folder), which take turns."""
    processes = {
        name: subprocess.Popen(
            [sys.executable, Path(root) / HERE.relative_to(ROOT), "--serve"],
            env=os.environ | {"PYTHONPATH": str(Path(root) / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, root in checkouts.items()
    }
    for name, process in processes.items():
        if process.stdout.readline() != "ready\n":
            sys.exit(f"{checkouts[name]} cannot be measured, see above")
    best = {name: {} for name in processes}
    for _ in range(rounds):
        for name, process in processes.items():
            print("go", file=process.stdin, flush=True)
            for job, took in json.loads(process.stdout.readline()).items():
                best[name][job] = min(took, best[name].get(job, took))
    for process in processes.values():
        process.stdin.close()
        process.wait()
    return {name: {job: NUM_ENVS * STEPS / took / 1e6 for job, took in jobs.items()} for name, jobs in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="root of another checkout to compare with")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve()
    checkouts = {"here": ROOT} | ({} if args.against is None else {"against": args.against.resolve()})
    speeds = measure(checkouts, args.rounds)
    ratios = {job: speeds["here"][job] / speed for job, speed in speeds.get("against", {}).items()}
    if args.json:
        print(json.dumps({"millions_per_s": speeds, "ratio": ratios}, indent=2))
        return None
    print(
        f"{'millions of steps per second':42}" + "".join(f"{name:>10}" for name in speeds) + ("     ratio" if ratios else "")
    )
    for job in speeds["here"]:
        row = "".join(f"{speed[job]:10.1f}" if job in speed else f"{'-':>10}" for speed in speeds.values())
        print(f"{job:42}" + row + (f"{ratios[job]:10.2f}" if job in ratios else ""))
    return None


if __name__ == "__main__":
    main()
