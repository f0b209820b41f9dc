"""Attackers of a league's past, and where the next ones begin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fixfirst.base import seeds
from fixfirst.game import red_view, state
from fixfirst.learner.ppo import scale_logits
from fixfirst.policy.network import Network, Weights
from fixfirst.runs import rows
from fixfirst.settings.league import LeagueConfig

SCRATCH, PAST = "scratch", "an attacker of the past"  # where attackers begin, beside those that are shipped
_SOFTENED = 0.5  # the factor on the logits of one that goes on
_ON_HOSTS = (state.RedVerb.SCAN, state.RedVerb.EXPLOIT, state.RedVerb.ESCALATE)


class FrozenRed(NamedTuple):
    """An attacker of the past."""

    weights: Weights
    taken: float  # what blue earned against it when they last met, smoothed
    kind: rows.AttackerKind
    start: str
    round: int  # in which it was frozen
    order: int = 0  # under which they meet, among the league's


def draw(pool: Sequence[FrozenRed], rng: np.random.Generator, count: int) -> list[int]:
    """Return numbers of attackers, drawn without repetition; one that takes twice as much is drawn eight times as often."""
    weights = np.array([max(-red.taken, 1.0) ** 3 for red in pool])
    return sorted(rng.choice(len(pool), count, replace=False, p=weights / weights.sum()).tolist())


@dataclass(frozen=True)
class Starts:
    """Where attackers begin: every other one from one of the past, the rest from scratch and from shipped ones.

    One of the past goes on; the others begin with a preference for one host. fronts: orders under which defenders are
    attacked; attackers of all of them begin alike. targets: hosts that are preferred, by turns.
    """

    config: LeagueConfig
    spec: red_view.RedSpec
    shipped: Mapping[str, Weights]
    fronts: int
    targets: Sequence[int]

    def choose(self, number: int, pool: Sequence[FrozenRed], *, as_shipped: bool = False) -> tuple[str, Weights]:
        """Return the start of attacker `number`, by name. as_shipped: the first that is shipped, if there is any."""
        if as_shipped and self.shipped:
            name = next(iter(self.shipped))
            return name, scale_logits(self.shipped[name], _SOFTENED)
        others, turn = (SCRATCH, *self.shipped), number // self.fronts
        if turn % 2 and pool:
            rng = np.random.default_rng([self.config.seed, number])
            return PAST, scale_logits(pool[draw(pool, rng, 1)[0]].weights, _SOFTENED)
        name = others[turn // 2 % len(others)]
        weights = self._untrained(number) if name == SCRATCH else scale_logits(self.shipped[name], _SOFTENED)
        target = self.targets[(turn // 2 + turn // 2 // len(others)) % len(self.targets)]  # all hosts with all starts
        preferred = [choice.verb in _ON_HOSTS and choice.target == target for choice in self.spec.choices]
        bias = weights["actor.4.bias"] + np.float32(self.config.preference) * np.array(preferred, np.float32)
        return name, {**weights, "actor.4.bias": bias}

    def _untrained(self, number: int) -> dict[str, np.ndarray]:
        seed = seeds.stream_seed(self.config.seed, "start", number)
        last_layer = self.config.red_ppo.last_layer
        return Network.drawn(self.spec.inputs, self.spec.actions, seed, last_layer).as_weights()
