"""`fixfirst resume`: going on with what was interrupted."""

from contextlib import suppress
from pathlib import Path

from fixfirst.base import errors, jobs
from fixfirst.cli.app import CyborgFlag, Json, Quiet
from fixfirst.cli.search import ExecutionFlags, tell_searches
from fixfirst.cli.train import tell_league, tell_training


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = jobs.Execution(),
    cyborg: CyborgFlag = None,
    report: bool = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Go on with an interrupted run. It ends with the same files as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    report
        As in `fixfirst search`.
    """
    from fixfirst.api import run_objects
    from fixfirst.api.league import LeagueRun
    from fixfirst.api.resuming import resume  # --help need not wait for it
    from fixfirst.runs import layout, manifest, rows

    was_finished = False
    with suppress(*errors.UNREADABLE):  # what is wrong with it, `resume` says
        runs = layout.find_runs(run, 1) if (run / layout.STUDY).is_file() else [run]
        was_finished = bool(runs) and all(manifest.status(one) == rows.Outcome.FINISHED for one in runs)
    result = resume(run, cyborg=cyborg, report=report, quiet=quiet, **vars(where))
    if was_finished:
        errors.note(f"{run} was finished already; this is its result")
    if isinstance(result, run_objects.TrainRun):
        tell_training(result, as_json)
    elif isinstance(result, LeagueRun):
        tell_league(result, as_json)
    else:
        tell_searches(result, report, as_json)
    return 0
