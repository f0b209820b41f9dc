"""Jobs, the places where they run, and plans of jobs.

A *job* is an importable function of (argument, tell, interrupt) with a picklable argument: `tell(message)` reports
progress, `interrupt` is true once the job should save itself and return None.

A *scheduler* runs jobs: in this process, in worker processes (spawned, never forked; gone when their parent is gone), or on
a Ray cluster (`ray.py`). The result does not depend on it.

A *plan* is a generator: it yields the jobs to begin now (perhaps none) and is sent the key and result of one that has ended.
A search and a tournament of trainings are plans, a study is several; `run_plans` runs any number side by side.
"""

import math
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, Literal, NoReturn, Protocol

from fixfirst.base.errors import ConfigError, FixfirstError, WorkerError

CORES_VARIABLE = "FIXFIRST_CORES"  # where somebody else hands out cores, and the system does not know it
POLL_S = 0.1  # how often an interrupt is looked for
SAVE_S = 10.0  # for cancelled jobs to save themselves
ORPHAN_WAIT_S = 30.0  # for a worker whose driver was killed to notice that it is alone
MAX_ATTEMPTS = 2  # a job whose worker dies is tried once more
MAX_NODES_LOST = 10  # a job whose machine is lost begins again elsewhere, so often

Tell = Callable[[Any], None]
Job = Callable[[Any, Tell, Any], Any]
OnProgress = Callable[[Any, Any], None]  # (key, message)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if (granted := os.environ.get(CORES_VARIABLE, "")).isdigit():
        return max(1, int(granted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Interrupt:
    """Ctrl-C or a polite kill: noted, and acted on after the current update."""

    def __init__(self) -> None:
        self.requested = False

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


# ---------------------------------------------------------------- plans


@dataclass(frozen=True)
class Task:
    """A job of a plan: a function with its argument, and what messages call it."""

    run: Job
    argument: Any
    name: str
    may_fail: bool = False  # a job whose worker dies again and again ends the plan, unless it may


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a job that may fail, and whose worker died again and again."""

    reason: str


Tasks = Mapping[int, Task]
Plan = Generator[Tasks, tuple[int, Any], None]


def gather(tasks: Tasks) -> Generator[Tasks, tuple[int, Any], dict[int, Any]]:
    """For a plan that waits until all of some jobs have ended: `results = yield from gather(tasks)`."""
    results: dict[int, Any] = {}
    while len(results) < len(tasks):
        key, result = yield {} if results else tasks
        results[key] = result
    return results


def run_plans(
    plans: Sequence[Plan], scheduler: "Scheduler", on_progress: Callable[[int, int, Any], None], interrupt: object = False
) -> None:
    """Run plans until all of them have ended, or no job is left because of an interrupt; then every plan is closed.

    A plan begins once there are fewer jobs than workers: of very many, the first have ended before the last begin.
    on_progress: called with the plan's index, the job's key and what the job tells.
    """
    try:
        _run_plans(plans, scheduler, on_progress, interrupt)
    finally:
        for plan in plans:
            plan.close()


def _run_plans(
    plans: Sequence[Plan], scheduler: "Scheduler", on_progress: Callable[[int, int, Any], None], interrupt: object
) -> None:
    tasks: dict[tuple[int, int], Task] = {}  # those that have not ended
    retries, waiting = Retries(), deque(enumerate(plans))

    def submit(index: int, new: Tasks) -> None:
        for key, task in new.items():
            tasks[index, key] = task
            scheduler.submit((index, key), task.run, task.argument)

    def begin() -> None:
        while waiting and len(tasks) < max(scheduler.workers, 1) and not interrupt:
            index, plan = waiting.popleft()
            submit(index, next(plan, {}))

    begin()
    while (ended := scheduler.wait(lambda key, message: on_progress(key[0], key[1], message))) is not None:
        if interrupt or (ended.died is None and ended.result is None):
            continue  # interrupted: what is finished lies in its folder, where `resume` finds it
        (index, key), task, result = ended.key, tasks.pop(ended.key), ended.result
        if ended.died is not None and retries.allow(ended):
            on_progress(index, key, f"{task.name}: its worker is gone ({ended.died}); trying again")
            submit(index, {key: task})
            continue
        if ended.died is not None:
            if not task.may_fail:
                raise WorkerError(f"{task.name}: its worker died again and again ({ended.died})")
            result = Lost(ended.died)
        retries.forget(ended.key)
        with suppress(StopIteration):
            submit(index, plans[index].send((key, result)))
        begin()


class Retries:
    """Which jobs get another attempt. A job may be the end of its worker, hardly that of ten machines."""

    def __init__(self) -> None:
        self._workers: Counter[Hashable] = Counter()
        self._nodes: Counter[Hashable] = Counter()

    def allow(self, ended: "Finished") -> bool:
        """Count the death of a job's worker, and return whether the job is tried again."""
        count, limit = (self._nodes, MAX_NODES_LOST) if ended.node_lost else (self._workers, MAX_ATTEMPTS)
        count[ended.key] += 1
        return count[ended.key] < limit

    def forget(self, key: Hashable) -> None:
        """A job has ended; the next one of this key begins with no death."""
        self._workers.pop(key, None)
        self._nodes.pop(key, None)


# ---------------------------------------------------------------- where jobs run


@dataclass(frozen=True)
class Finished:
    """The end of a job. `died`: why its worker is gone, if it is; then there is no result."""

    key: Any
    result: Any = None
    died: str | None = None
    node_lost: bool = False  # its whole machine is gone: no fault of the job


class Scheduler(Protocol):
    """Runs jobs; the order in which they finish is not defined.

    It is given the user's interrupt: wait() cancels by itself once it is true.
    """

    workers: int  # jobs side by side
    shares_disk: bool  # do jobs see the files of this machine?

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


@dataclass(frozen=True)
class Execution:
    """Where trials run; the result does not depend on it."""

    workers: int = 0
    """Trials side by side; 0 = as many as there are cores and trials; 1 = in this process."""

    executor: Literal["inline", "process", "ray"] | None = None
    """inline (this process), process (worker processes; default with several workers) or ray (a cluster, docs/scale.md)."""

    ray_address: str | None = None
    """With --executor ray: local (default: a cluster of this machine alone), auto, or the address of a running cluster."""

    cpus_per_trial: int | None = None
    """With --executor ray: CPUs a trial asks for. Default 1; with --backend cyborg or workers, all of the smallest node."""

    def __post_init__(self) -> None:
        cpus = 1 if self.cpus_per_trial is None else self.cpus_per_trial
        for name, value in (("--workers", self.workers), ("--cpus-per-trial", cpus)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"{name} must be a whole number, got {value!r}")
        texts = isinstance(self.executor, str | None) and isinstance(self.ray_address, str | None)
        if not texts or self.executor not in (None, "inline", "process", "ray"):
            raise ConfigError(f"unknown executor {self.executor!r} or Ray address {self.ray_address!r}")
        if self.workers < 0:
            raise ConfigError(f"--workers must be at least 0, got {self.workers}")
        if self.executor == "inline" and self.workers > 1:
            raise ConfigError(f"--executor inline runs one trial at a time, --workers {self.workers} asks for more")
        if self.executor != "ray" and (self.ray_address, self.cpus_per_trial) != (None, None):
            raise ConfigError("--ray-address and --cpus-per-trial need --executor ray")
        if self.cpus_per_trial is not None and self.cpus_per_trial < 1:
            raise ConfigError(f"--cpus-per-trial must be at least 1, got {self.cpus_per_trial}")
        if self.workers and self.ray_address not in (None, "local"):
            raise ConfigError("--workers is for this machine; how many trials run on a Ray cluster follows from its CPUs")


class InlineScheduler:
    """Runs one job after the other in this process. `interrupt` is handed to the jobs."""

    workers, shares_disk = 1, True

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

    def wait(self, on_progress: OnProgress, timeout_s: float = math.inf) -> Finished | None:
        """See `Scheduler`; None also if no job has ended within the time."""
        until = time.monotonic() + timeout_s
        while self._busy:
            if self._interrupt:
                self.cancel()
            if self._save_until is not None and time.monotonic() > self._save_until:
                break
            by_connection = {worker.connection: worker for worker in self._busy}
            for ready in wait(list(by_connection), timeout=min(POLL_S, timeout_s)):
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
            if time.monotonic() >= until:
                break
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


# ---------------------------------------------------------------- a worker process


def follow_parent() -> None:
    """Called first in a new process: leave Ctrl-C to the parent, and end when the parent ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


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
            parent.say("raised", carry_error(error))


# ---------------------------------------------------------------- exceptions that cross a process border

Carried = tuple[Exception | None, str]


def carry_error(error: Exception) -> Carried:
    """A job's exception on its way to the driver. Only our own kinds travel as objects; any other might not unpickle."""
    if isinstance(error, MemoryError):
        error = MemoryError(*error.args)  # not one of NumPy's
    known = isinstance(error, FixfirstError | OSError | MemoryError)
    return error if known else None, "".join(traceback.format_exception(error))


def raise_carried_error(content: Carried) -> NoReturn:
    error, text = content
    raise error if error is not None else RuntimeError(f"a worker failed:\n{text}")
