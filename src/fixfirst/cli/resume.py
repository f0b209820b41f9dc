"""`fixfirst resume`: an interrupted run goes on."""

from contextlib import suppress
from pathlib import Path

from fixfirst.base import errors
from fixfirst.cli.app import CyborgFlag, Json, Quiet
from fixfirst.cli.search import ExecutionFlags, Report, tell_searches
from fixfirst.cli.train import tell_league, tell_training
from fixfirst.runs import layout, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.execution import Execution


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = Execution(),
    cyborg: CyborgFlag = None,
    report: Report = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with an interrupted run. It ends with the same files as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    """
    from fixfirst.api import run_objects, running  # --help need not wait for it

    was_finished = False
    with suppress(*errors.UNREADABLE):  # what is wrong with it, `resume` says
        runs = layout.find_runs(run, 1) if RunFiles(run).study.is_file() else [run]
        was_finished = bool(runs) and all(map(sessions.is_finished, runs))
    result = running.resume(run, cyborg=cyborg, report=report, quiet=quiet, **vars(where))
    if was_finished:
        errors.note(f"{run} was finished already; this is its result")
    if isinstance(result, run_objects.TrainRun):
        tell_training(result, as_json)
    elif isinstance(result, run_objects.LeagueRun):
        tell_league(result, as_json)
    else:
        tell_searches(result, report, as_json)
