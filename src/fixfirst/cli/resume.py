"""`fixfirst resume`: going on with what was interrupted."""

from pathlib import Path

from fixfirst.cli.app import Json, Quiet
from fixfirst.cli.search import ExecutionFlags, tell_searches
from fixfirst.cli.train import tell_training
from fixfirst.searcher import Execution


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = Execution(),
    report: bool = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Go on with an interrupted run. It ends with the same bytes as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    report
        As in `fixfirst search`.
    """
    from fixfirst.api import TrainRun, resume  # --help need not wait for it

    result = resume(run, report=report, quiet=quiet, **vars(where))
    if isinstance(result, TrainRun):
        tell_training(result, as_json)
    else:
        tell_searches(result, report, as_json)
    return 0
