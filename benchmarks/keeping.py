"""Ways to keep an order, side by side: what they earn, how often they truly break it, and what attackers take.

    python benchmarks/keeping.py out.csv [--seeds 2] [--episodes 60000] [--attack 500] [--replicates 1]

For every way (`--keep`) and seed one network learns all orders against B_line with that way in force; then attackers learn
against it under every order (`search --exploit --exploit-rounds 0`). A line per way, seed and order; what is in the file
already is not run again. In the end a table of means over seeds.
"""

import argparse
import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

import fixfirst as ff
from fixfirst.policy.spec import SHIELDS

COLUMNS = ("keep", "seed", "order", "script", "violations", "taken", "taken_violations")


def rows_of(way: str, seed: int, asked: argparse.Namespace) -> list[tuple[object, ...]]:
    """Search with one way; return a row per order."""
    with tempfile.TemporaryDirectory() as folder:
        run = ff.search(
            out=Path(folder) / "run",
            keep=way,
            seed=seed,
            total_episodes=asked.episodes * asked.replicates,
            replicates=asked.replicates,
            trainings=asked.replicates,
            exploit=True,
            exploit_rounds=0,
            exploit_episodes=asked.attack,
            exploit_replicates=asked.replicates,
            workers=1,
            report=False,
            quiet=True,
        )
    known, found = {order.workflow: order for order in run.answer.orders}, run.answer.adaptive
    assert found is not None
    rows: list[tuple[object, ...]] = []
    for order in found.orders:
        script = known[order.workflow]
        name = " > ".join(unit for unit in order.workflow.split(" > ") if unit not in run.answer.idle)
        rows.append((way, seed, name, script.mean, script.violations, order.mean, order.violations))
    return rows


def main() -> None:
    """Fill the file, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=60_000, help="training episodes of each replicate")
    parser.add_argument("--attack", type=int, default=500, help="training episodes of an attacker from each start")
    parser.add_argument("--replicates", type=int, default=1)
    asked = parser.parse_args()
    rows = list(csv.reader(asked.out.open()))[1:] if asked.out.exists() else []
    if not rows:
        asked.out.write_text(",".join(COLUMNS) + "\n")
    done = {(row[0], int(row[1])) for row in rows}
    for seed in range(asked.seeds):
        for way in SHIELDS:
            if (way, seed) not in done:
                with asked.out.open("a", newline="") as file:
                    csv.writer(file).writerows(rows_of(way, seed, asked))
                print(f"{way}, seed {seed}", flush=True)
    values: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for row in list(csv.reader(asked.out.open()))[1:]:
        values[row[0], row[2]].append([float(value) for value in row[3:]])
    print(f"{'keep':10}{'order':34}{'B_line':>9}{'violations':>12}{'attacked':>10}{'violations':>12}{'seeds':>7}")
    for (way, order), found in values.items():
        script, broken, taken, more = np.mean(found, axis=0)
        print(f"{way:10}{order:34}{script:9.2f}{broken:12.3f}{taken:10.1f}{more:12.2f}{len(found):7}")


if __name__ == "__main__":
    main()
