"""From flags, environment variables and TOML files to one checked config: command line > environment > file > default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fixfirst.errors import ConfigError
from fixfirst.learner.config import TrainConfig, make_config
from fixfirst.orders.workflow import UnitScheme
from fixfirst.runs.run_dir import read_toml
from fixfirst.searcher.config import SearchConfig, search_config

ENVIRONMENT_PREFIX = "FIXFIRST_"

# Flags that stand for a value inside a table of the config file.
PLACES = {
    "n_envs": ("ppo", "num_envs"),
    "episodes_per_update": ("ppo", "episodes_per_update"),
    "epochs": ("ppo", "epochs"),
    "minibatches": ("ppo", "minibatches"),
    "returns": ("ppo", "returns"),
    "gamma": ("ppo", "gamma"),
    "gae_lambda": ("ppo", "gae_lambda"),
    "clip": ("ppo", "clip"),
    "entropy": ("ppo", "entropy"),
    "learning_rate": ("ppo", "learning_rate"),
    "lr_schedule": ("ppo", "lr_schedule"),
    "engine": ("ppo", "engine"),
    "alignment": ("alignment", "kind"),
    "alignment_lambda": ("alignment", "weight"),
}
TOP_LEVEL = tuple(TrainConfig.model_fields)
SEARCH_LEVEL = tuple(SearchConfig.model_fields)


def gather(given: Mapping[str, Any], file: Path | None, known: tuple[str, ...] = TOP_LEVEL) -> dict[str, Any]:
    """All settings that were said somewhere, nested as in a config file. `given`: flags, None = not given."""
    settings: dict[str, Any] = {} if file is None else read_toml(file)
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise ConfigError(f"{file}: unknown setting {unknown[0]!r}; known are {', '.join(known)}")
    flags = {name for name in (*known, *PLACES) if name not in ("ppo", "alignment", "units")}
    for name in sorted(flags):
        if (text := os.environ.get(ENVIRONMENT_PREFIX + name.upper())) is not None:
            _put(settings, name, text)
    for name, value in given.items():
        if value is not None:
            _put(settings, name, value)
    return settings


def _put(settings: dict[str, Any], name: str, value: Any) -> None:
    if name in PLACES:
        table, key = PLACES[name]
        if not isinstance(settings.setdefault(table, {}), dict):
            raise ConfigError(f"setting {table!r} must be a table, got {settings[table]!r}")
        settings[table][key] = value
    else:
        settings[name] = value


def train_config(given: Mapping[str, Any], file: Path | None = None, units: Path | None = None) -> TrainConfig:
    """The config of one training."""
    settings = gather(given, file)
    if units is not None:
        settings["units"] = UnitScheme.from_toml(units).as_dict()
    return make_config(**settings)


def resolve_study(
    given: Mapping[str, Any], file: Path | None = None, units: Path | None = None, seeds: int = 1
) -> list[SearchConfig]:
    """The configs of a study's searches: every red agent under every seed; of a single search, one."""
    settings = gather(given, file, SEARCH_LEVEL)
    if units is not None:
        settings["units"] = UnitScheme.from_toml(units).as_dict()
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    agents = red_agents(settings.pop("red_agent", SearchConfig.model_fields["red_agent"].default))
    firsts = [search_config(**settings, red_agent=agent) for agent in agents]
    return [
        search_config(**settings | {"seed": first.seed + i}, red_agent=first.red_agent)
        for first in firsts
        for i in range(seeds)
    ]


def red_agents(spec: str) -> list[str]:
    """A plain list of names means one after the other; weights make it one mixture."""
    return spec.split(",") if isinstance(spec, str) and ":" not in spec else [spec]
