"""`fixfirst search`, the main job, and `fixfirst resume`, for what was interrupted."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli import outcome
from fixfirst.cli.app import RARE, Again, Csv, CyborgFlag, Json, Latex, Quiet, Whole, check_tables, write_tables
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs import layout, manifest
from fixfirst.settings import resolve as settings, training as config
from fixfirst.settings.execution import Execution
from fixfirst.settings.search import SHOWN_DEFAULTS, SearchConfig
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:
    SearchFlags = Any
    TrainFlags = Any
else:
    PUBLISHED = [name for name, values in settings.PRESETS.items() if values and values.get("workflow") != config.NONE]
    SearchFlags = flags_of(
        SearchConfig,
        without=("units", "workflow"),
        helps={"preset": f"default, or a published one: {', '.join(PUBLISHED)}."},
        defaults=SHOWN_DEFAULTS,
    )
    TrainFlags = flags_of(TrainConfig)

ExecutionFlags = Annotated[Execution, Parameter(name="*", group=RARE["Workers"])]


def search_command(
    *,
    settings: Annotated[SearchFlags, Parameter(name="*")] = SearchFlags(),
    where: ExecutionFlags = Execution(),
    seeds: Whole = 1,
    out: Path | None = None,
    units: Path | None = None,
    config: Path | None = None,
    report: bool = True,
    again: Annotated[Again, Parameter(group=RARE["Files"])] = False,
    csv: Annotated[Csv, Parameter(group=RARE["Files"])] = None,
    latex: Annotated[Latex, Parameter(group=RARE["Files"])] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """What is each order worth? Trains one defender for all of them within an episode budget, and says how sure we are.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops cleanly;
    `fixfirst resume` goes on and ends with the same files. A plain list of red agents (b_line,meander) or of scenarios
    (a.yaml,tiny,generate:0-99) is a study: one search each, and what they say together.

    Parameters
    ----------
    seeds
        A study: the same search under so many seeds, counted from --seed, and what they say together.
    out
        Where to write (runs/search-AGENT-SEED, a study: runs/study-AGENTS-SEEDS).
    units
        A TOML file that groups the hosts otherwise than the five types.
    config
        A TOML file with settings, as config.toml of a run.
    report
        End with a page about the run, as `fixfirst report` writes it.
    """
    from fixfirst.api import running  # --help need not wait for it

    check_tables(csv, latex, config, units)
    run = running.search(
        out=out,
        seeds=seeds,
        units=units,
        config=config,
        report=report,
        again=again,
        quiet=quiet,
        **vars(where),
        **given(settings),
    )
    write_tables(run, csv, latex)
    outcome.tell(run, report, as_json)
    return 0


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = Execution(),
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
    from fixfirst.api import running  # --help need not wait for it
    from fixfirst.runs import rows

    was_finished = False
    with suppress(errors.FixfirstError, OSError):  # what is wrong with it, `resume` says
        runs = layout.find_runs(run, 1) if (run / layout.STUDY).is_file() else [run]
        was_finished = bool(runs) and all(manifest.status(one) == rows.Outcome.FINISHED for one in runs)
    result = running.resume(run, cyborg=cyborg, report=report, quiet=quiet, **vars(where))
    if was_finished:
        errors.note(f"{run} was finished already; this is its result")
    outcome.tell(result, report, as_json)
    return 0
