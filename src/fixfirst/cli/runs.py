"""`fixfirst runs`, and `fixfirst` alone: what is here, and what to do next."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from fixfirst import __version__
from fixfirst.base import errors
from fixfirst.base.tables import duration
from fixfirst.cli.app import Json, app, print_json
from fixfirst.reporter import screen
from fixfirst.reporter.run_list import RunSummary, summarise_runs
from fixfirst.runs import layout, rows, sessions

_COLOURS: dict[str, str] = {rows.Outcome.FINISHED: "green", sessions.RUNNING: "cyan", rows.Outcome.INTERRUPTED: "yellow"}
_WIDE, LONGEST_WORD = 110, 10
_MOST_LETTERS = 300  # of a cell


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
        screen.print_lines(f"no runs in {folder}; begin with: fixfirst search")
    else:
        console = screen.results()
        console.print(runs_table(runs, console.width))


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
    screen.print_lines(*lines)


def runs_table(runs: Sequence[RunSummary], width: int = _WIDE) -> Table:
    """Build a row per run, in the order given; with less room, fewer columns, and nothing is broken inside a word."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    left = ("run", "kind", "red agent", "status") if width >= _WIDE else ("run", "status")
    right = ("return", "time", "begun (UTC)") if width >= _WIDE else ("return",)
    fits = max(len(str(run.folder)) for run in runs) <= width // 2  # else paths are folded
    for name in left:
        table.add_column(name, overflow="fold", no_wrap=name == "run" and fits, min_width=len(rows.Outcome.INTERRUPTED))
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best order, or the one trained", overflow="fold", min_width=LONGEST_WORD)
    for run in runs:
        cells = {
            "run": str(run.folder),
            "kind": run.kind,
            "red agent": run.red_agent or "",
            "status": run.status,
            "return": "" if run.mean is None else f"{run.mean:.2f}",
            "time": "" if run.seconds is None else duration(run.seconds),
            "begun (UTC)": run.created[:16].replace("T", " "),
        }
        texts = [*(cells[column] for column in (*left, *right)), run.workflow or ""]
        plain = (errors.printable(text[:_MOST_LETTERS]) for text in texts)  # whatever the files hold
        table.add_row(*(Text(text, _COLOURS.get(text, "")) for text in plain))
    return table


def advice(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """Return what to type next, and why. Runs newest first."""
    if not runs:
        first = "a first answer in half a minute: which kind to fix first against B_line"
        full = ("fixfirst search", "the full answer, about a minute on two cores")
        return [("fixfirst search --total-episodes 30000", first), full]
    latest, folder = runs[0], errors.printable(str(runs[0].folder))
    steps = []
    if latest.status == rows.Outcome.INTERRUPTED:
        steps.append((f"{errors.command('resume', folder)}", "go on where it stopped"))
    if latest.kind == layout.Kind.SEARCH:
        steps.append((f"{errors.command('report', folder)}", "all results as one page"))
    if latest.mean is not None:
        steps.append((f"{errors.command('watch', folder)}", "see its best defender play"))
        steps.append((f"{errors.command('evaluate', folder)}", "evaluate it for 30, 50 and 100 steps"))
    return [*steps, ("fixfirst search --red-agent meander", "another attacker")]
