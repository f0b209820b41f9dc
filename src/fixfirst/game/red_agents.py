"""Whom blue plays against: red agents by their names, and mixtures of them.

A mixture is written b_line:0.5,runs/red:0.5, on the command line as in files; `parse_mixture` reads it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from fixfirst.base import errors
from fixfirst.game import attacker_files
from fixfirst.game.own_agents import own_agents
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import LEARNED, RedAgent

_MOST_NUMBERS = 256  # of attackers: a byte in a state
_ALIASES = {  # CybORG's class names and the spellings met in the field, all in lower case
    "bline": "b_line",
    "b_lineagent": "b_line",
    "redmeanderagent": "meander",
    "redmeander": "meander",
    "sleepagent": "sleep",
}


@dataclass(frozen=True)
class Mixture:
    """Red agents and how often each is met. A single name is a mixture of one."""

    text: str  # in our own spelling, with the seals of learned attackers: so files have it
    weights: Mapping[str, float] = field(compare=False, repr=False)  # by the name of an agent

    @property
    def learned(self) -> tuple[str, ...]:
        """Those that are learned attackers."""
        scripts = script_names()
        return tuple(name for name in self.weights if name not in scripts)

    @property
    def is_built_in(self) -> bool:
        """Whether all are scripts of ours, which are the same everywhere and for ever."""
        return all(name.upper() in RedAgent.__members__ for name in self.weights)


def parse_mixture(text: Any, scenario: Scenario | None = None) -> Mixture:
    """Return the mixture that a name, or names with weights, stand for, in any spelling that we know.

    scenario: where it is played; learned attackers then get the beginning of their hash: runs/red -> runs/red@1a2b3c4d.
    """
    if not isinstance(text, str):
        raise errors.WorldError(f"a red agent is given by name, got {text!r}")
    mixture = f"red agent mixture {text!r}"
    weights: dict[str, float] = {}
    spelled = []
    for part in text.split(","):
        name, colon, weight = part.partition(":")
        if not colon and "," in text:
            raise errors.WorldError(f"{mixture} needs a weight for {part.strip()!r}, as in b_line:0.5,meander:0.5")
        try:
            value = float(weight) if colon else 1.0
        except ValueError:
            raise errors.WorldError(f"weight {weight!r} in {mixture} is not a number") from None
        if not (math.isfinite(value) and value >= 0):
            raise errors.WorldError(f"weight {weight} in {mixture} must be a finite number, at least 0")
        agent = _agent(name, scenario)
        weights[agent] = weights.get(agent, 0.0) + value
        spelled.append(agent + colon + weight.strip())
    total = sum(weights.values())
    if not math.isfinite(total):
        raise errors.WorldError(f"the weights of {mixture} are too large to be compared")
    if total <= 0:
        raise errors.WorldError(f"the weights of {mixture} sum to 0; at least one must be positive")
    return Mixture(",".join(spelled), MappingProxyType(weights))


mixture_of = lru_cache(maxsize=1024)(parse_mixture)  # of a text that was parsed before: worlds ask again and again


def names_listed(text: str) -> list[str]:
    """Return red agents one by one: a plain list of names means one after the other, weights make it one mixture."""
    return [text] if ":" in text else text.split(",")


def script_names() -> tuple[str, ...]:
    """Return all scripts by their numbers: those of `RedAgent`, then users' own."""
    return (*(agent.name.lower() for agent in RedAgent), *own_agents())


def learned_in(mixtures: Sequence[Mixture]) -> tuple[str, ...]:
    """Return the learned attackers of mixtures in the order of their numbers, which begin with LEARNED."""
    learned = tuple(dict.fromkeys(name for mixture in mixtures for name in mixture.learned))
    if LEARNED + len(learned) > _MOST_NUMBERS:
        raise errors.WorldError(f"at most {_MOST_NUMBERS - LEARNED} learned attackers can be named, got {len(learned)}")
    return learned


def red_odds(mixtures: Sequence[Mixture], num_envs: int) -> np.ndarray:
    """Return cumulative probabilities [N, 4 and own ones] of the red agents, by their numbers; learned ones come last."""
    if len(mixtures) not in (1, num_envs):
        raise errors.WorldError(
            f"{len(mixtures)} red agents given for {num_envs} environments; give one, or one per environment"
        )
    scripts, learned = script_names(), learned_in(mixtures)
    numbers = {name: number for number, name in enumerate(scripts)}
    numbers |= {name: LEARNED + number for number, name in enumerate(learned)}
    rows = np.zeros((len(mixtures), LEARNED + len(learned) if learned else len(scripts)))
    for row, mixture in zip(rows, mixtures, strict=True):
        for name, weight in mixture.weights.items():
            row[numbers[name]] += weight
    odds = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
    odds[:, -1] = 1.0  # rounding must not leave a gap
    # A copy: one that cannot be written to would be another type to the compiler, and the kernel compiled twice.
    return np.broadcast_to(odds, (num_envs, odds.shape[1])).copy()


def _agent(name: str, scenario: Scenario | None) -> str:
    """Return the name of a script in our own spelling; or of a learned attacker, sealed if the scenario is given."""
    name = name.strip()
    script = _ALIASES.get(name.lower(), name.lower())
    if script in script_names():
        return script
    if not (attacker_files.is_sealed(name) or attacker_files.names_something(name)):
        raise errors.WorldError(
            f"unknown red agent {name!r}; use {', '.join(script_names())} (or CybORG's B_lineAgent, "
            "RedMeanderAgent, SleepAgent), a mixture such as b_line:0.5,meander:0.5, or a learned one: "
            f"{', '.join(attacker_files.shipped_reds())}, or the folder of its files"
        )
    return name if scenario is None else attacker_files.sealed(name, scenario)
