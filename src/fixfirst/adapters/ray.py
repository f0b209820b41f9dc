"""Jobs on a Ray cluster (docs/scale.md): Ray places them; trying again, counting and writing stay with the driver.

Every submission of a job is an attempt with a number of its own. The driver takes a result only from the attempt it waits
for, so a task that outlives its lost node can neither deliver nor report a second time. Ray's own retries are off.

Progress and cancellation go through one actor, the mailbox, on the driver's node: a job's end of the line hands over
what it has to tell, and learns whether to stop, at most twice a second.
"""

import os
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Any

from fixfirst.adapters.remote_jobs import RemoteScheduler
from fixfirst.base import errors, jobs
from fixfirst.base.errors import ConfigError, WorkerError

POLL_S = 0.1  # how often the driver looks for what jobs tell, and for an interrupt
SAVE_S = 10.0  # for cancelled jobs to save themselves
EXCHANGE_S = 0.5  # between two calls of a job at the mailbox
OBJECT_STORE_BYTES = 256 * 2**20  # of a cluster of our own: policies are small, Ray would take a third of the memory


class RayScheduler:
    """Each job is a Ray task of `cpus_per_job` CPUs; as many at a time as the cluster has room for, also when it grows.

    address: `local` starts a cluster of this machine (of `workers` jobs side by side, 0 = all cores) and ends it on close;
    `auto`, or `host:port`, joins a running one. cpus_per_job 0: all CPUs of the smallest node that has any.
    """

    def __init__(self, address: str = "local", *, workers: int = 0, cpus_per_job: int = 1, interrupt: object = False):
        self._ray = ray = _import_ray()
        if address.startswith("ray://"):
            raise ConfigError(f"--ray-address {address}: run fixfirst on a node of the cluster, with its address or `auto`")
        if ray.is_initialized():
            raise ConfigError("this process uses Ray already; call ray.shutdown() first")
        self._made_token = address == "local" and _make_token()
        try:
            _connect(ray, address, workers, cpus_per_job)
        except BaseException:
            self._forget_token()
            raise
        try:
            self.cpus_per_job = _cpus_per_job(ray, cpus_per_job)
            self.workers = sum(int(cpus // self.cpus_per_job) for cpus in _node_cpus(ray))
            here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            actor = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Mailbox)
            self._mailbox = actor.options(scheduling_strategy=here).remote()
            self._task = ray.remote(num_cpus=self.cpus_per_job, max_retries=0)(_run_job)
        except BaseException:
            ray.shutdown()
            raise
        self._attempts: Counter[Hashable] = Counter()
        self._running: dict[Any, tuple[Hashable, int]] = {}  # key and attempt, by Ray's reference to the result
        self._begun: set[tuple[Hashable, int]] = set()
        self._interrupt = interrupt
        self._save_until: float | None = None  # set once cancelled

    def submit(self, key: Hashable, job: Callable[..., Any], argument: Any) -> None:
        self._attempts[key] += 1
        attempt = (key, self._attempts[key])
        self._running[self._task.remote(job, argument, attempt, self._mailbox, self.cpus_per_job)] = attempt

    def wait(self, on_progress: Callable[[Any, Any], None]) -> jobs.Finished | None:
        while self._running:
            if self._interrupt:
                self.cancel()
            if self._save_until is not None and time.monotonic() > self._save_until:
                break
            try:
                done, _ = self._ray.wait(list(self._running), timeout=POLL_S)
                self._pass_on(on_progress)
            except self._ray.exceptions.RayError as e:
                raise WorkerError(f"the Ray cluster is gone ({_first_line(e)})") from e
            if self._save_until is not None:
                self._running = {ref: attempt for ref, attempt in self._running.items() if attempt in self._begun}
            for ref in done:
                if ref in self._running:
                    return self._end(ref)
        return None

    def _pass_on(self, on_progress: Callable[[Any, Any], None]) -> None:
        current = set(self._running.values())
        for attempt, messages in self._ray.get(self._mailbox.take.remote(self._save_until is not None)):
            if attempt in current:
                self._begun.add(attempt)
                for message in messages:
                    on_progress(attempt[0], message)

    def _end(self, ref: Any) -> jobs.Finished:
        key, _ = attempt = self._running.pop(ref)
        self._begun.discard(attempt)
        failures = self._ray.exceptions
        try:
            outcome = self._ray.get(ref)
        except (failures.NodeDiedError, failures.ObjectLostError):
            return jobs.Finished(key, died="its node is lost", node_lost=True)
        except failures.OutOfMemoryError:
            return jobs.Finished(key, died="its node ran out of memory")
        except failures.WorkerCrashedError:
            return jobs.Finished(key, died="killed, or crashed")
        except failures.RayError as e:
            raise WorkerError(f"a Ray task failed ({_first_line(e)})") from e
        return jobs.Finished.of(key, outcome)

    def cancel(self) -> None:
        if self._save_until is None:
            self._save_until = time.monotonic() + SAVE_S

    def close(self) -> None:
        if not self._ray.is_initialized():
            return
        try:
            if self._save_until is not None:
                while self.wait(lambda key, message: None) is not None:
                    pass
        finally:
            self._running = {}
            self._ray.shutdown()
            self._forget_token()

    def _forget_token(self) -> None:
        """The next cluster that this process joins may have another one."""
        if self._made_token:
            for name in AUTHENTICATION:
                os.environ.pop(name, None)
            self._ray._raylet.Config.initialize("")
            self._ray._raylet.AuthenticationTokenLoader.instance().reset_cache()


def _import_ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as e:
        raise ConfigError(f"--executor ray needs Ray ({e}); install it with: pip install 'fixfirst[ray]'") from e
    return ray


AUTHENTICATION = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def _make_token() -> bool:
    """Have Ray ask for a token that only our processes know; Ray's own would lie in the home folder, for all to read.

    Returns whether there is one now: whoever has said what Ray should ask for is obeyed.
    """
    if any(name in os.environ for name in AUTHENTICATION):
        return False
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # with which Ray itself sets RAY_AUTH_MODE to token
    return True


def join_cluster(address: str, *, quiet: bool, **options: Any) -> RemoteScheduler:
    """Return a scheduler on a cluster, whose jobs travel with their files. Unless quiet, a line says who else reaches it."""
    scheduler = RemoteScheduler(RayScheduler(address, **options))
    if not quiet:
        errors.note(who_reaches(address))
    return scheduler


def who_reaches(address: str) -> str:
    """Return in one line who can reach a cluster that this process has joined: it runs the code it is sent."""
    asks = "asks for a token" if os.environ.get("RAY_AUTH_MODE") == "token" else "asks for no token (RAY_AUTH_MODE)"
    where = "a cluster of this machine, listens at 127.0.0.1 only" if address == "local" else f"the cluster at {address}"
    return f"Ray: {where}, {asks}"


def _connect(ray: Any, address: str, workers: int, cpus_per_job: int) -> None:
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "error"}
    # Ray's own setting: a cluster of one machine is at 127.0.0.1, and nobody else's machine can knock at it.
    ray._private.ray_constants.ENABLE_RAY_CLUSTER = address != "local"
    if address == "local":
        cpus = workers * max(1, cpus_per_job) if workers else jobs.available_cores()
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    elif ":" in address:
        _knock(address)
    # Ray tells of dead workers and nodes on our stdout, where our result goes; we say it ourselves.
    ray._private.worker._worker_logs_enabled = False
    try:
        with _signal_handlers_kept():
            ray.init(**options)
    except Exception as e:  # Ray raises whatever it likes, plain Exception among it
        raise WorkerError(f"--ray-address {address}: cannot be reached ({_first_line(e)})") from e


