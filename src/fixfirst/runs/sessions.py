"""Working on a folder: one process at a time holds its lock, and every session of a run leaves a row in runtime.csv."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fixfirst.base import errors, files
from fixfirst.runs import layout
from fixfirst.runs.csv_logs import CsvLog, read_rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Outcome, SessionRow

ORPHAN_WAIT_S = 30.0  # for a worker whose driver was killed to notice that it is alone


@contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Only one process at a time may use a folder; the lock goes with the process, however it ends."""
    descriptor = os.open(RunFiles(folder).lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                files.lock(descriptor)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise errors.RunDirError(f"{folder} is in use by another process") from None
                time.sleep(0.05)
        files.clear_leftovers(folder, layout.PAGES)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def job_folder(folder: Path) -> Iterator[None]:
    """Make and lock the folder of a job; one whose driver was killed may need a moment to notice, and to let go."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait_s=ORPHAN_WAIT_S):
        yield


def is_locked(folder: Path) -> bool:
    """Does a process work on it? Only asks: whoever wants to begin just now is not kept from it."""
    try:
        descriptor = os.open(RunFiles(folder).lock, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return files.is_taken(descriptor)
    finally:
        os.close(descriptor)


def is_finished(folder: Path) -> bool:
    """Is its end noted? A kill leaves no row."""
    sessions = list(read_rows(RunFiles(folder).runtime, SessionRow))
    return bool(sessions) and sessions[-1].outcome == Outcome.FINISHED


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
        log = CsvLog(RunFiles(self._folder).runtime, SessionRow)
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
