"""What is played, as one value: a `Game`. It is checked once, and then travels whole.

Also what users may call red agents, variants and scenarios.
"""

import importlib.util
import inspect
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, ValidationInfo, field_validator, model_validator

from fixfirst.base import arguments, errors
from fixfirst.game import parts
from fixfirst.game.scenario import CAGE2, SHIPPED_SCENARIOS, Scenario
from fixfirst.game.state import LEARNED, RedAgent

Backend = Literal["simulator", "workers", "cyborg"]


_GENERATE = "generate"  # generate:17:hosts=8-12 names a random network


def scenario_named(value: Any, images: Any = None) -> Scenario:
    """Return a scenario: itself, the one that comes with fixfirst under a name, one from a file, or one kept in a run.

    The text generate:SEED stands for a random one; :hosts=8-12, :subnets=3 and :values=any say more of it.
    """
    if isinstance(value, Scenario):
        return value
    if isinstance(value, Mapping):
        return Scenario.from_dict(value)
    if not isinstance(value, str | os.PathLike):
        raise errors.ConfigError(
            f"a scenario is a file, or one of {', '.join(SHIPPED_SCENARIOS)}, got {errors.quoted(value)}"
        )
    if isinstance(value, str) and value.partition(":")[0] == _GENERATE:
        return _generated(value)
    path = arguments.check_path("scenario", value)
    if isinstance(value, str) and value not in SHIPPED_SCENARIOS and path.suffix == "" and not os.path.exists(path):
        near = errors.did_you_mean(value, SHIPPED_SCENARIOS)
        raise errors.ScenarioError(
            f"unknown scenario {errors.quoted(value)}; use {', '.join(SHIPPED_SCENARIOS)} or a file such as lab.yaml{near}"
        )
    return Scenario.load(os.fspath(value), images)


def scenarios_listed(value: Any) -> list[Any]:
    """Return what a list of scenarios names, one by one: a list, or a text such as a.yaml,tiny,generate:0-99."""
    if isinstance(value, list | tuple):
        return [one for part in value for one in scenarios_listed(part)]
    if not isinstance(value, str) or ("," in value and os.path.exists(value)):
        return [value]
    found: list[Any] = []
    for name in value.split(","):
        kind, seeds, *more = (name.strip() + ":").split(":")
        first, dash, last = seeds.partition("-")
        if kind != _GENERATE or not dash:
            found.append(name.strip())
            continue
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < int(first) + _MOST_LISTED):
            raise errors.ScenarioError(f"{_GENERATE_FORM}, at most {_MOST_LISTED:,} seeds; got {errors.quoted(name)}")
        found += [":".join((_GENERATE, str(seed), *more)).rstrip(":") for seed in range(int(first), int(last) + 1)]
    return found


_MOST_LISTED = 10_000  # networks that one text can name
_GENERATE_FORM = (
    f"a random network is {_GENERATE}:SEED or {_GENERATE}:FIRST-LAST, with :hosts=8-12, :subnets=2-3, :values=any if wanted"
)


def _generated(text: str) -> Scenario:
    """Return the random scenario that a text names."""
    _, seed, *more = text.split(":")
    settings: dict[str, Any] = {}
    for part in more:
        name, _, given = part.partition("=")
        numbers = given.split("-")
        if name == "values":
            settings[name] = given
        elif name in ("hosts", "subnets") and len(numbers) <= 2 and all(number.isdecimal() for number in numbers):
            settings[name] = (int(numbers[0]), int(numbers[-1]))
        else:
            raise errors.ScenarioError(f"{_GENERATE_FORM}; got {errors.quoted(text)}")
    if not seed.isdecimal():
        raise errors.ScenarioError(f"{_GENERATE_FORM}; got {errors.quoted(text)}")
    return Scenario.generate(int(seed), **settings)


