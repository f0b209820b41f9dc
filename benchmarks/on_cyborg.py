"""Does a policy earn on real CybORG what it earns here? The leaderboard's six columns in both worlds, as Markdown.

    python benchmarks/on_cyborg.py RUN --cyborg cage-challenge-2 --episodes 1000 > table.md

The checkout must be the variant `leaderboard` (`git checkout 606813b`). Episodes of 100 steps are played once against each
red agent, and give the columns of 30 and 50 steps as well; the simulator plays ten times as many. The policy takes its most
probable actions. CybORG is played by `backend="cyborg"`, one worker process per core (FIXFIRST_CORES=1: a single one):
about 300 steps per second and core, where `ff.BlueAgent` in a loop makes 240 on one (AMD EPYC, shared; three times in turn).
So 1,000 episodes against each red agent take at least eleven minutes of one core.
A difference is CybORG less simulator, with Welch's 95 % interval; "equivalent" if two one-sided tests at 5 % show that it is
within the margin.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import fixfirst as ff
from fixfirst.cli.evaluate import SIMULATOR_SHARE
from fixfirst.play.evaluation import PROTOCOL_STEPS
from fixfirst.play.leaderboard import COLUMN_NAMES

MARGIN = 0.5
STEPS = max(PROTOCOL_STEPS)


def rows_of(standing):
    """Its columns by name, and their total as one more, with the episodes of a column: they set its degrees of freedom."""
    rows = dict(zip(COLUMN_NAMES, standing.columns, strict=True))
    total = standing.total
    told = {"mean": total.mean, "standard_error": total.standard_error, "low": total.low, "high": total.high}
    return rows | {"total": replace(standing.columns[-1], red_agent="both", steps=0, **told)}


def played(policy, episodes, seed, **world):
    """The rows in one world, and steps per second with everything that was needed to start it."""
    start = time.perf_counter()
    standing = ff.leaderboard(policy, greedy=True, episodes=episodes, seed=seed, **world)
    return rows_of(standing), 2 * episodes * STEPS / (time.perf_counter() - start)


def earned(row):
    return f"{row.mean:.2f} [{row.low:.2f}, {row.high:.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", help="a run, or a policy's folder or file")
    parser.add_argument("--cyborg", help="a checkout of cage-challenge-2 at 606813b; default: FIXFIRST_CYBORG")
    parser.add_argument("--episodes", type=int, default=1_000, help="on CybORG, against each red agent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    args = parser.parse_args()

    theirs, their_speed = played(args.policy, args.episodes, args.seed, backend="cyborg", cyborg=args.cyborg)
    ours, our_speed = played(args.policy, SIMULATOR_SHARE * args.episodes, args.seed)
    apart = {name: ours[name].difference(theirs[name], MARGIN) for name in ours}

    print(f"| column | CybORG | simulator | difference | equivalent at ±{MARGIN} | smallest margin |")
    print("|---|---|---|---|---|---|")
    for name, gap in apart.items():
        cells = earned(theirs[name]), earned(ours[name]), f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"
        shown = f"{'yes' if gap.equivalent else 'not shown'} (p = {gap.p_value:.2g})"
        print(f"| {name} | {' | '.join(cells)} | {shown} | {gap.smallest_margin:.2f} |")
    print(
        f"\n{args.episodes:,} episodes on CybORG and {SIMULATOR_SHARE * args.episodes:,} on the simulator against each red "
        f"agent; mean returns with 95 % intervals; seed {args.seed}. "
        f"{their_speed:,.0f} and {our_speed:,.0f} steps per second, starting included."
    )
    if args.json is not None:
        document = {
            "policy": args.policy,
            "seed": args.seed,
            "steps_per_second": {"cyborg": their_speed, "simulator": our_speed},
            "columns": {
                name: {"cyborg": asdict(theirs[name]), "simulator": asdict(ours[name]), "difference": asdict(gap)}
                for name, gap in apart.items()
            },
        }
        args.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
