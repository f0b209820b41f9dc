"""How good are policies trained without an order? Held-out returns at several budgets, over seeds, with intervals.

    python benchmarks/quality.py [--red-agent b_line] [--budgets 20000,100000] [--seeds 5] [--engine torch]

The frozen policy plays 1,000 episodes of 100 steps that it never trained on; the interval is over seeds (Student's t).
"""

import argparse
import sys

import numpy as np
from scipy.stats import t

from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config


def returns_at(budgets, seed, **settings):
    """Held-out mean returns of one training, at each budget."""
    training = Training(make_config(workflow="none", total_episodes=max(budgets), seed=seed, **settings))
    shown = []
    for budget in budgets:
        while training.episodes < budget:
            training.step()
        shown.append(training.evaluate("test", 1_000).mean)
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--red-agent", default="b_line")
    parser.add_argument("--variant", default="current")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--budgets", default="20000,100000")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    budgets = [int(part) for part in args.budgets.split(",")]
    rows = []
    for seed in range(args.seeds):
        rows.append(returns_at(budgets, seed, red_agent=args.red_agent, variant=args.variant, engine=args.engine))
        print(f"{args.red_agent}, seed {seed}: {', '.join(f'{r:.2f}' for r in rows[-1])}", file=sys.stderr, flush=True)
    table = np.array(rows)
    half = t.ppf(0.975, args.seeds - 1) * table.std(axis=0, ddof=1) / np.sqrt(args.seeds)
    print(f"| red agent | variant | episodes | mean return of {args.seeds} seeds | 95 % interval | seeds |")
    print("|---|---|---|---|---|---|")
    for i, budget in enumerate(budgets):
        mean = table[:, i].mean()
        each = ", ".join(f"{r:.1f}" for r in table[:, i])
        interval = f"[{mean - half[i]:.2f}, {mean + half[i]:.2f}]"
        print(f"| {args.red_agent} | {args.variant} | {budget:,} | {mean:.2f} | {interval} | {each} |")


if __name__ == "__main__":
    main()
