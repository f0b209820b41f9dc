"""A defender of a user's own, asked turn by turn (`policy/turns.py: TurnPlayer`): any function, object or ONNX file.

It is asked about N games at once, with what blue sees (in CAGE2 [N, 52] int8), and answers with N actions. It plays in any
scenario whose sizes fit. What else it wants to know it says by the names of its parameters (`asking.py`).
Nothing here imports code by name: whoever has the object has run its code already.
N games, A choices, U unit types.
"""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fixfirst.adapters.asking import Ask, Turn, function_of, parameters, way_to_ask
from fixfirst.adapters.onnx_file import OnnxFile
from fixfirst.base import errors
from fixfirst.game.chance import uniform
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import action_sets, turns
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import PolicySpec, bits_of

RIGHT = "a function of observations [N, 52] that returns actions [N], an object with act, predict or get_action"


class Acts(Protocol):
    """Somebody who chooses actions [N] for observations [N, 52]."""

    def act(self, *args: Any, **kwargs: Any) -> Any: ...


class Predicts(Protocol):
    """A model as those of Stable-Baselines3 and sb3-contrib."""

    def predict(self, *args: Any, **kwargs: Any) -> Any: ...


class PlaysOneGame(Protocol):
    """A blue agent as CybORG knows them."""

    def get_action(self, *args: Any, **kwargs: Any) -> Any: ...


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
        self._file = OnnxFile(Path(agent)) if isinstance(agent, str | Path) else None
        self._agent = agent
        file = self._file
        self.scenario: Scenario | None = file.scenario if file else None  # the only one in which it can play; None: any
        self.scheme: UnitScheme | None = file.scheme if file else None  # unit types whose order it is given at every turn
        self.workflow: Workflow | None = file.workflow if file else None  # that was fixed when it was exported
        if file is None and function_of(agent) is None:
            raise errors.ConfigError(f"a policy must be a path, a loaded policy, or {RIGHT}, got {agent!r}")

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    @property
    def may_mix_episodes(self) -> bool:
        """May what it remembers go on into the next episode? Nobody can tell it that one begins."""
        if self._file is not None or any(hasattr(self._agent, name) for name in ("predict", "get_action", "reset")):
            return False
        remembers = hasattr(self._agent, "act") and bool(getattr(self._agent, "__dict__", None))
        return remembers and "episode_start" not in parameters(self._agent.act)

    @property
    def may_draw(self) -> bool:
        """Can it be asked for the most probable action as well as for a drawn one?"""
        if self._file is not None:
            return self._file.ours
        return bool({"deterministic", "greedy"} & parameters(function_of(self._agent)))

    def way_to_ask(self) -> Ask:
        """Return how it is asked; what it remembers begins anew."""
        return way_to_ask(self._agent) if self._file is None else self._file.way_to_ask()

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
