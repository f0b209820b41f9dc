"""From what a person says to checked configs: Python or command line > environment > file > preset > default."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fixfirst.base.errors import ConfigError
from fixfirst.game.game import Game
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.settings import merged, nested, places, resolve, value_in
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme
from fixfirst.runs.config_reading import named_code
from fixfirst.runs.manifest import read_toml
from fixfirst.searcher.config import SearchConfig, resolve_search

ENVIRONMENT_PREFIX = "FIXFIRST_"


def collect_settings(
    model: type[BaseModel], given: Mapping[str, Any], file: Path | None, units: Path | None
) -> dict[str, Any]:
    """All settings that were said somewhere, nested as in a config file. units: a TOML file that groups the hosts."""
    from_file = nested({} if file is None else _settings_of(file), model, source=f"{file}: ")
    variables = ((name, os.environ.get(ENVIRONMENT_PREFIX + name.upper())) for name in places(model) if name != "units")
    from_environment = nested({name: _plain(text) for name, text in variables if text is not None}, model)
    grouping = {} if units is None else {"units": UnitScheme.from_toml(units).as_dict()}
    return merged(from_file, from_environment, nested({**given, **grouping}, model))


def _plain(text: str) -> str:
    """Of a variable: 1e5 is a whole number, too."""
    return str(int(float(text))) if re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", text) else text


def _settings_of(file: Path) -> dict[str, Any]:
    """A TOML file with settings; none that names code, for files go from hand to hand."""
    settings = read_toml(file)
    if name := named_code(settings):
        flag, variable = f"--{name.replace('_', '-')}", f"{ENVIRONMENT_PREFIX}{name.upper()}"
        raise ConfigError(f"{file}: {name} names code to be run, which no file may; say it with {flag} or {variable}")
    return settings


def train_config(given: Mapping[str, Any], file: Path | None = None, units: Path | None = None) -> TrainConfig:
    """The config of one training."""
    return resolve(TrainConfig, collect_settings(TrainConfig, given, file, units))


def search_configs(
    given: Mapping[str, Any], file: Path | None = None, units: Path | None = None, seeds: int = 1
) -> list[SearchConfig]:
    """The configs of a study's searches: every red agent under every seed; of a single search, one."""
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    settings = collect_settings(SearchConfig, given, file, units)
    named = value_in(settings, places(SearchConfig)["red_agent"])
    agents = red_agents(Game().red_agent if named is None else named)
    firsts = [resolve_search(settings, {"red_agent": agent}) for agent in agents]
    return [
        resolve_search(settings, {"red_agent": first.training.game.red_agent, "seed": first.seed + i})
        for first in firsts
        for i in range(seeds)
    ]


def red_agents(spec: Any) -> list[Any]:
    """A plain list of names means one after the other; weights make it one mixture."""
    return spec.split(",") if isinstance(spec, str) and ":" not in spec else [spec]


def game_and_judging(settings: Mapping[str, Any]) -> tuple[Game, Judging]:
    """What is played and how it is judged, from settings by name."""
    parts: dict[type[BaseModel], dict[str, Any]] = {Game: {}, Judging: {}}
    for name, value in settings.items():
        owner = next((model for model in parts if name in model.model_fields), None)
        if owner is None:
            known = ", ".join(name for model in parts for name in model.model_fields)
            raise ConfigError(f"unknown setting {name!r}; known are {known}")
        parts[owner][name] = value
    return Game(**parts[Game]), Judging(**parts[Judging])
