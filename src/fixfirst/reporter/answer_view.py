"""Showing searches with one network for all orders while they run: a live picture on a terminal, plain lines elsewhere."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fixfirst.reporter.budget_view import BudgetView
from fixfirst.reporter.screen import Pace, sparkline
from fixfirst.runs.lock import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fixfirst.searcher.shared import SharedSearch
    from fixfirst.searcher.strategy import Choice
    from fixfirst.searcher.trial import Message

PLAIN_EVERY_S = 10.0


@dataclass
class _Watched:
    """A search on the screen."""

    search: "SharedSearch"
    used_before: int  # episodes of earlier sessions
    curves: dict[int, list[float]] = field(default_factory=dict)  # returns of each replicate
    episodes: dict[int, int] = field(default_factory=dict)  # of each replicate
    phase: str = "learning to defend, no order yet"
    measured: dict[int, int] = field(default_factory=dict)  # orders of each replicate, by cross-play
    pace: Pace = field(default_factory=Pace)  # of these

    @property
    def used(self) -> int:
        """Training episodes of all replicates."""
        return max(sum(self.episodes.values()), self.search.used)

    def measuring(self) -> str:
        """How far cross-play is, and how long the rest will take."""
        orders, done = len(self.search.known()), sum(self.measured.values())
        total, rate = orders * self.search.config.replicates, self.pace.rate(done)
        far = f", {done} of {total} done" if done else ""
        left = f", {duration((total - done) / rate)} left" if rate else ""
        return f"measuring {orders} orders by cross-play{far}{left}"


class AnswerView(BudgetView[_Watched]):
    """What the user sees while such searches run."""

    # ---- what the searches report

    def begin(self, search: "SharedSearch") -> None:
        self._begin(_Watched(search, search.used))
        if search.rounds and search.answer is None:
            self.say(self._named(search, f"going on after round {search.rounds} of {search.config.num_rounds}"))

    def round_begins(self, search: "SharedSearch", number: int, choices: "Sequence[Choice]") -> None:
        watched = self._watched[search.folder]
        names = ", ".join(str(choice.workflow) for choice in choices[:3])
        more = f" and {len(choices) - 3} more" if len(choices) > 3 else ""
        watched.phase = f"round {number} of {search.config.num_rounds}: {names}{more} ({choices[0].how})"
        self.line(self._named(search, watched.phase))
        self._draw()

    def crossing(self, search: "SharedSearch") -> None:
        watched = self._watched[search.folder]
        watched.phase = watched.measuring()
        self.line(self._named(search, watched.phase))
        self._draw()

    def progress(self, search: "SharedSearch", number: int, message: "Message") -> None:
        if isinstance(message, str):  # a complaint
            self.say(self._named(search, message))
            return
        if self._quiet:
            return
        watched = self._watched[search.folder]
        if message.orders:
            watched.measured[number] = message.orders
            watched.phase = watched.measuring()
        else:
            before = search.config.base_budget if search.idle or search.rounds else 0
            watched.episodes[number] = before + message.episodes
            watched.curves.setdefault(number, []).append(message.env_reward)
            self._begin_pace()
        self._draw()
        if time.monotonic() - self._said > PLAIN_EVERY_S:
            far = "" if message.orders else f"; {self._budget()}"
            self.line(f"{self._named(search, watched.phase)}{far}")

    def _time_left(self) -> str:
        """Of training, at the end of the bar; how long measuring takes stands below."""
        measured = all(watched.measured for watched in self._watched.values())
        return "trained" if measured else super()._time_left()

    def _details(self) -> list[Any]:
        lines: list[Any] = []
        for watched in self._watched.values():
            text = self._named(watched.search, watched.phase)
            lines.append(Text(text, style="dim", no_wrap=True, overflow="ellipsis"))
            for number, curve in sorted(watched.curves.items()):
                text = f"training {number} {sparkline(curve)} {curve[-1]:.1f}, {watched.episodes[number]:,} episodes"
                lines.append(Text(text, no_wrap=True, overflow="ellipsis"))
        return lines
