"""A defender of a user's own, asked turn by turn (`policy/turns.py: TurnPlayer`): any function, object or ONNX file.

It is asked about N games at once, with what blue sees (in CAGE2 [N, 52] int8), and answers with N actions. It plays in any
scenario whose sizes fit. What else it wants to know it says by the names of its parameters (`Turn.facts`).
Nothing here imports code by name: whoever has the object has run its code already.
N games, A choices, U unit types.
"""

import copy
import inspect
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from fixfirst.adapters.onnx_file import OnnxFile
from fixfirst.base import errors
from fixfirst.game.chance import uniform
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import action_sets, turns
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import PolicySpec, bits_of

_RIGHT = "a function of observations [N, 52] that returns actions [N], an object with act, predict or get_action"


class Acts(Protocol):
    """Somebody who chooses actions [N] for observations [N, 52]."""

    def act(self, *args: Any, **kwargs: Any) -> Any: ...


class Predicts(Protocol):
    """A model as those of Stable-Baselines3 and sb3-contrib."""

    def predict(self, *args: Any, **kwargs: Any) -> Any: ...


class PlaysOneGame(Protocol):
    """A blue agent as CybORG knows them."""

    def get_action(self, *args: Any, **kwargs: Any) -> Any: ...


class Turn(NamedTuple):
    """What an agent is asked about: N games, of which some begin."""

    observations: np.ndarray  # [N, inputs] int8
    starts: np.ndarray  # [N] bool: an episode begins with this observation
    masks: np.ndarray  # [N, A] bool: may the choice be taken?
    greedy: bool  # take the most probable action instead of a drawn one
    draws: np.ndarray  # [N] float64 in [0, 1): chance for an agent that has none of its own
    ranks: np.ndarray | None  # [N, U] position of each unit type, for an agent that follows any order

    def facts(self, names: set[str]) -> dict[str, Any]:
        """Return those facts that have one of these names; with an underscore, those that our own files ask for."""
        facts = {"episode_start": self.starts, "action_masks": self.masks, "_draws": self.draws, "_ranks": self.ranks}
        return {name: fact for name, fact in (facts | dict.fromkeys(_GREEDY, self.greedy)).items() if name in names}


_GREEDY = {"deterministic", "greedy"}
Ask = Callable[[Turn], Any]  # returns choices [N]


def _function_of(agent: Any) -> Any:
    """Return what is called when an agent is asked: a method, or the agent itself; None if it can be neither."""
    methods = (getattr(agent, name, None) for name in ("predict", "get_action", "act"))
    return next(filter(callable, (*methods, agent)), None)


