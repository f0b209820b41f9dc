"""Where trainings run: in this process, or in worker processes. One contract: submit, wait, cancel.

A job is a function of (argument, tell, interrupt): `tell(message)` reports progress, `interrupt` is true once the job should
save itself and return. Jobs must be importable functions with picklable arguments; workers are spawned, never forked.
An executor is given the user's interrupt: wait() cancels by itself once it is true.
"""

import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from fixfirst.errors import ConfigError, FixfirstError

Job = Callable[[Any, Callable[[Any], None], Any], Any]

POLL_S = 0.1  # how often an interrupt is looked for
SAVE_S = 10.0  # for a cancelled job to save itself


@dataclass(frozen=True)
class Finished:
    """The end of a job. `died`: why its worker is gone, if it is; then there is no result."""

    key: int
    result: Any = None
    died: str | None = None


class Executor(Protocol):
    """Runs jobs; the order in which they finish is not defined."""

    workers: int  # jobs side by side

    def submit(self, key: int, job: Job, argument: Any) -> None:
        """Take on a job."""

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        """Block until a job has ended, passing on what jobs tell. An exception of a job is raised here: a FixfirstError or
        OSError as itself, anything else with its traceback."""

    def cancel(self) -> None:
        """Ask running jobs to save themselves and return; forget those that have not begun. No job may follow."""

    def close(self) -> None:
        """Leave nothing behind."""


class Never:
    """An interrupt that never comes."""

    def __bool__(self) -> bool:
        return False


class InlineExecutor:
    """One job after the other, in this process. `interrupt` is handed to the jobs."""

    def __init__(self, interrupt: Any = None):
        self.workers = 1
        self._interrupt = interrupt if interrupt is not None else Never()
        self._jobs: deque[tuple[int, Job, Any]] = deque()

    def submit(self, key: int, job: Job, argument: Any) -> None:
        self._jobs.append((key, job, argument))

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        assert self._jobs, "no job to wait for"
        key, job, argument = self._jobs.popleft()
        return Finished(key, job(argument, lambda message: on_progress(key, message), self._interrupt))

    def cancel(self) -> None:
        self._jobs.clear()

    def close(self) -> None:
        self._jobs.clear()


# ---------------------------------------------------------------- worker processes


class ProcessExecutor:
    """Up to `workers` jobs at a time, each in a process that lives as long as the executor."""

    def __init__(self, workers: int, interrupt: Any = None):
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        self.workers = workers
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._jobs: deque[tuple[int, Job, Any]] = deque()
        self._room = workers
        self._interrupt = interrupt if interrupt is not None else Never()
        self._cancelled = False

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
            self._busy.append(worker)
            worker.begin(*self._jobs.popleft())

    def wait(self, on_progress: Callable[[int, Any], None]) -> Finished:
        assert self._busy, "no job to wait for"
        while True:
            if self._interrupt and not self._cancelled:
                self.cancel()
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
                    error, text = content
                    raise error if error is not None else RuntimeError(f"a worker failed:\n{text}")
                return Finished(key, content)

    def _lost(self, worker: "_Worker") -> Finished:
        worker.process.join(timeout=5)
        code = worker.process.exitcode
        self._busy.remove(worker)
        worker.stop()
        self._room += 1
        self._hand_out()
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return Finished(worker.key, died=how)

    def cancel(self) -> None:
        self._cancelled = True
        self._jobs.clear()
        for worker in self._busy:
            worker.send("cancel", None)

    def close(self) -> None:
        if self._cancelled:
            for worker in self._busy:
                worker.process.join(SAVE_S)  # it ends by itself, once its job has
        for worker in self._idle + self._busy:
            worker.stop()
        self._idle, self._busy = [], []


class _Worker:
    """A process that runs one job at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        with _ctrl_c_held_back():
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


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """A process started meanwhile is deaf to Ctrl-C from its first moment on; this one hears it when the block is left."""
    resource_tracker.ensure_running()  # starting it later would lift the mask
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Parent:
    """A worker's end of the line. As the job's interrupt, it is true once the parent has asked to stop.

    A parent that is gone ends the worker on the spot: nobody waits for its job, and a successor must find its folder free.
    """

    def __init__(self, connection: Connection, pid: int):
        self._connection, self._pid, self.cancelled = connection, pid, False

    def __bool__(self) -> bool:
        if os.getppid() != self._pid:
            os._exit(1)
        while not self.cancelled and self._connection.poll():
            self.cancelled = self.listen()[0] == "cancel"
        return self.cancelled

    def listen(self) -> tuple[str, Any]:
        try:
            message: tuple[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            os._exit(1)
        return message

    def say(self, kind: str, content: Any) -> None:
        try:
            self._connection.send((kind, content))
        except OSError:
            os._exit(1)


def _work(connection: Connection, parent_pid: int) -> None:
    """The worker's life: jobs until the parent cancels or hangs up. Ctrl-C in the terminal is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = _Parent(connection, parent_pid)
    while not parent.cancelled:
        kind, content = parent.listen()
        if kind != "job":
            return
        job, argument = content
        try:
            parent.say("done", job(argument, lambda message: parent.say("progress", message), parent))
        except Exception as error:  # everything goes to the parent, which raises it
            known = isinstance(error, FixfirstError | OSError)
            parent.say("raised", (error if known else None, traceback.format_exc()))
