"""`fixfirst search`, the main job."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.cli.app import RARE, Again, Json, Quiet, TableFiles, Whole, print_json
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs.layout import RunFiles
from fixfirst.settings import resolve, training
from fixfirst.settings.execution import Execution
from fixfirst.settings.search import SHOWN_DEFAULTS, SearchConfig

if TYPE_CHECKING:
    from fixfirst.api import run_objects

    SearchFlags = Any
else:
    PUBLISHED = [name for name, values in resolve.PRESETS.items() if values and values.get("workflow") != training.NONE]
    SearchFlags = flags_of(
        SearchConfig,
        without=("units", "workflow"),
        helps={"preset": f"default, or a published one: {', '.join(PUBLISHED)}."},
        defaults=SHOWN_DEFAULTS,
    )

ExecutionFlags = Annotated[Execution, Parameter(name="*", group=RARE["Workers"])]
Report = Annotated[bool, Parameter(help="End with a page about the run, as `fixfirst report` writes it.")]


@dataclass(frozen=True)
class Options:
    """What is no setting of a search, by the names that `ff.search` has for it."""

    seeds: Whole = 1
    """A study: the same search under so many seeds, counted from --seed, and what they say together."""
    out: Path | None = None
    """Where to write (runs/search-AGENT-SEED, a study: runs/study-AGENTS-SEEDS)."""
    units: Path | None = None
    """A TOML file that groups the hosts otherwise than the five types."""
    config: Path | None = None
    """A TOML file with settings, as config.toml of a run."""
    report: Report = True
    again: Again = False
    quiet: Quiet = False


def search_command(
    *,
    settings: Annotated[SearchFlags, Parameter(name="*")] = SearchFlags(),
    where: ExecutionFlags = Execution(),
    options: Annotated[Options, Parameter(name="*")] = Options(),
    tables: Annotated[TableFiles, Parameter(name="*", group=RARE["Files"])] = TableFiles(),
    as_json: Json = False,
) -> None:
    """What is each order worth? Trains one defender for all of them within an episode budget, and says how sure we are.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops cleanly;
    `fixfirst resume` goes on and ends with the same files. A plain list of red agents (b_line,meander) or of scenarios
    (a.yaml,tiny,generate:0-99) is a study: one search each, and what they say together.
    """
    from fixfirst.api import running  # --help need not wait for it

    tables.check(options.config, options.units)
    run = running.search(**vars(options), **vars(where), **given(settings))
    tables.write(run)
    tell_searches(run, options.report, as_json)


def tell_searches(run: "run_objects.SearchRun | run_objects.StudyRun", report: bool, as_json: bool) -> None:
    """Print the result, and what to do next."""
    from fixfirst.api import run_objects
    from fixfirst.reporter import results

    searches = [run.search] if isinstance(run, run_objects.SearchRun) else [member.search for member in run.searches]
    page = RunFiles(run.folder).page if report and RunFiles(run.folder).page.exists() else None
    if as_json:
        print_json(results.searches_document(searches, run.folder, page))
    else:
        results.print_searches(searches, run.folder, page)
