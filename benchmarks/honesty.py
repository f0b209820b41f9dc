"""How often does a search say what is false? Many searches of all lengths, against a truth that is known.

    python benchmarks/honesty.py searches.csv [--searches 400] [--minutes 60]
    python benchmarks/honesty.py searches.csv --table

Searches of 3,000 to 1,150,000 episodes, 1 to 8 replicates, many seeds, against both red agents; of every budget equal
shares, so that an early table has them all. Each adds a line to the file as it ends; begun again, the script goes on with
those that are not there yet. --minutes: begin no search later.

The truth: what six searches of the default budget say together (docs/tables.md). A rule is wrong if it names a swap that
is worth nothing, or leaves out the one that matters; an interval misses if it lies outside what is known of the true price.
The table counts both, by budget, among the searches that give an answer; all others say "No answer yet".
"""

import argparse
import csv
import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fixfirst as ff
from fixfirst.stats.answer import Answer

# (first, second) -> between what the true price lies; every other swap is within ELSE of nothing.
TRUTH = {("b_line", "enterprise", "user"): (4.01, 4.12)}
ELSE = {"b_line": 0.09, "meander": 0.22}
# How a search measures what it has trained: briefly where its budget gives no answer, whatever is measured.
BRIEFLY = {"rounds": 3, "selection_episodes": 20, "watch_episodes": 100}
FULLY = {"selection_episodes": 100, "measure_episodes": 4_000}
RULES = {"b_line": "Fix enterprise before user", "meander": "No "}  # how a right answer begins
# (episodes, replicates, share of the searches); 0 replicates: as many as is usual.
PLAN = (
    (3_000, 0, 110), (3_000, 1, 30), (3_000, 8, 20),
    (10_000, 0, 90), (10_000, 1, 30), (10_000, 2, 20),
    (30_000, 0, 30), (30_000, 1, 12),
    (100_000, 0, 8), (100_000, 1, 6),
    (260_000, 3, 30), (300_000, 3, 6), (300_000, 1, 4), (1_150_000, 8, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One search, and what it said."""

    red_agent: str
    episodes: int
    replicates: int
    seed: int
    settled: int
    rule: str
    wrong_rule: int
    intervals: int
    missed: int
    seconds: float  # of a processor


def judge(answer: Answer) -> tuple[int, int, int]:
    """Is its rule wrong; how many intervals does it give; is there one that misses?"""
    red = answer.red_agent
    wrong = answer.is_settled and not answer.rule.startswith(RULES[red])
    given = [swap for swap in answer.swaps if swap.low is not None and swap.high is not None]
    missed = 0
    for swap in given:
        low, high = TRUTH.get((red, swap.first, swap.second), (-ELSE[red], ELSE[red]))
        assert swap.low is not None and swap.high is not None
        missed += swap.high < low or swap.low > high
    return int(wrong), len(given), int(missed > 0)


def planned(searches: int) -> list[tuple[str, int, int, int]]:
    """Return red agent, episodes, replicates and seed of every search."""
    whole = sum(share for _, _, share in PLAN)
    places = []
    for episodes, replicates, share in PLAN:
        count = max(round(searches * share / whole), 2)
        for number in range(count):
            one = ("b_line", "meander")[number % 2], episodes, replicates, number // 2
            places.append(((number + 0.5) / count, one))
    return [one for _, one in sorted(places)]


def run(red_agent: str, episodes: int, replicates: int, seed: int) -> Row:
    """Search once."""
    began = time.process_time()
    settings: dict[str, Any] = {"red_agent": red_agent, "total_episodes": episodes, "replicates": replicates, "seed": seed}
    settings |= FULLY if ff.search_config(**settings).budget.can_settle else BRIEFLY
    with TemporaryDirectory() as scratch:
        answer = ff.search(**settings, out=Path(scratch) / "run", quiet=True, report=False, workers=1).answer
    assert answer is not None
    said = (int(answer.is_settled), answer.rule, *judge(answer))
    return Row(red_agent, episodes, replicates, seed, *said, round(time.process_time() - began, 1))


def read(path: Path) -> list[Row]:
    """Return the searches that are there."""
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in fields(Row)}
    with path.open(newline="") as file:
        return [Row(**{name: kinds[name](cell) for name, cell in row.items()}) for row in csv.DictReader(file)]


def table(rows: list[Row]) -> str:
    """Write a line per budget."""
    lines = ["| episodes | searches | with an answer | wrong rules | answers with an interval that misses |"]
    lines.append("|---|---|---|---|---|")
    groups = [
        (f"{episodes:,}", [row for row in rows if row.episodes == episodes])
        for episodes in sorted({r.episodes for r in rows})
    ]
    for name, group in [*groups, ("all", rows)]:
        given = [row for row in group if row.intervals]
        wrong, missed = sum(row.wrong_rule for row in group), sum(row.missed for row in given)
        lines.append(f"| {name} | {len(group)} | {sum(row.settled for row in group)} | {wrong} | {missed} of {len(given)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--searches", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument(
        "--part", default="0/1", help="only every n-th search, e.g. 1/2, to run several of these side by side"
    )
    parser.add_argument("--table", action="store_true", help="print the table of what is there, and search no more")
    args = parser.parse_args()
    began, rows, (part, parts) = time.monotonic(), read(args.file), map(int, args.part.split("/"))
    if not args.table:
        there = {(row.red_agent, row.episodes, row.replicates, row.seed) for row in rows}
        is_new = not args.file.exists()
        with args.file.open("a", newline="", buffering=1) as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Row)])
            if is_new:
                writer.writeheader()
            for number, one in enumerate(planned(args.searches)):
                if one in there or number % parts != part:
                    continue
                if time.monotonic() - began > 60 * args.minutes:
                    break
                rows.append(run(*one))
                writer.writerow(asdict(rows[-1]))
                print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
