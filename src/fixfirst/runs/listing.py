"""`fixfirst runs`: what is in a folder of runs, and what to do next with it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from fixfirst.errors import FixfirstError
from fixfirst.reporter.screen import duration
from fixfirst.runs.ledger import read_trials, scheme_of, standings
from fixfirst.runs.run_dir import (
    CONFIG,
    INTERRUPTED,
    MANIFEST,
    RESULT,
    RUNTIME,
    RUNTIME_COLUMNS,
    read_csv,
    read_manifest,
    read_toml,
    status,
)

RUNS = Path("runs")
DEPTH = 2  # a study holds its runs one level down


@dataclass(frozen=True)
class Run:
    """One row of the list. What is not known yet is None."""

    folder: Path
    kind: str  # search, train, or ? where it cannot be told
    status: str  # running, finished, interrupted, or what is wrong with it
    created: str
    red_agent: str | None = None
    workflow: str | None = None  # the best order so far, or the one trained
    mean: float | None = None  # its return
    seconds: float | None = None  # worked on, over all times


def find_runs(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Run directories below a folder, by name."""
    try:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError:
        return
    for child in children:
        if (child / MANIFEST).is_file():
            yield child
        elif depth > 1:
            yield from find_runs(child, depth - 1)


def describe(folder: Path) -> Run:
    """A run in one row; one that cannot be read says why."""
    try:
        manifest = read_manifest(folder)
    except FixfirstError as e:
        return Run(folder, "?", str(e), "")
    kind, created = str(manifest["kind"]), str(manifest.get("created", ""))
    try:
        config = read_toml(folder / CONFIG)
        workflow, mean = _best_of_search(folder, config) if kind == "search" else _trained(folder, config)
        times = [float(row["seconds"]) for row in read_csv(folder / RUNTIME, RUNTIME_COLUMNS)]
        return Run(
            folder,
            kind,
            status(folder),
            created,
            red_agent=str(config.get("red_agent", "?")),
            workflow=workflow,
            mean=mean,
            seconds=sum(times) if times else None,
        )
    except (FixfirstError, OSError, ValueError, TypeError, KeyError) as e:
        return Run(folder, kind, f"damaged: {e}", created)


def _best_of_search(folder: Path, config: dict[str, Any]) -> tuple[str | None, float | None]:
    found = standings(read_trials(folder), scheme_of(config), int(config["test_episodes"]))
    if found is None:
        return None, None
    best = found.ranking.rows[0]
    return str(best.workflow), best.mean


def _trained(folder: Path, config: dict[str, Any]) -> tuple[str | None, float | None]:
    workflow = str(config["workflow"])
    if not (folder / RESULT).exists():
        return workflow, None
    return workflow, float(json.loads((folder / RESULT).read_bytes())["evaluation"]["mean"])


def table(runs: Sequence[Run]) -> Table:
    """Newest first."""
    shown = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("run", "kind", "red agent", "status"):
        shown.add_column(name, overflow="fold")
    for name in ("return", "time", "begun (UTC)"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("best order, or the one trained", overflow="fold")
    colours = {"finished": "green", "running": "cyan", "interrupted": "yellow"}
    for run in runs:
        mean = "" if run.mean is None else f"{run.mean:.2f}"
        time = "" if run.seconds is None else duration(run.seconds)
        state = f"[{colours[run.status]}]{run.status}[/]" if run.status in colours else _plain(run.status)
        created = _plain(run.created[:16].replace("T", " "))
        name, kind, red, workflow = (_plain(str(text or "")) for text in (run.folder, run.kind, run.red_agent, run.workflow))
        shown.add_row(name, kind, red, state, mean, time, created, workflow)
    return shown


def _plain(text: str) -> str:
    """Text from a file, for rich: brackets in it are not markup."""
    return text.replace("[", r"\[")


def advice(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What to type next, and why. Runs newest first."""
    if not runs:
        return [
            (
                "fixfirst search --total-episodes 30000",
                "a first answer in half a minute: which kind to fix first against B_line",
            ),
            ("fixfirst search", "the real thing: 100,000 training episodes, about a minute"),
        ]
    latest = runs[0]
    steps = []
    if latest.status == INTERRUPTED:
        steps.append((f"fixfirst resume {latest.folder}", "go on where it stopped"))
    if latest.kind == "search":
        steps.append((f"fixfirst report {latest.folder}", "the whole story as one page"))
    if latest.mean is not None:
        steps.append((f"fixfirst watch {latest.folder}", "see its best defender play"))
        steps.append((f"fixfirst evaluate {latest.folder}", "judge it on CAGE2's protocol"))
    return [*steps, ("fixfirst search --red-agent meander", "another attacker")]
