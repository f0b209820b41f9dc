"""Worker processes on this machine: spawned, never forked, and gone when their parent is gone, however it ended."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from fixfirst.errors import ConfigError
from fixfirst.game import follow_parent
from fixfirst.searcher.executors.contract import POLL_S, SAVE_S, Finished, Job, OnProgress, carried, raise_carried


class ProcessExecutor:
    """Up to `workers` jobs at a time, each in a process that lives as long as the executor."""

    shares_disk = True

    def __init__(self, workers: int, interrupt: object = False):
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        self.workers = workers
        self._idle: list[_JobProcess] = []
        self._busy: list[_JobProcess] = []
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
                worker = _JobProcess()
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
                    raise_carried(content)
                return Finished(key, content)
        return None

    def _lost(self, worker: "_JobProcess") -> Finished:
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


class _JobProcess:
    """A process that runs one job at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(theirs,), daemon=True)
        with _ctrl_c_held_back(), _main_left_alone():
            self.process.start()
        theirs.close()
        self.key: Hashable = None

    def begin(self, key: Hashable, job: Job, argument: Any) -> None:
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
    if not hasattr(signal, "pthread_sigmask"):  # on Windows a worker ignores it once it has begun
        yield
        return
    resource_tracker.ensure_running()  # starting it later would lift the mask
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """A process started meanwhile does not run the main module again: a script or notebook may call us at its top level.

    Jobs come from modules that can be imported; that a script should guard its own lines is none of their business.
    """
    main: Any = sys.modules["__main__"]
    kept = {name: vars(main).get(name) for name in ("__spec__", "__file__")}
    main.__spec__ = None
    vars(main).pop("__file__", None)
    try:
        yield
    finally:
        vars(main).update({name: value for name, value in kept.items() if value is not None or name == "__spec__"})


class _Parent:
    """A worker's end of the line. As the job's interrupt, it is true once the parent has asked to stop."""

    def __init__(self, connection: Connection):
        self._connection, self.cancelled = connection, False

    def __bool__(self) -> bool:
        while not self.cancelled and self._connection.poll():
            self.cancelled = self.listen()[0] == "cancel"
        return self.cancelled

    def listen(self) -> tuple[str, Any]:
        try:
            message: tuple[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            os._exit(1)  # it has hung up: nobody waits for the job
        return message

    def say(self, kind: str, content: Any) -> None:
        try:
            self._connection.send((kind, content))
        except OSError:
            os._exit(1)


def _work(connection: Connection) -> None:
    """The worker's life: jobs until the parent cancels or hangs up.

    A parent that is gone ends it on the spot: a successor must find the job's folder free.
    """
    follow_parent()
    parent = _Parent(connection)
    while not parent.cancelled:
        kind, content = parent.listen()
        if kind != "job":
            return
        job, argument = content
        try:
            parent.say("done", job(argument, lambda message: parent.say("progress", message), parent))
        except Exception as error:  # everything goes to the parent, which raises it
            parent.say("raised", carried(error))
