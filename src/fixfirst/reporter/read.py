"""A run directory as plain values, and what is missing of it.

Every file may be absent, half-written, damaged or of another version: what can be read is shown, and `RunData.missing` says
the rest in words. Numbers are of a believable size, texts are printable; whoever reads a `RunData` need not check again.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fixfirst.base.errors import FixfirstError, RunDirError, WorkflowError, printable
from fixfirst.base.files import read_file, read_json
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.runs.answers import Answer, read_answer
from fixfirst.runs.config_reading import ASSUMED_TEST_EPISODES, scheme_of, setting
from fixfirst.runs.files import read_own_json, sha256
from fixfirst.runs.layout import (
    ANSWER,
    BEST,
    CHOICES,
    CONFIG,
    LEDGER,
    MANIFEST,
    POLICY_JSON,
    RESULT,
    ROUNDS,
    RUNTIME,
    TRAINING_LOG,
    WARMUP,
    Kind,
)
from fixfirst.runs.ledger import RankedTrials, rank_trials
from fixfirst.runs.listing import UNREADABLE
from fixfirst.runs.lock import RUNNING, status
from fixfirst.runs.logs import read_rows
from fixfirst.runs.manifest import read_manifest, read_toml
from fixfirst.runs.rows import ChoiceRow, Outcome, Row, SessionRow, Trial, UpdateRow, ValueRow, number

UNKNOWN = "unknown"  # the state of a run without a record of it
WARMUP_RESULT = f"{WARMUP}/{RESULT}"
T = TypeVar("T")
R = TypeVar("R", bound=Row)


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
class RunData:
    """All that a report shows of a run."""

    folder: Path
    name: str
    kind: Kind
    status: str
    manifest: dict[str, Any]
    config: dict[str, Any]
    scheme: UnitScheme
    answer: Answer | None  # of a search with one network for all orders, once it is finished
    rounds: tuple[ValueRow, ...]  # of such a search, as far as it is: complete rounds only
    trials: tuple[Trial, ...]  # each has an order of the scheme, and a return unless its worker died
    ranked_trials: RankedTrials | None  # of the accepted ones
    choices: tuple[ChoiceRow, ...]
    updates: Updates
    sessions: tuple[SessionRow, ...]
    warmup: Score | None
    result: Score | None  # of a training
    policy_sha256: str | None  # of the best, or only, policy
    hashes: tuple[tuple[str, str], ...]  # file, sha256
    missing: tuple[str, ...]

    @property
    def is_search(self) -> bool:
        return self.kind == Kind.SEARCH

    @property
    def seed(self) -> Any:
        return setting(self.config, "seed", self.manifest.get("seed"))

    @property
    def warmup_episodes(self) -> int:
        """Training episodes before the first trial."""
        if self.warmup is not None and self.warmup.trained_episodes is not None:
            return self.warmup.trained_episodes
        if not len(self.updates) or not self.trials:
            return 0
        first = self.updates.trial == self.updates.trial[0]
        return max(0, int(self.updates.sampled[first].max()) - self.trials[0].episodes)

    @property
    def used_episodes(self) -> int:
        """Training episodes in all."""
        if self.answer is not None:
            return self.answer.episodes
        if self.is_search:
            return self.warmup_episodes + sum(trial.episodes for trial in self.trials)
        if self.result is not None and self.result.trained_episodes is not None:
            return self.result.trained_episodes
        return int(self.updates.sampled.max(initial=0))

    def workflow_of(self, trial: Trial) -> Workflow:
        return Workflow.parse(trial.workflow, self.scheme)


def read_run(folder: Path) -> RunData:
    """What there is of a run; RunDirError if there is nothing to show."""
    missing: list[str] = []
    manifest: dict[str, Any] = _attempt(lambda: read_manifest(folder), {}, MANIFEST, missing)
    config: dict[str, Any] = _attempt(lambda: read_toml(folder / CONFIG), {}, CONFIG, missing)
    scheme = _attempt(lambda: scheme_of(config), FIVE_TYPES, f"the unit types of {CONFIG}", missing)
    trials = _trials(folder, scheme, missing)
    updates = _updates(folder, missing)
    kind = _kind(folder, manifest)
    result = _score(folder, RESULT, missing) if kind == Kind.TRAIN else None
    answer = _attempt(lambda: read_answer(folder), None, ANSWER, missing) if kind == Kind.SEARCH else None
    if answer is None and (folder / ANSWER).exists() and kind == Kind.SEARCH:
        raise RunDirError(missing[-1])
    rounds: tuple[ValueRow, ...] = ()
    if kind == Kind.SEARCH and not setting(config, "separate", True) and answer is None:
        rounds = _rounds(folder, scheme, missing)
        if not rounds:
            raise RunDirError(f"{folder}: there is no answer to report yet; go on with: fixfirst resume {folder}")
    if not rounds and not trials and not len(updates) and result is None and answer is None:
        why = f" ({'; '.join(missing)})" if missing else ""
        raise RunDirError(f"{folder}: there is nothing to report, no finished trial and no update{why}")

    found: RankedTrials | None = None
    choices: tuple[ChoiceRow, ...] = ()
    warmup: Score | None = None
    if kind == Kind.SEARCH and answer is None and not rounds:
        found = _standings(trials, scheme, config, missing)
        choices = _choices(folder, missing)
        warmup = _score(folder, WARMUP_RESULT, missing)
        if not (folder / WARMUP_RESULT).exists() and _expects_warmup(config):
            missing.append(f"{WARMUP_RESULT} is not there: no comparison with the defender before any order.")
    elif result is None and answer is None and not rounds:
        _note_empty(RESULT, f"{RESULT} is not there: the final evaluation is not done.", missing)
    if not len(updates) and answer is None and not rounds:
        _note_empty(TRAINING_LOG, f"{TRAINING_LOG} has no rows: no learning curves.", missing)
    sessions = _sessions(folder, missing)
    state = _state(folder, missing)
    policy = None if found is None else found.best.policy_sha256
    stored = _stored_sha256(folder / BEST if kind == Kind.SEARCH else folder)
    if policy is not None and state == Outcome.FINISHED and stored != policy:
        found_there = "another policy than" if stored else "no policy, not even"
        missing.append(f"{BEST}/ holds {found_there} the one the ledger names as best.")
    return RunData(
        folder=folder,
        name=printable(folder.resolve().name),
        kind=kind,
        status=state,
        manifest=manifest,
        config=config,
        scheme=scheme,
        answer=answer,
        rounds=rounds,
        trials=trials,
        ranked_trials=found,
        choices=choices,
        updates=updates,
        sessions=sessions,
        warmup=warmup,
        result=result,
        policy_sha256=printable(policy or stored or "") or None,
        hashes=_hashes(folder),
        missing=tuple(map(printable, missing)),
    )


def _expects_warmup(config: dict[str, Any]) -> bool:
    return setting(config, "warmup_episodes") != 0 and setting(config, "from_policy") is None


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


def _note_empty(file: str, text: str, missing: list[str]) -> None:
    """Say that a file has no rows, or is not there, unless more was said of it already."""
    if not any(file in said for said in missing):
        missing.append(text)


# ---------------------------------------------------------------- rows


def _rows(
    path: Path, kind: type[R], things: str, missing: list[str], makes_sense: Callable[[R], bool] = lambda row: True
) -> tuple[R, ...]:
    """The rows of a log that can be shown, with printable texts; how many were left out is said."""
    damaged: list[str] = []
    rows: list[R] = _attempt(lambda: read_rows(path, kind, damaged.append), [], path.name, missing)
    kept = tuple(_printable_row(row) for row in rows if makes_sense(row))
    if left_out := len(damaged) + len(rows) - len(kept):
        said = f"{left_out} of {len(damaged) + len(rows)} {things} are left out; their order or numbers make no sense."
        missing.append(f"{path.name}: {said}")
    return kept


def _printable_row(row: R) -> R:
    texts = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}  # type: ignore[arg-type]
    changed = {k: printable(v) for k, v in texts.items() if isinstance(v, str) and not isinstance(v, Enum)}
    return dataclasses.replace(row, **changed)  # type: ignore[type-var]


def _trials(folder: Path, scheme: UnitScheme, missing: list[str]) -> tuple[Trial, ...]:
    return _rows(folder / LEDGER, Trial, "trials", missing, lambda trial: _has_order(trial, scheme))


def _has_order(trial: Trial, scheme: UnitScheme) -> bool:
    return _is_order(trial.workflow, scheme)


def _is_order(text: str, scheme: UnitScheme) -> bool:
    try:
        Workflow.parse(text, scheme)
    except WorkflowError:
        return False
    return True


def _rounds(folder: Path, scheme: UnitScheme, missing: list[str]) -> tuple[ValueRow, ...]:
    """What replicates earned under every known order after each complete round."""
    rows = _rows(folder / ROUNDS, ValueRow, "values", missing, lambda row: _is_order(row.workflow, scheme))
    complete = max((row.round for row in rows if row.last), default=0)
    return tuple(row for row in rows if row.round <= complete)


def _choices(folder: Path, missing: list[str]) -> tuple[ChoiceRow, ...]:
    rows = _rows(folder / CHOICES, ChoiceRow, "choices", missing)
    if not rows:
        _note_empty(CHOICES, f"{CHOICES} has no rows: what was expected of the orders is not known.", missing)
    return rows


def _updates(folder: Path, missing: list[str]) -> Updates:
    rows = _rows(folder / TRAINING_LOG, UpdateRow, "updates", missing)
    cells = [(row.trial, row.sampled, row.env_reward, row.compliance, row.collection_s, row.update_s) for row in rows]
    return Updates(*np.array(cells, np.float64).reshape(len(cells), 6).T)  # None becomes NaN


def _sessions(folder: Path, missing: list[str]) -> tuple[SessionRow, ...]:
    return _rows(folder / RUNTIME, SessionRow, "sessions", missing)


# ---------------------------------------------------------------- other files


def _kind(folder: Path, manifest: dict[str, Any]) -> Kind:
    """As the manifest says, else as the files look."""
    if manifest.get("kind") in (Kind.SEARCH, Kind.TRAIN):
        return Kind(manifest["kind"])
    return Kind.SEARCH if (folder / LEDGER).exists() else Kind.TRAIN


def _standings(
    trials: Sequence[Trial], scheme: UnitScheme, config: dict[str, Any], missing: list[str]
) -> RankedTrials | None:
    if not trials:
        _note_empty(LEDGER, f"{LEDGER} has no finished trial.", missing)
    if not config:
        missing.append(f"Without {CONFIG}, five unit types and {ASSUMED_TEST_EPISODES:,} test episodes are assumed.")
    test_episodes = _whole(setting(config, "test_episodes"), least=2) or ASSUMED_TEST_EPISODES
    return _attempt(lambda: rank_trials(trials, scheme, test_episodes), None, f"the ranking in {LEDGER}", missing)


def _state(folder: Path, missing: list[str]) -> str:
    """Whether somebody works on it, and how it ended; what is not as it should be comes first of all."""
    state = _attempt(lambda: status(folder), UNKNOWN, RUNTIME, [])
    if state == RUNNING:
        missing.insert(0, "The run is still being worked on; this is how far it is.")
    elif not (folder / RUNTIME).exists():
        missing.append(f"{RUNTIME} is not there: whether the run ended, and how long it took, is not known.")
        return UNKNOWN
    elif state == Outcome.INTERRUPTED:
        resume = f"fixfirst resume {printable(str(folder))}"
        missing.insert(0, f"The run did not end; this is how far it came. Go on with: {resume}")
    return state


def _score(folder: Path, file: str, missing: list[str]) -> Score | None:
    """Of a result.json, if there is one."""
    path = folder / file
    return _attempt(lambda: _read_score(path), None, file, missing) if path.exists() else None


def _read_score(path: Path) -> Score:
    document = read_own_json(path)
    evaluation = document.get("evaluation")
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
        document = read_json(folder / POLICY_JSON)
    except (OSError, ValueError):
        return None
    return str(document["sha256"]) if isinstance(document, dict) and "sha256" in document else None


def _hashes(folder: Path) -> tuple[tuple[str, str], ...]:
    """Of the files the report was made from, so that a reader can tell whether they changed since."""
    found = []
    for name in (CONFIG, LEDGER, CHOICES, TRAINING_LOG, RESULT):
        try:
            found.append((name, sha256(read_file(folder / name))))
        except (OSError, ValueError):
            continue
    return tuple(found)
