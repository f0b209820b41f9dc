"""Where trainings run: in this process, or in worker processes. One contract: submit, wait, cancel.

A job is a function of (argument, tell, interrupt): `tell(message)` reports progress, `interrupt` is true once the job should
save itself and return. Jobs must be importable functions with picklable arguments; workers are spawned, never forked.
"""

import os
import signal
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from fixfirst.errors import ConfigError, FixfirstError

Job = Callable[[Any, Callable[[Any], None], Any], Any]


@dataclass(frozen=True)
class Finished:
    """The end of a job. `died`: why its worker is gone, if it is; then there is no result."""

    key: int
    result: Any = None
    died: str | None = None


class Executor(Protocol):
    """Runs jobs; the order in which they finish is not defined."""

    def submit(self, key: int, job: Job, argument: Any) -> None:
        """Take on a job."""

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        """Block until a job has ended, passing on what jobs tell. An exception of a job is raised here."""

    def cancel(self) -> None:
        """Ask running jobs to save themselves and return; forget those that have not begun."""

    def close(self) -> None:
        """Leave nothing behind."""


class Never:
    """An interrupt that never comes."""

    def __bool__(self) -> bool:
        return False


class InlineExecutor:
    """One job after the other, in this process. `interrupt` is handed to the jobs."""

    def __init__(self, interrupt: Any = None):
        self._interrupt = interrupt if interrupt is not None else Never()
        self._jobs: deque[tuple[int, Job, Any]] = deque()

    def submit(self, key: int, job: Job, argument: Any) -> None:
        self._jobs.append((key, job, argument))

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        key, job, argument = self._jobs.popleft()
        return Finished(key, job(argument, lambda message: on_progress(key, message), self._interrupt))

    def cancel(self) -> None:
        self._jobs.clear()

    def close(self) -> None:
        self._jobs.clear()


# ---------------------------------------------------------------- worker processes


class ProcessExecutor:
    """Up to `workers` jobs at a time, each in a process that lives as long as the executor."""

    def __init__(self, workers: int):
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._jobs: deque[tuple[int, Job, Any]] = deque()
        self._room = workers

    def submit(self, key: int, job: Job, argument: Any) -> None:
        self._jobs.append((key, job, argument))
        self._hand_out()

    def _hand_out(self) -> None:
        while self._jobs and (self._idle or self._room):
            if self._idle:
                worker = self._idle.pop()
            else:
                self._room -= 1
                worker = _Worker()
            worker.begin(*self._jobs.popleft())
            self._busy.append(worker)

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        while True:
            by_connection = {worker.connection: worker for worker in self._busy}
            for ready in wait(list(by_connection)):
                worker = by_connection[ready]  # type: ignore[index]
                try:
                    kind, content = worker.connection.recv()
                except (EOFError, ConnectionResetError, OSError):
                    return self._lost(worker)
                if kind == "progress":
                    on_progress(worker.key, content)
                    continue
                key = worker.key  # before the worker gets its next job
                self._busy.remove(worker)
                self._idle.append(worker)
                self._hand_out()
                if kind == "raised":
                    error, text = content
                    raise error if isinstance(error, FixfirstError) else RuntimeError(f"a worker failed:\n{text}")
                return Finished(key, content)

    def _lost(self, worker: "_Worker") -> Finished:
        worker.process.join(timeout=5)
        key, code = worker.key, worker.process.exitcode
        self._busy.remove(worker)
        worker.stop()
        self._room += 1
        self._hand_out()
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return Finished(key, died=how)

    def cancel(self) -> None:
        self._jobs.clear()
        for worker in self._busy:
            worker.send("cancel", None)

    def close(self) -> None:
        for worker in self._idle + self._busy:
            worker.stop()
        self._idle, self._busy = [], []


class _Worker:
    """A process that runs one job at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()
        self.key = -1

    def begin(self, key: int, job: Job, argument: Any) -> None:
        self.key = key
        self.send("job", (job, argument))

    def send(self, kind: str, content: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it died; wait() will notice
            self.connection.send((kind, content))

    def stop(self) -> None:
        self.connection.close()
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class _Cancelled:
    """True once the parent has asked to stop, or is gone."""

    def __init__(self, connection: Connection, parent: int):
        self._connection, self._parent, self._stop = connection, parent, False

    def __bool__(self) -> bool:
        if os.getppid() != self._parent:
            os._exit(1)  # nobody waits for this job any more; its successor must find the folder free
        while not self._stop and self._connection.poll():
            self._stop = self._connection.recv()[0] == "cancel"
        return self._stop


def _work(connection: Connection, parent: int) -> None:
    """The worker's life: jobs until the parent hangs up. Ctrl-C in the terminal is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            kind, content = connection.recv()
        except EOFError:
            return
        if kind != "job":
            continue
        job, argument = content
        try:
            result = job(argument, lambda message: connection.send(("progress", message)), _Cancelled(connection, parent))
            answer: tuple[str, Any] = ("done", result)
        except BrokenPipeError:
            return
        except Exception as error:  # everything goes to the parent, which raises it
            answer = ("raised", (error if isinstance(error, FixfirstError) else None, traceback.format_exc()))
        connection.send(answer)