def scenario_of(value: Any, images: Any = None, reward: Any = None) -> Scenario:
    """Return the scenario that is named, with own images and an own reward where these are."""
    if images is not None and not isinstance(value, str | os.PathLike):
        raise errors.ConfigError("own images are those of a scenario file: give --scenario FILE with --images")
    scenario = scenario_named(value, images)
    return scenario if reward is None else scenario.with_reward(reward)


class Game(arguments.Settings):
    """In which network, against whom, in which release of the game, for how long, and who simulates it.

    For example:

        game = ff.Game(red_agent="b_line:0.5,meander:0.5", variant="leaderboard", max_steps=30)
    """

    scenario: Annotated[Scenario, PlainValidator(scenario_named), PlainSerializer(Scenario.as_dict)] = Field(
        CAGE2,
        exclude_if=lambda scenario: scenario == CAGE2,
        description=f"The network: {', '.join(SHIPPED_SCENARIOS)}, a file, or {_GENERATE}:SEED.",
    )
    images: str | None = Field(
        None,
        exclude=True,
        description="A folder of own images, for --scenario FILE; they become part of the scenario.",
    )
    reward: str | None = Field(
        None,
        exclude=True,
        description="A file with a reward of your own (docs/scenarios.md); it becomes part of the scenario.",
    )
    red_agent: str | tuple[str, ...] = Field(
        "b_line",
        description="b_line, meander, sleep, late, the folder of a learned attacker, or a mixture: b_line:0.5,runs/red:0.5.",
    )  # from Python, for worlds: also one of these per environment
    variant: parts.VariantName | None = Field(
        "current", description="current, leaderboard or debugged: which release of the challenge is played."
    )  # None, from Python: whatever the CybORG found is
    green: bool = Field(False, description="With users who scan ports at random.")
    max_steps: int | None = Field(
        100, ge=1, le=arguments.MOST, description="Length of an episode."
    )  # None, for worlds: no end
    backend: Backend = Field(
        "simulator",
        description="simulator, cyborg (the real thing, in worker processes), or workers (our simulator there).",
    )
    cyborg: str | None = Field(
        None,
        exclude=True,
        description="A checkout of cage-challenge-2, for --backend cyborg; default: FIXFIRST_CYBORG, or installed.",
    )  # names code to be run, so it is never written down: whoever goes on with a run says it again

    @model_validator(mode="before")
    @classmethod
    def _whole_scenario(cls, values: Any) -> Any:
        """Read a scenario together with its images and its reward, of which no file is needed after that."""
        if not isinstance(values, Mapping) or not {"scenario", "images", "reward"} & set(values):
            return values
        scenario = scenario_of(values.get("scenario", CAGE2), values.get("images"), values.get("reward"))
        length = {} if scenario.steps is None or "max_steps" in values else {"max_steps": scenario.steps}
        return {**values, "scenario": scenario, "images": None, "reward": None, **length}

    @model_validator(mode="after")
    def _cyborg_knows_the_reward(self) -> "Game":
        if self.backend == "cyborg" and self.scenario.own_reward:
            raise errors.ScenarioError(
                f"{self.scenario.name} has a reward of its own, which CybORG cannot give: play it on the simulator"
            )
        return self

    @model_validator(mode="after")
    def _b_line_has_a_target(self) -> "Game":
        if self.scenario.target is None:
            specs = [self.red_agent] if isinstance(self.red_agent, str) else self.red_agent
            if any(_agent_weights(spec).get("b_line") for spec in specs):
                raise errors.ScenarioError(
                    f"{self.scenario.name}: b_line looks for a host named {parts.TARGET_NAME}, and there is none; "
                    "call the host to be protected most so, or play against meander"
                )
        return self

    @field_validator("red_agent", mode="before")
    @classmethod
    def _known_red_agent(cls, value: Any, info: ValidationInfo) -> str | tuple[str, ...]:
        several = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
        scenario = info.data.get("scenario", CAGE2)  # it is not there if it was refused
        return tuple(red_agent_spec(one, scenario) for one in value) if several else red_agent_spec(value, scenario)

    @field_validator("variant", mode="before")
    @classmethod
    def _known_variant(cls, value: str | None) -> str | None:
        return None if value is None else check_variant(value)

    @property
    def where(self) -> str:
        """The world in words, see `Scenario.in_words`."""
        return self.scenario.in_words(f"variant {self.variant}")

    @property
    def attacker(self) -> str:
        """The red agent or mixture that is met in all environments."""
        if not isinstance(self.red_agent, str):
            raise errors.ConfigError(
                f"one red agent or mixture must be given for all environments, got {errors.quoted(self.red_agent)}"
            )
        return self.red_agent

    @property
    def learned(self) -> tuple[str, ...]:
        """Attackers that are learned ones, each with the beginning of its hash; their numbers begin with LEARNED."""
        return learned_in([self.red_agent] if isinstance(self.red_agent, str) else self.red_agent)

    def red_name(self, number: int) -> str:
        """Return the red agent of this number."""
        return self.learned[number - LEARNED] if number >= LEARNED else red_agent_names()[number]

    def against(self, red_agent: str, **settings: Any) -> "Game":
        """Return the same game against another red agent or mixture, with other settings."""
        return self.model_copy(update={"red_agent": red_agent_spec(red_agent, self.scenario), **settings})

    @property
    def steps(self) -> int:
        """The length of an episode, where all have one."""
        if self.max_steps is None:
            raise errors.ConfigError("a rollout needs episodes of fixed length: give the world max_steps")
        return self.max_steps

    def red_odds(self, num_envs: int) -> np.ndarray:
        """Return cumulative probabilities [N, 4 and own ones] of the red agents, by their numbers."""
        return red_odds(self.red_agent, num_envs)

    def for_envs(self, envs: slice, num_envs: int) -> "Game":
        """Return the game of some of N environments."""
        if isinstance(self.red_agent, str) or len(self.red_agent) != num_envs:
            return self
        return self.model_copy(update={"red_agent": self.red_agent[envs]})

    @classmethod
    def of_environment(cls, **settings: Any) -> "Game":
        """Make a game from what somebody who makes environments says: types are checked as arguments of functions are."""
        backend = arguments.check_choice("backend", settings.get("backend", "simulator"), get_args(Backend))
        if "variant" in settings:
            check_variant(settings["variant"])
        elif backend == "cyborg":
            settings["variant"] = None  # CybORG says what it is
        if "green" in settings:
            arguments.check_bool("green", settings["green"])
        if settings.get("max_steps") is not None:
            arguments.check_int("max_steps", settings["max_steps"])
        return cls(**settings)


