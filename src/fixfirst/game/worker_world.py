"""A world spread over W worker processes: N/W environments each, all arrays in shared memory, one pipe per worker.

Over a pipe go commands and one number back (the last turns, where someone looks on); actions, seeds and all that is shown
stay where they are. A worker builds any world it is told to: CybORG, or our own simulator, whose results are then the bytes
of the in-process world.

What can go wrong, and what happens then:
- an exception in a worker: raised here as WorkerError, the worker's traceback attached;
- a worker dies: its pipe ends, noticed at once while waiting for it, else at the next call;
- a worker hangs: WorkerError after `timeout_s`;
- this process dies, however: the workers see it and end themselves.
After any of these no process is left, and the memory goes with the last one that uses it: it is a file without a name.
"""

import contextlib
import ctypes
import signal
import traceback
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np

from fixfirst.base import arguments, errors, jobs
from fixfirst.game.base_world import DEFAULT_TIMEOUT_S, BaseWorld, output_arrays
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import Scenario

_STEP, _RESET, _RESET_WITH_SEEDS, _LOOK = "step", "reset", "reset with seeds", "look"
_INPUTS: dict[str, tuple[tuple[int, ...], type]] = {
    "actions": ((), np.int64),
    "seeds": ((), np.uint64),
    "episodes": ((), np.int64),
    "mask": ((), np.bool_),
}

MakeWorld = Callable[..., BaseWorld]  # (game, num_envs, **options of a world); must be importable by a new process


class WorkerWorld(BaseWorld):
    """N environments in worker processes; `make` builds each worker's share of them.

    num_workers: default one per core, never more than environments. timeout_s: how long an answer may take; None = for ever.
    The game's variant may be None where `make` finds it out by itself.
    """

    def __init__(
        self,
        make: MakeWorld,
        game: Game,
        num_envs: int,
        *,
        num_workers: int | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        autoreset: str = "next_step",
        **options: Any,
    ):
        n = arguments.check_int("num_envs", num_envs)
        num_workers = jobs.available_cores() if num_workers is None else arguments.check_int("num_workers", num_workers)
        num_workers = min(n, num_workers)
        if timeout_s is not None and not timeout_s > 0:
            raise errors.WorldError(f"timeout_s must be a positive number of seconds, or None, got {timeout_s!r}")
        sizes = {name: array.nbytes for name, array in _arrays(n, game.scenario, {}).items()}
        memory = {name: RawArray(ctypes.c_byte, size) for name, size in sizes.items()}
        shared = _arrays(n, game.scenario, memory)
        super().__init__(game, n, autoreset=autoreset, **options | {"arrays": shared})
        self._inputs = {name: shared[name] for name in _INPUTS}
        self._workers: list[_Worker] = []
        self._end = weakref.finalize(self, _end_workers, self._workers)
        bounds = [n * w // num_workers for w in range(num_workers + 1)]
        for rows in map(slice, bounds, bounds[1:]):
            world = partial(make, game.for_envs(rows, n), autoreset=autoreset, env_ids=self.env_ids[rows])
            try:
                self._workers.append(_Worker(rows, world, memory, n, game.scenario))
            except OSError as e:
                number = f"{len(self._workers) + 1} of {num_workers}"
                self._end()
                raise errors.WorkerError(f"worker {number} cannot be started ({e.strerror}); ask for fewer workers") from e
        self.num_workers = num_workers
        self.timeout_s = timeout_s
        self.variant = self._answers("its start (a script must start workers under `if __name__ == '__main__':`)")[0]

    def _begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        self._inputs["mask"][:] = mask
        self._inputs["episodes"][:] = episodes
        if seeds is not None:
            self._inputs["seeds"][:] = seeds
        self._tell(_RESET if seeds is None else _RESET_WITH_SEEDS)

    def _step(self, actions: np.ndarray) -> int:
        bad = (actions < 0) | (actions >= self.scenario.num_actions)
        if bad.any():
            return -1 - int(bad.argmax())
        self._inputs["actions"][:] = actions
        return sum(self._tell(_STEP))

    def _turns(self) -> np.ndarray:
        return np.concatenate(self._tell(_LOOK))

    @property
    def process_ids(self) -> list[int]:
        """Of the workers; empty once closed."""
        return [int(worker.process.pid or 0) for worker in self._workers]

    def close(self) -> None:
        """End the workers. May be called twice; the arrays stay readable."""
        self._end()

    def _tell(self, command: str) -> list[Any]:
        if not self._end.alive:
            raise errors.WorkerError("these environments are closed")
        return self._answers(f"a {command}", command)

    def _answers(self, task: str, command: str | None = None) -> list[Any]:
        """Return one answer per worker. Whatever goes wrong ends all workers: half a step is no state to go on from."""
        answers: dict[int, Any] = {}
        pending: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers}
        try:
            for pipe in pending if command else ():
                with contextlib.suppress(OSError):  # a dead worker: told when its answer does not come
                    pipe.send(command)
            while pending:
                ready = wait(list(pending), self.timeout_s)
                if not ready:
                    slow = ", ".join(map(str, pending.values()))
                    raise errors.WorkerError(f"{slow}: no answer to {task} within {self.timeout_s:g} s")
                for pipe in ready:
                    worker = pending.pop(pipe)
                    answers[worker.rows.start] = worker.answer(task)
        except BaseException:
            self.close()
            raise
        return [answers[worker.rows.start] for worker in self._workers]


