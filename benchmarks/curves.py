"""Learning curves of all presets, over episodes and over wall time: docs/figures/presets.png and its CSV.

    python benchmarks/curves.py [--episodes 20000] [--seconds 60] [--out docs/figures]

Every preset trains against B_line until the episodes or the seconds are used: without an order (`original`), else with
enterprise > op_server > op_host > user > defender. Shown is the world's return of the training episodes, smoothed over 500.
`champion` is left out: it trains against both red agents, and for longer.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from fixfirst.learner.training import Training
from fixfirst.settings.presets import PRESETS
from fixfirst.settings.training import make_config

WORKFLOW = "enterprise > op_server > op_host > user > defender"
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
)  # Okabe and Ito's, safe for colour-blind readers
SHOWN = [preset for preset in PRESETS if preset != "champion"]
SMOOTH = 500
TICKS = (-15, -20, -30, -50, -100, -200, -500, -1000)


def curve(preset, episodes, seconds):
    """Rows (episodes, seconds, return) of one training."""
    settings = {} if preset == "original" else {"workflow": WORKFLOW}
    training = Training(make_config(preset, total_episodes=episodes, **settings))
    rows, start = [], time.perf_counter()
    while not training.done and time.perf_counter() - start < seconds:
        update = training.step()
        rows.append((update.row.episodes, time.perf_counter() - start, update.row.env_reward))
    return rows


def smoothed(rows):
    """Returns averaged over about SMOOTH episodes."""
    per_row = rows[0][0]
    width = max(1, min(SMOOTH // per_row, len(rows)))
    values = np.convolve([r for _, _, r in rows], np.ones(width) / width, mode="valid")
    return rows[width - 1 :], values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    with open(args.out / "presets.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("preset", "episodes", "seconds", "return"))
        for preset, colour in zip(SHOWN, COLOURS, strict=True):
            rows = curve(preset, args.episodes, args.seconds)
            print(f"{preset}: {rows[-1][0]:,} episodes in {rows[-1][1]:.0f} s, return {rows[-1][2]:.1f}", file=sys.stderr)
            kept, values = smoothed(rows)
            thin = slice(None, None, max(1, len(kept) // 200))
            for (episodes, seconds, _), value in list(zip(kept, values, strict=True))[thin]:
                writer.writerow((preset, episodes, round(seconds, 2), round(value, 2)))
            for axis, column in zip(axes, (0, 1), strict=True):
                axis.plot([row[column] for row in kept], values, color=colour, label=preset)
    axes[0].set(xlabel="training episodes", ylabel="return per episode (world's reward)", yscale="symlog")
    axes[0].set_yticks(TICKS, [f"{tick:,}".replace("-", "\u2212") for tick in TICKS])
    axes[1].set(xlabel="seconds, one core", xscale="log")
    axes[1].legend(frameon=False)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.suptitle("Learning curves of all presets against B_line, variant current")
    figure.savefig(args.out / "presets.png", dpi=110)


if __name__ == "__main__":
    main()
