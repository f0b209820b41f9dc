"""Where trainings run: the contract that `inline`, `process` and `ray` keep.

Jobs as in `JobProcess`: functions of (argument, tell, interrupt) that can be imported.
An executor is given the user's interrupt: wait() cancels by itself once it is true.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from fixfirst.base.jobs import Job

OnProgress = Callable[[Any, Any], None]  # (key, message)

POLL_S = 0.1  # how often an interrupt is looked for
SAVE_S = 10.0  # for cancelled jobs to save themselves


@dataclass(frozen=True)
class Finished:
    """The end of a job. `died`: why its worker is gone, if it is; then there is no result."""

    key: Any
    result: Any = None
    died: str | None = None
    node_lost: bool = False  # its whole machine is gone: no fault of the job


class Executor(Protocol):
    """Runs jobs; the order in which they finish is not defined."""

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
