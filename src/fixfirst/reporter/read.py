"""A run directory as plain values, and what is missing of it.

Every file may be absent, half-written, damaged or of another version: what can be read is shown, and `Run.missing` says the
rest in words. Numbers are finite and below LARGEST, texts are printable; whoever reads a `Run` need not check again.
"""

import csv
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fixfirst.errors import FixfirstError, RunDirError, WorkflowError
from fixfirst.orders.workflow import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.runs.files import sha256
from fixfirst.runs.ledger import ACCEPTED, DEAD, Standings, Trial, read_trials, scheme_of, standings
from fixfirst.runs.run_dir import (
    BEST,
    CHOICE_COLUMNS,
    CHOICES,
    CONFIG,
    FINISHED,
    LEDGER,
    MANIFEST,
    RESULT,
    RUNNING,
    RUNTIME,
    RUNTIME_COLUMNS,
    TRAINING_COLUMNS,
    TRAINING_LOG,
    WARMUP,
    read_csv,
    read_manifest,
    read_toml,
    status,
)

SEARCH, TRAIN = "search", "train"  # kinds of runs
LARGEST = 1e9  # no quantity of a run comes near; what is larger is damage
ASSUMED_TEST_EPISODES = 1_000  # where the configuration is lost
UNREADABLE = (FixfirstError, OSError, ValueError, KeyError, csv.Error, RecursionError)
T = TypeVar("T")


@dataclass(frozen=True)
class Score:
    """Mean return of a frozen policy on held-out episodes, with a 95 % interval."""

    mean: float
    low: float
    high: float
    test_episodes: int | None
    trained_episodes: int | None
    seconds: float | None
    compliance: float | None  # share of judged repairs that kept to the order; None without one


@dataclass(frozen=True)
class Choice:
    """What the strategy believed of the order it chose; None where it did not ask the Gaussian process."""

    trial: int
    how: str
    ucb: float | None
    mean: float | None
    std: float | None


@dataclass(frozen=True)
class Updates:
    """The training log, all [n], one entry per update. Missing numbers are NaN."""

    trial: np.ndarray
    sampled: np.ndarray  # training episodes of the run so far
    env_return: np.ndarray
    compliance: np.ndarray
    collection_s: np.ndarray
    update_s: np.ndarray

    def __len__(self) -> int:
        return len(self.trial)


@dataclass(frozen=True)
class Session:
    """One time the run was worked on."""

    outcome: str
    seconds: float
    workers: int
    choosing_s: float


@dataclass(frozen=True)
class Run:
    """All that a report shows of a run."""

    folder: Path
    name: str
    kind: str
    status: str
    manifest: dict[str, Any]
    config: dict[str, Any]
    scheme: UnitScheme
    trials: tuple[Trial, ...]  # each has an order of the scheme, and a return unless its worker died
    standings: Standings | None  # of the accepted ones
    choices: tuple[Choice, ...]
    updates: Updates
    sessions: tuple[Session, ...]
    warmup: Score | None
    result: Score | None  # of a training
    policy_sha256: str | None  # of the best, or only, policy
    hashes: tuple[tuple[str, str], ...]  # file, sha256
    missing: tuple[str, ...]

    @property
    def warmup_episodes(self) -> int:
        """Training episodes before the first trial."""
        if self.warmup is not None and self.warmup.trained_episodes is not None:
            return self.warmup.trained_episodes
        if not len(self.updates) or not self.trials:
            return 0
        first = self.updates.trial == self.updates.trial[0]
        before = self.updates.sampled[first].max() - self.trials[0]["episodes"]
        return int(before) if math.isfinite(before) and before > 0 else 0

    @property
    def used_episodes(self) -> int:
        """Training episodes in all."""
        if self.kind == SEARCH:
            return self.warmup_episodes + sum(trial["episodes"] for trial in self.trials)
        if self.result is not None and self.result.trained_episodes is not None:
            return self.result.trained_episodes
        return int(np.nanmax(self.updates.sampled, initial=0))


def find_runs(arguments: Sequence[Path]) -> list[Path]:
    """The run directories meant: each argument, or, where it has runs as children, all of those, by name."""
    found: list[Path] = []
    for folder in arguments:
        if not folder.is_dir():
            raise RunDirError(f"{folder}: no such folder")
        try:
            children = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
        except OSError as e:
            raise RunDirError(f"{folder}: cannot be read ({e.strerror})") from e
        found += children or [folder]
    return list(dict.fromkeys(found))


