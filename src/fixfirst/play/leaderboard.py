"""The leaderboard of the challenge: 30, 50 and 100 steps against two red agents, and the sum of the six columns.

Nobody in the game knows when an episode will end, and none ends early: one of 100 steps begins with the one of 30 and the
one of 50. So 100 steps are played once against each red agent, and give three columns. These go up and down together: the
error of the total is that of the episodes' sums of three columns. The red agents are independent.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import hypot
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fixfirst.base import tables
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.play.evaluation import PROTOCOL_STEPS, EpisodeBatch, evaluate
from fixfirst.stats import intervals
from fixfirst.stats.evaluation import Evaluation, Evaluations
from fixfirst.stats.intervals import MeanInterval

LEADERBOARD_REDS = ("b_line", "meander")  # the third costs a defender nothing that does nothing without cause
LEADERBOARD_COLUMNS = tuple((red, steps) for steps in PROTOCOL_STEPS for red in LEADERBOARD_REDS)
COLUMN_NAMES = tuple(f"{red[0].upper()}{steps}" for red, steps in LEADERBOARD_COLUMNS)  # as in B30, M100


@dataclass(frozen=True)
class Published:
    """A row of the published table."""

    name: str
    columns: tuple[float, ...]  # mean returns of 1,000 episodes, in the order of LEADERBOARD_COLUMNS
    margin: float  # half of the total's 95 % interval; 0 where none is published

    @property
    def total(self) -> float:
        return round(sum(self.columns), 2)


LEADERBOARD = (
    #                                             B30    M30    B50    M50    B100    M100
    Published("CardiffUni, winner",             (-3.47, -5.64, -6.41, -8.69, -13.76, -16.60), margin=0.43),
    Published("best of all entries per column", (-3.47, -5.64, -5.85, -8.69, -11.39, -16.60), margin=0.0),
)  # fmt: skip


class Total(NamedTuple):
    """The sum of the six columns."""

    mean: float
    standard_error: float
    low: float  # 95 % interval
    high: float


@dataclass(frozen=True)
class LeaderboardScore(tables.Tabular):
    """What a frozen policy earned on the leaderboard."""

    columns: tuple[Evaluation, ...]  # in the order of LEADERBOARD_COLUMNS
    total: Total
    source: ClassVar[str] = "the CAGE Challenge 2 leaderboard (github.com/cage-challenge/cage-challenge-2)"  # of the others

    @classmethod
    def of(cls, played: Mapping[str, EpisodeBatch], judging: Judging = DEFAULT_JUDGING) -> "LeaderboardScore":
        """Of the longest episodes of the protocol, by red agent."""
        parts = {
            (red, steps): replace(played[red], rollout=played[red].rollout.until(steps))
            for red, steps in LEADERBOARD_COLUMNS
        }
        columns = tuple(evaluate(part, judging) for part in parts.values())
        sums = [np.sum([parts[red, steps].returns for steps in PROTOCOL_STEPS], axis=0) for red in LEADERBOARD_REDS]
        total = intervals.welch_of(float(sum(each.mean() for each in sums)), sums)
        return cls(columns, Total(total.mean, total.standard_error, total.low, total.high))

    @property
    def leads(self) -> dict[str, MeanInterval]:
        """The total less those of the published table, by their names: above 0 is better."""
        half = self.total.high - self.total.mean
        leads = ((row.name, self.total.mean - row.total, hypot(half, row.margin)) for row in LEADERBOARD)
        return {name: MeanInterval(lead, lead - apart, lead + apart) for name, lead, apart in leads}

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "variant": self.columns[0].variant,
            "episodes": self.columns[0].episodes,
            "columns": {name: asdict(cell) for name, cell in zip(COLUMN_NAMES, self.columns, strict=True)},
            "total": self.total._asdict(),
            "published": [
                {
                    "name": row.name,
                    "columns": dict(zip(COLUMN_NAMES, row.columns, strict=True)),
                    "total": row.total,
                    "margin": row.margin,
                    "lead": self.leads[row.name]._asdict(),
                }
                for row in LEADERBOARD
            ],
            "source": self.source,
        }

    def table(self) -> tables.Table:
        """Return a row per column of the leaderboard, and one for the total."""
        columns = Evaluations(self.columns).table()
        names = dict.fromkeys(columns.columns) | {"red_agent": "total", "variant": self.columns[0].variant}
        names |= {"episodes": sum(column.episodes for column in self.columns[: len(LEADERBOARD_REDS)])}
        return replace(columns, rows=(*columns.rows, tuple((names | self.total._asdict()).values())))

    def tables(self) -> list[tables.Table]:
        """Return the leaderboard as the challenge shows it, with the published rows."""
        columns = ("defender", *COLUMN_NAMES, "total", "low", "high")
        ours = ("this one", *(cell.mean for cell in self.columns), self.total.mean, self.total.low, self.total.high)
        published = ((row.name, *row.columns, row.total, None, None) for row in LEADERBOARD)
        return [tables.Table(columns, (ours, *published), (*columns[:-2], tables.INTERVAL))]
