"""What the ledger of a search says: its trials as values, and how the accepted ones rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.errors import RunDirError
from fixfirst.orders.ranking import Ranking, rank, training_spread
from fixfirst.orders.workflow import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.runs.run_dir import LEDGER, TRIAL_COLUMNS, read_csv

Trial = dict[str, Any]  # a row of trials.csv, by column; an empty cell is None
ACCEPTED, NOT_COMPLIANT, DEAD = "accepted", "non_compliant", "failed"  # values of its `status`


@dataclass(frozen=True)
class Standings:
    """How the orders that passed the gate compare."""

    ranking: Ranking  # its errors include the spread
    spread: float  # standard deviation between two trainings of one order, estimated
    best: Trial  # the highest return (ties: the first) of the ranking's first order


def scheme_of(config: dict[str, Any]) -> UnitScheme:
    """How a run's config.toml groups the hosts."""
    return UnitScheme.from_dict(config["units"]) if "units" in config else FIVE_TYPES


def read_trials(folder: Path) -> list[Trial]:
    """All rows of a run's ledger, in order."""
    try:
        trials = [{key: _value(text) for key, text in row.items()} for row in read_csv(folder / LEDGER, TRIAL_COLUMNS)]
    except OSError as e:
        raise RunDirError(f"{folder / LEDGER}: cannot be read ({e.strerror})") from e
    for number, trial in enumerate(trials):
        if trial["id"] != number or not isinstance(trial["episodes"], int):
            raise RunDirError(f"{folder / LEDGER}: line {number + 2} is not of trial {number}, or damaged")
    return trials


def _value(text: str) -> Any:
    """A cell as what was written."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def accepted(trials: Sequence[Trial]) -> list[Trial]:
    """Those that passed the gate."""
    return [trial for trial in trials if trial["status"] == ACCEPTED]


def standings(trials: Sequence[Trial], scheme: UnitScheme, test_episodes: int) -> Standings | None:
    """Accepted orders by return; None before there is one.

    `best` is of the first order, not of all trials: an order that was lucky once and tried again is judged by all of its
    trials.
    """
    rows = accepted(trials)
    if not rows:
        return None
    workflows = [Workflow.parse(row["workflow"], scheme) for row in rows]
    means, errors = ([row[key] for row in rows] for key in ("return_mean", "return_se"))
    spread = training_spread(workflows, means, errors)
    ranking = rank(workflows, means, np.hypot(errors, spread).tolist(), [test_episodes] * len(rows))
    first = ranking.rows[0].workflow
    of_first = [row for row, workflow in zip(rows, workflows, strict=True) if workflow == first]
    return Standings(ranking, spread, max(of_first, key=lambda row: row["return_mean"]))
