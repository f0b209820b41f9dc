"""The final ranking: which orders cannot be told from the best.

k orders with mean returns m, standard errors s and e episodes each.

**Who may be best.** Order i is left out when "i is the best" can be rejected: some j leads it by more standard errors of
their difference, T_i = max_j (m_j - m_i) / sqrt(s_i^2 + s_j^2), than chance among k equal orders gives (one-sided Dunnett
test with i as the control, as in Hsu's multiple comparisons with the best). Only the hypothesis of the truly best
order can be rejected wrongly, so the tests need no further correction.

**A single winner** is declared when the highest mean leads *each* other by z standard errors of their difference. That needs
no correction for k: the danger is greatest with two equal orders (Gutmann & Maymin, Annals of Statistics 1987).

Each of the two gets half of 1 - confidence: with that confidence the best order is among those that may be best, and where
all orders are equal a winner is declared with probability at most 1 - confidence. `benchmarks/search.py` measures both, also
for searches, in which earlier returns decide which orders are tried.

**Winner's curse.** The highest of k noisy means is too high on average, the more the smaller the differences. So
`low`..`high` hold for all k orders at once (Sidak), the highest included; plain 95 % intervals would not. Evaluate a winner
on fresh episodes before quoting its return.

**Another training.** Standard errors speak of the episodes a policy was evaluated on, not of how much another training of
the same order would differ. `training_spread` estimates that from neighbours: most swaps of two neighbouring unit types
change little, so the typical difference between an order and the tried order nearest to it is mostly training. Where swaps
do matter the estimate is too large, and the verdict too careful. With the spread in their errors, claims speak of orders,
not of policies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fixfirst.base import distributions
from fixfirst.orders.order import Workflow


@dataclass(frozen=True)
class Ranked:
    """One row of the final table."""

    workflow: Workflow
    mean: float
    standard_error: float
    low: float  # simultaneous interval
    high: float
    maybe_best: bool  # cannot be told from the best


@dataclass(frozen=True)
class Ranking:
    """Orders by mean return, best first."""

    rows: tuple[Ranked, ...]
    confidence: float = distributions.CONFIDENCE

    @property
    def maybe_best(self) -> tuple[Workflow, ...]:
        """The orders that cannot be told from the best; it is one of them with the stated confidence."""
        return tuple(row.workflow for row in self.rows if row.maybe_best)

    @property
    def winner(self) -> Workflow | None:
        """The best order, if just one of at least two may be it."""
        return self.maybe_best[0] if len(self.maybe_best) == 1 < len(self.rows) else None

    def __str__(self) -> str:
        """Return a line per order; * marks those that cannot be told from the best."""
        return "\n".join(
            f"{place:3}{'*' if row.maybe_best else ' '} {row.workflow}  {row.mean:.2f} [{row.low:.2f}, {row.high:.2f}]"
            for place, row in enumerate(self.rows, start=1)
        )


def merge(orders: np.ndarray, values: np.ndarray, ses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replicates of an order as one observation: precision-weighted mean and its standard error. Sorted by order.

    orders [n, U], values [n], ses [n] (standard errors) -> the same with distinct orders.
    """
    # An error of exactly 0 (every episode earned the same) would claim infinite precision.
    precision = 1 / np.maximum(ses, 1e-6 * (np.ptp(values) or 1.0)) ** 2
    distinct, group = np.unique(orders, axis=0, return_inverse=True)
    total = np.bincount(group, precision)
    return distinct, np.bincount(group, precision * values) / total, 1 / np.sqrt(total)


def may_be_best(mean: np.ndarray, error: np.ndarray, level: float) -> np.ndarray:
    """[k] bool: whether a lead like T_i has at least probability `level` when i is as good as all others."""
    lead = (mean - mean[:, None]) / np.hypot(error[:, None], error)
    np.fill_diagonal(lead, -np.inf)
    largest = lead.max(axis=1)
    # Bounds decide most cases: that probability is at least one comparison's and at most the sum of all k - 1.
    single = distributions.normal_cdf(-largest)
    may = single >= level
    for i in np.flatnonzero(~may & ((len(mean) - 1) * single >= level)):
        others = np.delete(error, i)
        low, high = lead_p_bounds(largest[i], error[i], others) if len(others) > 4 * _GROUPS else (0.0, 1.0)
        may[i] = low >= level or (high >= level and lead_p_value(largest[i], error[i], others) >= level)
    return np.asarray(may)


# Even steps: the product below is nearly a step where the errors differ much.
Z = np.linspace(-6, 6, 121)
Z_WEIGHT = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()
for _constant in (Z, Z_WEIGHT):
    _constant.setflags(write=False)
_GROUPS = 24  # of orders with similar errors


