"""What is an order worth? Reads an exhaustive run and prints Markdown: the distinguishable rules, and each precedence.

    fixfirst search --strategy exhaustive --inherit none --min-episodes 5000 --max-episodes 5000 --total-episodes 620000 \
        --round-size 8 --red-agent b_line --out runs/exhaustive-b_line
    python benchmarks/truth.py runs/exhaustive-b_line

Red never holds the defender, and B_line never an operational host: orders that differ only there are the same rule,
trained again with other random numbers. So the run holds its own replicates: 20 trainings of each of 6 rules against
B_line, 5 of each of 24 against Meander. Their spread is what another training of the same order would change.
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import t

import fixfirst as ff

MATTERS = {"b_line": ("enterprise", "op_server", "user"), "meander": ("enterprise", "op_server", "op_host", "user")}


def interval(values):
    """Mean and half width of its 95 % interval over trainings."""
    values = np.array(values)
    return values.mean(), t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    run = ff.load_run(parser.parse_args().run)
    units = MATTERS[run.config.training.game.red_agent]
    rules = {}
    for trial in run.trials:
        rule = tuple(unit for unit in trial.workflow.split(" > ") if unit in units)
        rules.setdefault(rule, []).append(trial)

    accepted = {rule: [t for t in trials if t.accepted] for rule, trials in rules.items()}
    best = max((rule for rule in rules if accepted[rule]), key=lambda rule: np.mean([t.earned for t in accepted[rule]]))
    print("| rule | passed the gate | return, 95 % interval over trainings | spread of trainings | contested compliance |")
    print("|---|---|---|---|---|")
    shown = sorted(rules, key=lambda r: -np.mean([t.earned for t in accepted[r]] or [-1e9]))
    for rule in shown:
        returns = [t.earned for t in accepted[rule]]
        passed = f"{len(returns)} of {len(rules[rule])}"
        if not returns:
            print(f"| {' > '.join(rule)} | {passed} | - | - | - |")
            continue
        contested = np.mean([t.contested_compliance for t in accepted[rule] if t.contested_compliance is not None])
        if len(returns) == 1:
            earned = f"{returns[0]:.2f} (one training) | -"
        else:
            mean, half = interval(returns)
            earned = f"{mean:.2f} ± {half:.2f} | {np.std(returns, ddof=1):.2f}"
        print(f"| {' > '.join(rule)} | {passed} | {earned} | {100 * contested:.0f} % |")

    print(f"\nBest rule: {' > '.join(best)}.\n")
    print("| precedence | return if kept | if reversed | difference | passed the gate, kept / reversed |")
    print("|---|---|---|---|---|")
    for a, b in combinations(units, 2):
        sides = []
        for first, second in ((a, b), (b, a)):
            of_side = [t for rule, ts in rules.items() if rule.index(first) < rule.index(second) for t in ts]
            sides.append(([t.earned for t in of_side if t.accepted], len(of_side)))
        (kept, all_kept), (reverse, all_reverse) = sides
        gap = np.mean(kept) - np.mean(reverse)
        error = np.hypot(np.std(kept, ddof=1) / np.sqrt(len(kept)), np.std(reverse, ddof=1) / np.sqrt(len(reverse)))
        passed = f"{len(kept)}/{all_kept}, {len(reverse)}/{all_reverse}"
        print(
            f"| {a} before {b} | {np.mean(kept):.1f} | {np.mean(reverse):.1f} | {gap:+.1f} ± {1.96 * error:.1f} | {passed} |"
        )


if __name__ == "__main__":
    main()
