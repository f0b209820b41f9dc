"""Telling the user how far we are: a live line on a terminal, a plain line every few seconds elsewhere. All on stderr."""

import sys
import time

from rich.console import Console

PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.2


class Progress:
    """Lines of progress that cost nothing between two of them."""

    def __init__(self, total: int, *, quiet: bool = False):
        self.total, self.quiet = total, quiet
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal and not quiet
        self._every_s = LIVE_EVERY_S if self._live else PLAIN_EVERY_S
        self._started = self._said = time.perf_counter()
        self._first: int | None = None

    def due(self) -> bool:
        """Is it time for another line?"""
        return not self.quiet and time.perf_counter() - self._said >= self._every_s

    def show(self, done: int, facts: str) -> None:
        """How many of the total are done, and what is worth knowing."""
        now = time.perf_counter()
        first = self._first = done if self._first is None else self._first
        rate = (done - first) / (now - self._started) if done > first else 0.0
        left = f", {duration((self.total - done) / rate)} left" if rate else ""
        line = f"{done:,}/{self.total:,} episodes, {rate:,.0f}/s{left} | {facts}"
        self._said = now
        if self._live:
            width = self._console.width - 1
            print(f"\r\x1b[2K{line[:width]}", end="", file=sys.stderr, flush=True)
        elif not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.close()
        print(f"fixfirst: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the live line."""
        if self._live:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