def read_run(folder: Path) -> Run:
    """What there is of a run; RunDirError if there is nothing to show."""
    missing: list[str] = []
    manifest: dict[str, Any] = _attempt(lambda: read_manifest(folder), {}, MANIFEST, missing)
    config: dict[str, Any] = _attempt(lambda: read_toml(folder / CONFIG), {}, CONFIG, missing)
    scheme = _attempt(lambda: scheme_of(config), FIVE_TYPES, f"the unit types of {CONFIG}", missing)
    trials: tuple[Trial, ...] = _attempt(lambda: _clean_trials(read_trials(folder), scheme, missing), (), LEDGER, missing)
    kind = manifest.get("kind")
    if kind not in (SEARCH, TRAIN):
        kind = SEARCH if (folder / LEDGER).exists() else TRAIN

    updates = _attempt(lambda: _updates(folder), _no_updates(), TRAINING_LOG, missing)
    result = None
    if kind == TRAIN and (folder / RESULT).exists():
        result = _attempt(lambda: _score(folder / RESULT), None, RESULT, missing)
    if not trials and not len(updates) and result is None:
        why = f" ({'; '.join(missing)})" if missing else ""
        raise RunDirError(f"{folder}: there is nothing to report, no finished trial and no update{why}")

    choices: tuple[Choice, ...] = ()
    warmup = None
    found = None
    if kind == SEARCH:
        if not trials and not any(LEDGER in text for text in missing):
            missing.append(f"{LEDGER} has no finished trial.")
        if not config:
            missing.append(f"Without {CONFIG}, five unit types and {ASSUMED_TEST_EPISODES:,} test episodes are assumed.")
        test_episodes = _whole(config.get("test_episodes"), least=2) or ASSUMED_TEST_EPISODES
        found = _attempt(lambda: standings(trials, scheme, test_episodes), None, f"the ranking in {LEDGER}", missing)
        choices = _attempt(lambda: _choices(folder), (), CHOICES, missing)
        if not choices and not any(CHOICES in text for text in missing):
            missing.append(f"{CHOICES} has no rows: what was expected of the orders is not known.")
        if (folder / WARMUP / RESULT).exists():
            warmup = _attempt(lambda: _score(folder / WARMUP / RESULT), None, f"{WARMUP}/{RESULT}", missing)
        elif config.get("warmup_episodes") != 0 and "from_policy" not in config:
            missing.append(f"{WARMUP}/{RESULT} is not there: no comparison with the defender before any order.")
    elif result is None:
        missing.append(f"{RESULT} is not there: the final evaluation is not done.")
    if not len(updates) and not any(TRAINING_LOG in text for text in missing):
        missing.append(f"{TRAINING_LOG} has no rows: no learning curves.")

    sessions: tuple[Session, ...] = _attempt(lambda: _sessions(folder), (), RUNTIME, missing)
    state = _attempt(lambda: status(folder), "unknown", RUNTIME, [])
    if state == RUNNING:
        missing.insert(0, "The run is still being worked on; this is how far it is.")
    elif not (folder / RUNTIME).exists():
        state = "unknown"
        missing.append(f"{RUNTIME} is not there: whether the run ended, and how long it took, is not known.")
    elif state != FINISHED:
        missing.insert(
            0, f"The run did not end; this is how far it came. Go on with: fixfirst resume {printable(str(folder))}"
        )

    policy = found.best["policy_sha256"] if found is not None else None
    stored = _stored_sha256(folder / BEST if kind == SEARCH else folder)
    if kind == SEARCH and policy is not None and state == FINISHED and stored != policy:
        found_there = "another policy than" if stored else "no policy, not even"
        missing.append(f"{BEST}/ holds {found_there} the one the ledger names as best.")
    return Run(
        folder=folder,
        name=printable(folder.resolve().name),
        kind=kind,
        status=state,
        manifest=manifest,
        config=config,
        scheme=scheme,
        trials=trials,
        standings=found,
        choices=choices,
        updates=updates,
        sessions=sessions,
        warmup=warmup,
        result=result,
        policy_sha256=printable(str(policy or stored)) if policy or stored else None,
        hashes=_hashes(folder),
        missing=tuple(printable(text) for text in missing),
    )


