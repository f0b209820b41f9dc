"""Processes of our own: how many there may be, and what each does. Spawned, never forked; gone when their parent is gone.

A job is a function of (argument, tell, interrupt): `tell(message)` reports progress, `interrupt` is true once the job
should save itself and return. Jobs must be importable functions with picklable arguments.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, NoReturn

from fixfirst.base.errors import FixfirstError

CORES_VARIABLE = "FIXFIRST_CORES"  # where somebody else hands out cores, and the system does not know it


def available_cores() -> int:
    """How many cores this process may use."""
    if (granted := os.environ.get(CORES_VARIABLE, "")).isdigit():
        return max(1, int(granted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


# ---------------------------------------------------------------- a process of our own


Job = Callable[[Any, Callable[[Any], None], Any], Any]


class JobProcess:
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
