"""What the ledger of a search says: its trials, and how the accepted orders rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fixfirst.base.errors import RunDirError
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.orders.ranking import Ranking, rank, training_spread
from fixfirst.runs.layout import LEDGER
from fixfirst.runs.logs import read_rows
from fixfirst.runs.rows import Trial


@dataclass(frozen=True)
class RankedTrials:
    """How the orders that passed the gate compare."""

    ranking: Ranking  # its errors include the spread
    spread: float  # standard deviation between two trainings of one order, estimated
    best: Trial  # the highest return (ties: the first) of the ranking's first order


def read_trials(folder: Path) -> list[Trial]:
    """All rows of a run's ledger, in order."""
    path = folder / LEDGER
    try:
        trials = read_rows(path, Trial)
    except OSError as e:
        raise RunDirError(f"{path}: cannot be read ({e.strerror})") from e
    for number, trial in enumerate(trials):
        if trial.id != number:
            raise RunDirError(f"{path}: line {number + 2} is not of trial {number}, or damaged")
    return trials


def rank_trials(trials: Sequence[Trial], scheme: UnitScheme, test_episodes: int) -> RankedTrials | None:
    """Accepted orders by return; None before there is one.

    `best` is of the first order, not of all trials: an order that was lucky once and tried again is judged by all of its
    trials.
    """
    rows = [trial for trial in trials if trial.accepted]
    if not rows:
        return None
    workflows = [Workflow.parse(row.workflow, scheme) for row in rows]
    means, errors = [row.earned for row in rows], [row.return_se or 0.0 for row in rows]
    spread = training_spread(workflows, means, errors)
    ranking = rank(workflows, means, np.hypot(errors, spread).tolist(), [test_episodes] * len(rows))
    first = ranking.rows[0].workflow
    of_first = [row for row, workflow in zip(rows, workflows, strict=True) if workflow == first]
    return RankedTrials(ranking, spread, max(of_first, key=lambda row: row.earned))
