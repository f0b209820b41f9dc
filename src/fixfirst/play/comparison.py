"""Two defenders on the same episodes.

What happens by chance is a function of (seed, environment, episode, step, decision): both meet the same luck while they do
the same. The difference of two returns of one episode varies less than either: it is what is averaged.
"""

from dataclasses import dataclass, field

import numpy as np

from fixfirst.base import tables
from fixfirst.game import parts
from fixfirst.orders.order import UnitScheme
from fixfirst.play.evaluation import EpisodeBatch
from fixfirst.stats import intervals, pricing
from fixfirst.stats.intervals import MeanInterval

_WORST = 3  # worst episodes of each


@dataclass(frozen=True)
class PairedEpisode:
    """One episode, and what both earned in it."""

    number: int  # among those played, from 0
    first: float
    second: float


@dataclass(frozen=True)
class Paired:
    """Two defenders against one red agent."""

    red_agent: str
    steps: int
    variant: parts.VariantName
    episodes: int
    first: float  # mean return
    second: float
    mean: float  # second less first: above 0, the second is better
    standard_error: float
    low: float  # interval of the mean; those of several red agents hold together, with 95 % confidence
    high: float
    independent_episodes: int | None  # how many of each would be needed without common luck; None if they never differ
    worst_of_first: tuple[PairedEpisode, ...]
    worst_of_second: tuple[PairedEpisode, ...]
    # Of the mean: hosts by unit type, the service, Restores; the largest first.
    parts: dict[str, MeanInterval] = field(default_factory=dict)
    restores: tuple[float, float] = (0.0, 0.0)  # of each, per episode
    removes: tuple[float, float] = (0.0, 0.0)

    @property
    def different(self) -> bool:
        """Whether the interval says that one is better."""
        return self.low > 0 or self.high < 0


class Comparisons(list[Paired], tables.Tabular):
    """Two defenders against several red agents, as a list and as a table."""

    world = ""  # as of `Evaluations`

    def table(self) -> tables.Table:
        """Return a row per red agent."""
        columns = ("red_agent", "steps", "variant", "episodes", "first", "second", "mean", "standard_error", "low", "high")
        counted = ("first_restores", "second_restores", "first_removes", "second_removes")
        rows = tuple(
            (*(getattr(row, column) for column in columns), row.different, *row.restores, *row.removes) for row in self
        )
        signed = tables.Column("mean", "second - first", tables.signed)
        where = ("red_agent", *(("variant",) if len({row.variant for row in self}) > 1 else ()), "steps")
        in_print = (*where, "first", "second", signed, tables.INTERVAL, "different", *counted)
        return tables.Table((*columns, "different", *counted), rows, in_print)


def paired(first: EpisodeBatch, second: EpisodeBatch, comparisons: int = 1) -> Paired:
    """Compare two defenders on the same episodes, two at least.

    comparisons: how many are made and have to hold together (Bonferroni).
    """
    a, b = first.returns, second.returns
    gain = intervals.estimate(b - a)
    low, high = gain.interval(comparisons)
    apart = a.var(ddof=1) + b.var(ddof=1)
    return Paired(
        red_agent=first.game.attacker,
        steps=len(first.rollout.actions),
        variant=first.variant,
        episodes=len(a),
        first=float(a.mean()),
        second=float(b.mean()),
        mean=gain.mean,
        standard_error=gain.standard_error,
        low=low,
        high=high,
        independent_episodes=round(apart / gain.standard_error**2) if gain.standard_error > 0 else None,
        worst_of_first=_worst(a, a, b),
        worst_of_second=_worst(b, a, b),
        parts=_parts(first, second),
        restores=(first.count("Restore"), second.count("Restore")),
        removes=(first.count("Remove"), second.count("Remove")),
    )


def _parts(first: EpisodeBatch, second: EpisodeBatch) -> dict[str, MeanInterval]:
    """Take the difference apart: how much less the second pays for each part, with intervals that hold for all parts."""
    scheme = UnitScheme.by_type(first.game.scenario)
    gains = first.costs(scheme) - second.costs(scheme)  # [parts, B]
    names = pricing.part_names(scheme)
    differ = np.flatnonzero(np.abs(gains).max(axis=1) > 0).tolist()
    estimates = ((names[part], intervals.estimate(gains[part])) for part in differ)
    parts = ((name, MeanInterval(gain.mean, *gain.interval(len(differ)))) for name, gain in estimates)
    return dict(sorted(parts, key=lambda part: -abs(part[1].mean)))


def _worst(returns: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[PairedEpisode, ...]:
    """Return the episodes of the lowest returns [B], the worst first."""
    numbers = np.argsort(returns, kind="stable")[:_WORST].tolist()
    return tuple(PairedEpisode(number, float(first[number]), float(second[number])) for number in numbers)
