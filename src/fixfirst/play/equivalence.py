"""Are two worlds the same to a policy? What it earns in both, with the interval of the difference and a test."""

from dataclasses import dataclass

from fixfirst.base import distributions
from fixfirst.stats import intervals
from fixfirst.stats.evaluation import Evaluation


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


def difference(first: Evaluation, second: Evaluation, margin: float) -> Difference:
    """Welch's interval of the difference of mean returns, and TOST against +-margin at 5 %."""
    mean = second.mean - first.mean
    gain = intervals.welch(mean, (first.standard_error**2, second.standard_error**2), (first.episodes, second.episodes))
    if gain.standard_error > 0:
        p_value = distributions.t_cdf(gain.freedom, (abs(mean) - margin) / gain.standard_error)
    else:
        p_value = float(abs(mean) >= margin)
    smallest = abs(mean) + distributions.t_quantile(gain.freedom, distributions.CONFIDENCE) * gain.standard_error
    return Difference(mean, gain.low, gain.high, margin, p_value, p_value < 1 - distributions.CONFIDENCE, smallest)