# ---------------------------------------------------------------- what users may say

NUMBERS = 256  # of attackers: a byte in a state
SEALED = re.compile(r"(.+)@([0-9a-f]{8})")  # a learned attacker and the beginning of its hash
_RED_ALIASES = {  # CybORG's class names and the spellings met in the field, all in lower case
    "bline": "b_line",
    "b_lineagent": "b_line",
    "redmeanderagent": "meander",
    "redmeander": "meander",
    "sleepagent": "sleep",
}


def red_agent_names() -> tuple[str, ...]:
    """Return all scripts by their numbers: those of `RedAgent`, then users' own."""
    return (*(agent.name.lower() for agent in RedAgent), *own_agents())


def red_odds(red_agent: str | Sequence[str], num_envs: int) -> np.ndarray:
    """Return cumulative probabilities [N, 4 and own ones] of the red agents, by their numbers; learned ones come last."""
    specs = [red_agent] if isinstance(red_agent, str) else list(red_agent)
    if len(specs) not in (1, num_envs):
        raise errors.WorldError(
            f"{len(specs)} red agents given for {num_envs} environments; give one, or one per environment"
        )
    scripts, learned = red_agent_names(), learned_in(specs)
    rows = np.zeros((len(specs), LEARNED + len(learned) if learned else len(scripts)))
    for row, spec in zip(rows, specs, strict=True):
        for name, weight in _agent_weights(spec).items():
            row[LEARNED + learned.index(name) if name in learned else scripts.index(name)] += weight
    odds = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
    odds[:, -1] = 1.0  # rounding must not leave a gap
    # A copy: one that cannot be written to would be another type to the compiler, and the kernel compiled twice.
    return np.broadcast_to(odds, (num_envs, odds.shape[1])).copy()


