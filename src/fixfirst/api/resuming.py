"""`ff.resume`: going on with whatever was interrupted."""

from pathlib import Path
from typing import Literal

from fixfirst.api.league import LeagueRun, resume_league
from fixfirst.api.run_objects import SearchRun, StudyRun, TrainRun
from fixfirst.api.searching import resume_searches
from fixfirst.api.training import resume_training
from fixfirst.base import checks, errors, jobs
from fixfirst.runs import layout, manifest


def resume(
    run: str | Path,
    *,
    workers: int = 0,
    executor: Literal["inline", "process", "ray"] | None = None,
    ray_address: str | None = None,
    cpus_per_trial: int | None = None,
    cyborg: str | Path | None = None,
    report: bool = True,
    quiet: bool = False,
) -> SearchRun | StudyRun | TrainRun | LeagueRun:
    """Go on with an interrupted run; it ends with the same files as one that was never interrupted.

    run: a run directory, or the folder of a study: all of its searches that are not finished. cyborg: the checkout, for a
    run that plays in CybORG. The rest as in `ff.search`. Where versions or the machine are others than when the run was
    begun, stderr says so: the bytes may then differ.

    For example:

        run = ff.resume("runs/first", quiet=True)  # as `ff.search` or `ff.train` would have ended
    """
    folder = checks.check_path("run", run)
    report, quiet = checks.check_bool("report", report), checks.check_bool("quiet", quiet)
    kind = layout.kind_of(folder)
    manifest.refuse_links(folder)
    execution = jobs.Execution(workers, executor, ray_address, cpus_per_trial)
    if changes := manifest.changed_since(
        layout.read_manifest(folder, layout.STUDY if kind == layout.Kind.STUDY else layout.MANIFEST)
    ):
        errors.note(f"{folder} was begun elsewhere, so numbers may differ: {'; '.join(changes)}")
    checkout = None if cyborg is None else str(cyborg)
    if kind == layout.Kind.TRAIN:
        return resume_training(folder, checkout, workers=execution.workers, quiet=quiet)
    if kind == layout.Kind.LEAGUE:
        return resume_league(folder, quiet=quiet)
    return resume_searches(folder, execution, checkout, report=report, quiet=quiet)
