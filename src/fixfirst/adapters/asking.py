"""Ways to ask an agent of a user's own for its choices: a function, `act`, `predict`, or one game at a time.

What an agent wants to know it says by the names of its parameters: `episode_start` [N] bool, `action_masks` [N, A] bool,
`deterministic` or `greedy`. N games, A choices, U unit types.
"""

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors


class Turn(NamedTuple):
    """What an agent is asked about: N games, of which some begin."""

    observations: np.ndarray  # [N, inputs] int8
    starts: np.ndarray  # [N] bool: an episode begins with this observation
    masks: np.ndarray  # [N, A] bool: may the choice be taken?
    greedy: bool  # take the most probable action instead of a drawn one
    draws: np.ndarray  # [N] float64 in [0, 1): chance for an agent that has none of its own
    ranks: np.ndarray | None  # [N, U] position of each unit type, for an agent that follows any order

    def facts_named(self, names: set[str]) -> dict[str, Any]:
        """Return those facts that have one of these names."""
        arrays = {"episode_start": self.starts, "action_masks": self.masks}
        facts = arrays | {"deterministic": self.greedy, "greedy": self.greedy}
        return {name: fact for name, fact in facts.items() if name in names}


Ask = Callable[[Turn], Any]  # returns choices [N]


def function_of(agent: Any) -> Any:
    """Return what is called when an agent is asked: a method, or the agent itself; None if it can be neither."""
    methods = (getattr(agent, name, None) for name in ("predict", "get_action", "act"))
    return next(filter(callable, (*methods, agent)), None)


def parameters(function: Any) -> set[str]:
    """Return the names of the parameters that can be given by name."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some that are written in C, nobody knows
        return set()
    return {p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def way_to_ask(agent: Any) -> Ask:
    """Return how an agent is asked, by what it has; what it remembers begins anew."""
    if callable(getattr(agent, "predict", None)):
        return _Predicting(agent)
    if callable(getattr(agent, "get_action", None)):
        return _PlayingOneGame(agent)
    return _Acting(agent)


class _Acting:
    """A function, or an object with `act` and perhaps `reset`."""

    def __init__(self, agent: Any):
        self._act = function_of(agent)
        self._takes = parameters(self._act)
        self._reset = None if "episode_start" in self._takes else getattr(agent, "reset", None)

    def __call__(self, turn: Turn) -> Any:
        if callable(self._reset) and turn.starts.any():
            if not turn.starts.all():
                raise errors.ConfigError(
                    "episodes begin in some of the games only, which reset() cannot know: let act() take episode_start"
                )
            self._reset(*([len(turn.starts)] if parameters(self._reset) else []))
        return self._act(turn.observations, **turn.facts_named(self._takes))


class _Predicting:
    """A model as those of Stable-Baselines3: `predict` takes a state and returns it with the actions."""

    def __init__(self, agent: Any):
        self._predict, self._takes = agent.predict, parameters(agent.predict)
        self._state: Any = None

    def __call__(self, turn: Turn) -> Any:
        if turn.starts.all():
            self._state = None
        state = {"state": self._state} if "state" in self._takes else {}
        answer = self._predict(turn.observations, **state, **turn.facts_named(self._takes))
        if isinstance(answer, tuple):
            answer, self._state = answer[0], answer[1] if len(answer) > 1 else None
        return answer


class _PlayingOneGame:
    """A blue agent as CybORG knows them, behind its `ChallengeWrapper`; every game has a copy, made when it begins."""

    def __init__(self, agent: Any):
        self._agent = agent
        self._copies: list[Any] = []

    def __call__(self, turn: Turn) -> list[int]:
        if len(self._copies) != len(turn.starts):
            self._copies = [_copied(self._agent) for _ in turn.starts]
        elif turn.starts.any():
            for game in np.flatnonzero(turn.starts):
                if hasattr(self._copies[game], "end_episode"):
                    self._copies[game].end_episode()
                else:  # nobody can tell it that a game begins
                    self._copies[game] = _copied(self._agent)
        games = zip(self._copies, turn.observations.astype(np.int64), strict=True)
        return [int(agent.get_action(observation, turn.masks.shape[1])) for agent, observation in games]


def _copied(agent: Any) -> Any:
    try:
        return copy.deepcopy(agent)
    except Exception as e:
        raise errors.ConfigError(
            f"{type(agent).__name__} plays one game at a time and cannot be copied for several ({type(e).__name__}: {e})"
        ) from e
