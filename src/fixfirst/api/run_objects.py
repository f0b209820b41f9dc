"""A run as an object: what `ff.search`, `ff.train` and `ff.load_run` hand out."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.api.reporting import report
from fixfirst.errors import RunDirError
from fixfirst.learner import Policy, TrainConfig, load_policy, resolve
from fixfirst.orders import CONFIDENCE, Ranking
from fixfirst.play import Evaluation
from fixfirst.reporter import WrittenReport
from fixfirst.runs import (
    BEST,
    CONFIG,
    POLICY_JSON,
    REPORT,
    RESULT,
    Comparison,
    Kind,
    Standings,
    Trial,
    compare,
    kind_of,
    read_toml,
)
from fixfirst.searcher import Search, SearchConfig, open_study


@dataclass(frozen=True)
class SearchRun:
    """A search: `ranking` is its result, `best` the policy of the first order."""

    search: Search

    def __repr__(self) -> str:
        return f"SearchRun({str(self.folder)!r}: {len(self.trials)} trials, {len(self.ranking.rows)} orders passed the gate)"

    @property
    def folder(self) -> Path:
        return self.search.folder

    @property
    def config(self) -> SearchConfig:
        return self.search.config

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, also those that did not pass the gate."""
        return tuple(self.search.trials)

    @property
    def standings(self) -> Standings | None:
        """The ranking with what it rests on; None if no order passed the gate."""
        return self.search.standings()

    @property
    def ranking(self) -> Ranking:
        """The orders that passed the gate, best first; without rows if none did."""
        return Ranking((), CONFIDENCE) if self.standings is None else self.standings.ranking

    @property
    def best(self) -> Policy | None:
        """The policy of the ranking's first order; None if no order passed the gate."""
        return load_policy(self.folder / BEST) if (self.folder / BEST / POLICY_JSON).exists() else None

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about it; see `ff.report`."""
        return report(self.folder, out, **options)


@dataclass(frozen=True)
class TrainRun:
    """One training: what its policy earned, and whether it passed the gate. None while it is not finished."""

    folder: Path
    config: TrainConfig
    evaluation: Evaluation | None
    accepted: bool | None

    @property
    def best(self) -> Policy:
        """The trained policy."""
        return load_policy(self.folder)

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about it; see `ff.report`."""
        return report(self.folder, out, **options)


@dataclass(frozen=True)
class StudyRun:
    """Several searches that belong together."""

    folder: Path
    searches: tuple[SearchRun, ...]

    @property
    def comparisons(self) -> list[Comparison]:
        """What the seeds say together, for each red agent."""
        return compare([run.search.result for run in self.searches])

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about all of them; see `ff.report`."""
        return report(self.folder, self.folder / f"{REPORT}.html" if out is None else out, **options)


def load_run(path: str | Path) -> SearchRun | TrainRun | StudyRun:
    """A run directory, or the folder of a study, as an object. It may be running, finished or interrupted."""
    folder = Path(path)
    kind = kind_of(folder)
    if kind == Kind.TRAIN:
        return _load_training(folder)
    study = open_study(folder)
    searches = tuple(SearchRun(search) for search in study.searches)
    return StudyRun(folder, searches) if kind == Kind.STUDY else searches[0]


def _load_training(folder: Path) -> TrainRun:
    config = resolve(TrainConfig, read_toml(folder / CONFIG))
    path = folder / RESULT
    if not path.exists():
        return TrainRun(folder, config, None, None)
    try:
        result = json.loads(path.read_bytes())
        return TrainRun(folder, config, Evaluation.from_dict(result["evaluation"]), bool(result["accepted"]))
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunDirError(f"{path}: cannot be read ({e})") from e
