"""Defenders and attackers, each against each; and what the best attackers take that learn against every defender.

    python benchmarks/matrix.py matrix.csv champion champion-current guardian react-restore [RUN ...] [--seeds 2]

A defender may be a run, a policy or a baseline, with its order behind an @ if it follows any; a run of another variant plays
in its own. It takes its most probable action, but for a league's, which draws. For every seed six attackers learn: from four
starts, then the best of them twice again. A line per defender; what is in the file already is not played again. In the end a
table: what blue earns, and every training's end.
"""

import argparse
import csv
from pathlib import Path

import fixfirst as ff

SCRIPTS, LEARNED = ("b_line", "meander", "sleep"), ("base-attacker", "noise", "two-fronts")
COLUMNS = ("defender", "variant", *SCRIPTS, *LEARNED, "best_response", "low", "high", "trainings")


def row_of(defender: str, asked: argparse.Namespace) -> list[object]:
    """Play and attack one defender."""
    name, _, order = defender.partition("@")
    same: dict[str, object] = {"workflow": order or None, "quiet": True}
    found = [
        ff.exploit(name, train_episodes=asked.train, episodes=asked.episodes, seed=seed, **same)
        for seed in range(asked.seeds)
    ]
    best = min(found, key=lambda one: one.mean)
    same |= {"greedy": best.greedy, "variant": best.variant}
    known = ff.evaluate(name, red_agent=[*SCRIPTS, *LEARNED], steps=100, episodes=asked.episodes, **same)
    ends = [f"{mean:.0f}" for one in found for start, mean in one.tried if not start.endswith("as it is")]
    return [
        defender,
        known[0].variant,
        *(f"{row.mean:.1f}" for row in known),
        *(f"{value:.1f}" for value in (best.mean, best.low, best.high)),
        " ".join(ends),
    ]


def main() -> None:
    """Fill the file, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("defenders", nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--train", type=int, default=10_000, help="training episodes of an attacker from each start")
    parser.add_argument("--episodes", type=int, default=1_000, help="fresh episodes of every cell")
    asked = parser.parse_args()
    if not asked.out.exists():
        asked.out.write_text(",".join(COLUMNS) + "\n")
    done = {row[0] for row in csv.reader(asked.out.open())}
    for defender in asked.defenders:
        if defender not in done:
            row = row_of(defender, asked)
            with asked.out.open("a", newline="") as file:
                csv.writer(file).writerow(row)
    for row in csv.reader(asked.out.open()):
        print(f"{row[0]:>34}", *(f"{value:>14}" for value in row[1:-1]), row[-1], sep=" ")


if __name__ == "__main__":
    main()
