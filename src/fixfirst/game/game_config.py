"""What is played, as one value: a `Game`, checked once. And what users may call its scenario.

That is one that comes with fixfirst, a file, or the seed of a random network.
"""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, ValidationInfo, field_validator, model_validator

from fixfirst.base import arguments, errors
from fixfirst.game import parts
from fixfirst.game.red_agents import Mixture, parse_mixture, script_names
from fixfirst.game.scenario import CAGE2, SHIPPED_SCENARIOS, Scenario
from fixfirst.game.state import LEARNED

Backend = Literal["simulator", "workers", "cyborg"]
_MOST_NUMBERS = 256  # of attackers: a byte in a state
# A random network: generate:17:hosts=8-12; in lists also generate:0-99:hosts=8-12
_RANDOM = re.compile(r"generate:(?P<first>\d+)(-(?P<last>\d+))?(?P<more>(:(hosts|subnets)=\d+(-\d+)?|:values=\w+)*)")
_MOST_LISTED = 10_000  # networks that one text can name


def _random_network(text: str) -> re.Match[str]:
    match = _RANDOM.fullmatch(text)
    if match is None or not 0 <= int(match["last"] or match["first"]) - int(match["first"]) < _MOST_LISTED:
        form = "generate:SEED or generate:FIRST-LAST, with :hosts=8-12, :subnets=2-3, :values=any if wanted"
        raise errors.ScenarioError(f"a random network is {form}, at most {_MOST_LISTED:,} seeds; got {text!r}")
    return match


def scenario_named(value: Any, images: Any = None, reward: Any = None) -> Scenario:
    """Return a scenario: itself, the one that comes with fixfirst under a name, one from a file, or one kept in a run.

    The text generate:SEED stands for a random one; :hosts=8-12, :subnets=3 and :values=any say more of it. images, reward:
    a folder, and a file, of the user's own.
    """
    if reward is not None:
        return scenario_named(value, images).with_reward(reward)
    if images is not None and not isinstance(value, str | os.PathLike):
        raise errors.ConfigError("own images are those of a scenario file: give --scenario FILE with --images")
    if isinstance(value, Scenario):
        return value
    if isinstance(value, Mapping):
        return Scenario.from_dict(value)
    if not isinstance(value, str | os.PathLike):
        raise errors.ConfigError(f"a scenario is a file, or one of {', '.join(SHIPPED_SCENARIOS)}, got {value!r}")
    if isinstance(value, str) and value.startswith("generate:"):
        match = _random_network(value)
        if match["last"]:
            raise errors.ScenarioError(f"{value} names several networks: only a search takes them")
        settings: dict[str, Any] = dict(part.split("=") for part in match["more"].split(":")[1:])
        for name in settings.keys() - {"values"}:
            fewest, _, most = settings[name].partition("-")
            settings[name] = int(fewest), int(most or fewest)
        return Scenario.generate(int(match["first"]), **settings)
    path = arguments.check_path("scenario", value)
    if isinstance(value, str) and value not in SHIPPED_SCENARIOS and path.suffix == "" and not path.exists():
        near = errors.did_you_mean(value, SHIPPED_SCENARIOS)
        names = f"{', '.join(SHIPPED_SCENARIOS)} or a file such as lab.yaml"
        raise errors.ScenarioError(f"unknown scenario {value!r}; use {names}{near}")
    return Scenario.load(os.fspath(value), images)


def scenarios_listed(value: Any) -> list[Any]:
    """Return what a list of scenarios names, one by one: a list, or a text such as a.yaml,tiny,generate:0-99."""
    if isinstance(value, list | tuple):
        return [each for part in value for each in scenarios_listed(part)]
    if not isinstance(value, str) or ("," in value and os.path.exists(value)):
        return [value]
    names: list[Any] = []
    for name in map(str.strip, value.split(",")):
        if name.startswith("generate:"):
            match = _random_network(name)
            seeds = range(int(match["first"]), int(match["last"] or match["first"]) + 1)
            names += [f"generate:{seed}{match['more']}" for seed in seeds]
        else:
            names.append(name)
    return names


