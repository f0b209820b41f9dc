"""The simplest executor: this process."""

from collections import deque
from collections.abc import Hashable
from typing import Any

from fixfirst.base.jobs import Job
from fixfirst.searcher.executors.contract import Finished, OnProgress


class InlineExecutor:
    """One job after the other, in this process. `interrupt` is handed to the jobs."""

    shares_disk = True

    def __init__(self, interrupt: object = False):
        self.workers = 1
        self._interrupt = interrupt
        self._jobs: deque[tuple[Hashable, Job, Any]] = deque()

    def submit(self, key: Hashable, job: Job, argument: Any) -> None:
        self._jobs.append((key, job, argument))

    def wait(self, on_progress: OnProgress) -> Finished | None:
        if self._interrupt:
            self.cancel()
        if not self._jobs:
            return None
        key, job, argument = self._jobs.popleft()
        return Finished(key, job(argument, lambda message: on_progress(key, message), self._interrupt))

    def cancel(self) -> None:
        self._jobs.clear()

    def close(self) -> None:
        self._jobs.clear()