def learned_in(specs: Sequence[str]) -> tuple[str, ...]:
    """Return the attackers among those of names or mixtures that are learned ones, in the order of their numbers."""
    names = dict.fromkeys(name for spec in specs for name in _agent_weights(spec))
    learned = tuple(name for name in names if name not in red_agent_names())
    if LEARNED + len(learned) > NUMBERS:
        raise errors.WorldError(f"at most {NUMBERS - LEARNED} learned attackers can be named, got {len(learned)}")
    return learned


def red_agent_name(text: str) -> str:
    """Return the name of a script or an own attacker, from any spelling we know; or a learned attacker, as named."""
    key = text.strip().lower() if isinstance(text, str) else str(text)
    name = _RED_ALIASES.get(key, key)
    if name in red_agent_names():
        return name
    if not isinstance(text, str) or (not SEALED.fullmatch(text.strip()) and not _red_files().is_there(text.strip())):
        raise errors.WorldError(
            f"unknown red agent {errors.quoted(text)}; use {', '.join(red_agent_names())} (or CybORG's B_lineAgent, "
            "RedMeanderAgent, SleepAgent), a mixture such as b_line:0.5,meander:0.5, or a learned one: "
            f"{', '.join(_red_files().shipped_reds())}, or the folder of its files"
        )
    return text.strip()


def red_agent_spec(spec: str, scenario: Scenario | None = None) -> str:
    """Return a name or mixture in our own spelling: B_lineAgent -> b_line.

    scenario: where it is played. Learned attackers then carry the beginning of their hash: runs/red -> runs/red@1a2b3c4d.
    """
    _agent_weights(spec)
    parts = [part.partition(":") for part in spec.split(",")]
    return ",".join(_sealed(red_agent_name(name), scenario) + colon + weight.strip() for name, colon, weight in parts)


def _sealed(name: str, scenario: Scenario | None) -> str:
    known = scenario is None or name in red_agent_names() or SEALED.fullmatch(name)
    return name if known else f"{name}@{_red_files().load_red(name, scenario).seal}"


def _red_files() -> ModuleType:
    """Return the module that knows files of attackers: by name, because it is in a later room."""
    return import_module("fixfirst.policy.reds")


def _agent_weights(spec: str) -> dict[str, float]:
    """Return the weights of the agents in a name or a mixture `name:weight,name:weight`."""
    if not isinstance(spec, str):
        raise errors.WorldError(f"a red agent is given by name, got {errors.quoted(spec)}")
    weights: dict[str, float] = {}
    for part in spec.split(","):
        name, colon, weight = part.partition(":")
        if not colon and "," in spec:
            raise errors.WorldError(
                f"red agent mixture {errors.quoted(spec)} needs a weight for {part.strip()!r}, as in b_line:0.5,meander:0.5"
            )
        try:
            value = float(weight) if colon else 1.0
        except ValueError:
            raise errors.WorldError(
                f"weight {weight!r} in red agent mixture {errors.quoted(spec)} is not a number"
            ) from None
        if not (math.isfinite(value) and value >= 0):
            raise errors.WorldError(
                f"weight {weight} in red agent mixture {errors.quoted(spec)} must be a finite number, at least 0"
            )
        known = red_agent_name(name)
        weights[known] = weights.get(known, 0.0) + value
    if not math.isfinite(sum(weights.values())):
        raise errors.WorldError(f"the weights of red agent mixture {errors.quoted(spec)} are too large to be compared")
    if sum(weights.values()) <= 0:
        raise errors.WorldError(
            f"the weights of red agent mixture {errors.quoted(spec)} sum to 0; at least one must be positive"
        )
    return weights