def lead_p_value(lead: float, error: float, ses: np.ndarray) -> float:
    """Probability that some of k - 1 equally good orders leads an order by this many standard errors of the difference.

    1 - E_z prod_j Phi((lead * sqrt(s_i^2 + s_j^2) + s_i * z) / s_j); z, standard normal, is the noise of the order itself.
    """
    below = distributions.normal_cdf((lead * np.hypot(error, ses)[:, None] + error * Z) / ses[:, None]).prod(axis=0)
    return float(1 - below @ Z_WEIGHT)


def lead_p_bounds(lead: float, error: float, ses: np.ndarray) -> tuple[float, float]:
    """Between which numbers lead_p_value() lies, for a positive lead; cheap when there are thousands of orders.

    With r = s_i / s_j, a factor is Phi(lead * sqrt(1 + r^2) + r * z), its argument convex in r. So over a group of orders
    with similar errors it is largest at one end of their r, and smallest at an end or where lead * r / sqrt(1 + r^2) = -z.
    """
    groups = np.array_split(np.sort(error / ses), _GROUPS)
    count = np.array([len(group) for group in groups])
    first, last = (np.array([group[end] for group in groups])[:, None] for end in (0, -1))
    flat = np.where(lead > -Z, np.maximum(-Z, 0) / np.sqrt(np.maximum(lead**2 - Z**2, 1e-300)), np.inf)

    def value(r: np.ndarray) -> np.ndarray:
        return np.asarray(lead * np.sqrt(1 + r**2) + r * Z)

    smallest, largest = value(np.clip(flat, first, last)), np.maximum(value(first), value(last))
    powers = (distributions.normal_cdf(terms) ** count[:, None] for terms in (largest, smallest))
    low, high = (1 - power.prod(axis=0) @ Z_WEIGHT for power in powers)
    return float(low), float(high)


def t_over_normal(freedom: int, tail: float) -> float:
    """Return how much wider a t distribution is than a normal one at this tail."""
    return distributions.t_quantile(freedom, 1 - tail) / distributions.normal_quantile(1 - tail)


def training_spread(workflows: Sequence[Workflow], means: Sequence[float], standard_errors: Sequence[float]) -> float:
    """Standard deviation between trainings of one order, beyond evaluation noise; 0 with fewer than 4 orders.

    The median absolute difference of an order to its nearest tried one (all of them, if several are as near) estimates
    0.6745 * sqrt(2) * sqrt(spread^2 + error^2) for normal noise, and is not moved by the few swaps that matter.
    """
    if len(workflows) < 4:
        return 0.0
    signs = np.array([workflow.pair_signs() for workflow in workflows], np.float64)  # whole numbers, multiplied by BLAS
    discordant = (signs.shape[1] - signs @ signs.T) / 2  # [n, n]
    np.fill_diagonal(discordant, signs.shape[1] + 1)
    value = np.array(means, np.float64)
    near = discordant == discordant.min(axis=1, keepdims=True)
    differences = np.abs(value[:, None] - value)[near]
    variance = (np.median(differences) / (0.6745 * np.sqrt(2))) ** 2 - np.mean(np.square(standard_errors))
    return float(np.sqrt(max(variance, 0.0)))


def rank(
    workflows: Sequence[Workflow],
    means: Sequence[float],
    standard_errors: Sequence[float],
    episodes: Sequence[int] | None = None,
) -> Ranking:
    """Rank orders, one at least, by their returns; replicates of an order are averaged.

    episodes: how many each error was estimated from; the fewest decide how uncertain errors are. Without, they are exact.
    """
    mean, error, scheme = np.array(means, np.float64), np.array(standard_errors, np.float64), workflows[0].scheme
    orders = np.array([workflow.order for workflow in workflows])
    if len(set(workflows)) < len(workflows):
        orders, mean, error = merge(orders, mean, error)
    best_first = np.lexsort((*orders.T[::-1], -mean))
    orders, mean, error = orders[best_first], mean[best_first], error[best_first]

    k = len(mean)
    half_alpha = (1 - distributions.CONFIDENCE) / 2
    # An error of exactly 0 (every episode earned the same) would divide by 0.
    wide = np.maximum(error, 1e-9 * (np.ptp(mean) or 1.0))
    if episodes is not None:
        wide *= t_over_normal(min(episodes) - 1, half_alpha / k)
    maybe_best = may_be_best(mean, wide, half_alpha)
    if (mean[0] - mean[1:] > -distributions.normal_quantile(half_alpha / 2) * np.hypot(wide[0], wide[1:])).all():
        maybe_best[1:] = False
    half_width = distributions.normal_quantile((1 + distributions.CONFIDENCE ** (1 / k)) / 2) * wide
    rows = (
        Ranked(
            Workflow(tuple(orders[i].tolist()), scheme),
            mean=float(mean[i]),
            standard_error=float(error[i]),
            low=float(mean[i] - half_width[i]),
            high=float(mean[i] + half_width[i]),
            maybe_best=bool(maybe_best[i]),
        )
        for i in range(k)
    )
    return Ranking(tuple(rows))
