"""Worker processes on this machine."""

import time
from collections import deque
from collections.abc import Hashable
from multiprocessing.connection import wait
from typing import Any

from fixfirst.base.errors import ConfigError
from fixfirst.base.jobs import Job, JobProcess, raise_carried_error
from fixfirst.searcher.executors.contract import POLL_S, SAVE_S, Finished, OnProgress


class ProcessExecutor:
    """Up to `workers` jobs at a time, each in a process that lives as long as the executor."""

    shares_disk = True

    def __init__(self, workers: int, interrupt: object = False):
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        self.workers = workers
        self._idle: list[JobProcess] = []
        self._busy: list[JobProcess] = []
        self._jobs: deque[tuple[Hashable, Job, Any]] = deque()
        self._room = workers
        self._interrupt = interrupt
        self._save_until: float | None = None  # set once cancelled

    def submit(self, key: Hashable, job: Job, argument: Any) -> None:
        self._jobs.append((key, job, argument))
        self._hand_out()

    def _hand_out(self) -> None:
        while self._jobs and (self._idle or self._room):
            if self._idle:
                worker = self._idle.pop()
            else:
                self._room -= 1
                worker = JobProcess()
            self._busy.append(worker)
            worker.begin(*self._jobs.popleft())

    def wait(self, on_progress: OnProgress) -> Finished | None:
        while self._busy:
            if self._interrupt:
                self.cancel()
            if self._save_until is not None and time.monotonic() > self._save_until:
                break
            by_connection = {worker.connection: worker for worker in self._busy}
            for ready in wait(list(by_connection), timeout=POLL_S):
                worker = by_connection[ready]  # type: ignore[index]
                try:
                    kind, content = worker.connection.recv()
                except (EOFError, OSError):
                    return self._lost(worker)
                if kind == "progress":
                    on_progress(worker.key, content)
                    continue
                key = worker.key  # before it takes the next job
                self._busy.remove(worker)
                self._idle.append(worker)
                self._hand_out()
                if kind == "raised":
                    raise_carried_error(content)
                return Finished(key, content)
        return None

    def _lost(self, worker: "JobProcess") -> Finished:
        worker.process.join(timeout=5)
        code = worker.process.exitcode
        self._busy.remove(worker)
        worker.stop()
        self._room += 1
        self._hand_out()
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return Finished(worker.key, died=how)

    def cancel(self) -> None:
        if self._save_until is not None:
            return
        self._save_until = time.monotonic() + SAVE_S
        self._jobs.clear()
        for worker in self._busy:
            worker.send("cancel", None)

    def close(self) -> None:
        if self._save_until is not None:
            for worker in self._busy:
                worker.process.join(max(0.0, self._save_until - time.monotonic()))  # it ends by itself, once its job has
        for worker in self._idle + self._busy:
            worker.stop()
        self._idle, self._busy = [], []
