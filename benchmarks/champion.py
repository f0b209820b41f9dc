"""How good is the preset `champion`, how sure, and what does each of its parts add?

    python benchmarks/champion.py runs/champion --seeds 0-9                      # the preset itself
    python benchmarks/champion.py runs/champion --seeds 0-2 --parts all          # and without each of its parts
    python benchmarks/champion.py runs/current --seeds 0-4 --variant current

Every training has the same number of episodes, in a folder of its own; what is there already is read, what was interrupted
goes on. Greedy totals of the six columns on fresh episodes, with processor time, as a Markdown table.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import fixfirst as ff
from fixfirst.runs.sessions import is_finished
from fixfirst.settings.training import make_config

WHOLE = make_config("champion").total_episodes
NO_OPENING = {"opening": "none", "finalists_kept": 1}
PARTS = {
    "champion": {},
    "--memory none": {"memory": "none"},
    "--memory scans": {"memory": "scans"},
    "--action-set all --opening none": {"action_set": "all", **NO_OPENING},
    "--opening none": NO_OPENING,
    "--entrants 1": {"entrants": 1},
    "--finalists-kept 1, trained for longer": {
        "finalists_kept": 1,
        "opening_episodes": 2 * make_config("champion").opening_episodes,
    },
    "growth = [] (updates of 50 episodes)": {"growth": ()},
    "growth = [] --episodes-per-update 250": {"growth": (), "episodes_per_update": 250},
    "--restore-cost-warmup-episodes 0": {"restore_cost_warmup_episodes": 0},
    "--lr-schedule constant": {"lr_schedule": "constant"},
    "--entropy-schedule constant": {"entropy_schedule": "constant"},
    "--no-norms-apart --row-parts 1 --last-layer 1": {"norms_apart": False, "row_parts": 1, "last_layer": 1.0},
    "--red-agent b_line, --red-agent meander": {"red_agent": ("b_line", "meander")},  # two policies, each for its columns
}


def numbers(text):
    """0-3,7 -> 0, 1, 2, 3, 7."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def trained(folder, seed, settings):
    """The training in its folder, and how many seconds of processor time it took, if that is known."""
    clock = folder / "cpu_s.json"
    if is_finished(folder):
        return json.loads(clock.read_text()) if clock.exists() else None
    begun = folder.exists()
    start = time.process_time()
    if begun:
        ff.resume(folder, workers=1, quiet=True)
        return None
    ff.train(preset="champion", seed=seed, out=folder, workers=1, tensorboard=False, quiet=True, **settings)
    clock.write_text(json.dumps(time.process_time() - start))
    return time.process_time() - start


def total(folder, seed, settings, episodes):
    """B30 + B50 + B100 + M30 + M50 + M100, mean returns of the greedy policy, and its seconds; or of two policies."""
    reds = settings.get("red_agent")
    if not isinstance(reds, tuple):
        seconds = trained(folder, seed, settings)
        return _sum(folder, reds or "b_line,meander", settings["variant"], episodes), seconds
    both = [total(folder / red, seed, settings | {"red_agent": red}, episodes) for red in reds]
    seconds = [each for _, each in both]
    return sum(earned for earned, _ in both), None if None in seconds else sum(seconds)


def _sum(folder, red_agents, variant, episodes):
    rows = ff.evaluate(folder, greedy=True, red_agent=red_agents, variant=variant, episodes=episodes, quiet=True)
    return sum(row.mean for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--parts", default="champion", help="all, or names of the table, with ; between them")
    parser.add_argument("--variant", default="leaderboard")
    parser.add_argument("--episodes", type=int, default=10_000)
    args = parser.parse_args()
    chosen = list(PARTS) if args.parts == "all" else [part.strip() for part in args.parts.split(";")]
    seeds = list(numbers(args.seeds))
    print(f"| | {' | '.join(f'seed {seed}' for seed in seeds)} | mean | CPU s |\n|{'---|' * (len(seeds) + 3)}", flush=True)
    for part in chosen:
        totals, times = [], []
        for seed in seeds:
            folder = args.out / f"{list(PARTS).index(part):02d}-{seed}"
            earned, seconds = total(folder, seed, PARTS[part] | {"variant": args.variant}, args.episodes)
            totals.append(earned)
            times.append(seconds)
        known = [seconds for seconds in times if seconds is not None]
        spent = f"{min(known):.0f} to {max(known):.0f}" if known else ""
        means = " | ".join(f"{earned:.2f}" for earned in totals)
        print(f"| {part} | {means} | **{statistics.mean(totals):.2f}** | {spent} |", flush=True)


if __name__ == "__main__":
    main()
