"""Showing searches while they run: a live picture on a terminal, plain lines elsewhere. All on stderr."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from fixfirst.reporter.budget_view import BudgetView
from fixfirst.reporter.screen import sparkline
from fixfirst.reporter.search_results import ranking_table
from fixfirst.runs.layout import WARMUP_KEY
from fixfirst.runs.rows import Trial

if TYPE_CHECKING:
    from fixfirst.searcher.loop import Search
    from fixfirst.searcher.strategy import Choice
    from fixfirst.searcher.trial import Message

SHOWN_ROWS = 8
PLAIN_EVERY_S = 10.0
Point = tuple[int, float, float | None]  # of a training's curve: episodes so far, return, compliance


@dataclass
class _Watched:
    """A search on the screen."""

    search: "Search"
    used_before: int  # episodes of earlier sessions
    running: dict[int, list[Point]] = field(default_factory=dict)  # the curve of each trial
    orders: dict[int, str] = field(default_factory=dict)
    decision: str = ""

    @property
    def used(self) -> int:
        """Training episodes, running trials included."""
        # `search.used` has the warm-up as done.
        began = self.search.trials or (self.running and WARMUP_KEY not in self.running)
        return sum(curve[-1][0] for curve in self.running.values() if curve) + (self.search.used if began else 0)


class SearchView(BudgetView[_Watched]):
    """What the user sees while one search runs, or several: the former in detail, the latter with a line each."""

    # ---- what the searches report

    def begin(self, search: "Search") -> None:
        self._begin(_Watched(search, search.used if search.trials else 0))
        if search.trials:
            used = f"{search.used:,} of {search.config.total_episodes:,} episodes used"
            tell = self.line if self._several else self.say
            tell(self._named(search, f"going on after {len(search.trials)} trials, {used}"))

    def chosen(self, search: "Search", number: int, choice: "Choice") -> None:
        watched = self._watched[search.folder]
        watched.running.pop(WARMUP_KEY, None)
        watched.running[number], watched.orders[number] = [], str(choice.workflow)
        watched.decision = in_words(number, choice)
        self.line(self._named(search, watched.decision))

    def progress(self, search: "Search", number: int, message: "Message") -> None:
        if isinstance(message, str):  # a complaint
            self.say(self._named(search, message))
            return
        if self._quiet:
            return
        watched = self._watched[search.folder]
        watched.orders.setdefault(number, "learning to defend, no order yet")
        point = message[:3]
        watched.running.setdefault(number, []).append(point)
        self._begin_pace()
        self._draw()
        if time.monotonic() - self._said > PLAIN_EVERY_S:
            self.line(self._budget() if self._several else f"{point_in_words(number, point)}; {self._time_left()}")

    def recorded(self, search: "Search", trial: Trial) -> None:
        self._watched[search.folder].running.pop(trial.id, None)
        self.line(self._named(search, f"{trial_in_words(trial)}; {self._budget()}"))
        self._draw()

    def _details(self) -> list[Any]:
        watched = [*self._watched.values()]
        return [_overview(watched)] if self._several else _of_one(watched[0], self._console.width)


def _of_one(watched: _Watched, width: int) -> list[Any]:
    """One search: the latest choice, the running trials, the best orders."""
    lines: list[Any] = [Text(watched.decision, style="dim", no_wrap=True, overflow="ellipsis")]
    for number, curve in watched.running.items():
        text = curve_in_words(number, watched.orders[number], curve)
        lines.append(Text(text, no_wrap=True, overflow="ellipsis"))
    found = watched.search.standings()
    if found is not None:
        lines.append(ranking_table(found.ranking, watched.search.trials, width, SHOWN_ROWS))
    return lines


def _overview(searches: list[_Watched]) -> Table:
    """Several: how far each is, and its best order."""
    lines = Table.grid(padding=(0, 2))
    for watched in searches:
        search, running = watched.search, watched.running
        now = "learning to defend" if WARMUP_KEY in running else f"{len(search.trials)} trials, {len(running)} running"
        share = f"{100 * watched.used / search.config.total_episodes:.0f} %"
        found = search.standings()
        first = None if found is None else found.ranking.rows[0]
        best = "" if first is None else f"{first.mean:.1f}  {first.workflow}"
        lines.add_row(search.folder.name, share, now, Text(best, no_wrap=True, overflow="ellipsis"))
    return lines


# ---------------------------------------------------------------- words


def trial_name(number: int) -> str:
    return "warm-up" if number == WARMUP_KEY else f"trial {number}"


def in_words(number: int, choice: "Choice") -> str:
    """Why an order was chosen."""
    if not choice.top:
        return f"trial {number}: {choice.workflow} ({choice.how})"
    best = choice.top[0]
    return f"trial {number}: {choice.workflow} (expects {best.mean:.1f} ± {best.std:.1f}, so at best {best.ucb:.1f})"


def trial_in_words(trial: Trial) -> str:
    """What became of a trial."""
    if trial.return_mean is None:
        return f"trial {trial.id}: {trial.status}"
    kept = "no judged repair" if trial.compliance is None else f"compliance {100 * trial.compliance:.1f} %"
    earned = f"return {trial.return_mean:.2f} ± {trial.return_se or 0.0:.2f}"
    return f"trial {trial.id}: {trial.status}, {earned}, {kept}, {trial.episodes:,} episodes"


def point_in_words(number: int, point: Point) -> str:
    """How far a running trial is."""
    episodes, reward, compliance = point
    kept = "" if compliance is None else f", compliance {100 * compliance:.1f} %"
    return f"{trial_name(number)}: {episodes:,} episodes, return {reward:.1f}{kept}"


def curve_in_words(number: int, order: str, curve: list[Point]) -> str:
    """A running trial: its order, its returns as a sparkline, its latest numbers."""
    if not curve:
        return f"{trial_name(number)} begins: {order}"
    episodes, reward, compliance = curve[-1]
    kept = "" if compliance is None else f", compliance {100 * compliance:.0f} %"
    return f"{trial_name(number)} {sparkline([r for _, r, _ in curve])} {reward:.1f}{kept}, {episodes:,} episodes: {order}"
