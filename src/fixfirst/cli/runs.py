"""`fixfirst runs`, and `fixfirst` alone: what is here, and what to do next."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from fixfirst import __version__
from fixfirst.base.errors import ConfigError
from fixfirst.cli.app import Json, app, print_json
from fixfirst.reporter.overview import advice, runs_table
from fixfirst.reporter.screen import fitted, results
from fixfirst.runs.layout import RUNS
from fixfirst.runs.listing import summarise_runs


def runs_command(folder: Path = RUNS, /, *, as_json: Json = False) -> int:
    """List runs: what they looked for, whether they are running, finished or interrupted, the best order, and the time.

    Parameters
    ----------
    folder
        Where to look.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; runs are written to ./runs unless --out says otherwise")
    found = summarise_runs(folder)
    if as_json:
        print_json([asdict(run) | {"folder": str(run.folder)} for run in found])
    elif not found:
        print(f"no runs in {folder}; begin with: fixfirst search")
    else:
        console = results()
        console.print(runs_table(found, console.width))
    return 0


def welcome() -> int:
    """Say what this is, what is here, and what to do first."""
    here = summarise_runs(RUNS)
    lines = [f"fixfirst {__version__}: {app.help}", ""]
    if here:
        states = ", ".join(f"{count} {state}" for state, count in Counter(run.status for run in here).items())
        lines.append(f"{len(here)} run{'s'[: len(here) > 1]} here ({states}); `fixfirst runs` lists them.")
    lines.append("Next:" if here else "First:")
    steps = advice(here)
    width = max(len(command) for command, _ in steps)
    lines += [f"  {command:{width}}  {why}" for command, why in steps]
    lines += ["", "All commands: fixfirst --help; all about one: fixfirst search --help"]
    print(fitted(lines))
    return 0
