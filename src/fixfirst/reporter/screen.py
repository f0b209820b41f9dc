"""Telling the user how far we are: a live picture on a terminal, a plain line every few seconds elsewhere. All on stderr."""

import statistics
import textwrap
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fixfirst.base.errors import printable
from fixfirst.runs.lock import duration

PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.2
PACE_AFTER_S = 3.0  # before that, what is left would be a guess
NARROW = 20  # characters in which an order takes three lines
PLAIN_WIDTH = 240  # of tables that go to a file: room for an order of 13 hosts
SPARKS = "▁▂▃▄▅▆▇█"


class PatientConsole(Console):
    """A console whose reader may go away. Rich would end the program; but work of which progress was shown goes on."""

    def on_broken_pipe(self) -> None:
        if not self.stderr:
            raise BrokenPipeError
        self.quiet = True


class Screen:
    """Where progress goes: a live picture on a terminal, lines elsewhere, nothing if quiet. A `with` block."""

    def __init__(self, *, quiet: bool = False):
        self._console = PatientConsole(stderr=True)
        self._quiet = quiet
        is_live = self._console.is_terminal and not quiet
        self._live = Live(console=self._console, refresh_per_second=1 / LIVE_EVERY_S, transient=True) if is_live else None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(
            f"fixfirst: {printable(text)}", highlight=False, markup=False, soft_wrap=not self._console.is_terminal
        )

    def line(self, text: str) -> None:
        """A line of progress, where there is no picture."""
        if self._live is None and not self._quiet:
            self._said = time.monotonic()
            self.say(text)


class Pace:
    """How fast episodes go by, from the first report on: to start and to compile takes long, and only once."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None  # when, and how many were done

    @property
    def has_begun(self) -> bool:
        """Was there a first report?"""
        return self._first is not None

    def rate(self, done: int) -> float | None:
        """Episodes per second; None as long as that says nothing. The first call with any done is the first report."""
        now = time.monotonic()
        if done <= 0:
            return None
        since, before = self._first = self._first or (now, done)
        return (done - before) / (now - since) if now - since >= PACE_AFTER_S and done > before else None


class Progress(Screen):
    """How much of a total is done, and a curve. Costs nothing between two pictures."""

    def __init__(self, total: int, *, quiet: bool = False):
        super().__init__(quiet=quiet)
        self.total = total
        self._every_s = PLAIN_EVERY_S if self._live is None else LIVE_EVERY_S
        self._pace = Pace()
        self._curve: list[float] = []

    def point(self, value: float) -> None:
        """The next point of the curve."""
        self._curve.append(value)

    def due(self) -> bool:
        """Is it time for another picture?"""
        return not self._quiet and time.monotonic() - self._said >= self._every_s

    def show(self, done: int, facts: str) -> None:
        """How many episodes of the total are done, and what is worth knowing."""
        if self._quiet:
            return
        self._said = time.monotonic()
        rate = self._pace.rate(done)
        left = f", {duration((self.total - done) / rate)} left" if rate else ""
        if self._live is None:
            speed = f", {rate:,.0f}/s" if rate else ""
            self.say(f"{done:,}/{self.total:,} episodes{speed}{left} | {facts}")
            return
        bar = budget_bar(done, self.total, f"{done:,}/{self.total:,}{left}")
        line = Text(f"{sparkline(self._curve)} {facts}" if self._curve else facts, no_wrap=True, overflow="ellipsis")
        self._live.update(Group(bar, line))


def results() -> Console:
    """Where tables of results go: stdout, as wide as the terminal."""
    console = PatientConsole()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def prose(console: Console, text: str) -> None:
    """Text on a console: on a terminal broken between words, elsewhere one line however long."""
    console.print(text, soft_wrap=not console.is_terminal, highlight=False)


def folded(lines: Sequence[str], width: int) -> str:
    """Lines within a width, broken between words."""
    fill = textwrap.TextWrapper(width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False).fill
    return "\n".join(fill(line) if len(line) > width else line for line in lines)


def fitted(lines: Sequence[str]) -> str:
    """Lines for stdout: in a terminal as wide as that, elsewhere as long as they are."""
    console = results()
    return folded(lines, console.width) if console.is_terminal else "\n".join(lines)


def budget_bar(done: int, total: int, text: str) -> Table:
    """A bar across the terminal with numbers at its end."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(ratio=1, min_width=8)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_row(ProgressBar(total=total, completed=done), text)
    return grid


def fitting_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, cut: str = "order") -> Table:
    """A table within `width`: where it does not suffice, the column `cut` takes up to three lines, broken between words;
    then the last columns are left out, and at last that column takes as many lines as it needs.

    Columns up to that one are aligned left, the others are numbers.
    """
    needs = [2 + max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]  # 2: the space around
    left = columns.index(cut) + 1
    narrow = min(needs[left - 1], 2 + NARROW)
    while sum(needs) - needs[left - 1] + narrow > width and len(needs) > left + 1:
        needs.pop()
    words = max(len(word) for row in (columns, *rows) for word in row[left - 1].split())
    needs[left - 1] = max(2 + words, needs[left - 1] - max(0, sum(needs) - width))
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for place, room in enumerate(needs):
        justify: Literal["left", "right"] = "left" if place < left else "right"
        wraps = place == left - 1
        table.add_column(columns[place], justify=justify, no_wrap=not wraps, overflow="fold", width=room - 2)
    for cells in rows:
        table.add_row(*map(Text, cells[: len(needs)]))
    return table


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """A curve as blocks, each the mean of its share of the values. The top of the scale is the highest block; what lies far
    below the middle, as the first episodes of a training do, is cut off so that the rest can be seen."""
    if not values:
        return ""
    cuts = [round(i * len(values) / width) for i in range(width + 1)] if len(values) > width else range(len(values) + 1)
    blocks = [statistics.fmean(values[a:b]) for a, b in pairwise(cuts)]
    high, middle = max(blocks), statistics.median(blocks)
    low = max(min(blocks), middle - 3 * (high - middle))
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((max(block, low) - low) * scale)] for block in blocks)
