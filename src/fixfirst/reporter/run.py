"""One reader of a run directory."""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fixfirst.base import errors, files
from fixfirst.orders import order
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.runs.csv_logs import read_rows
from fixfirst.runs.layout import Kind, RunFiles
from fixfirst.runs.manifest import read_config, read_manifest
from fixfirst.runs.rows import ChoiceRow, MatrixRow, Outcome, SessionRow, Trial, UpdateRow, ValueRow
from fixfirst.runs.sessions import is_locked
from fixfirst.stats.across_seeds import RankedTrials, read_trials
from fixfirst.stats.answer import Answer
from fixfirst.stats.evaluation import Evaluation
from fixfirst.stats.network_facts import NetworkFacts

ASSUMED_TEST_EPISODES = 1_000  # where the configuration does not say
# Settings that do not decide what a run finds.
_NEUTRAL_SETTINGS = ("seed", "cyborg", "tensorboard", "log_episodes", "checkpoint_every")
_LOGGED = ("trial", "sampled", "env_reward", "compliance", "collection_s", "update_s")
_NUMBERS = np.dtype([(name, np.float64) for name in _LOGGED])
UNKNOWN = "unknown"  # the state of a run without a record of it
T = TypeVar("T")


class TrainingResult(NamedTuple):
    """What a training wrote at its end."""

    evaluation: Evaluation
    episodes: int  # it was trained on
    facts: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "TrainingResult | None":
        """Read it; None before there is one."""
        if not path.exists():
            return None
        facts = files.read_document(path, "result")
        return cls(Evaluation.from_dict(facts["evaluation"]), int(facts["episodes"]), facts)


def _part(file: str, otherwise: Any) -> Callable[[Callable[["Run"], T]], cached_property[T]]:
    """Return a part of a run that is read from `file` when it is first asked for."""

    def make(read: Callable[["Run"], T]) -> cached_property[T]:
        def read_part(run: "Run") -> T:
            try:
                return read(run)
            except errors.UNREADABLE as e:
                problem = str(e) if isinstance(e, errors.FixfirstError) else f"cannot be read ({e})"
                problem = problem if str(run.folder) in problem else f"{run.folder / file}: {problem}"
                if not run.lenient:
                    raise errors.RunDirError(problem) from e
                run.missing.append(errors.printable(problem[:300]))
                return otherwise

        return cached_property(read_part)

    return make


