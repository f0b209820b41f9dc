"""What is played, as one value: a `Game`. It is checked once, and then travels whole.

Also what users may call red agents and variants.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from pydantic import Field, field_validator

from fixfirst.base.checks import MOST, Settings, check_choice
from fixfirst.base.errors import WorldError, quoted
from fixfirst.game.own_agents import own_agents
from fixfirst.game.scenario import CAGE2, Scenario, VariantName
from fixfirst.game.state import RedAgent

Backend = Literal["simulator", "workers", "cyborg"]


class Game(Settings):
    """Against whom, in which release of the game, for how long, and who simulates it.

    For example:

        game = ff.Game(red_agent="b_line:0.5,meander:0.5", variant="leaderboard", max_steps=30)
    """

    red_agent: str = Field(
        "b_line",
        description="b_line, meander, sleep, CybORG's names for them, or a mixture such as b_line:0.5,meander:0.5.",
    )
    variant: VariantName | None = Field(
        "current", description="current, leaderboard or debugged: which release of the challenge is played."
    )  # None, from Python: whatever the CybORG found is
    green: bool = Field(False, description="With users who scan ports at random.")
    max_steps: int = Field(100, ge=1, le=MOST, description="Length of an episode.")
    backend: Backend = Field(
        "simulator",
        description="simulator, cyborg (the real thing, in worker processes), or workers (our simulator there).",
    )
    cyborg: str | None = Field(
        None,
        exclude=True,
        description="A checkout of cage-challenge-2, for --backend cyborg; default: FIXFIRST_CYBORG, or installed.",
    )  # names code to be run, so it is never written down: whoever goes on with a run says it again

    @property
    def scenario(self) -> Scenario:
        return CAGE2

    @field_validator("red_agent", mode="before")
    @classmethod
    def _known_red_agent(cls, value: str) -> str:
        return red_agent_spec(value)

    @field_validator("variant", mode="before")
    @classmethod
    def _known_variant(cls, value: str | None) -> str | None:
        return None if value is None else check_variant(value)


# ---------------------------------------------------------------- what users may say

_RED_ALIASES = {  # CybORG's class names and the spellings met in the field, all in lower case
    "bline": "b_line",
    "b_lineagent": "b_line",
    "redmeanderagent": "meander",
    "redmeander": "meander",
    "sleepagent": "sleep",
}


def red_agent_names() -> tuple[str, ...]:
    """All red agents by their numbers: those of `RedAgent`, then users' own."""
    return (*(agent.name.lower() for agent in RedAgent), *own_agents())


def red_odds(red_agent: str | Sequence[str], num_envs: int) -> np.ndarray:
    """Cumulative probabilities [N, 3 and own ones] of the red agents, by their numbers."""
    given: Any = red_agent
    several = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)
    specs: list[Any] = list(given) if several else [given]
    if len(specs) not in (1, num_envs):
        raise WorldError(f"{len(specs)} red agents given for {num_envs} environments; give one, or one per environment")
    rows = np.array([_agent_weights(spec) for spec in specs])
    odds = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
    odds[:, -1] = 1.0  # rounding must not leave a gap
    # A copy: one that cannot be written to would be another type to the compiler, and the kernel compiled twice.
    return np.broadcast_to(odds, (num_envs, odds.shape[1])).copy()


def red_agent_name(text: str) -> str:
    """One of b_line, meander, sleep or an own one, from any spelling we know."""
    key = text.strip().lower() if isinstance(text, str) else str(text)
    name = _RED_ALIASES.get(key, key)
    if name not in red_agent_names():
        raise WorldError(
            f"unknown red agent {quoted(text)}; use {', '.join(red_agent_names())} (or CybORG's B_lineAgent, "
            "RedMeanderAgent, SleepAgent), or a mixture such as b_line:0.5,meander:0.5"
        )
    return name


def red_agent_spec(spec: str) -> str:
    """A name or mixture in our own spelling: B_lineAgent -> b_line."""
    _agent_weights(spec)
    parts = [part.partition(":") for part in spec.split(",")]
    return ",".join(red_agent_name(name) + colon + weight.strip() for name, colon, weight in parts)


def _agent_weights(spec: str) -> list[float]:
    """Weights of all agents in a name or a mixture `name:weight,name:weight`."""
    if not isinstance(spec, str):
        raise WorldError(f"a red agent is given by name, got {quoted(spec)}")
    weights = [0.0] * len(red_agent_names())
    for part in spec.split(","):
        name, colon, weight = part.partition(":")
        if not colon and "," in spec:
            raise WorldError(
                f"red agent mixture {quoted(spec)} needs a weight for {part.strip()!r}, as in b_line:0.5,meander:0.5"
            )
        try:
            value = float(weight) if colon else 1.0
        except ValueError:
            raise WorldError(f"weight {weight!r} in red agent mixture {quoted(spec)} is not a number") from None
        if not (math.isfinite(value) and value >= 0):
            raise WorldError(f"weight {weight} in red agent mixture {quoted(spec)} must be a finite number, at least 0")
        weights[red_agent_names().index(red_agent_name(name))] += value
    if not math.isfinite(sum(weights)):
        raise WorldError(f"the weights of red agent mixture {quoted(spec)} are too large to be compared")
    if sum(weights) <= 0:
        raise WorldError(f"the weights of red agent mixture {quoted(spec)} sum to 0; at least one must be positive")
    return weights


def scenario_named(name: Any) -> Scenario:
    """Return the scenario of this name; there is one."""
    check_choice("scenario", name, (CAGE2.name,))
    return CAGE2


def check_variant(variant: str) -> VariantName:
    """The variant itself, if there is one of this name."""
    return cast(VariantName, check_choice("variant", variant, get_args(VariantName)))
