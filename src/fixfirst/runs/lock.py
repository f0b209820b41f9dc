"""Only one process at a time works on a run; and how long it was worked on."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fixfirst.errors import RunDirError
from fixfirst.runs.layout import LOCK, RUNTIME
from fixfirst.runs.logs import CsvLog, read_rows
from fixfirst.runs.rows import Outcome, SessionRow

RUNNING = "running"


@contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Only one process at a time may use a folder; the lock goes with the process, however it ends."""
    with open(folder / LOCK, "w", encoding="utf-8") as file:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise RunDirError(f"{folder} is in use by another process") from None
                time.sleep(0.05)
        yield


def is_locked(folder: Path) -> bool:
    """Does a process work on it?"""
    try:
        with open(folder / LOCK, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def status(folder: Path) -> str:
    """running, finished or interrupted."""
    if is_locked(folder):
        return RUNNING
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
