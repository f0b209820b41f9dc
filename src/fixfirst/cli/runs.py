"""`fixfirst runs`, and `fixfirst` alone: what is here, and what to do next."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fixfirst import __version__
from fixfirst.base import errors
from fixfirst.base.tables import Column, Table, duration, plain
from fixfirst.cli.app import Json, app, print_json
from fixfirst.reporter import screen
from fixfirst.reporter.run import Run
from fixfirst.runs import layout
from fixfirst.runs.rows import Outcome

_COLOURS: dict[str, str] = {Outcome.FINISHED: "green", Outcome.RUNNING: "cyan", Outcome.INTERRUPTED: "yellow"}
_COLUMNS = (  # what is not known yet is left empty
    Column("folder", "run", str),
    Column("kind", "kind"),
    Column("red_agent", "red agent", lambda agent: agent or ""),
    Column("status", "status"),
    Column("mean", "return", lambda mean: "" if mean is None else plain(mean)),
    Column("seconds", "time", lambda seconds: "" if seconds is None else duration(seconds)),
    Column("created", "begun (UTC)", lambda time: time[:16].replace("T", " ")),
    Column("workflow", "best order, or the one trained", lambda order: order or ""),
)
_WIDE, _FIRST = 110, (0, 3, 4, 7)  # characters in which all columns have room, and those that matter where they have none


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. What is not known yet is None."""

    folder: Path
    kind: str  # search, train, league, or ? where it cannot be told
    status: str  # running, finished, interrupted, or what is wrong with it
    created: str
    red_agent: str | None = None
    workflow: str | None = None  # the rule, the best order so far, or the one trained
    mean: float | None = None  # its return
    seconds: float | None = None  # worked on, over all times


def summarise_runs(folder: Path) -> list[RunSummary]:
    """Return the runs of a folder, newest first."""
    return sorted(map(summarise_run, layout.find_runs(folder)), key=lambda run: run.created, reverse=True)


def summarise_run(folder: Path) -> RunSummary:
    """Return a run in one line; one that cannot be read says why."""
    try:
        run = Run(folder)
    except errors.UNREADABLE as e:
        return RunSummary(folder, "?", errors.in_one_line(str(e)), "")
    created = str(run.manifest.get("created", ""))
    try:
        red_agent = "learned" if run.kind == layout.Kind.LEAGUE else str(run.config.get("red_agent", "?"))
        return RunSummary(folder, run.kind, run.status, created, red_agent, run.workflow, run.final_return, run.seconds)
    except errors.UNREADABLE as e:
        return RunSummary(folder, run.kind, errors.in_one_line(f"damaged: {e}"), created)


def runs_command(folder: Path = layout.RUNS, /, *, as_json: Json = False) -> None:
    """List runs: what they looked for, whether they are running, finished or interrupted, the best order, and the time.

    Parameters
    ----------
    folder
        Where to look.
    """
    if not folder.is_dir():
        raise errors.ConfigError(f"{folder}: no such folder; runs are written to ./runs unless --out says otherwise")
    runs = summarise_runs(folder)
    if as_json:
        print_json([asdict(run) | {"folder": str(run.folder)} for run in runs])
    elif not runs:
        screen.show(f"no runs in {folder}; begin with: fixfirst search")
    else:
        rows = tuple(tuple(vars(run).values()) for run in runs)
        columns = _COLUMNS if screen.results().width >= _WIDE else [_COLUMNS[number] for number in _FIRST]
        screen.show(Table(tuple(vars(runs[0])), rows, tuple(columns)), colours=_COLOURS)


def welcome() -> None:
    """Say what this is, what is here, and what to do first."""
    here = summarise_runs(layout.RUNS)
    lines = [f"fixfirst {__version__}: {app.help}", ""]
    if here:
        states = ", ".join(f"{count} {state}" for state, count in Counter(run.status for run in here).items())
        lines.append(f"{len(here)} run{'s'[: len(here) > 1]} here ({states}); `fixfirst runs` lists them.")
    lines.append("Next:" if here else "First:")
    steps = advice(here)
    width = max(len(command) for command, _ in steps)
    lines += [f"  {command:{width}}  {why}" for command, why in steps]
    lines += ["", "All commands: fixfirst --help; all about one: fixfirst search --help"]
    screen.show(*lines)


def advice(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """Return what to type next, and why. Runs newest first."""
    if not runs:
        first = "a first answer in half a minute: which kind to fix first against B_line"
        full = ("fixfirst search", "the full answer, about a minute on two cores")
        return [("fixfirst search --total-episodes 30000", first), full]
    latest, folder = runs[0], errors.printable(str(runs[0].folder))
    steps = []
    if latest.status == Outcome.INTERRUPTED:
        steps.append((f"{errors.command('resume', folder)}", "go on where it stopped"))
    if latest.kind == layout.Kind.SEARCH:
        steps.append((f"{errors.command('report', folder)}", "all results as one page"))
    if latest.mean is not None:
        steps.append((f"{errors.command('watch', folder)}", "see its best defender play"))
        steps.append((f"{errors.command('evaluate', folder)}", "evaluate it for 30, 50 and 100 steps"))
    return [*steps, ("fixfirst search --red-agent meander", "another attacker")]
