"""Jobs, and the schedulers that run them on this machine.

A *job* is an importable function of (argument, tell, interrupt) with a picklable argument: `tell(message)` reports
progress, `interrupt` is true once the job should save itself and return None.

A *scheduler* runs jobs: in this process, in worker processes (spawned, never forked; gone when their parent is gone), or on
a Ray cluster (`adapters/ray.py`). The result does not depend on it.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, Protocol

from fixfirst.base.errors import ConfigError, FixfirstError, WorkerError

CORES_VARIABLE = "FIXFIRST_CORES"  # where somebody else hands out cores, and the system does not know it
POLL_S = 0.1  # how often an interrupt is looked for
SAVE_S = 10.0  # for cancelled jobs to save themselves

Tell = Callable[[Any], None]
Job = Callable[[Any, Tell, Any], Any]
OnProgress = Callable[[Any, Any], None]  # (key, message)
Outcome = tuple[str, Any]


def available_cores() -> int:
    """Return how many cores this process may use."""
    if (granted := os.environ.get(CORES_VARIABLE, "")).isdigit():
        return max(1, int(granted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Interrupt:
    """Ctrl-C or a polite kill: noted, and acted on after the current update."""

    requested = False

    def __bool__(self) -> bool:
        return self.requested


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """While open, the first SIGINT or SIGTERM is noted; a second SIGINT stops at once."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():  # only that one may listen to signals
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Finished:
    """The end of a job. `died`: why its worker is gone, if it is; then there is no result."""

    key: Any
    result: Any = None
    died: str | None = None
    node_lost: bool = False  # its whole machine is gone: no fault of the job

    @classmethod
    def of(cls, key: Any, outcome: Outcome) -> "Finished":
        """Return the end of a job from what `attempt` made of it; an exception of the job is raised."""
        kind, content = outcome
        if kind == "done":
            return cls(key, content)
        error, text = content
        raise error if error is not None else RuntimeError(f"a worker failed:\n{text}")


def attempt(job: Job, argument: Any, tell: Tell, interrupt: object) -> Outcome:
    """Run a job far from who waits for it; return its result or its exception, as `Finished.of` takes it.

    Only our own kinds of exceptions travel as objects; any other might not unpickle.
    """
    try:
        return "done", job(argument, tell, interrupt)
    except Exception as e:
        error = MemoryError(*e.args) if isinstance(e, MemoryError) else e  # not one of NumPy's
        known = isinstance(error, FixfirstError | OSError | MemoryError)
        return "raised", (error if known else None, "".join(traceback.format_exception(e)))


class Scheduler(Protocol):
    """Runs jobs; the order in which they finish is not defined.

    It is given the user's interrupt: wait() cancels by itself once it is true.
    """

    workers: int  # jobs side by side

    def submit(self, key: Hashable, job: Job, argument: Any) -> None:
        """Take on a job."""

    def wait(self, on_progress: OnProgress) -> Finished | None:
        """Block until a job has ended, passing on what jobs tell; None: no job is left. An exception of a job is raised
        here: a FixfirstError or OSError as itself, anything else with its traceback."""

    def cancel(self) -> None:
        """Ask running jobs to save themselves and return; forget those that have not begun. No job may follow, but wait()
        still gives the ends of the running ones, those that come within SAVE_S."""

    def close(self) -> None:
        """Leave nothing behind."""


class InlineScheduler:
    """Runs one job after the other in this process. `interrupt` is handed to the jobs."""

    workers = 1

    def __init__(self, interrupt: object = False):
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


class ProcessScheduler:
    """Runs up to `workers` jobs at a time, each in a process that lives as long as the scheduler."""

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
                return Finished.of(key, (kind, content))
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


def follow_parent() -> None:
    """Called first in a new process: leave Ctrl-C to the parent, and end when the parent ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    except RuntimeError as e:
        raise WorkerError(f"a worker could not begin ({e}); fewer --workers need fewer threads and less memory") from e


def _end_with_parent() -> None:
    """Even in the middle of something that does not end: a thread of its own waits for it."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _JobProcess:
    """A process that runs one job at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(theirs,), daemon=True)
        try:
            with _ctrl_c_held_back(), _main_left_alone():
                self.process.start()
        except (OSError, RuntimeError) as e:
            raise WorkerError(f"no worker process could be started ({e}); --workers 1 needs none") from e
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
    """Run jobs until the parent cancels or hangs up. If it is gone, end on the spot: its successor needs the folder."""
    parent = _Parent(connection)
    try:
        follow_parent()
    except WorkerError as e:
        return parent.say("raised", (e, ""))
    while not parent.cancelled:
        kind, content = parent.listen()
        if kind != "job":
            return
        job, argument = content
        parent.say(*attempt(job, argument, lambda message: parent.say("progress", message), parent))


def local_scheduler(workers: int, interrupt: object, *, own_processes: bool = False) -> Scheduler:
    """Return a scheduler for this machine: of this process for one job at a time, unless jobs shall have processes."""
    return ProcessScheduler(workers, interrupt) if own_processes or workers > 1 else InlineScheduler(interrupt)
