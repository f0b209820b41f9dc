"""Intervals of means: Student's t of one mean, Welch's of a sum or a difference of independent ones.

All hold with the same confidence (`base/distributions.py: CONFIDENCE`). looks: of how many intervals that must hold
together this is one (Bonferroni).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fixfirst.base import distributions


class Estimate(NamedTuple):
    """A mean, its standard error, and the degrees of freedom that error was estimated with."""

    mean: float
    standard_error: float
    freedom: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.interval()[1]

    def interval(self, looks: int = 1) -> tuple[float, float]:
        """Return both ends of the interval."""
        half = two_sided(self.freedom, looks) * self.standard_error
        return self.mean - half, self.mean + half


class MeanInterval(NamedTuple):
    """A mean and its interval; low and high are None where no interval can be given."""

    mean: float
    low: float | None
    high: float | None

    def __neg__(self) -> "MeanInterval":
        return MeanInterval(-self.mean, *(None if end is None else -end for end in (self.high, self.low)))

    def exceeds(self, margin: float = 0.0) -> bool:
        """Is it shown to be larger than the margin, up or down?"""
        return self.low is not None and self.high is not None and (self.low > margin or self.high < -margin)


def two_sided(freedom: float, looks: int = 1) -> float:
    """Return how many standard errors an interval reaches to either side."""
    return distributions.t_quantile(freedom, 1 - (1 - distributions.CONFIDENCE) / 2 / looks)


def estimate(values: np.ndarray | Sequence[float]) -> Estimate:
    """Estimate a mean from at least two independent values."""
    return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))), len(values) - 1)


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Estimate a mean from at least one value; an interval needs two."""
    ends = estimate(values).interval() if len(values) > 1 else (None, None)
    return MeanInterval(float(np.mean(values)), *ends)


def welch(mean: float, variances: Sequence[float], counts: Sequence[int]) -> Estimate:
    """Estimate a sum or a difference of independent means.

    variances: of each of these means, the square of its standard error. counts: of how many values each is the mean.
    """
    error = sum(variances) ** 0.5
    weights = sum(variance**2 / (count - 1) for variance, count in zip(variances, counts, strict=True))
    return Estimate(mean, error, error**4 / weights if weights else sum(counts) - len(counts))


def welch_of(mean: float, samples: Sequence[np.ndarray | Sequence[float]]) -> Estimate:
    """Estimate a sum or a difference of the means of independent samples, of at least two values each."""
    variances = [float(np.var(values, ddof=1) / len(values)) for values in samples]
    return welch(mean, variances, [len(values) for values in samples])
