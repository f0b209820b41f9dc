"""Only one process at a time works on a run; and how long it was worked on."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fixfirst.base.errors import RunDirError
from fixfirst.base.locks import is_taken, take
from fixfirst.runs.files import clear_leftovers
from fixfirst.runs.layout import LOCK, RUNTIME
from fixfirst.runs.logs import CsvLog, read_rows
from fixfirst.runs.rows import Outcome, SessionRow

RUNNING = "running"
# What only some systems know of opening files.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Only one process at a time may use a folder; the lock goes with the process, however it ends."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | _SAFELY, 0o666)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                take(descriptor)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise RunDirError(f"{folder} is in use by another process") from None
                time.sleep(0.05)
        clear_leftovers(folder)
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Does a process work on it? Only asks: whoever wants to begin just now is not kept from it."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | _AT_ONCE)
    except FileNotFoundError:
        return False
    try:
        return is_taken(descriptor)
    finally:
        os.close(descriptor)


def status(folder: Path) -> str:
    """running, finished or interrupted."""
    return RUNNING if is_locked(folder) else last_outcome(folder)


def last_outcome(folder: Path) -> Outcome:
    """How the last time at work ended. A kill says nothing."""
    sessions = read_rows(folder / RUNTIME, SessionRow)
    return sessions[-1].outcome if sessions else Outcome.INTERRUPTED


class Session:
    """A `with` block in which a run is worked on; leaving it adds a row to runtime.csv. A kill leaves no row."""

    def __init__(self, folder: Path, workers: int = 1):
        self._folder, self._workers = folder, workers
        self._choosing_s = 0.0
        self.finished = False

    def __enter__(self) -> Self:
        self._started, self._clock = now(), time.perf_counter()
        return self

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """What happens inside is the search's own thinking."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._choosing_s += time.perf_counter() - start

    def __exit__(self, *error: object) -> None:
        log = CsvLog(self._folder / RUNTIME, SessionRow)
        log.write(
            SessionRow(
                started=self._started,
                outcome=Outcome.FINISHED if self.finished else Outcome.INTERRUPTED,
                seconds=round(time.perf_counter() - self._clock, 3),
                workers=self._workers,
                choosing_seconds=round(self._choosing_s, 3),
            )
        )
        log.close()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
