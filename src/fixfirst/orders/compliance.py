"""When a repair is in order, and how well a policy keeps to its order, with intervals.

T steps, N episodes side by side, H = 13 hosts, U unit types. A *repair* is Remove or Restore. A host *needs repair* when red
holds a session on it before blue acts; the foothold User0 never does, because red cannot be driven off it (unless
`count_foothold`). A step is *judged* when it is a repair and some host needs repair.
When such a repair is compliant, `rules.py` says.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from fixfirst.game.settings import Settings
from fixfirst.orders.distributions import beta_quantile
from fixfirst.orders.rules import Rule

if TYPE_CHECKING:  # it is compiled, and whoever only reads settings need not wait for that
    from fixfirst.orders.judging import Counts

CONFIDENCE = 0.95
BOOTSTRAP_SAMPLES = 1_000
MOST_KEPT_WEIGHTS = 1_000  # episodes: 8 MB


class Judging(Settings):
    """When a repair is in order. Which hosts form a unit type, each workflow says itself.

    For example:

        strict = ff.Judging(rule="top", count_foothold=True)  # as the published system's last form
    """

    rule: Rule = Field("no_higher", description="no_higher, top or fixed_types: when a repair is in order (docs/method.md).")
    count_foothold: bool = Field(False, description="Count User0, where red can never be evicted, as needing repair.")


DEFAULT_JUDGING = Judging()


@dataclass(frozen=True)
class Rate:
    """A pooled rate with its interval; None where nothing was counted."""

    value: float | None
    low: float | None
    high: float | None
    count: int  # how often it was judged

    def __str__(self) -> str:
        return "-" if self.value is None else f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"  # type: ignore[operator]


@dataclass(frozen=True)
class Compliance:
    """How well a policy kept to its workflow, over all judged repairs of many episodes."""

    compliance: Rate
    contested: Rate  # the same where two or more unit types needed repair
    effectiveness: Rate  # repairs after which the host was clean
    response: Rate  # steps needing repair on which one was made
    repairs_per_episode: float
    lower_bound: float | None  # of compliance, one-sided 95 %

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> "Compliance":
        """From what `asdict` told."""
        rates = {name: Rate(**told[name]) for name in ("compliance", "contested", "effectiveness", "response")}
        return cls(**told | rates)


def summarise(counts: "Counts", seed: int = 0) -> Compliance:
    """Pooled rates with intervals from a bootstrap over episodes: steps of one episode are not independent."""
    weights = _weights(len(counts.judged), seed)
    return Compliance(
        compliance=_rate(counts.compliant, counts.judged, weights),
        contested=_rate(counts.contested_compliant, counts.contested, weights),
        effectiveness=_rate(counts.effective, counts.repairs, weights),
        response=_rate(counts.responded, counts.needed, weights),
        repairs_per_episode=float(counts.repairs.mean()),
        lower_bound=_lower_bound(counts.compliant, counts.judged, weights),
    )


def _bootstrap_weights(n: int, seed: int) -> np.ndarray:
    """[B, N] how often each of n episodes is drawn; the same for all that have so many."""
    rng = np.random.default_rng([seed, n])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=BOOTSTRAP_SAMPLES).astype(float)
    weights.setflags(write=False)
    return weights


_kept_weights = lru_cache(maxsize=2)(_bootstrap_weights)  # a gate looks at policies again and again


def _weights(n: int, seed: int) -> np.ndarray:
    return (_kept_weights if n <= MOST_KEPT_WEIGHTS else _bootstrap_weights)(n, seed)


def _resampled(hits: np.ndarray, trials: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rates of the bootstrap samples in which anything was counted."""
    drawn = weights @ trials
    return (weights @ hits)[drawn > 0] / drawn[drawn > 0]


def _rate(hits: np.ndarray, trials: np.ndarray, weights: np.ndarray) -> Rate:
    total = int(trials.sum())
    if total == 0:
        return Rate(None, None, None, 0)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(_resampled(hits, trials, weights), [tail, 1 - tail])
    return Rate(float(hits.sum() / total), float(low), float(high), total)


def lower_bound(counts: "Counts", confidence: float = CONFIDENCE) -> float | None:
    """Of compliance, one-sided; None where nothing was judged."""
    return _lower_bound(counts.compliant, counts.judged, _weights(len(counts.judged), 0), confidence)


def _lower_bound(hits: np.ndarray, trials: np.ndarray, weights: np.ndarray, confidence: float = CONFIDENCE) -> float | None:
    """One-sided bound: the smaller of the bootstrap's and Clopper-Pearson's.

    The bootstrap sees that violations come in clusters; Clopper-Pearson sees that a perfect record of few repairs proves
    little, where every bootstrap sample is perfect too.
    """
    total, successes = int(trials.sum()), int(hits.sum())
    if total == 0:
        return None
    exact = beta_quantile(successes, total - successes + 1, 1 - confidence) if successes else 0.0
    return float(min(np.quantile(_resampled(hits, trials, weights), 1 - confidence), exact))
