"""How many training episodes does each strategy need until it says what training all orders together says in the end?

    python benchmarks/strategies.py [--red-agents b_line,meander] [--seeds 3] [--episodes 360000] [--out DIR]

The same search (three trainings, ten rounds) with every strategy, under several seeds. After each round the ledger has what
all orders known by then earned; the prices it shows at that moment are compared with those shown at the end by `together`,
which has all orders in every round. Reached: from this round on, the same swaps are shown and no others. Returns are those
of the order that the search ranks first, on fresh episodes. The table goes to stdout.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fixfirst as ff
from fixfirst.searcher.shared import SharedSearch
from fixfirst.searcher.study import open_search
from fixfirst.stats.pricing import price_swaps

STRATEGIES = ("together", "gp_ucb", "random", "exhaustive")
Verdict = frozenset[tuple[str, str]]


def verdicts(search: SharedSearch) -> list[Verdict]:
    """The swaps that are shown after each round."""
    known, found = search.orders, []
    idle = set(search.answer.idle) if search.answer else set()
    relevant = [unit for unit, name in enumerate(search.scheme.names) if name not in idle]
    for after in range(1, search.rounds + 1):
        values = search.values(after)
        there = ~np.isnan(values).any(axis=0)
        orders = [workflow for workflow, is_there in zip(known, there, strict=True) if is_there]
        swaps = price_swaps(orders, values[:, there], relevant)
        found.append(frozenset((swap.first, swap.second) for swap in swaps if swap.is_shown))
    return found


def reached(found: list[Verdict], wanted: Verdict) -> int | None:
    """The first round from which on the verdict is the wanted one."""
    same = [verdict == wanted for verdict in found]
    return next((r + 1 for r in range(len(same)) if all(same[r:])), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--red-agents", default="b_line,meander")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=360_000)
    parser.add_argument("--round-orders", type=int, default=6)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    print("| red agent | strategy | episodes until the verdict of `together`, by seed | orders tried | best order earns |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory() as scratch:
        place = args.out or Path(scratch)
        for red in args.red_agents.split(","):
            rows: dict[str, list[tuple[int | None, int, float]]] = {name: [] for name in STRATEGIES}
            for seed in range(args.seeds):
                wanted: Verdict = frozenset()
                for name in STRATEGIES:
                    settings = {
                        "red_agent": red,
                        "seed": seed,
                        "strategy": name,
                        "replicates": 3,
                        "total_episodes": args.episodes,
                        "round_orders": args.round_orders,
                        "measure_episodes": 4_000,
                        "tensorboard": False,
                    }
                    folder = place / f"{red}-{name}-{seed}"
                    if not (folder / "answer.json").exists():
                        ff.search(out=folder, quiet=True, report=False, workers=args.workers, **settings)
                    search = open_search(folder)
                    assert search.answer is not None
                    found = verdicts(search)
                    wanted = found[-1] if name == "together" else wanted
                    after = reached(found, wanted)
                    episodes = None if after is None else search.used_after(after)
                    rows[name].append((episodes, len(search.orders), search.answer.orders[0].mean))
                    print(red, seed, name, rows[name][-1], sorted(found[-1]), file=sys.stderr)
            for name, of_seeds in rows.items():
                until = ", ".join("not reached" if episodes is None else f"{episodes:,}" for episodes, _, _ in of_seeds)
                tried = ", ".join(str(count) for _, count, _ in of_seeds)
                print(
                    f"| {red} | {name} | {until} | {tried} | {np.mean([mean for _, _, mean in of_seeds]):.2f} |", flush=True
                )


if __name__ == "__main__":
    main()
