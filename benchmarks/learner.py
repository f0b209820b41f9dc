"""How fast does a defender learn? The compiled learner beside its twin with PyTorch, on one core, in one run.

    python benchmarks/learner.py [--episodes 50000] [--red-agents b_line,meander] [--json]

The default preset without an order. First a whole training with CSV log, TensorBoard and checkpoints, and where its time
goes; then, from the policy it ended with, both learners in turn on the same updates; then a policy that remembers; then an
attacker that learns against `champion` from scratch; then the update alone on many distinct rows of many inputs, as policies
with a memory have them. Processor time, after everything is compiled.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.learner.batch import UpdateBatch
from fixfirst.learner.gradient import ACTOR, CRITIC, BackwardScratch, PPONumbers, learn
from fixfirst.learner.red_training import Opponent, RedTraining
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import TrainingRun
from fixfirst.policy.network import Network
from fixfirst.settings.training import make_config

ROWS, INPUTS = 3_000, 175


def config_for(red_agent, episodes, engine="auto"):
    return make_config(engine=engine, workflow="none", red_agent=red_agent, total_episodes=episodes)


def end_to_end(red_agent, episodes):
    """A whole training with its logs: the training, episodes per second, and the shares of its parts."""
    collecting, updating = 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        start, clock = time.process_time(), time.perf_counter()
        with TrainingRun(config_for(red_agent, episodes), Path(folder), tensorboard=Path(folder) / "tb") as run:
            for update in run.updates():
                collecting += update.row.collection_s
                updating += update.row.update_s
        busy, total = time.process_time() - start, time.perf_counter() - clock
    shares = {"playing": collecting, "learning": updating, "logs, checkpoints": total - collecting - updating}
    print(
        f"{red_agent}: {run.training.episodes:,} episodes, return {update.row.env_reward:.1f}", file=sys.stderr, flush=True
    )
    return run.training, episodes / busy, {name: seconds / total for name, seconds in shares.items()}


def settled(red_agent, weights, rounds):
    """Episodes per second of both learners from a settled policy, taking turns; the best of some rounds."""
    trainings = {engine: Training(config_for(red_agent, 10**9, engine)) for engine in ("compiled", "torch")}
    best = dict.fromkeys(trainings, 0.0)
    for training in trainings.values():
        training.learner.start_from(weights)
        training._player.forget()
        training.step()
    for _ in range(rounds):
        for engine, training in trainings.items():
            updates = 40 if engine == "compiled" else 8
            start = time.process_time()
            for _ in range(updates):
                training.step()
            speed = updates * training.config.ppo.episodes_per_update / (time.process_time() - start)
            best[engine] = max(best[engine], speed)
    return best


def remembering(rounds):
    """Episodes per second with full memory and macros, from the champion's policy on, as its training ends."""
    champion = ff.load_policy("champion")
    names = ", ".join(champion.spec.action_set.names[choice] for choice in champion.spec.opening) or "none"
    course = {"starts": 1, "opening": names, "opening_episodes": 0, "growth": (), "total_episodes": 10**9}
    training = Training(make_config("champion", **course, episodes_per_update=250, learning_rate=3e-5, entropy=0.0))
    training.learner.start_from(champion.weights)
    training._player.forget()
    training.step()
    best = 0.0
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(8):
            training.step()
        best = max(best, 8 * 250 / (time.process_time() - start))
    return best


def attacking(episodes):
    """Episodes per second of an attacker against the champion: all its training, and the last third of it, settled."""
    champion = ff.load_policy("champion")
    opponent, game = Opponent(champion.player(greedy=True)), Game(variant="leaderboard")
    training = RedTraining([opponent], game, RedSpec(champion.spec.scenario, False), episodes=episodes, seed=0)
    training.step()
    begun = settled = time.process_time()
    behind = 0
    while not training.done:
        training.step()
        if behind == 0 and training.episodes >= episodes * 2 / 3:
            behind, settled = training.episodes, time.process_time()
    now = time.process_time()
    return training.episodes / (now - begun), (training.episodes - behind) / (now - settled)


