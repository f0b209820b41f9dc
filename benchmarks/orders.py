"""Which orders can a defender learn to keep to, how fast, and at what price? `delta` against `penalty`.

    python benchmarks/orders.py [--red-agent b_line] [--episodes 10000] [--common-episodes 20000] [--seeds 1]

One common policy is trained without an order; from it, every distinguishable order is trained until it passes the gate or
the episodes are used. Against B_line, which never touches the operational hosts, 6 of the 120 orders differ; against
Meander 24. Prints a Markdown table; the defender, which red never holds, and op_host against B_line come last in each order.
"""

import argparse
import sys
import tempfile
from itertools import permutations
from pathlib import Path

from fixfirst.learner.training_run import Begin, TrainingRun
from fixfirst.settings.training import make_config

CONTESTED = {"b_line": ("enterprise", "op_server", "user"), "meander": ("enterprise", "op_server", "user", "op_host")}
ALL = ("enterprise", "op_server", "user", "op_host", "defender")


def trained(config, folder, start=None):
    """A training that has come to its end."""
    with TrainingRun(config, Path(tempfile.mkdtemp(dir=folder)), Begin(start)) as run:
        for _ in run.updates():
            pass
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--red-agent", choices=CONTESTED, default="b_line")
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--common-episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--alignment", choices=("penalty", "delta"), action="append")
    args = parser.parse_args()
    print("| alignment | seed | order | gate | compliance | contested compliance | return | episodes |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seeds):
            common = make_config(workflow="none", red_agent=args.red_agent, total_episodes=args.common_episodes, seed=seed)
            start = trained(common, folder).training.learner.weights
            for alignment in args.alignment or ("penalty", "delta"):
                passed = 0
                for order in permutations(CONTESTED[args.red_agent]):
                    workflow = " > ".join([*order, *(unit for unit in ALL if unit not in order)])
                    config = make_config(
                        workflow=workflow,
                        red_agent=args.red_agent,
                        total_episodes=args.episodes,
                        seed=seed,
                        alignment={"kind": alignment},
                        stop_when_compliant=True,
                        min_episodes=0,
                    )
                    run = trained(config, folder, start)
                    shown = run.training.evaluate("test", 1_000)
                    kept = shown.compliance
                    passed += run.accepted
                    print(
                        f"| {alignment} | {seed} | {' > '.join(order)} | {'passed' if run.accepted else 'not passed'} | "
                        f"{kept.compliance} | {kept.contested} | {shown.mean:.1f} ± {shown.standard_error:.1f} | "
                        f"{run.training.episodes:,} |",
                        flush=True,
                    )
                total = len(list(permutations(CONTESTED[args.red_agent])))
                print(f"{args.red_agent}, {alignment}, seed {seed}: {passed} of {total} orders passed", file=sys.stderr)


if __name__ == "__main__":
    main()
