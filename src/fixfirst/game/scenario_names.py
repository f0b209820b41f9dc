"""What users may call a scenario: one that comes with fixfirst, a file, or the seed of a random network."""

import os
from collections.abc import Mapping
from typing import Any

from fixfirst.base import arguments, errors
from fixfirst.game.scenario import SHIPPED_SCENARIOS, Scenario

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
        raise errors.ConfigError(f"a scenario is a file, or one of {', '.join(SHIPPED_SCENARIOS)}, got {value!r}")
    if isinstance(value, str) and value.partition(":")[0] == _GENERATE:
        return _generated(value)
    path = arguments.check_path("scenario", value)
    if isinstance(value, str) and value not in SHIPPED_SCENARIOS and path.suffix == "" and not os.path.exists(path):
        near = errors.did_you_mean(value, SHIPPED_SCENARIOS)
        raise errors.ScenarioError(
            f"unknown scenario {value!r}; use {', '.join(SHIPPED_SCENARIOS)} or a file such as lab.yaml{near}"
        )
    return Scenario.load(os.fspath(value), images)


def scenarios_listed(value: Any) -> list[Any]:
    """Return what a list of scenarios names, one by one: a list, or a text such as a.yaml,tiny,generate:0-99."""
    if isinstance(value, list | tuple):
        return [one for part in value for one in scenarios_listed(part)]
    if not isinstance(value, str) or ("," in value and os.path.exists(value)):
        return [value]
    names: list[Any] = []
    for name in value.split(","):
        kind, seeds, *more = (name.strip() + ":").split(":")
        first, dash, last = seeds.partition("-")
        if kind != _GENERATE or not dash:
            names.append(name.strip())
            continue
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < int(first) + _MOST_LISTED):
            raise errors.ScenarioError(f"{_GENERATE_FORM}, at most {_MOST_LISTED:,} seeds; got {name!r}")
        names += [":".join((_GENERATE, str(seed), *more)).rstrip(":") for seed in range(int(first), int(last) + 1)]
    return names


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
            raise errors.ScenarioError(f"{_GENERATE_FORM}; got {text!r}")
    if not seed.isdecimal():
        raise errors.ScenarioError(f"{_GENERATE_FORM}; got {text!r}")
    return Scenario.generate(int(seed), **settings)


def scenario_of(value: Any, images: Any = None, reward: Any = None) -> Scenario:
    """Return the scenario of this name or file, with images and a reward of the user's own where they are given."""
    if images is not None and not isinstance(value, str | os.PathLike):
        raise errors.ConfigError("own images are those of a scenario file: give --scenario FILE with --images")
    scenario = scenario_named(value, images)
    return scenario if reward is None else scenario.with_reward(reward)
