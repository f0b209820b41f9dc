"""A defender of a user's own, asked turn by turn (`play/turns.py: TurnPlayer`): any function, object or ONNX file.

It is asked about N games at once, with what blue sees (in CAGE2 [N, 52] int8), and answers with N actions. It plays in any
scenario whose sizes fit. What else it wants to know it says by the names of its parameters: `episode_start` [N] bool,
`action_masks` [N, A] bool, `deterministic` or `greedy`.
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

from fixfirst.base import errors, files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play import turns
from fixfirst.policy import action_sets
from fixfirst.policy.draws import uniform
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import PolicySpec, bits_of

ONNX = ".onnx"
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


class Turn(NamedTuple):
    """What an agent is asked about: N games, of which some begin."""

    observations: np.ndarray  # [N, inputs] int8
    starts: np.ndarray  # [N] bool: an episode begins with this observation
    masks: np.ndarray  # [N, A] bool: may the choice be taken?
    greedy: bool  # take the most probable action instead of a drawn one
    draws: np.ndarray  # [N] float64 in [0, 1): chance for an agent that has none of its own
    ranks: np.ndarray | None  # [N, U] position of each unit type, for an agent that follows any order


class Ask(Protocol):
    """One way to ask an agent."""

    def __call__(self, turn: Turn) -> Any:
        """Return choices [N]."""
        ...


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
        self.asked = OnnxFile(Path(agent)) if isinstance(agent, str | Path) else agent
        self.way = _way_to_ask(self.asked)

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    @property
    def scenario(self) -> Scenario | None:
        """The only scenario in which it can play; None: any whose sizes fit."""
        return self.asked.scenario if isinstance(self.asked, OnnxFile) else None

    @property
    def scheme(self) -> UnitScheme | None:
        """The unit types whose order it is given at every turn; None: it is given none."""
        return self.asked.scheme if isinstance(self.asked, OnnxFile) else None

    @property
    def workflow(self) -> Workflow | None:
        """The order that was fixed when it was exported."""
        return self.asked.workflow if isinstance(self.asked, OnnxFile) else None

    @property
    def may_mix_episodes(self) -> bool:
        """Has it attributes of its own, and no way to be told that an episode begins?"""
        told = hasattr(self.asked, "reset") or "episode_start" in _parameters(_function(self.asked))
        return (
            self.way is _Acting and bool(getattr(self.asked, "__dict__", None)) and hasattr(self.asked, "act") and not told
        )

    @property
    def may_draw(self) -> bool:
        """Can it be asked for the most probable action as well as for a drawn one?"""
        if isinstance(self.asked, OnnxFile):
            return self.asked.ours
        return bool({"deterministic", "greedy"} & _parameters(_function(self.asked)))

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
        inputs = getattr(getattr(self.asked, "observation_space", None), "shape", None)
        choices = getattr(getattr(self.asked, "action_space", None), "n", None)
        right = (spec.inputs,), spec.actions
        if (inputs or right[0], choices or right[1]) != right:
            raise errors.ConfigError(
                f"{self.name} reads {inputs} and has {choices} choices, {scenario.name} has {right[0]} and {right[1]}: name "
                "the scenario, and the memory and the action set that it was trained with, as in "
                'ff.Agent(model, memory="full", action_set="macros")'
            )
        return spec


class AgentPlayer:
    """An agent in N games at once; see `play/turns.py: TurnPlayer`."""

    def __init__(self, agent: Agent, spec: PolicySpec, workflows: Sequence[Workflow], greedy: bool):
        self.agent, self.spec, self._greedy = agent, spec, greedy
        self._ask = agent.way(agent.asked)
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


# ---------------------------------------------------------------- ways to ask


def _way_to_ask(agent: Any) -> Callable[[Any], Ask]:
    """Return how an agent is asked, by what it has."""
    if isinstance(agent, OnnxFile):
        return _AskingFile
    if callable(getattr(agent, "predict", None)):
        return _Predicting
    if callable(getattr(agent, "get_action", None)):
        return _PlayingOneGame
    if callable(getattr(agent, "act", None)) or callable(agent):
        return _Acting
    raise errors.ConfigError(f"a policy must be a path, a loaded policy, or {RIGHT}, got {agent!r}")


def _function(agent: Any) -> Any:
    """Return what is called when an agent is asked."""
    return next((getattr(agent, n) for n in ("predict", "get_action", "act") if hasattr(agent, n)), agent)


def _parameters(function: Any) -> set[str]:
    """Return the names of the parameters that can be given by name."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some that are written in C, nobody knows
        return set()
    return {p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _name_of(agent: Any) -> str:
    if isinstance(agent, str | Path):
        return str(agent)
    return str(getattr(agent, "__name__", type(agent).__name__))


class _Acting:
    """A function, or an object with `act` and perhaps `reset`."""

    def __init__(self, agent: Any):
        self._act: Callable[..., Any] = _function(agent)
        self._takes = _parameters(self._act)
        self._reset = None if "episode_start" in self._takes else getattr(agent, "reset", None)

    def __call__(self, turn: Turn) -> Any:
        if callable(self._reset) and turn.starts.any():
            if not turn.starts.all():
                raise errors.ConfigError(
                    "episodes begin in some of the games only, which reset() cannot know: let act() take episode_start"
                )
            self._reset(*([len(turn.starts)] if _parameters(self._reset) else []))
        return self._act(turn.observations, **_asked_for(turn, self._takes))


def _asked_for(turn: Turn, names: set[str]) -> dict[str, Any]:
    """Return those facts of a turn that have one of these names."""
    facts = {
        "episode_start": turn.starts,
        "action_masks": turn.masks,
        "deterministic": turn.greedy,
        "greedy": turn.greedy,
    }
    return {name: fact for name, fact in facts.items() if name in names}


class _Predicting:
    """A model as those of Stable-Baselines3: `predict` takes a state and returns it with the actions."""

    def __init__(self, agent: Any):
        self._predict, self._takes = agent.predict, _parameters(agent.predict)
        self._state: Any = None

    def __call__(self, turn: Turn) -> Any:
        if turn.starts.all():
            self._state = None
        state = {"state": self._state} if "state" in self._takes else {}
        answer = self._predict(turn.observations, **state, **_asked_for(turn, self._takes))
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
            for place in np.flatnonzero(turn.starts):
                if hasattr(self._copies[place], "end_episode"):
                    self._copies[place].end_episode()
                else:  # nobody can tell it that a game begins
                    self._copies[place] = _copied(self._agent)
        seen = turn.observations.astype(np.int64)
        return [int(own.get_action(one, turn.masks.shape[1])) for own, one in zip(self._copies, seen, strict=True)]


def _copied(agent: Any) -> Any:
    try:
        return copy.deepcopy(agent)
    except Exception as e:
        raise errors.ConfigError(
            f"{_name_of(agent)} plays one game at a time and cannot be copied for several ({type(e).__name__}: {e})"
        ) from e


class OnnxFile:
    """An ONNX file: one that `fixfirst export` wrote, or any that maps observations to actions or to a value of each."""

    def __init__(self, path: Path):
        try:
            import onnxruntime  # an extra, slow to import
        except ModuleNotFoundError as e:
            raise errors.ConfigError(
                f"{path} needs onnxruntime, which is not installed: pip install 'fixfirst[onnx]'"
            ) from e
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong, the exception says
        try:
            self.session = onnxruntime.InferenceSession(files.read_file(path), options, providers=["CPUExecutionProvider"])
        except Exception as e:  # onnxruntime has many kinds
            raise errors.PolicyError(f"{path}: cannot be read as an ONNX file ({e})") from None
        self.path, self.inputs = path, {each.name: each for each in self.session.get_inputs()}
        self.ours = {"observation", "state", "draw"} <= set(self.inputs)
        if not self.ours and len(self.inputs) != 1:
            raise errors.PolicyError(f"{path}: must have one input, the observations, got {', '.join(self.inputs)}")

    @property
    def scenario(self) -> Scenario | None:
        """The scenario of a policy that `fixfirst export` wrote; None: nobody knows."""
        if not self.ours:
            return None
        try:
            return (
                Scenario.from_dict(files.parse_json(self._facts["scenario"].encode()))
                if "scenario" in self._facts
                else CAGE2
            )
        except (errors.ScenarioError, ValueError) as e:
            raise errors.PolicyError(f"{self.path}: damaged (its scenario cannot be read: {e})") from None

    @property
    def scheme(self) -> UnitScheme | None:
        """The unit types of the order that it takes at every turn."""
        return self._units() if self.ours and "order" in self.inputs else None

    @property
    def workflow(self) -> Workflow | None:
        """The order that was fixed when it was exported."""
        order = self._facts.get("order", "") if self.ours else ""
        return None if order in ("", "any") else Workflow.parse(order, self._units())

    @property
    def _facts(self) -> dict[str, str]:
        return dict(self.session.get_modelmeta().custom_metadata_map)

    def _units(self) -> UnitScheme:
        try:
            return UnitScheme.from_dict(files.parse_json(self._facts["units"].encode()), self.scenario or CAGE2)
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise errors.PolicyError(f"{self.path}: damaged (its unit types cannot be read: {e})") from None


class _AskingFile:
    """An ONNX file and what it remembers."""

    def __init__(self, file: OnnxFile):
        self._file, self._state = file, np.empty((0, 0), np.float32)

    def __call__(self, turn: Turn) -> np.ndarray:
        return self._turn_of_ours(turn) if self._file.ours else self._turn_of_others(turn)

    def _turn_of_ours(self, turn: Turn) -> np.ndarray:
        count = len(turn.starts)
        if len(self._state) != count:
            self._state = np.zeros((count, int(self._file.inputs["state"].shape[1])), np.float32)
        self._state[turn.starts] = 0
        draws = np.minimum(turn.draws, 1 - 2.0**-24)  # below 1 also in half the digits
        feed = {
            "observation": turn.observations.astype(np.float32),
            "state": self._state,
            "draw": np.where(turn.greedy, -1, draws).astype(np.float32)[:, None],
        }
        if turn.ranks is not None:
            feed["order"] = turn.ranks.astype(np.float32)
        actions, self._state, _ = self._file.session.run(None, feed)
        return np.asarray(actions)

    def _turn_of_others(self, turn: Turn) -> np.ndarray:
        (given,) = self._file.inputs.values()
        seen = turn.observations.astype(_ONNX_KINDS.get(given.type, np.int8))
        size = given.shape[0] if isinstance(given.shape[0], int) else len(seen)  # some take one game at a time
        parts = [seen[start : start + size] for start in range(0, len(seen), size)]
        answer = np.concatenate([np.asarray(self._file.session.run(None, {given.name: part})[0]) for part in parts])
        if answer.dtype.kind == "f" and answer.ndim == 2:  # a value of each choice
            return np.where(turn.masks, answer, -np.inf).argmax(axis=1)
        return answer


_ONNX_KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
