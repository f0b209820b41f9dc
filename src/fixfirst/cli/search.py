"""`fixfirst search`: the main job."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.base import jobs
from fixfirst.cli.app import RARE, Again, Csv, Json, Latex, Quiet, Whole, print_json, write_tables
from fixfirst.cli.flags import flags_of, given
from fixfirst.learner import config, settings
from fixfirst.searcher.config import SHOWN_DEFAULTS, SearchConfig

if TYPE_CHECKING:
    from fixfirst.api import run_objects

    SearchFlags = Any
else:
    PUBLISHED = [name for name, values in settings.PRESETS.items() if values and values.get("workflow") != config.NONE]
    SearchFlags = flags_of(
        SearchConfig,
        without=("units", "workflow"),
        helps={"preset": f"default, or a published one: {', '.join(PUBLISHED)}."},
        defaults=SHOWN_DEFAULTS,
    )

ExecutionFlags = Annotated[jobs.Execution, Parameter(name="*", group=RARE["Workers"])]


def search_command(
    *,
    settings: Annotated[SearchFlags, Parameter(name="*")] = SearchFlags(),
    where: ExecutionFlags = jobs.Execution(),
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
    from fixfirst.api.searching import search  # --help need not wait for it

    run = search(
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
    tell_searches(run, report, as_json)
    return 0


def tell_searches(run: "run_objects.SearchRun | run_objects.StudyRun", report: bool, as_json: bool) -> None:
    """The result, and what to do next."""
    from fixfirst.api import run_objects
    from fixfirst.reporter import results
    from fixfirst.runs import layout

    searches = [run.search] if isinstance(run, run_objects.SearchRun) else [member.search for member in run.searches]
    page = run.folder / f"{layout.REPORT}.html"
    shown = page if report and page.exists() else None
    if as_json:
        print_json(results.searches_document(searches, run.folder, shown))
    else:
        results.print_searches(searches, run.folder, shown)
