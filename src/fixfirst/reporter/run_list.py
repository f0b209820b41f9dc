"""The runs of a folder, a line each."""

from dataclasses import dataclass
from pathlib import Path

from fixfirst.base import errors
from fixfirst.reporter.run import Run
from fixfirst.runs.layout import Kind, find_runs


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
    return sorted(map(summarise_run, find_runs(folder)), key=lambda run: run.created, reverse=True)


def summarise_run(folder: Path) -> RunSummary:
    """Return a run in one line; one that cannot be read says why."""
    try:
        run = Run(folder)
    except errors.UNREADABLE as e:
        return RunSummary(folder, "?", errors.in_one_line(str(e)), "")
    created = str(run.manifest.get("created", ""))
    try:
        red_agent = "learned" if run.kind == Kind.LEAGUE else str(run.config.get("red_agent", "?"))
        return RunSummary(folder, run.kind, run.status, created, red_agent, run.workflow, run.final_return, run.seconds)
    except errors.UNREADABLE as e:
        return RunSummary(folder, run.kind, errors.in_one_line(f"damaged: {e}"), created)
