"""What a frozen policy earned over many episodes of one game, and how it kept to its order, as numbers."""

from dataclasses import dataclass, field, fields
from typing import Any

from fixfirst.base import distributions, tables
from fixfirst.game import parts
from fixfirst.orders.compliance import Compliance, Rate
from fixfirst.stats import intervals


@dataclass(frozen=True)
class Difference:
    """How far two evaluations of one policy lie apart, and whether that is less than a margin (two one-sided tests)."""

    mean: float  # second minus first
    low: float  # 95 % interval
    high: float
    margin: float
    p_value: float  # of "the true difference is at least the margin"
    equivalent: bool
    smallest_margin: float  # at which these episodes would show equivalence


@dataclass(frozen=True)
class Evaluation:
    """What a frozen policy earned, and how it kept to its order (None without one)."""

    red_agent: str
    steps: int
    variant: parts.VariantName
    episodes: int
    mean: float
    standard_error: float
    low: float  # 95 % interval of the mean
    high: float
    compliance: Compliance | None
    restores: float | None = None  # per episode, like all that follows; None: written by an earlier version
    removes: float | None = None
    costs: dict[str, float] = field(default_factory=dict)  # by part (`pricing.py: part_names`); their sum is minus the mean

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> "Evaluation":
        """Make one from what `asdict` gave, as in result.json."""
        facts = {f.name: document[f.name] for f in fields(cls) if f.name in document}
        compliance = facts.get("compliance")
        return cls(**facts | {"compliance": None if compliance is None else Compliance.from_dict(compliance)})

    def difference(self, second: "Evaluation", margin: float) -> Difference:
        """Return how another world differs: Welch's interval of the mean returns, and TOST against +-margin at 5 %."""
        mean, variances = second.mean - self.mean, (self.standard_error**2, second.standard_error**2)
        gain = intervals.welch(mean, variances, (self.episodes, second.episodes))
        if gain.standard_error > 0:
            p_value = distributions.t_cdf(gain.freedom, (abs(mean) - margin) / gain.standard_error)
        else:
            p_value = float(abs(mean) >= margin)
        smallest = abs(mean) + distributions.t_quantile(gain.freedom, distributions.CONFIDENCE) * gain.standard_error
        return Difference(mean, gain.low, gain.high, margin, p_value, p_value < 1 - distributions.CONFIDENCE, smallest)


_PLAIN = ("red_agent", "steps", "variant", "episodes", "mean", "standard_error", "low", "high")
_RATES = ("compliance", "contested", "effectiveness", "response")
_JUDGED = tuple(
    tables.Column((rate, f"{rate}_low", f"{rate}_high"), rate, lambda value, low, high: str(Rate(value, low, high, 0)))
    for rate in ("compliance", "contested")
)


class Evaluations(list[Evaluation], tables.Tabular):
    """Evaluations of one policy in several games, as a list and as a table."""

    world = ""  # what was played beside the variant, in words: the scenario unless it is CAGE2, and a reward of its own

    def table(self) -> tables.Table:
        """Return a row per game; what is said of an order is None where there is none to keep to."""
        rates = (f"{rate}{part}" for rate in _RATES for part in ("", "_low", "_high"))
        columns = [*_PLAIN, *rates, "repairs_per_episode", "restores", "removes"]
        judged = _JUDGED if any(row.compliance is not None for row in self) else ()
        returns = (tables.Column("mean", "return"), tables.Column("standard_error", "± s.e."), tables.INTERVAL)
        repairs = (tables.Column("restores", "Restores"), tables.Column("removes", "Removes"))
        shown: tuple[str | tables.Column, ...] = ("red_agent", "steps", *returns, *judged, *repairs)
        return tables.Table(tuple(columns), tuple(_values(row) for row in self), shown)


def _values(row: Evaluation) -> tuple[Any, ...]:
    values: list[Any] = [getattr(row, column) for column in _PLAIN]
    for rate in _RATES:
        share = None if row.compliance is None else getattr(row.compliance, rate)
        values += [None] * 3 if share is None else [share.value, share.low, share.high]
    per_episode = None if row.compliance is None else row.compliance.repairs_per_episode
    return (*values, per_episode, row.restores, row.removes)
