"""`ff.resume`: going on with whatever was interrupted."""

from pathlib import Path
from typing import Literal

from fixfirst.api.run_objects import SearchRun, StudyRun, TrainRun
from fixfirst.api.searching import resume_searches
from fixfirst.api.training import resume_training
from fixfirst.runs import Kind, kind_of
from fixfirst.searcher import Execution


def resume(
    run: str | Path,
    *,
    workers: int = 0,
    executor: Literal["inline", "process", "ray"] | None = None,
    ray_address: str | None = None,
    cpus_per_trial: int | None = None,
    report: bool = True,
    quiet: bool = False,
) -> SearchRun | StudyRun | TrainRun:
    """Go on with an interrupted run; it ends with the same bytes as one that was never interrupted.

    run: a run directory, or the folder of a study: all of its searches that are not finished. The rest as in `ff.search`.
    """
    folder = Path(run)
    if kind_of(folder) == Kind.TRAIN:
        return resume_training(folder, quiet=quiet)
    execution = Execution(workers, executor, ray_address, cpus_per_trial)
    return resume_searches(folder, execution, report=report, quiet=quiet)
