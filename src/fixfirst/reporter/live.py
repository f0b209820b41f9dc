"""Work while it runs, on stderr: a live picture on a terminal, a plain line every few seconds elsewhere."""

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fixfirst.base import errors
from fixfirst.base.tables import duration
from fixfirst.reporter.screen import PatientConsole

PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.2
PACE_AFTER_S = 3.0  # before that, what is left would be a guess
SPARKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """Draw a curve as blocks, each the mean of its share of the values.

    The top of the scale is the highest block; what lies far below the middle, as the first episodes of a training do, is
    cut off so that the rest can be seen.
    """
    if not values:
        return ""
    cuts = [round(i * len(values) / width) for i in range(width + 1)] if len(values) > width else range(len(values) + 1)
    blocks = [statistics.fmean(values[a:b]) for a, b in pairwise(cuts)]
    high, middle = max(blocks), statistics.median(blocks)
    low = max(min(blocks), middle - 3 * (high - middle))
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((max(block, low) - low) * scale)] for block in blocks)


class Pace:
    """How fast a count goes up, from the first report on: to start and to compile takes long, and only once."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None  # when, and how many were done

    def rate(self, done: int) -> float | None:
        """Return how many per second; None as long as that says nothing. The first call with any done starts the clock."""
        now = time.monotonic()
        if done <= 0:
            return None
        since, before = self._first = self._first or (now, done)
        return (done - before) / (now - since) if now - since >= PACE_AFTER_S and done > before else None

    def left(self, done: int, missing: int) -> str:
        """Say how long the rest will take, to be put behind a count; empty as long as that is not known."""
        rate = self.rate(done)
        return f", {duration(missing / rate)} left" if rate and missing > 0 else ""


class ProgressLine:
    """How much of a total is done, and a line with a curve for each thing at work. A `with` block.

    Nothing is shown if quiet, but what `say` says. Costs nothing between two pictures.
    """

    def __init__(self, total: int = 0, *, quiet: bool = False, plain_every_s: float = PLAIN_EVERY_S):
        self.total, self.pace = total, Pace()
        self._console = PatientConsole(stderr=True)
        self._quiet = quiet
        is_live = self._console.is_terminal and not quiet
        self._live = Live(console=self._console, refresh_per_second=1 / LIVE_EVERY_S, transient=True) if is_live else None
        self._every_s = LIVE_EVERY_S if is_live else plain_every_s
        self._last = time.monotonic()
        self._curve: list[float] = []

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line that stays, quiet or not."""
        line = f"fixfirst: {errors.printable(text)}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=not self._console.is_terminal)

    def line(self, text: str) -> None:
        """Print a line of progress, where there is no picture."""
        if self._live is None and not self._quiet:
            self._last = time.monotonic()
            self.say(text)

    def point(self, value: float) -> None:
        """Add a point to the curve."""
        self._curve.append(value)

    def due(self) -> bool:
        """Is it time for another picture?"""
        return not self._quiet and time.monotonic() - self._last >= self._every_s

    def show(self, done: int, facts: str, lines: Sequence[str] = (), *, before: int = 0) -> None:
        """Show how many episodes of the total are done, and what is worth knowing; lines: below the bar, instead.

        before: episodes of earlier sessions, which say nothing about the pace.
        """
        if self._quiet:
            return
        self._last = time.monotonic()
        rate, left = self.pace.rate(done - before), self.pace.left(done - before, self.total - done)
        if self._live is None:
            speed = f", {rate:,.0f}/s" if rate else ""
            self.say(f"{done:,}/{self.total:,} episodes{speed}{left} | {facts}")
            return
        grid = Table.grid(padding=(0, 1), expand=True)  # a bar across the terminal with numbers at its end
        grid.add_column(ratio=1, min_width=8)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(ProgressBar(total=self.total, completed=done), f"{done:,}/{self.total:,}{left}")
        curve = f"{sparkline(self._curve)} " if self._curve else ""
        below = (Text(line, no_wrap=True, overflow="ellipsis") for line in lines or [f"{curve}{facts}"])
        self._live.update(Group(grid, *below))