class _Worker:
    """A worker process as its parent sees it. rows: which environments it has."""

    def __init__(self, rows: slice, *arguments: Any):
        context = get_context("spawn")
        self.rows = rows
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, rows, *arguments), daemon=True)
        self.process.start()
        theirs.close()  # the worker's copy is now the only one, so that its death ends the pipe

    def __str__(self) -> str:
        return f"worker with environments {self.rows.start}-{self.rows.stop - 1}"

    def answer(self, task: str) -> Any:
        try:
            failed, answer = self.pipe.recv()
        except (EOFError, OSError) as e:
            self.process.join(1.0)
            code = self.process.exitcode or 0
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {self.process.exitcode}"
            raise errors.WorkerError(f"{self} died ({how}) during {task}") from e
        if failed:
            error = errors.WorkerError(f"{self} failed in {task}: {answer.strip().splitlines()[-1]}")
            error.add_note(f"In the worker:\n{answer}")
            raise error
        return answer


def _end_workers(workers: list[_Worker]) -> None:
    """Workers hold nothing worth saving: they are killed, which works in whatever state they are."""
    for worker in workers:
        worker.pipe.close()
        worker.process.kill()
    for worker in workers:
        worker.process.join()
        worker.process.close()
    workers.clear()


def _arrays(num_envs: int, scenario: Scenario, memory: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return all arrays, in the memory of their name, which each keeps alive; without one, in memory of its own."""
    arrays = output_arrays(scenario) | _INPUTS
    return {name: np.ndarray((num_envs, *row), dtype, memory.get(name)) for name, (row, dtype) in arrays.items()}


def _serve(
    pipe: "Connection[Any, Any]", rows: slice, make: MakeWorld, memory: Any, num_envs: int, scenario: Scenario
) -> None:
    """Live as a worker: build the world, answer commands until the pipe ends."""
    jobs.follow_parent()
    try:
        shared = {name: view[rows] for name, view in _arrays(num_envs, scenario, memory).items()}
        world = make(rows.stop - rows.start, arrays={name: shared[name] for name in output_arrays(scenario)})
        pipe.send((False, world.variant))
        while True:
            try:
                command = pipe.recv()
            except (EOFError, OSError):  # of a parent that is gone
                return
            if command == _STEP:
                pipe.send((False, world.step(shared["actions"])))
            elif command == _LOOK:
                pipe.send((False, world.turns()))
            else:
                seeds = shared["seeds"] if command == _RESET_WITH_SEEDS else None
                world.begin(shared["mask"].copy(), seeds, shared["episodes"])
                pipe.send((False, None))
    except Exception:
        with contextlib.suppress(OSError):  # likewise
            pipe.send((True, traceback.format_exc()))