def check_variant(variant: str) -> parts.VariantName:
    """Return the variant itself, if there is one of this name."""
    return cast(parts.VariantName, arguments.check_choice("variant", variant, get_args(parts.VariantName)))


# ---------------------------------------------------------------- red agents of users
#
# `attackers.py` compiles them on first use; to know their names needs no compiler. Other processes know them if they are in
# a file that FIXFIRST_RED_AGENTS names. A module that registers one adds its file to the variable, where worker processes
# find it.


FILES_VARIABLE = "FIXFIRST_RED_AGENTS"
Decide = TypeVar("Decide", bound=Callable[..., None])

_own: dict[str, Callable[..., None]] = {}  # in the order of their numbers
_files: set[Path] = set()  # those of the variable whose agents are registered


def red_agent(name: str) -> Callable[[Decide], Decide]:
    """Register a red agent of your own: a decorator for a function (env, chance) that decides what red does next.

    The function is compiled by Numba on first use (a second or two in each process), and calls `intends` of `fixfirst.red`,
    where all it may need is; docs/extend.md tells what is in `env`. From then on the name works wherever a red agent is
    named, also in mixtures. To use it from the command line, name its file in FIXFIRST_RED_AGENTS.

    For example:

        from fixfirst.red import USER, Verb, intends

        @ff.red_agent("looks_around")
        def looks_around(env, chance):
            intends(env, Verb.DISCOVER, USER)
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z]\w*", name):
        raise errors.ConfigError(f"a red agent's name is a word in lower case, got {errors.quoted(name)}")
    if name.upper() in RedAgent.__members__:
        raise errors.ConfigError(f"{name} is one of our red agents; give yours another name")

    def register(function: Decide) -> Decide:
        if not isinstance(function, FunctionType) or len(inspect.signature(function).parameters) != 2:
            raise errors.ConfigError(f"red agent {errors.quoted(name)} must be a function of (env, chance)")
        _own[name] = function
        _share(function)
        return function

    return register


def own_agents() -> dict[str, Callable[..., None]]:
    """Return all that are registered, also in the files of the variable, in the order of their numbers."""
    for path in _files_of_the_variable():
        if path.resolve() not in _files:
            _files.add(path.resolve())  # before it runs: it may ask for the agents itself
            if not _is_the_program(path):
                try:
                    _run(path)
                except errors.ConfigError:
                    _files.discard(path.resolve())
                    raise
    return dict(_own)


def _files_of_the_variable() -> list[Path]:
    return [Path(path) for path in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if path]


def _is_the_program(path: Path) -> bool:
    """Return whether this process runs the file as a script, which registers its agents by itself."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    return program is not None and Path(program).resolve() == path.resolve()


def _share(function: Callable[..., None]) -> None:
    """Let worker processes find a function: they read its file, unless it is the program that starts them."""
    path = Path(inspect.getsourcefile(function) or "").resolve()
    if function.__module__ != "__main__" and path.is_file() and path not in {p.resolve() for p in _files_of_the_variable()}:
        _files.add(path)
        os.environ[FILES_VARIABLE] = os.pathsep.join(filter(None, [os.environ.get(FILES_VARIABLE), str(path)]))


def _run(path: Path) -> None:
    """Run a file of the variable. Raises ConfigError, with the line where it stopped."""
    spec = importlib.util.spec_from_file_location(f"fixfirst_red_agents_{len(_files)}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise errors.ConfigError(f"{FILES_VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        where = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename.endswith(str(path))]
        line = f", line {where[-1]}" if where else ""
        raise errors.ConfigError(f"{FILES_VARIABLE} names {path}, which does not run{line} ({type(e).__name__}: {e})") from e