def _knock(address: str) -> None:
    """Is somebody there? Ray itself would try for minutes, with lines of its own on our stderr."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError) as e:
        raise WorkerError(f"--ray-address {address}: cannot be reached ({_first_line(e)})") from e


@contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; ours lets trials save themselves."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _node_cpus(ray: Any) -> list[float]:
    """CPUs of each node that has any."""
    return [node["Resources"]["CPU"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _cpus_per_job(ray: Any, wanted: int) -> int:
    """Return how many CPUs a job declares; an error if no node has as many."""
    cpus = _node_cpus(ray)
    if not cpus:
        raise ConfigError("no node of the Ray cluster has a CPU to offer; start one with --num-cpus")
    if wanted > max(cpus):
        raise ConfigError(f"a trial asks for {wanted} CPUs (--cpus-per-trial), the largest Ray node has {max(cpus):g}")
    return wanted or max(1, int(min(cpus)))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ---------------------------------------------------------------- on the cluster


class _Mailbox:
    """What jobs have told since the driver last looked, and whether they should stop.

    The driver says at every look whether it has cancelled, so that a mailbox Ray had to restart knows it too.
    """

    def __init__(self) -> None:
        self._letters: list[tuple[Any, list[Any]]] = []
        self._cancelled = False

    def exchange(self, attempt: Any, messages: list[Any]) -> bool:
        self._letters.append((attempt, messages))
        return self._cancelled

    def take(self, cancelled: bool) -> list[tuple[Any, list[Any]]]:
        self._cancelled = cancelled
        letters, self._letters = self._letters, []
        return letters


class _Line:
    """A job's end of the line; as its interrupt, true once the driver has cancelled. Raises when the driver is gone."""

    def __init__(self, mailbox: Any, attempt: Any):
        self._mailbox, self._attempt = mailbox, attempt
        self._unsent: list[Any] = []
        self._cancelled, self._exchanged = False, 0.0

    def tell(self, message: Any) -> None:
        self._unsent.append(message)
        self._exchange_if_due()

    def __bool__(self) -> bool:
        self._exchange_if_due()
        return self._cancelled

    def _exchange_if_due(self) -> None:
        if time.monotonic() - self._exchanged > EXCHANGE_S:
            self.exchange()

    def exchange(self) -> None:
        # Ray lends out the CPUs of a task whose main thread waits for an object: more jobs than CPUs would run. So another
        # thread waits; a daemon, for a worker must be able to end although its driver is gone.
        answer: Future[bool] = Future()
        Thread(target=self._call, args=(answer,), daemon=True).start()
        self._cancelled = answer.result()
        self._unsent, self._exchanged = [], time.monotonic()

    def _call(self, answer: "Future[bool]") -> None:
        import ray

        try:
            answer.set_result(ray.get(self._mailbox.exchange.remote(self._attempt, self._unsent)))
        except Exception as e:
            answer.set_exception(e)


def _run_job(job: Callable[..., Any], argument: Any, attempt: Any, mailbox: Any, cores: int) -> tuple[str, Any]:
    """Run a job as a Ray task: (`done`, result), or (`raised`, error) so that errors arrive as from any other executor."""
    os.environ[jobs.CORES_VARIABLE] = str(cores)
    line = _Line(mailbox, attempt)
    line.exchange()  # an empty letter: it has begun
    if line:
        return "done", None  # cancelled before it began
    outcome = jobs.attempt(job, argument, line.tell, line)
    line.exchange()  # what it told arrives before its end does
    return outcome
