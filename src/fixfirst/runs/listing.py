"""What is in a folder of runs, a line each."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base.errors import FixfirstError, RunDirError, in_one_line
from fixfirst.runs.answers import read_answer
from fixfirst.runs.config_reading import ASSUMED_TEST_EPISODES, scheme_of, setting
from fixfirst.runs.files import check_same_run, read_own_json
from fixfirst.runs.layout import CONFIG, MANIFEST, RESULT, RUNTIME, Kind
from fixfirst.runs.ledger import rank_trials, read_trials
from fixfirst.runs.lock import status
from fixfirst.runs.logs import read_rows
from fixfirst.runs.manifest import read_manifest, read_toml
from fixfirst.runs.rows import SessionRow, number

DEPTH = 2  # a study holds its runs one level down
# What reading a damaged run may raise.
UNREADABLE = (FixfirstError, OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. What is not known yet is None."""

    folder: Path
    kind: str  # search, train, or ? where it cannot be told
    status: str  # running, finished, interrupted, or what is wrong with it
    created: str
    red_agent: str | None = None
    workflow: str | None = None  # the rule, the best order so far, or the one trained
    mean: float | None = None  # its return
    seconds: float | None = None  # worked on, over all times


def find_runs(folder: Path, depth: int = DEPTH) -> list[Path]:
    """Run directories below a folder, by name; a folder that cannot be read has none."""
    return list(_find(folder, depth))


def _find(folder: Path, depth: int) -> Iterator[Path]:
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return
    for child in children:
        with suppress(OSError):  # one that cannot be looked into does not hide the others
            if (child / MANIFEST).is_file():
                yield child
            elif depth > 1 and child.is_dir():
                yield from _find(child, depth - 1)


def summarise_runs(folder: Path) -> list[RunSummary]:
    """The runs of a folder, newest first."""
    return sorted(map(summarise_run, find_runs(folder)), key=lambda run: run.created, reverse=True)


def summarise_run(folder: Path) -> RunSummary:
    """A run in one line; one that cannot be read says why."""
    try:
        manifest = read_manifest(folder)
    except UNREADABLE as e:
        return RunSummary(folder, "?", in_one_line(str(e)), "")
    kind, created = str(manifest["kind"]), str(manifest.get("created", ""))
    try:
        config = read_toml(folder / CONFIG)
        workflow, mean = _best_of_search(folder, config) if kind == Kind.SEARCH else _trained(folder, config)
        times = [session.seconds for session in read_rows(folder / RUNTIME, SessionRow)]
        return RunSummary(
            folder,
            kind,
            status(folder),
            created,
            red_agent=str(setting(config, "red_agent", "?")),
            workflow=workflow,
            mean=mean,
            seconds=sum(times) if times else None,
        )
    except UNREADABLE as e:
        return RunSummary(folder, kind, in_one_line(f"damaged: {e}"), created)


def _best_of_search(folder: Path, config: dict[str, Any]) -> tuple[str | None, float | None]:
    if not setting(config, "separate", True):
        answer = read_answer(folder)
        return (None, None) if answer is None else (answer.rule, answer.orders[0].mean)
    test_episodes = number(setting(config, "test_episodes", ASSUMED_TEST_EPISODES))
    if test_episodes is None or test_episodes < 2:
        raise RunDirError(f"{folder / CONFIG}: damaged, test_episodes is not a number from 2 on")
    found = rank_trials(read_trials(folder), scheme_of(config), int(test_episodes))
    if found is None:
        return None, None
    best = found.ranking.rows[0]
    return str(best.workflow), best.mean


def _trained(folder: Path, config: dict[str, Any]) -> tuple[str | None, float | None]:
    workflow = str(setting(config, "workflow", "?"))
    if not (folder / RESULT).exists():
        return workflow, None
    result = read_own_json(folder / RESULT)
    check_same_run(result, folder)
    if (mean := number(result["evaluation"]["mean"])) is None:
        raise RunDirError(f"{folder / RESULT}: damaged, its return is not a number")
    return workflow, mean