class Run:
    """All that the directory of a search or a training says; a part that cannot be believed raises RunDirError.

    lenient: such a part is empty instead, and `missing` says why; of texts in there, all are printable.
    """

    def __init__(self, folder: Path, *, lenient: bool = False):
        self.folder, self.files, self.lenient = folder, RunFiles(folder), lenient
        self.missing: list[str] = []  # what is not there, or cannot be believed, a line each
        self.manifest: dict[str, Any] = read_manifest(folder)
        self.kind = Kind(self.manifest["kind"])
        self.name = errors.printable(folder.resolve().name)

    @property
    def is_search(self) -> bool:
        return self.kind == Kind.SEARCH

    @property
    def is_separate(self) -> bool:
        """Does it train one network per order, the published way?"""
        return self.is_search and bool(self.config.get("separate", True))

    @property
    def seed(self) -> Any:
        return self.config.get("seed", self.manifest.get("seed"))

    @cached_property
    def status(self) -> str:
        """running, finished or interrupted; a lenient reader does not know where nothing is recorded. Of a finished run no
        lock is asked for.
        """
        outcome = self.sessions[-1].outcome if self.sessions else UNKNOWN if self.lenient else Outcome.INTERRUPTED
        return Outcome.RUNNING if outcome != Outcome.FINISHED and is_locked(self.folder) else outcome

    @property
    def is_running(self) -> bool:
        return self.status == Outcome.RUNNING

    @cached_property
    def result_settings(self) -> dict[str, str]:
        """The settings that decide what a run finds, as text; with the kind of run."""
        ignored = (*_NEUTRAL_SETTINGS, *(("workflow",) if self.is_search else ()))  # a search chooses it itself
        return {"kind": str(self.kind)} | {name: str(value) for name, value in self.config.items() if name not in ignored}

    @_part(RunFiles.config, {})
    def config(self) -> dict[str, Any]:
        return read_config(self.folder)

    @_part(f"the unit types of {RunFiles.config}", order.FIVE_TYPES)
    def scheme(self) -> UnitScheme:
        return UnitScheme.from_config(self.config.get("units"), self.config.get("scenario"))

    @_part(f"the scenario of {RunFiles.config}", None)
    def network(self) -> NetworkFacts | None:
        """Return what can be compared of its network; None if that cannot be read."""
        return NetworkFacts.of(self.scheme)

    @_part(RunFiles.runtime, ())
    def sessions(self) -> tuple[SessionRow, ...]:
        return tuple(read_rows(self.files.runtime, SessionRow))

    @_part(RunFiles.ledger, ())
    def trials(self) -> tuple[Trial, ...]:
        trials = tuple(read_trials(self.folder))
        for trial in trials:
            self.workflow_of(trial)
        return trials

    @_part(f"the ranking in {RunFiles.ledger}", None)
    def ranked_trials(self) -> RankedTrials | None:
        """Return how the accepted trials compare; None before there is one."""
        return RankedTrials.of(self.trials, self.scheme, int(self.config.get("test_episodes", ASSUMED_TEST_EPISODES)))

    @_part(RunFiles.rounds, ())
    def rounds(self) -> tuple[ValueRow, ...]:
        """Return what replicates earned under every known order after each complete round."""
        rows = list(read_rows(self.files.rounds, ValueRow))
        complete = max((row.round for row in rows if row.last), default=0)
        return tuple(row for row in rows if row.round <= complete)

    @_part(RunFiles.matrix, ())
    def matrix(self) -> tuple[MatrixRow, ...]:
        """Return what the defender of a league earned after each round against each attacker.

        A round that is being written is left out: it has fewer rows than the round before.
        """
        rows = tuple(read_rows(self.files.matrix, MatrixRow))
        counts = Counter(row.round for row in rows)
        last = max(counts, default=0)
        return tuple(row for row in rows if row.round < last or counts[last] >= counts.get(last - 1, 0))

    @_part(RunFiles.choices, ())
    def choices(self) -> tuple[ChoiceRow, ...]:
        return tuple(read_rows(self.files.choices, ChoiceRow))

    @_part(RunFiles.training_log, np.rec.fromarrays(np.empty((len(_LOGGED), 0)), dtype=_NUMBERS))
    def updates(self) -> np.recarray:
        """Return columns of the training log [n], an entry per update. Missing numbers are NaN."""
        cells = array("d")
        for row in read_rows(self.files.training_log, UpdateRow):
            cells.extend(np.nan if (value := getattr(row, name)) is None else value for name in _LOGGED)
        return np.rec.fromarrays(np.array(cells).reshape(-1, len(_LOGGED)).T, dtype=_NUMBERS)

    @_part(RunFiles.answer, None)
    def answer(self) -> Answer | None:
        """Of a search with one network for all orders, once it is finished."""
        return Answer.read(self.folder) if self.is_search else None

    @_part(RunFiles.result, None)
    def result(self) -> TrainingResult | None:
        """Of a training, once it is finished."""
        return None if self.is_search else TrainingResult.read(self.files.result)

    @_part(RunFiles.warmup_result, None)
    def warmup(self) -> TrainingResult | None:
        """Of the training before the first trial, without an order."""
        return TrainingResult.read(self.files.warmup_result)

    @_part(RunFiles.policy_json, None)
    def policy_sha256(self) -> str | None:
        """Return what policy.json says of the best, or only, policy; None if there is none."""
        path = RunFiles(self.files.best if self.is_search else self.folder).policy_json
        try:
            return errors.printable(str(files.read_document(path, "policy")["sha256"])) if path.exists() else None
        except (OSError, ValueError, KeyError) as e:
            raise errors.RunDirError(f"{path}: cannot be read ({e})") from e

    @property
    def hashes(self) -> tuple[tuple[str, str], ...]:
        """File and sha256 of what the run says, so that a reader of a report can tell whether it changed since."""
        hashes, here = [] if self.policy_sha256 is None else [("policy", self.policy_sha256)], self.files
        for path in (here.config, here.ledger, here.choices, here.training_log, here.matrix, here.result):
            with suppress(OSError, ValueError), files.open_regular(path, UpdateRow.largest_file) as file:
                hashes.append((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
        return tuple(hashes)

    @property
    def seconds(self) -> float | None:
        """Worked on, over all sessions; None where none is recorded."""
        return sum(session.seconds for session in self.sessions) if self.sessions else None

    @property
    def final_return(self) -> float | None:
        """What a run is judged by: the best order's return, or the trained policy's."""
        if self.answer is not None:
            return self.answer.orders[0].mean
        if self.is_search:
            return None if self.ranked_trials is None else self.ranked_trials.ranking.rows[0].mean
        return None if self.result is None else self.result.evaluation.mean

    @property
    def workflow(self) -> str | None:
        """The rule, the best order so far, or the one trained; None where there is none."""
        if self.answer is not None:
            return self.answer.rule
        if self.ranked_trials is not None:
            return str(self.ranked_trials.ranking.rows[0].workflow)
        return self.config.get("workflow") if self.kind == Kind.TRAIN else None

    def workflow_of(self, trial: Trial) -> Workflow:
        return Workflow.parse(trial.workflow, self.scheme)

    @property
    def used_episodes(self) -> int:
        """Training episodes in all."""
        if self.answer is not None:
            return self.answer.episodes
        if self.is_search:
            return sum(trial.episodes for trial in self.trials) + (0 if self.warmup is None else self.warmup.episodes)
        return int(self.updates.sampled.max(initial=0)) if self.result is None else self.result.episodes
