"""Does the search find an effect that is there? Worlds in which an order matters by a known amount.

    python benchmarks/planted.py [--red-agent b_line] [--amounts 0,0.5,1,2] [--episodes 360000] [--seed 0]

Against B_line it makes no difference whether enterprise comes before op_server. Here it does: an episode in which op_server
is to be fixed before enterprise costs so many points more, at its end, in training and wherever policies are played.
Nothing else of the search is told. Shown is what it says of this swap, and of enterprise before user, which must stay.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import fixfirst as ff
from fixfirst.play.rollout import Rollout, collect

FIRST, SECOND = "enterprise", "op_server"


def taxed(amount: float) -> Callable[..., Rollout]:
    """`collect` of a world in which keeping SECOND before FIRST costs so many points an episode."""

    def play(*args: Any, **settings: Any) -> Rollout:
        rollout = collect(*args, **settings)
        names = [workflow.scheme.names for workflow in rollout.workflows]
        late = [
            workflow.ranks[of.index(FIRST)] > workflow.ranks[of.index(SECOND)]
            for workflow, of in zip(rollout.workflows, names, strict=True)
        ]
        if late:
            rollout.rewards10[-1] -= np.where(np.array(late)[rollout.assigned], round(10 * amount), 0).astype(np.int32)
        return rollout

    return play


@contextmanager
def planted(amount: float) -> Iterator[None]:
    """Until it is left, this process plays in such a world."""
    with patch("fixfirst.learner.training.collect", taxed(amount)), patch("fixfirst.play.evaluation.collect", taxed(amount)):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--red-agent", default="b_line")
    parser.add_argument("--amounts", default="0,0.5,1,2")
    parser.add_argument("--episodes", type=int, default=360_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"| planted: {FIRST} before {SECOND} | found, 95 % | shown | enterprise before user, 95 % | the answer begins |")
    print("|---|---|---|---|---|")
    for amount in map(float, args.amounts.split(",")):
        with TemporaryDirectory() as scratch, planted(amount):
            settings = {"red_agent": args.red_agent, "total_episodes": args.episodes, "seed": args.seed, "replicates": 3}
            run = ff.search(out=f"{scratch}/run", quiet=True, report=False, workers=1, tensorboard=False, **settings)
        answer = run.answer
        found = {(swap.first, swap.second): (swap.price, swap.low, swap.high) for swap in answer.swaps}
        found |= {(second, first): (-price, -high, -low) for (first, second), (price, low, high) in found.items()}
        cells = [f"{p:.2f} [{low:.2f}, {high:.2f}]" for p, low, high in (found[FIRST, SECOND], found["enterprise", "user"])]
        shown = "yes" if found[FIRST, SECOND][1] > 0 else "no"
        print(f"| {amount:g} | {cells[0]} | {shown} | {cells[1]} | {answer.rule} |", flush=True)


if __name__ == "__main__":
    main()