def row_cost(actions, rounds):
    """Microseconds per row and epoch, actor and critic, forward and backward: random rows of 15 to 40 set bits."""
    rng = np.random.default_rng(0)
    network, gradient = Network.zeros(INPUTS, actions), Network.zeros(INPUTS, actions)
    network.vector[:] = rng.normal(size=len(network.vector)) * 0.1
    bits = [np.sort(rng.choice(INPUTS, rng.integers(15, 41), replace=False)) for _ in range(ROWS)]
    chosen = [rng.choice(actions, rng.integers(1, 4), replace=False) for _ in range(ROWS)]
    pairs = sum(map(len, chosen))

    def ends(parts):
        return np.cumsum([0, *map(len, parts)])

    def floats(count):
        return rng.random(count).astype(np.float32)

    rows = UpdateBatch(
        starts=ends(bits),
        active=np.concatenate(bits),
        allowed=np.ones((ROWS, actions), np.bool_),
        visits=np.array([len(part) for part in chosen], np.float32),
        returns=floats(ROWS),
        squares=floats(ROWS),
        first_pair=ends(chosen),
        action=np.concatenate(chosen),
        pair_visits=np.ones(pairs, np.float32),
        gain=floats(pairs),
        loss=-floats(pairs),
    )
    numbers = {"clip": 0.2, "entropy": 0.01, "value": 0.5, "max_grad_norm": 0.5}
    numbers = {name: np.float32(number) for name, number in numbers.items()}
    settings = PPONumbers(epochs=4, learning_rate=1e-4, beta1=0.9, beta2=0.99, parts=1, split=0, **numbers)
    moments, benches, stats = (
        np.zeros((2, len(network.vector)), np.float32),
        (BackwardScratch.make(actions), BackwardScratch.make(1)),
        np.empty(5),
    )
    times = []
    for number in range(rounds + 1):
        start = time.process_time()
        learn(network, gradient, *moments, 4 * number, rows, settings, *benches, stats, ACTOR | CRITIC)
        times.append(time.process_time() - start)
    return min(times[1:]) / (4 * ROWS) * 1e6


MEMORY = """
import sys, fixfirst as ff
ff.train(workflow="none", total_episodes=20_000, quiet=True, out=sys.argv[1])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_memory_mb():
    """Of a process that trains 20,000 episodes, with logs and TensorBoard."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", MEMORY, Path(folder) / "run"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=50_000)
    parser.add_argument("--red-agents", default="b_line,meander")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    Training(config_for("b_line", 100)).step()  # compiled, or loaded
    result = {}
    for red_agent in args.red_agents.split(","):
        training, speed, shares = end_to_end(red_agent, args.episodes)
        speeds = settled(red_agent, training.learner.weights, args.rounds)
        ratio = speeds["compiled"] / speeds["torch"]
        result[red_agent] = {"episodes_per_s": speed, "shares": shares, "settled": speeds, "ratio": ratio}
    costs = {actions: row_cost(actions, args.rounds) for actions in (40, 145)}
    full, memory = remembering(args.rounds), peak_memory_mb()
    attacker, settled_attacker = attacking(args.episodes)
    if args.json:
        told = {"full_memory_settled": full, "attacker": attacker, "attacker_settled": settled_attacker}
        told |= {"us_per_row_and_epoch": costs, "peak_memory_mb": memory}
        print(json.dumps(result | told, indent=2))
        return
    for red_agent, row in result.items():
        print(f"{red_agent}, the first {args.episodes:,} episodes with logs: {row['episodes_per_s']:,.0f} episodes/s")
        print("  time: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["shares"].items()))
        each = ", ".join(f"{engine} {speed:,.0f}" for engine, speed in row["settled"].items())
        print(f"  settled policy: {each} episodes/s, ratio {row['ratio']:.1f}")
    print(f"full memory and macros, both red agents, the champion's policy: {full:,.0f} episodes/s")
    print(f"an attacker against champion: {attacker:,.0f} episodes/s; settled, {settled_attacker:,.0f}")
    for actions, cost in costs.items():
        print(f"{ROWS:,} rows of {INPUTS} inputs, {actions} actions: {cost:.2f} us per row and epoch")
    print(f"peak memory of a training: {memory:,.0f} MB")


if __name__ == "__main__":
    main()
