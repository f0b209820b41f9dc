"""What all views of searches share: the episode budget, how long the rest will take, a live picture that is drawn anew."""

import time
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.console import Group

from fixfirst.reporter.screen import LIVE_EVERY_S, Pace, Screen, budget_bar
from fixfirst.runs.lock import duration


class Watched(Protocol):
    """A search on the screen."""

    search: Any
    used_before: int  # episodes of earlier sessions

    @property
    def used(self) -> int:
        """Training episodes, running ones included."""
        ...


W = TypeVar("W", bound=Watched)


class BudgetView(Screen, Generic[W]):
    """One search, or several."""

    def __init__(self, *, several: bool = False, quiet: bool = False):
        super().__init__(quiet=quiet)
        self._several = several
        self._watched: dict[Path, W] = {}
        self._drawn = -LIVE_EVERY_S
        self._pace = Pace()

    def _begin(self, watched: W) -> None:
        self._watched[watched.search.folder] = watched

    def _named(self, search: Any, text: str) -> str:
        return f"{search.folder.name}: {text}" if self._several else text

    # ---- the budget

    def _counts(self) -> tuple[int, int]:
        """Training episodes so far, and in all."""
        watched = self._watched.values()
        return sum(one.used for one in watched), sum(one.search.config.total_episodes for one in watched)

    def _budget(self) -> str:
        used, total = self._counts()
        whose = f"of {len(self._watched)} searches" if self._several else "used"
        return f"{used:,}/{total:,} episodes {whose}, {self._time_left()}"

    def _begin_pace(self) -> None:
        """With every report, since the first one starts the clock; the others come by the hundred."""
        if not self._pace.has_begun:
            self._rate()

    def _rate(self) -> float | None:
        """Episodes per second in this session."""
        return self._pace.rate(sum(one.used - one.used_before for one in self._watched.values()))

    def _time_left(self) -> str:
        used, total = self._counts()
        rate = self._rate()
        return f"{duration((total - used) / rate)} left" if rate else "time left unknown"

    # ---- the live picture

    def _draw(self) -> None:
        if self._live is not None and time.monotonic() - self._drawn >= LIVE_EVERY_S:
            self._drawn = time.monotonic()
            self._live.update(self._picture())

    def _picture(self) -> Group:
        used, total = self._counts()
        bar = budget_bar(used, total, f"{used:,}/{total:,}, {self._time_left()}")
        return Group(bar, *self._details())

    def _details(self) -> list[Any]:
        """What stands below the bar."""
        raise NotImplementedError
