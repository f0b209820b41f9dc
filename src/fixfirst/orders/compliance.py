"""Compliance: when a repair keeps to the order, how often a policy does so (with intervals), and the gate it must pass.

T steps, N episodes side by side, H = 13 hosts, U unit types. A *repair* is Remove or Restore. A host *needs repair* when red
holds a session on it before blue acts; the foothold User0 never does, because red cannot be driven off it (unless
`count_foothold`). A step is *judged* when it is a repair and some host needs repair.

rule           a judged repair is compliant if
no_higher      no unit type ranked above the repaired one needs repair
top            the repaired unit type is the highest one that needs repair
fixed_types    all unit types ranked above were already the target of some repair in this episode (every repair is judged)
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fixfirst.base import arguments, distributions
from fixfirst.orders.order import UnitScheme

if TYPE_CHECKING:
    from fixfirst.orders.repairs import Counts

Rule = Literal["no_higher", "top", "fixed_types"]
RULES = get_args(Rule)
NO_HIGHER, TOP, FIXED_TYPES = range(len(RULES))
BOOTSTRAP_SAMPLES = 1_000
MOST_CACHED_WEIGHTS = 1_000  # episodes: 8 MB


class Judging(arguments.Settings):
    """When a repair is in order. Which hosts form a unit type, each workflow says itself.

    For example:

        strict = ff.Judging(rule="top", count_foothold=True)  # as the published system's last form
    """

    rule: Rule = Field("no_higher", description="no_higher, top or fixed_types: when a repair is in order (docs/method.md).")
    count_foothold: bool = Field(False, description="Count User0, where red can never be evicted, as needing repair.")

    def never_needy(self, scheme: UnitScheme) -> int:
        """Return the set of hosts that never count as in need of repair: red's foothold, unless it is to be counted."""
        return 0 if self.count_foothold else 1 << scheme.scenario.start_id


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
    def of(cls, counts: "Counts", seed: int = 0) -> "Compliance":
        """Pool rates. Intervals are from a bootstrap over episodes: steps of one episode are not independent."""
        weights = _weights(len(counts.judged), seed)
        return cls(
            compliance=_rate(counts.compliant, counts.judged, weights),
            contested=_rate(counts.contested_compliant, counts.contested, weights),
            effectiveness=_rate(counts.effective, counts.repairs, weights),
            response=_rate(counts.responded, counts.needed, weights),
            repairs_per_episode=float(counts.repairs.mean()),
            lower_bound=_lower_bound(counts.compliant, counts.judged, weights),
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Compliance":
        """Return what `asdict` gave the values of."""
        rates = {name: Rate(**values[name]) for name in ("compliance", "contested", "effectiveness", "response")}
        return cls(**values | rates)


def _bootstrap_weights(n: int, seed: int) -> np.ndarray:
    """[B, N] how often each of n episodes is drawn; the same for all that have so many."""
    rng = np.random.default_rng([seed, n])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=BOOTSTRAP_SAMPLES).astype(float)
    weights.setflags(write=False)
    return weights


_cached_weights = lru_cache(maxsize=2)(_bootstrap_weights)  # a gate looks at policies again and again


def _weights(n: int, seed: int) -> np.ndarray:
    return (_cached_weights if n <= MOST_CACHED_WEIGHTS else _bootstrap_weights)(n, seed)


def _resampled(hits: np.ndarray, trials: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rates of the bootstrap samples in which anything was counted."""
    drawn = weights @ trials
    return (weights @ hits)[drawn > 0] / drawn[drawn > 0]


def _rate(hits: np.ndarray, trials: np.ndarray, weights: np.ndarray) -> Rate:
    total = int(trials.sum())
    if total == 0:
        return Rate(None, None, None, 0)
    tail = (1 - distributions.CONFIDENCE) / 2
    low, high = np.quantile(_resampled(hits, trials, weights), [tail, 1 - tail])
    return Rate(float(hits.sum() / total), float(low), float(high), total)


def _lower_bound(
    hits: np.ndarray, trials: np.ndarray, weights: np.ndarray, confidence: float = distributions.CONFIDENCE
) -> float | None:
    """One-sided bound: the smaller of the bootstrap's and Clopper-Pearson's.

    The bootstrap sees that violations come in clusters; Clopper-Pearson sees that a perfect record of few repairs proves
    little, where every bootstrap sample is perfect too.
    """
    total, successes = int(trials.sum()), int(hits.sum())
    if total == 0:
        return None
    exact = distributions.beta_quantile(successes, total - successes + 1, 1 - confidence) if successes else 0.0
    return float(min(np.quantile(_resampled(hits, trials, weights), 1 - confidence), exact))


GateRule = Literal["bound", "latest"]


class Gate(BaseModel):
    """What a policy must show before its order counts.

    bound: the frozen policy plays episodes of its own; the lower bound of its compliance reaches the threshold, with enough
    judged repairs. A training is looked at again and again, and whoever looks often enough is lucky once; so what a look
    accepts must be confirmed on further fresh episodes, and all confirmations of a training share its 5 %.
    latest: the published presets' rule, on training episodes: mean compliance of each environment's latest episode, with
    enough repairs in all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gate_rule: GateRule = Field(
        "bound", description="bound (compliance's lower bound on fresh episodes) or latest (the published rule)."
    )
    compliance_threshold: float = Field(
        0.95, gt=0, le=1, description="An order counts once the policy's compliance is this high with 95 % confidence."
    )
    min_judged: int = Field(50, ge=1, description="Judged repairs that the rule `bound` asks for.")
    min_repairs: int = Field(10, ge=0, description="Repairs that the rule `latest` asks for.")
    gate_episodes: int = Field(500, ge=2, description="Fresh episodes on which the rule `bound` looks at a policy.")
    min_episodes: int = Field(0, ge=0, description="Training episodes of one order before the gate may end it.")
    stop_when_compliant: bool = Field(False, description="Stop as soon as the gate is passed.")

    def accepts(self, measured: Compliance) -> bool:
        """`bound`: on evaluation episodes."""
        enough = measured.compliance.count >= self.min_judged
        return enough and measured.lower_bound is not None and measured.lower_bound >= self.compliance_threshold

    def confirms(self, counts: "Counts", number: int) -> bool:
        """`bound`: on other evaluation episodes, after a look accepted; the training's confirmation of this number, from 1.

        It may err with probability 5 % / (n (n + 1)): summed over any number of confirmations, 5 % at most.
        """
        confidence = 1 - (1 - distributions.CONFIDENCE) / (number * (number + 1))
        bound = _lower_bound(counts.compliant, counts.judged, _weights(len(counts.judged), 0), confidence)
        return counts.judged.sum() >= self.min_judged and bound is not None and bound >= self.compliance_threshold

    def accepts_latest(self, latest: "Counts") -> bool:
        """`latest`: one episode per environment. Episodes without a judged repair have no compliance and do not count."""
        judged = latest.judged > 0
        if latest.repairs.sum() < self.min_repairs or not judged.any():
            return False
        return bool((latest.compliant[judged] / latest.judged[judged]).mean() >= self.compliance_threshold)
