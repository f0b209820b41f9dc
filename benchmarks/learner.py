"""How fast does a defender learn, on one core?

    python benchmarks/learner.py [--episodes 50000] [--red-agents b_line,meander] [--json]

The default preset without an order: a whole training with CSV log, TensorBoard and checkpoints, and where its time goes;
then on from the policy it ended with; then a policy that remembers; then an attacker that learns against `champion` from
scratch. Processor time, after everything is compiled.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.learner.red_training import Opponent, RedTraining
from fixfirst.learner.tournament import train_in
from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config


def config_for(red_agent, episodes):
    return make_config(workflow="none", red_agent=red_agent, total_episodes=episodes)


def end_to_end(red_agent, episodes):
    """A whole training with its logs: the training, episodes per second, and the shares of its parts."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        start, clock = time.process_time(), time.perf_counter()
        config, board = config_for(red_agent, episodes), Path(folder) / "tb"
        with train_in(Path(folder), config, rows.append, tensorboard=board) as training:
            busy, total = time.process_time() - start, time.perf_counter() - clock
    collecting, updating = sum(row.collection_s for row in rows), sum(row.update_s for row in rows)
    shares = {"playing": collecting, "learning": updating, "logs, checkpoints": total - collecting - updating}
    print(f"{red_agent}: {training.episodes:,} episodes, return {rows[-1].env_reward:.1f}", file=sys.stderr, flush=True)
    return training, episodes / busy, {name: seconds / total for name, seconds in shares.items()}


def settled(red_agent, weights, rounds):
    """Episodes per second from a settled policy; the best of some rounds."""
    training = Training(config_for(red_agent, 10**9))
    training.learner.start_from(weights)
    return speed_of(training, rounds, 40)


def speed_of(training, rounds, updates):
    training._player.forget()
    training.step()
    best = 0.0
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(updates):
            training.step()
        best = max(best, updates * training.config.ppo.episodes_per_update / (time.process_time() - start))
    return best


def remembering(rounds):
    """Episodes per second with full memory and macros, from the champion's policy on, as its training ends."""
    champion = ff.load_policy("champion")
    names = ", ".join(champion.spec.action_set.names[choice] for choice in champion.spec.opening) or "none"
    course = {"entrants": 1, "opening": names, "opening_episodes": 0, "growth": (), "total_episodes": 10**9}
    training = Training(make_config("champion", **course, episodes_per_update=250, learning_rate=3e-5, ent_coef=0.0))
    training.learner.start_from(champion.weights)
    return speed_of(training, rounds, 8)


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
        late = settled(red_agent, training.learner.weights, args.rounds)
        result[red_agent] = {"episodes_per_s": speed, "shares": shares, "settled": late}
    full, memory = remembering(args.rounds), peak_memory_mb()
    attacker, settled_attacker = attacking(args.episodes)
    if args.json:
        rest = {"full_memory_settled": full, "attacker": attacker, "attacker_settled": settled_attacker}
        print(json.dumps(result | rest | {"peak_memory_mb": memory}, indent=2))
        return
    for red_agent, row in result.items():
        print(f"{red_agent}, the first {args.episodes:,} episodes with logs: {row['episodes_per_s']:,.0f} episodes/s")
        print("  time: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["shares"].items()))
        print(f"  settled policy: {row['settled']:,.0f} episodes/s")
    print(f"full memory and macros, both red agents, the champion's policy: {full:,.0f} episodes/s")
    print(f"an attacker against champion: {attacker:,.0f} episodes/s; settled, {settled_attacker:,.0f}")
    print(f"peak memory of a training: {memory:,.0f} MB")


if __name__ == "__main__":
    main()
