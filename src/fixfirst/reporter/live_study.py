"""Showing a study: a line per search while it runs, and in the end what its seeds say together. Progress goes to stderr."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fixfirst.reporter.live_search import PLAIN_EVERY_S, in_words, trial_in_words, verdict_in_words
from fixfirst.reporter.screen import LIVE_EVERY_S, Screen, budget_bar, duration, fitting_table, results
from fixfirst.searcher.loop import WARMUP_KEY, Search
from fixfirst.searcher.strategy import Choice
from fixfirst.searcher.study import Comparison, OrderAcrossSeeds, Study, compare

SHOWN_ORDERS = 20
COLUMNS = ("", "order", "mean return", "95 % interval", "tried", "accepted", "maybe best")


class StudyView(Screen):
    """What the user sees while several searches run (see `experiment.View`)."""

    def __init__(self, *, quiet: bool = False):
        super().__init__(quiet=quiet)
        self._searches: list[Search] = []
        self._running: dict[Path, dict[int, int]] = {}  # episodes so far, by search and trial
        self._best: dict[Path, str] = {}
        self._drawn = self._started
        self._used_before = 0

    def begin(self, search: Search) -> None:
        self._searches.append(search)
        self._running[search.folder] = {}
        self._used_before += search.used if search.trials else 0
        self._note_best(search)
        if search.trials:
            used = f"{search.used:,} of {search.config.total_episodes:,} episodes used"
            self.line(f"{search.folder.name}: going on after {len(search.trials)} trials, {used}")

    def chosen(self, search: Search, number: int, choice: Choice) -> None:
        self._running[search.folder].pop(WARMUP_KEY, None)
        self._running[search.folder][number] = 0
        self.line(f"{search.folder.name}: {in_words(number, choice)}")

    def progress(self, search: Search, number: int, message: Any) -> None:
        kind, content = message
        if kind == "complaint":
            self.say(f"{search.folder.name}: {content}")
            return
        self._running[search.folder][number] = content[0]
        self._draw()
        if time.monotonic() - self._said > PLAIN_EVERY_S:
            self.line(self._budget())

    def recorded(self, search: Search, trial: dict[str, Any]) -> None:
        self._running[search.folder].pop(int(trial["id"]), None)
        self._note_best(search)
        self.line(f"{search.folder.name}: {trial_in_words(trial)}; {self._budget()}")
        self._draw()

    def _note_best(self, search: Search) -> None:
        """Kept between pictures: ranking takes longer than drawing."""
        found = search.standings() if self._live is not None else None
        if found is not None:
            first = found.ranking.rows[0]
            self._best[search.folder] = f"{first.mean:.1f}  {first.workflow}"

    # ---- the live picture

    def _used(self, search: Search) -> int:
        """Training episodes, running trials included."""
        running = self._running[search.folder]
        began = search.trials or (running and WARMUP_KEY not in running)  # `search.used` has the warm-up as done
        return sum(running.values()) + (search.used if began else 0)

    def _budget(self) -> str:
        used, total = (sum(map(count, self._searches)) for count in (self._used, lambda s: s.config.total_episodes))
        done = used - self._used_before
        left = duration((time.monotonic() - self._started) * (total - used) / done) if done else "time"
        return f"{used:,}/{total:,} episodes of {len(self._searches)} searches, {left} left"

    def _draw(self) -> None:
        if self._live is not None and time.monotonic() - self._drawn > LIVE_EVERY_S:
            self._drawn = time.monotonic()
            self._live.update(self._picture())

    def _picture(self) -> Group:
        used, total = sum(map(self._used, self._searches)), sum(s.config.total_episodes for s in self._searches)
        head = budget_bar(used, total, self._budget())
        lines = Table.grid(padding=(0, 2))
        for search in self._searches:
            running = self._running[search.folder]
            now = "learning to defend" if WARMUP_KEY in running else f"{len(search.trials)} trials, {len(running)} running"
            share = f"{100 * self._used(search) / search.config.total_episodes:.0f} %"
            best = Text(self._best.get(search.folder, ""), no_wrap=True, overflow="ellipsis")
            lines.add_row(search.folder.name, share, now, best)
        return Group(head, lines)


# ---------------------------------------------------------------- the result


def print_study(study: Study) -> None:
    """The final tables on stdout."""
    console = results()
    config = study.searches[0].config
    used = sum(search.used for search in study.searches)
    console.print(
        f"{len(study.searches)} searches, {sum(len(s.trials) for s in study.searches)} trials, {used:,} training episodes, "
        f"variant {config.variant}",
        soft_wrap=True,
    )
    for comparison in compare(study.searches):
        _print_comparison(console, comparison)
    console.print(f"policies: {study.folder}/*/best\nnext:     fixfirst evaluate {study.searches[0].folder}", soft_wrap=True)


def _print_comparison(console: Console, comparison: Comparison) -> None:
    seeds = len(comparison.best)
    console.print(f"\nred agent {comparison.red_agent}, {seeds} seeds", style="bold")
    for best in comparison.best:
        found = "no order passed the gate" if best.workflow is None else f"{best.mean:.2f}  {best.workflow}"
        console.print(f"seed {best.seed}: best {found}", soft_wrap=True, highlight=False)
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS}
    for place, row in enumerate(comparison.orders[:SHOWN_ORDERS], start=1):
        cells = (f"{place}{'*' if row.workflow in marked else ' '}", str(row.workflow), *_cells(row, seeds))
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    console.print(fitting_table(columns, console.width))
    if (more := len(comparison.orders) - SHOWN_ORDERS) > 0:
        console.print(f"... and {more} more orders; --json lists all")
    console.print(verdict(comparison), soft_wrap=True)


def _cells(row: OrderAcrossSeeds, seeds: int) -> list[str]:
    mean = "-" if row.mean is None else f"{row.mean:.2f}"
    interval = "-" if row.low is None else f"[{row.low:.2f}, {row.high:.2f}]"
    return [mean, interval, *(f"{count}/{seeds}" for count in (row.tried, row.accepted, row.maybe_best))]


def verdict(comparison: Comparison) -> str:
    """How sure the seeds together are of the winner."""
    if comparison.ranking is None:
        return "No order was accepted under two seeds: the spread between seeds is unknown, and nothing is claimed."
    measured = f"spread between seeds {comparison.spread:.2f}, measured with {comparison.freedom} degrees of freedom"
    return f"Over seeds: {verdict_in_words(comparison.ranking)} ({measured})"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best
    best = [asdict(row) | {"workflow": row.workflow and str(row.workflow)} for row in comparison.best]
    orders = [
        asdict(row) | {"workflow": str(row.workflow), "pooled_maybe_best": row.workflow in marked}
        for row in comparison.orders
    ]
    return {
        "red_agent": comparison.red_agent,
        "seeds": best,
        "spread": comparison.spread,
        "freedom": comparison.freedom,
        "verdict": verdict(comparison),
        "orders": orders,
    }
