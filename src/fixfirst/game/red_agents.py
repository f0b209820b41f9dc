"""Whom blue plays against: red agents by their names, and mixtures of them.

A mixture is written b_line:0.5,runs/red:0.5, on the command line as in files; `parse_mixture` reads it.
"""

import math
from typing import Any

from fixfirst.base import errors
from fixfirst.game import attacker_files
from fixfirst.game.own_agents import own_agents
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import RedAgent

_ALIASES = {  # CybORG's class names and the spellings met in the field, all in lower case
    "bline": "b_line",
    "b_lineagent": "b_line",
    "redmeanderagent": "meander",
    "redmeander": "meander",
    "sleepagent": "sleep",
}


class Mixture(str):
    """Red agents and how often each is met: a string as files have it, in our own spelling and with seals, parsed once.

    A single name is a mixture of one. weights: by the name of an agent.
    """

    weights: dict[str, float]

    def __new__(cls, text: str, weights: dict[str, float]) -> "Mixture":
        mixture = super().__new__(cls, text)
        mixture.weights = weights
        return mixture

    def __getnewargs__(self) -> Any:  # for copies, also in other processes
        return str(self), self.weights

    @property
    def learned(self) -> tuple[str, ...]:
        """Those that are learned attackers."""
        scripts = script_names()
        return tuple(name for name in self.weights if name not in scripts)

    @property
    def is_built_in(self) -> bool:
        """Whether all are scripts of ours, which are the same everywhere and for ever."""
        return all(name.upper() in RedAgent.__members__ for name in self.weights)


def parse_mixture(text: Any, scenario: Scenario) -> Mixture:
    """Return the mixture that a name, or names with weights, stand for, in any spelling that we know.

    scenario: where it is played; learned attackers get the beginning of their hash: runs/red -> runs/red@1a2b3c4d.
    """
    if isinstance(text, Mixture):
        return text
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
            value = math.nan
        if not 0 <= value < math.inf:
            raise errors.WorldError(f"weight {weight} in {mixture} must be a finite number, at least 0")
        agent = _agent(name, scenario)
        weights[agent] = weights.get(agent, 0.0) + value
        spelled.append(agent + colon + weight.strip())
    if not 0 < sum(weights.values()) < math.inf:
        raise errors.WorldError(f"the weights of {mixture} must have a finite sum above 0")
    return Mixture(",".join(spelled), weights)


def names_listed(text: str) -> list[str]:
    """Return red agents one by one: a plain list of names means one after the other, weights make it one mixture."""
    return [text] if ":" in text else text.split(",")


def script_names() -> tuple[str, ...]:
    """Return all scripts by their numbers: those of `RedAgent`, then users' own."""
    return (*(agent.name.lower() for agent in RedAgent), *own_agents())


def _agent(name: str, scenario: Scenario) -> str:
    """Return the name of a script in our own spelling, or of a learned attacker, sealed."""
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
    return attacker_files.sealed(name, scenario)
