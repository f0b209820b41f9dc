"""Does anything break it? Kills, Ctrl-C, crashes at file operations, damaged files, wrong arguments, bad states, full disks.

    python benchmarks/soak [--minutes 10] [--seed 0] [--only kills,races] [--tries N] [--slice] [--ray] [--keep FOLDER]

One line per kind: how often it was tried, and how often something was not as it must be. Exit code 1 if that happened at
all; what was found then lies in the folder of --keep. Every kind gets a share of the minutes; with --tries each is tried so
often instead. `docs/reliability.md` says what is expected, and what is not tried.

    storms.py    kills, interrupts, crashes, races, readers, limits
    damage.py    files        calls.py    arguments        states.py    states of the game, memory
    jobs.py      what is run, and what must come of it     forks.py     commands in processes
"""

import argparse
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from calls import calls
from damage import damage
from jobs import WAYS, made_jobs
from states import memory, play_states, states
from storms import Kind, crashes, interrupts, kills, limits, notes, races, readers

from fixfirst.api.running import compile_kernel

KINDS = {  # its share of the time, and how often it is tried in a slice
    kills: (6, 4),
    interrupts: (2, 3),
    crashes: (4, 3),
    races: (1, 2),
    readers: (1, 4),
    damage: (5, 30),
    calls: (1, 600),
    limits: (2, 2),
    states: (4, 500),
    memory: (1, 2),
}
IN_MEMORY = "/dev/shm"  # where syncing a file costs nothing: kills of processes are the same there
TELL_EVERY_S = 60.0
Share = tuple[int, float]  # most tries, most seconds
SLICE = ("separate", "shared", "train")


def soak(
    names: list[str], share: Callable[[Callable[..., Kind]], Share], seed: int, ways: tuple[str, ...], keep: Path
) -> int:
    """Try every kind; the number of troubles."""
    compile_kernel()
    troubles = 0
    with (
        tempfile.TemporaryDirectory(
            prefix="fixfirst-soak-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
        ) as scratch,
        made_jobs(Path(scratch) / "jobs", ways) as made,
    ):
        for kind in (kind for kind in KINDS if kind.__name__ in names):
            folder = Path(scratch) / kind.__name__
            folder.mkdir()
            rng = random.Random(f"{seed} {kind.__name__}")
            began, count, found, (most, most_s) = time.monotonic(), 0, 0, share(kind)
            notes.clear()
            told = began
            for trouble in kind(rng, folder, made):
                count += trouble if isinstance(trouble, int) else 1
                if isinstance(trouble, str):
                    found += 1
                    report(keep, kind.__name__, found, trouble, folder)
                if (now := time.monotonic()) - told > TELL_EVERY_S:
                    print(f"  {kind.__name__}: {count:,} so far, {found:,} not as it must be", file=sys.stderr, flush=True)
                    told = now
                if count >= most or time.monotonic() - began > most_s:
                    break
            troubles += found
            seconds, besides = time.monotonic() - began, "".join(f", {n:,} {what}" for what, n in notes.items() if n)
            print(f"{kind.__name__:10} {count:10,} tried {found:6,} not as it must be {seconds:8.0f} s{besides}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    return troubles


def report(keep: Path, kind: str, number: int, trouble: str, folder: Path) -> None:
    """Print it, and keep what lies there."""
    print(f"  {kind} {number}: {trouble[:600]}", flush=True)
    if number <= 20:
        evidence = keep / f"{kind}-{number}"
        shutil.rmtree(evidence, ignore_errors=True)
        with suppress(shutil.Error):  # a pipe, or what else was put there, cannot be copied
            shutil.copytree(
                folder, evidence, symlinks=True, ignore=shutil.ignore_patterns("bounds-checked"), dirs_exist_ok=True
            )
        (evidence / "trouble.txt").write_text(trouble, errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(kind.__name__ for kind in KINDS), help="some kinds, separated by commas")
    parser.add_argument("--jobs", help=f"some of {', '.join(WAYS)}, separated by commas")
    parser.add_argument("--tries", type=int, help="try every kind so often, however long it takes")
    parser.add_argument("--slice", action="store_true", help="a few tries of every kind, half a minute")
    parser.add_argument("--ray", action="store_true", help="also on a Ray cluster of this machine")
    parser.add_argument("--keep", type=Path, default=Path("soak"), help="where to put what was found")
    parser.add_argument("--play-states", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play_states is not None:
        play_states(args.play_states, args.seed)
        return
    names = args.only.split(",")
    shares = sum(KINDS[kind][0] for kind in KINDS if kind.__name__ in names)

    def share(kind: Callable[..., Kind]) -> Share:
        if args.slice or args.tries is not None:
            return (KINDS[kind][1] if args.slice else args.tries), math.inf
        return sys.maxsize, 60 * args.minutes * KINDS[kind][0] / shares

    ways = SLICE if args.slice else tuple(way for way in WAYS if args.ray or not way.endswith("ray"))
    if args.jobs:
        ways = tuple(args.jobs.split(","))
    elif set(names) <= {"states", "memory"}:
        ways = ()
    sys.exit(1 if soak(names, share, args.seed, ways, args.keep.resolve()) else 0)


if __name__ == "__main__":
    main()