def _parameters(function: Any) -> set[str]:
    """Return the names of the parameters that can be given by name."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some that are written in C, nobody knows
        return set()
    return {p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _ask_function(agent: Any) -> Ask:
    """For a function, or an object with `act` and perhaps `reset`."""
    act = _function_of(agent)
    names = _parameters(act)
    reset = None if "episode_start" in names else getattr(agent, "reset", None)

    def ask(turn: Turn) -> Any:
        if callable(reset) and turn.starts.any():
            if not turn.starts.all():
                raise errors.ConfigError(
                    "episodes begin in some of the games only, which reset() cannot know: let act() take episode_start"
                )
            reset(*([len(turn.starts)] if _parameters(reset) else []))
        return act(turn.observations, **turn.facts(names))

    return ask


def _ask_model(agent: Predicts) -> Ask:
    """For a model as those of Stable-Baselines3: `predict` takes a state and returns it with the actions."""
    names, state = _parameters(agent.predict), None

    def ask(turn: Turn) -> Any:
        nonlocal state
        given = {"state": None if turn.starts.all() else state} if "state" in names else {}
        answer = agent.predict(turn.observations, **given, **turn.facts(names))
        if isinstance(answer, tuple):
            answer, state = answer[0], answer[1] if len(answer) > 1 else None
        return answer

    return ask


def _ask_one_by_one(agent: PlaysOneGame) -> Ask:
    """For a blue agent as CybORG knows them, behind its `ChallengeWrapper`: every game has a copy, made when it begins."""
    copies: dict[int, Any] = {}

    def ask(turn: Turn) -> list[int]:
        for game, begins in enumerate(turn.starts):
            if game not in copies or (begins and not hasattr(copies[game], "end_episode")):  # nobody can tell it
                copies[game] = _copied(agent)
            elif begins:
                copies[game].end_episode()
        views = enumerate(turn.observations.astype(np.int64))
        return [int(copies[game].get_action(observation, turn.masks.shape[1])) for game, observation in views]

    return ask


def _copied(agent: Any) -> Any:
    try:
        return copy.deepcopy(agent)
    except Exception as e:
        raise errors.ConfigError(
            f"{type(agent).__name__} plays one game at a time and cannot be copied for several ({type(e).__name__}: {e})"
        ) from e


class Agent:
    """A defender of your own, wherever a policy may stand.

    agent: a function of observations [N, 52] that returns actions [N]; an object with `act` that does so; one with `predict`
    as those of Stable-Baselines3 and sb3-contrib, also recurrent; a blue agent of CybORG, with `get_action`, of which a
    copy plays each game; a class of these, made without arguments; or the path of an ONNX file.
    memory, action_set: those of the environments that it was trained in, as `ff.make_vec` takes them. name: in tables.

    For example:

        ff.evaluate(ff.Agent(lambda obs: np.zeros(len(obs), int), name="sleeper"), steps=30, episodes=10, quiet=True)
    """

    def __init__(self, agent: Any, *, memory: str = "none", action_set: str = "all", name: str | None = None):
        self._memory, self._action_set = memory, action_set
        _ = MemoryScheme.parse(memory), action_sets.ActionSet.parse(action_set)  # what is wrong with them is said at once
        self.name = name if name is not None else _name_of(agent)
        if isinstance(agent, type):
            agent = _guarded(agent, self.name, "cannot be made without arguments")
        self.scenario: Scenario | None = None  # the only one in which it can play; None: any
        self.scheme: UnitScheme | None = None  # unit types whose order it is given at every turn
        self.workflow: Workflow | None = None  # that was fixed when it was exported
        if isinstance(agent, str | Path):
            agent = OnnxFile(Path(agent))
            self.scenario, self.scheme, self.workflow = agent.scenario, agent.scheme, agent.workflow
        self._agent, self._function = agent, _function_of(agent)
        if self._function is None:
            raise errors.ConfigError(f"a policy must be a path, a loaded policy, or {_RIGHT}, got {agent!r}")

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    @property
    def may_mix_episodes(self) -> bool:
        """May what it remembers go on into the next episode? Nobody can tell it that one begins."""
        if any(hasattr(self._agent, name) for name in ("predict", "get_action", "reset")):
            return False
        remembers = hasattr(self._agent, "act") and bool(getattr(self._agent, "__dict__", None))
        return remembers and "episode_start" not in _parameters(self._function)

    @property
    def may_draw(self) -> bool:
        """Can it be asked for the most probable action as well as for a drawn one?"""
        return bool(_GREEDY & _parameters(self._function))

    def way_to_ask(self) -> Ask:
        """Return how it is asked, by what it has; what it remembers begins anew."""
        if callable(getattr(self._agent, "predict", None)):
            return _ask_model(self._agent)
        return (_ask_one_by_one if callable(getattr(self._agent, "get_action", None)) else _ask_function)(self._agent)

    def player(
        self, workflows: Sequence[Workflow] = (), *, greedy: bool = False, scenario: Scenario = CAGE2
    ) -> "AgentPlayer":
        """Return it as a player of rollouts in a scenario."""
        return AgentPlayer(self, self._spec_in(scenario), workflows, greedy)

    def _spec_in(self, scenario: Scenario) -> PolicySpec:
        """Return what it reads and chooses in a scenario, if a model of Stable-Baselines3 was trained on that."""
        spec = PolicySpec(
            MemoryScheme.parse(self._memory, scenario), action_sets.ActionSet.parse(self._action_set, scenario)
        )
        inputs = getattr(getattr(self._agent, "observation_space", None), "shape", None)
        choices = getattr(getattr(self._agent, "action_space", None), "n", None)
        right = (spec.inputs,), spec.actions
        if (inputs or right[0], choices or right[1]) != right:
            raise errors.ConfigError(
                f"{self.name} reads {inputs} and has {choices} choices, {scenario.name} has {right[0]} and {right[1]}: name "
                "the scenario, and the memory and the action set that it was trained with, as in "
                'ff.Agent(model, memory="full", action_set="macros")'
            )
        return spec


class AgentPlayer:
    """An agent in N games at once; see `policy/turns.py: TurnPlayer`."""

    def __init__(self, agent: Agent, spec: PolicySpec, workflows: Sequence[Workflow], greedy: bool):
        self.agent, self.spec, self._greedy = agent, spec, greedy
        self._ask = agent.way_to_ask()
        self._ranks = np.array([workflow.ranks for workflow in workflows]) if agent.scheme is not None else None

    def act(self, moment: turns.Moment) -> np.ndarray:
        """Return actions of the world [N]."""
        words, memories, scenario = moment.words, moment.memories, self.spec.scenario
        observations = bits_of(words.reshape(len(words), -1), scenario.observation_bits)
        draws, ranks = np.empty(len(words)), None if self._ranks is None else self._ranks[moment.assigned]
        uniform(moment.keys, moment.turn, np.ones(len(words)), draws)
        if self.spec.memory.groups:
            observations = np.concatenate((observations, memories.bits()), axis=1)
        turn = Turn(observations, moment.steps == 0, memories.masks(), self._greedy, draws, ranks)
        failed = f"failed in step {moment.turn + 1}"
        choices = self._check(_guarded(lambda: self._ask(turn), self.agent.name, failed), len(words))
        actions = np.array(memories.actions_of(choices))
        memories.remember(words, actions)
        return actions

    def _check(self, answer: Any, count: int) -> np.ndarray:
        """Return the answer as choices [N]."""
        name, choices = self.agent.name, _guarded(lambda: np.asarray(answer), self.agent.name, "returned no array")
        if choices.shape == (count, 1):
            choices = choices[:, 0]
        if choices.shape != (count,) or choices.dtype.kind not in "iu":
            raise errors.ActionError(
                f"{name} returned {choices.dtype} of shape {choices.shape}; it is asked about {count} games at once and "
                f"must return ({count},) whole numbers"
            )
        wrong = np.flatnonzero((choices < 0) | (choices >= self.spec.actions))
        if len(wrong):
            raise errors.ActionError(f"{name} returned {choices[wrong[0]]}, which is not in 0..{self.spec.actions - 1}")
        return choices.astype(np.int64)


def _guarded(call: Callable[[], Any], name: str, what: str) -> Any:
    """Return what a user's code returns. If it fails, the error is one line, with its traceback as a note."""
    try:
        return call()
    except errors.FixfirstError:
        raise
    except Exception as e:
        failure = errors.PolicyError(f"{name} {what} ({type(e).__name__}: {e})")
        failure.add_note("".join(traceback.format_exception(e)).rstrip())
        raise failure from None


def _name_of(agent: Any) -> str:
    if isinstance(agent, str | Path):
        return str(agent)
    return str(getattr(agent, "__name__", type(agent).__name__))
