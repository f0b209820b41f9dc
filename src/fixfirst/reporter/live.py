"""Work while it runs, on stderr: a live picture on a terminal, a plain line every few seconds elsewhere.

Searches, one or several, of either kind, say how far they are as `searcher/search.py: View` has it.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fixfirst.base import errors
from fixfirst.base.tables import duration
from fixfirst.reporter.screen import PatientConsole
from fixfirst.reporter.texts import some
from fixfirst.runs import layout
from fixfirst.runs.rows import Trial, UpdateRow
from fixfirst.stats.answer import short_order

if TYPE_CHECKING:
    from fixfirst.searcher.jobs import Message
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.searcher.search import Search
    from fixfirst.searcher.shared import SharedSearch
    from fixfirst.searcher.strategy import Choice

PLAIN_EVERY_S = 5.0
SEARCH_EVERY_S = 10.0
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


@dataclass
class _Watched:
    """A search on the screen. Trainings have numbers, as the search says."""

    search: "Search"
    used_before: int = 0  # episodes of earlier sessions
    trained_before: int = 0  # episodes of a training before it is given orders
    phase: str = "learning to defend, no order yet"
    curves: dict[int, list[float]] = field(default_factory=dict)  # returns of each running training
    episodes: dict[int, int] = field(default_factory=dict)  # of each training
    orders: dict[int, str] = field(default_factory=dict)  # of trainings that have one of their own
    measuring: str = ""  # what is done after the search's own training
    measured: dict[int, int] = field(default_factory=dict)  # of that, by each job: orders, or episodes of attackers
    to_measure: int = 0
    ended: bool = False
    pace: Pace = field(default_factory=Pace)  # of these

    @property
    def used(self) -> int:
        """Training episodes, running trainings included."""
        return max(sum(self.episodes.values()), self.used_before)

    def line(self, number: int) -> str:
        """Return a running training in a line: its curve, how far it is, its order."""
        curve, order = self.curves[number], self.orders.get(number)
        name = "warm-up" if number == layout.WARMUP_KEY else f"training {number}" if order is None else f"trial {number}"
        far = f"{name} {sparkline(curve)} {curve[-1]:.1f}, {self.episodes[number]:,} episodes"
        return far if order is None else f"{far}: {order}"

    def describe_measuring(self) -> str:
        """Say how far cross-play or attackers are, and how long the rest will take."""
        done = sum(self.measured.values())
        far = f", {done:,} of {self.to_measure:,} done" if done else ""
        return f"{self.measuring}{far}{self.pace.left(done, self.to_measure - done)}"


class SearchView(ProgressLine):
    """What the user sees while searches run.

    follow: is given every update: the run, the training episodes of all runs so far, the number of the training.
    """

    def __init__(
        self,
        *,
        several: bool = False,
        quiet: bool = False,
        follow: Callable[[Path, int, int, UpdateRow], None] = lambda run, used, number, update: None,
    ):
        super().__init__(quiet=quiet, plain_every_s=SEARCH_EVERY_S)
        self._several, self._follow = several, follow
        self._watched: dict[Path, _Watched] = {}

    def begin(self, search: "Search") -> None:
        """A search is to be run, or goes on."""
        self._watched[search.folder] = _Watched(search)
        self.total += search.config.total_episodes

    def end(self, search: "Search") -> None:
        """A search has ended: nothing more is shown of it."""
        watched = self._watched[search.folder]
        watched.ended = True
        if self._several:
            ended = sum(each.ended for each in self._watched.values())
            result = f": {search.in_words}" if search.in_words else ""
            self._event(watched, f"finished, {ended} of {len(self._watched)}{result}")

    def chosen(self, search: "PublishedSearch", number: int, choice: "Choice") -> None:
        """A trial begins: the training of one order."""
        watched = self._watched[search.folder]
        if not watched.orders:  # the first one of this session: all before it counts as done
            done = f"{some(number, 'trial')}, {search.used:,} of {search.config.total_episodes:,} episodes used"
            self._resumed(watched, number, done)
            watched.curves.pop(layout.WARMUP_KEY, None)
            watched.episodes[layout.WARMUP_KEY] = search.used
        watched.orders[number] = str(choice.workflow)
        reason = str(choice.how)
        if choice.top:
            best = choice.top[choice.workflow]
            reason = f"expects {best.mean:.1f} ± {best.std:.1f}, so at best {choice.ucb(choice.workflow):.1f}"
        self._event(watched, f"trial {number}: {choice.workflow} ({reason})")

    def round_begins(self, search: "SharedSearch", number: int, choices: Sequence["Choice"]) -> None:
        """A round begins, in which all trainings are given these orders."""
        watched, rounds = self._watched[search.folder], search.config.budget.num_rounds
        if not watched.trained_before:
            self._resumed(watched, number - 1, f"round {number - 1} of {rounds}")
        watched.trained_before = search.config.budget.base
        used, before = self._used()
        left = self.pace.left(used - before, self.total - used)
        best = ""
        if search.rounds:
            means = search.values().mean(axis=0)
            order = max(range(len(means)), key=lambda order: means[order])
            best = f"; best so far {short_order(str(search.orders[order]), search.idle)}, {means[order]:.1f}"
        self._event(watched, f"round {number} of {rounds}{left}: {some(len(choices), 'order')}{best}")

    def measuring(self, search: "Search", what: str, count: int) -> None:
        """Something begins after the search's own training, of which there is so much to do."""
        watched = self._watched[search.folder]
        watched.measuring, watched.measured, watched.to_measure, watched.pace = what, {}, count, Pace()
        watched.curves.clear()
        self._event(watched, watched.describe_measuring())

    def recorded(self, search: "PublishedSearch", trial: Trial) -> None:
        """A trial is done."""
        watched = self._watched[search.folder]
        watched.curves.pop(trial.id, None)
        watched.episodes[trial.id] = trial.episodes
        watched.phase = f"trial {trial.id}: {trial.status}"
        if trial.return_mean is not None:
            rate = "no judged repair" if trial.compliance is None else f"compliance {100 * trial.compliance:.1f} %"
            watched.phase += f", return {trial.return_mean:.2f} ± {trial.return_se or 0.0:.2f}, {rate}"
            watched.phase += f", {trial.episodes:,} episodes"
        self._show(watched)

    def progress(self, search: "Search", number: int, message: "Message") -> None:
        """A job says how far it is, or what went wrong."""
        watched = self._watched[search.folder]
        if isinstance(message, str):
            return self.say(self._named(watched, message))
        if isinstance(message, UpdateRow):
            watched.episodes[number] = watched.trained_before + message.episodes
            watched.curves.setdefault(number, []).append(message.env_reward)
            used, _ = self._used()
            self.pace.rate(used)  # the first report starts the clock
            self._follow(search.folder, used, number, message)
        else:
            watched.measured[number] = message.done
            watched.phase = watched.describe_measuring()
        if self.due():
            self._show(watched)

    def _named(self, watched: _Watched, text: str) -> str:
        return f"{watched.search.folder.name}: {text}" if self._several else text

    def _used(self) -> tuple[int, int]:
        """Return the episodes of all searches, and how many of them are of earlier sessions."""
        return sum(each.used for each in self._watched.values()), sum(each.used_before for each in self._watched.values())

    def _resumed(self, watched: _Watched, done: int, text: str) -> None:
        """Say that a search goes on, if something was done in an earlier session."""
        if done:
            watched.used_before = 0 if watched.episodes else watched.search.used
            self.say(self._named(watched, f"going on after {text}"))

    def _event(self, watched: _Watched, phase: str) -> None:
        """Say what a search does now; the picture says so, too."""
        watched.phase = phase
        if self._live is None and not self._quiet:
            self._last = time.monotonic()
            self.say(self._named(watched, phase))

    def _show(self, watched: _Watched) -> None:
        lines = []
        for each in self._watched.values():
            if each.episodes and not each.ended:
                lines += [self._named(each, each.phase), *(each.line(number) for number in sorted(each.curves))]
        used, before = self._used()
        self.show(used, self._named(watched, watched.phase), lines, before=before)
