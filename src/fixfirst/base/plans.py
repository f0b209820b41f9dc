"""Plans of jobs (`jobs.py`), and running several of them side by side.

A *plan* is a generator: it yields the jobs to begin now (perhaps none), is sent the key and result of one that has ended,
and returns what came of it. A search and a tournament of trainings are plans, a study is several.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from fixfirst.base import jobs
from fixfirst.base.errors import WorkerError

MAX_ATTEMPTS = 2  # a job whose worker dies is tried once more
MAX_NODES_LOST = 10  # a job whose machine is lost begins again elsewhere, so often


@dataclass(frozen=True)
class Task:
    """A job of a plan: a function with its argument, and what messages call it."""

    run: jobs.Job
    argument: Any
    name: str
    may_fail: bool = False  # a job whose worker dies again and again ends the plan, unless it may


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a job that may fail, and whose worker died again and again."""

    reason: str


R = TypeVar("R")
Plan = Generator[Mapping[int, Task], tuple[int, Any], R]


def run_plans(
    plans: Sequence[Plan[None]],
    scheduler: jobs.Scheduler,
    on_progress: Callable[[int, int, Any], None],
    interrupt: object = False,
) -> None:
    """Run plans until all of them have ended, or no job is left because of an interrupt; then every plan is closed.

    A plan begins once there are fewer jobs than workers: of very many, the first have ended before the last begin.
    on_progress: called with the plan's index, the job's key and what the job tells.
    """
    tasks: dict[tuple[int, int], Task] = {}  # those that have not ended
    deaths: Counter[tuple[Any, bool]] = Counter()  # how often a job's worker died, with its node or without
    waiting = deque(enumerate(plans))

    def submit(index: int, new: Mapping[int, Task]) -> None:
        for key, task in new.items():
            tasks[index, key] = task
            scheduler.submit((index, key), task.run, task.argument)

    def begin() -> None:
        while waiting and len(tasks) < max(scheduler.workers, 1) and not interrupt:
            index, plan = waiting.popleft()
            submit(index, next(plan, {}))

    try:
        begin()
        while (ended := scheduler.wait(lambda key, message: on_progress(key[0], key[1], message))) is not None:
            if interrupt or (ended.died is None and ended.result is None):
                continue  # interrupted: what is finished lies in its folder, where `resume` finds it
            (index, key), task, result = ended.key, tasks.pop(ended.key), ended.result
            if ended.died is not None:
                deaths[ended.key, ended.node_lost] += 1
                if deaths[ended.key, ended.node_lost] < (MAX_NODES_LOST if ended.node_lost else MAX_ATTEMPTS):
                    on_progress(index, key, f"{task.name}: its worker is gone ({ended.died}); trying again")
                    submit(index, {key: task})
                    continue
                if not task.may_fail:
                    raise WorkerError(f"{task.name}: its worker died again and again ({ended.died})")
                result = Lost(ended.died)
            for node_lost in (False, True):
                deaths.pop((ended.key, node_lost), None)  # the plan may use the key for another job
            with suppress(StopIteration):
                submit(index, plans[index].send((key, result)))
            begin()
    finally:
        for plan in plans:
            plan.close()