def printable(text: str) -> str:
    """Without control characters and lone surrogates, which neither XML nor UTF-8 can hold."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in text)


def number(value: Any) -> float | None:
    """A finite number of a believable size, else None."""
    try:
        value = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and abs(value) <= LARGEST else None


def _whole(value: Any, least: int = 0) -> int | None:
    found = number(value)
    return int(found) if found is not None and found >= least and found == int(found) else None


def _attempt(read: Callable[[], T], otherwise: T, what: str, missing: list[str]) -> T:
    try:
        return read()
    except UNREADABLE as e:
        said = str(e) if isinstance(e, FixfirstError) else f"cannot be read ({e})"
        missing.append((said if what in said else f"{what}: {said}")[:300])
        return otherwise


def _clean_trials(rows: Sequence[Trial], scheme: UnitScheme, missing: list[str]) -> tuple[Trial, ...]:
    """Trials that can be shown; how many were left out is said."""
    texts = ("workflow", "status", "policy", "policy_sha256")
    trials = []
    for row in rows:
        trial = {key: value if key in texts else number(value) for key, value in row.items()}
        trial |= {key: None if row[key] is None else printable(str(row[key])) for key in texts}
        trial |= {key: _whole(row[key]) for key in ("id", "episodes", "updates", "parent", "judged", "contested")}
        if trial["episodes"] is not None and _has_order(trial, scheme) and _has_return(trial):
            trials.append(trial)
    if left_out := len(rows) - len(trials):
        missing.append(f"{LEDGER}: {left_out} of {len(rows)} trials are left out; their order or numbers make no sense.")
    return tuple(trials)


def _has_order(trial: Trial, scheme: UnitScheme) -> bool:
    try:
        Workflow.parse(trial["workflow"] or "", scheme)
    except WorkflowError:
        return False
    return True


def _has_return(trial: Trial) -> bool:
    needed = [trial[key] for key in ("return_mean", "return_se", "return_low", "return_high")]
    return trial["status"] == DEAD or (all(value is not None for value in needed) and trial["return_se"] >= 0)


def _choices(folder: Path) -> tuple[Choice, ...]:
    rows = read_csv(folder / CHOICES, CHOICE_COLUMNS)
    return tuple(
        Choice(trial, printable(row["how"]), number(row["ucb"]), number(row["mean"]), number(row["std"]))
        for row in rows
        if (trial := _whole(row["iteration"])) is not None
    )


def _updates(folder: Path) -> Updates:
    rows = read_csv(folder / TRAINING_LOG, TRAINING_COLUMNS)
    columns = ("Workflow_ID", "Total_Episodes_Sampled", "Env_Reward", "Compliance", "Collection_Time", "Update_Time")
    table = np.array([[_or_nan(row[column]) for column in columns] for row in rows]).reshape(len(rows), len(columns))
    return Updates(*table[np.isfinite(table[:, :3]).all(axis=1)].T)


def _or_nan(text: str) -> float:
    value = number(text)
    return math.nan if value is None else value


def _no_updates() -> Updates:
    return Updates(*np.empty((6, 0)))


def _sessions(folder: Path) -> tuple[Session, ...]:
    rows = read_csv(folder / RUNTIME, RUNTIME_COLUMNS)
    return tuple(
        Session(
            printable(row["outcome"]),
            max(0.0, number(row["seconds"]) or 0.0),
            _whole(row["workers"], least=1) or 1,
            max(0.0, number(row["choosing_seconds"]) or 0.0),
        )
        for row in rows
    )


def _score(path: Path) -> Score:
    """Of a result.json."""
    document = json.loads(path.read_bytes())
    evaluation = document.get("evaluation") if isinstance(document, dict) else None
    if not isinstance(evaluation, dict):
        raise RunDirError(f"{path}: damaged, it holds no evaluation")
    mean, low, high = (number(evaluation.get(key)) for key in ("mean", "low", "high"))
    if mean is None or low is None or high is None:
        raise RunDirError(f"{path}: damaged, its return or interval is not a number")
    kept = evaluation.get("compliance")
    rate = kept.get("compliance") if isinstance(kept, dict) else None
    return Score(
        mean,
        low,
        high,
        test_episodes=_whole(evaluation.get("episodes")),
        trained_episodes=_whole(document.get("episodes")),
        seconds=number(document.get("seconds")),
        compliance=number(rate.get("value")) if isinstance(rate, dict) else None,
    )


def _stored_sha256(folder: Path) -> str | None:
    """What policy.json says of its policy."""
    try:
        document = json.loads((folder / "policy.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return str(document["sha256"]) if isinstance(document, dict) and "sha256" in document else None


def _hashes(folder: Path) -> tuple[tuple[str, str], ...]:
    """Of the files the report was made from, so that a reader can tell whether they changed since."""
    found = []
    for name in (CONFIG, LEDGER, CHOICES, TRAINING_LOG, RESULT):
        try:
            found.append((name, sha256((folder / name).read_bytes())))
        except OSError:
            continue
    return tuple(found)


def accepted_trials(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial["status"] == ACCEPTED]


def workflow_of(run: Run, trial: Trial) -> Workflow:
    return Workflow.parse(trial["workflow"], run.scheme)