class Game(arguments.Settings):
    """In which network, against whom, in which release of the game, for how long, and who simulates it.

    For example:

        game = ff.Game(red_agent="b_line:0.5,meander:0.5", variant="leaderboard", max_steps=30)
    """

    scenario: Annotated[Scenario, PlainValidator(scenario_named), PlainSerializer(Scenario.as_dict)] = Field(
        CAGE2,
        exclude_if=lambda scenario: scenario == CAGE2,
        description=f"The network: {', '.join(SHIPPED_SCENARIOS)}, a file, or generate:SEED.",
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
        Mixture("b_line", {"b_line": 1.0}),
        description="b_line, meander, sleep, late, the folder of a learned attacker, or a mixture: b_line:0.5,runs/red:0.5.",
    )  # parsed, a `Mixture`; from Python, for worlds: also one of these per environment
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
        scenario = scenario_named(values.get("scenario", CAGE2), values.get("images"), values.get("reward"))
        length = {} if scenario.steps is None or "max_steps" in values else {"max_steps": scenario.steps}
        return {**values, "scenario": scenario, "images": None, "reward": None, **length}

    @model_validator(mode="after")
    def _can_be_played(self) -> "Game":
        if self.backend == "cyborg" and self.scenario.own_reward:
            raise errors.ScenarioError(
                f"{self.scenario.name} has a reward of its own, which CybORG cannot give: play it on the simulator"
            )
        if self.scenario.target is None and any(mixture.weights.get("b_line") for mixture in self.mixtures):
            raise errors.ScenarioError(
                f"{self.scenario.name}: b_line looks for a host named {parts.TARGET_NAME}, and there is none; "
                "call the host to be protected most so, or play against meander"
            )
        return self

    @field_validator("red_agent", mode="plain")
    @classmethod
    def _known_red_agent(cls, value: Any, info: ValidationInfo) -> Mixture | tuple[Mixture, ...]:
        scenario = info.data.get("scenario", CAGE2)  # it is not there if it was refused
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0):
            return tuple(parse_mixture(each, scenario) for each in value)
        return parse_mixture(value, scenario)

    @property
    def where(self) -> str:
        """The world in words, see `Scenario.in_words`."""
        return self.scenario.in_words(f"variant {self.variant}")

    @property
    def attacker(self) -> str:
        """The red agent or mixture that is met in all environments."""
        if not isinstance(self.red_agent, str):
            raise errors.ConfigError(f"one red agent or mixture must be given for all environments, got {self.red_agent!r}")
        return self.red_agent

    @property
    def mixtures(self) -> tuple[Mixture, ...]:
        """Whom blue meets: one for all environments, or one per environment."""
        agents = (self.red_agent,) if isinstance(self.red_agent, str) else self.red_agent
        return cast(tuple[Mixture, ...], agents)

    @property
    def learned(self) -> tuple[str, ...]:
        """Attackers that are learned ones, each with the beginning of its hash; their numbers begin with LEARNED."""
        learned = tuple(dict.fromkeys(name for mixture in self.mixtures for name in mixture.learned))
        if LEARNED + len(learned) > _MOST_NUMBERS:
            raise errors.WorldError(f"at most {_MOST_NUMBERS - LEARNED} learned attackers can be named, got {len(learned)}")
        return learned

    def red_name(self, number: int) -> str:
        """Return the red agent of this number."""
        return self.learned[number - LEARNED] if number >= LEARNED else script_names()[number]

    def against(self, red_agent: str, **settings: Any) -> "Game":
        """Return the same game against another red agent or mixture, with other settings."""
        return self.model_copy(update={"red_agent": parse_mixture(red_agent, self.scenario), **settings})

    @property
    def steps(self) -> int:
        """The length of an episode, where all have one."""
        if self.max_steps is None:
            raise errors.ConfigError("a rollout needs episodes of fixed length: give the world max_steps")
        return self.max_steps

    def red_odds(self, num_envs: int) -> np.ndarray:
        """Return cumulative probabilities [N, 4 and own ones] of red agents by their numbers; learned ones come last."""
        if len(self.mixtures) not in (1, num_envs):
            count = f"{len(self.mixtures)} red agents given for {num_envs} environments"
            raise errors.WorldError(f"{count}; give one, or one per environment")
        scripts, learned = script_names(), self.learned
        numbers = {name: number for number, name in enumerate(scripts)}
        numbers |= {name: LEARNED + number for number, name in enumerate(learned)}
        rows = np.zeros((len(self.mixtures), LEARNED + len(learned) if learned else len(scripts)))
        for row, mixture in zip(rows, self.mixtures, strict=True):
            for name, weight in mixture.weights.items():
                row[numbers[name]] += weight
        odds = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
        odds[:, -1] = 1.0  # rounding must not leave a gap
        # A copy: one that cannot be written to would be another type to the compiler, and the kernel compiled twice.
        return np.broadcast_to(odds, (num_envs, odds.shape[1])).copy()

    def for_envs(self, envs: slice, num_envs: int) -> "Game":
        """Return the game of some of N environments."""
        if isinstance(self.red_agent, str) or len(self.red_agent) != num_envs:
            return self
        return self.model_copy(update={"red_agent": self.red_agent[envs]})

    @classmethod
    def of_environment(cls, **settings: Any) -> "Game":
        """Make a game from what somebody who makes environments says: types are checked as arguments of functions are."""
        if settings.get("max_steps") is not None:
            arguments.check_int("max_steps", settings["max_steps"])
        game = cls(**settings)
        says_it_itself = game.backend == "cyborg" and "variant" not in settings
        return game.model_copy(update={"variant": None}) if says_it_itself else game
