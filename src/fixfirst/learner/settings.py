"""Settings by name: the flat names that flags, variables, files and Python share, and where each stands in a config.

    places(TrainConfig)["red_agent"] == ("game", "red_agent")
    resolve(TrainConfig, {"preset": "hybrid", "red_agent": "meander", "ppo": {"epochs": 2}})

A setting may be given flat, or in tables as config.toml has them. What is not given comes from the preset, else from the
config's own defaults.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from fixfirst.base.checks import MOST, first_problem
from fixfirst.base.errors import ConfigError, did_you_mean, quoted
from fixfirst.learner.config import FlatNames, TrainConfig
from fixfirst.learner.presets import PRESETS

Place = tuple[str, ...]
ANY_SIZE = ("seed",)  # it has limits of its own
Config = TypeVar("Config", bound=BaseModel)


@cache
def places(model: type[BaseModel]) -> dict[str, Place]:
    """Where each setting stands, by its flat name. A config's own setting hides one of the same name further inside."""
    found: dict[str, Place] = {}
    for place, name, is_table in sorted(_walk(model), key=lambda entry: len(entry[0])):
        if not is_table:
            found.setdefault(name, place)
    return found


@cache
def _tables(model: type[BaseModel]) -> dict[str, Place]:
    return {name: place for place, name, is_table in _walk(model) if is_table}


def _walk(model: type[BaseModel], above: Place = ()) -> Iterator[tuple[Place, str, bool]]:
    """Every field: its place, its flat name, and whether it is a table of further ones."""
    renamed: FlatNames = getattr(model, "FLAT_NAMES", {})
    for field, info in model.model_fields.items():
        kind = info.annotation
        table = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        yield (*above, field), renamed.get((field,), field), table is not None
        for place, name, is_table in _walk(table, (field,)) if table is not None else ():
            yield (*above, *place), renamed.get(place, name), is_table


def value_at(config: BaseModel, place: Place) -> Any:
    """The value of a setting."""
    value: Any = config
    for name in place:
        value = getattr(value, name)
    return value


def nested(settings: Mapping[str, Any], model: type[BaseModel], source: str = "") -> dict[str, Any]:
    """Settings by flat name or in tables, all put where they stand in the config. source: who said so, for the error."""
    known, tables = places(model), _tables(model)
    document: dict[str, Any] = {}
    for name, value in settings.items():
        if name in tables and isinstance(value, Mapping):
            place, content = tables[name], dict(value)
        elif name in known:
            place, content = known[name][:-1], {known[name][-1]: value}
        elif name in tables:
            raise ConfigError(f"{source}setting {quoted(name)} must be a table, got {quoted(value)}")
        else:
            hint = did_you_mean(name, known) or f"; known are {', '.join(sorted(known))}"
            raise ConfigError(f"{source}unknown setting {quoted(name)}{hint}")
        for table in reversed(place):
            content = {table: content}
        document = merged(document, content)
    return document


def merged(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings, each document over those before it, table by table."""
    result: dict[str, Any] = {}
    for document in documents:
        for name, value in document.items():
            both = isinstance(value, Mapping) and isinstance(result.get(name), Mapping) and name != "units"
            result[name] = merged(result[name], value) if both else value
    return result


def resolve(model: type[Config], *layers: Mapping[str, Any]) -> Config:
    """One checked config from settings, each layer over those before it, and all over the preset they name."""
    given = merged(*(nested(layer, model) for layer in layers))
    preset = value_in(given, places(model)["preset"])
    preset = "default" if preset is None else preset
    if not isinstance(preset, str) or preset not in PRESETS:
        hint = did_you_mean(str(preset), PRESETS)
        raise ConfigError(f"preset must be one of {', '.join(PRESETS)}, got {quoted(preset)}{hint}")
    values = nested({name: value for name, value in PRESETS[preset].items() if name in places(model)}, model)
    given = merged(given, _kept_passes(values, given, model))
    _check_plain(given, np.void)  # a record would count as an empty list
    try:
        config = model.model_validate(merged(values, given))
    except ValidationError as error:  # one ConfigError that names the setting as the user knows it, and what came
        raise first_problem(error, lambda place: _flat(place, places(model))) from None
    except TypeError:
        _check_plain(given, np.ndarray)
        raise
    for name, place in places(model).items():
        if name not in ANY_SIZE:
            _check_size(name, value_at(config, place))
    return config


def _check_plain(given: Any, kind: type) -> None:
    """What comes from Python may be anything; arrays cannot even be compared with what a setting may be."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            _check_plain(value, kind)
        elif isinstance(value, kind):
            raise ConfigError(f"{name} must be a plain value, got {quoted(value)}")


def _check_size(name: str, value: Any) -> None:
    """Finite numbers that nothing overflows with, alone or in tuples."""
    if isinstance(value, tuple):
        for one in value:
            _check_size(name, one)
    elif isinstance(value, int | float) and not abs(value) <= MOST:
        raise ConfigError(f"{name} must be a number of at most {MOST:,}, got {quoted(value)}")


def value_in(document: Mapping[str, Any], place: Place) -> Any:
    """What a nested document says at a place, or None."""
    value: Any = document
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _kept_passes(preset: dict[str, Any], given: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Another number of environments than the preset's keeps its episodes per environment, unless told otherwise."""
    envs, episodes = (places(model)[name] for name in ("n_envs", "episodes_per_update"))
    wanted = str(value_in(given, envs))  # text, where it comes from the environment
    if value_in(given, episodes) is not None or not wanted.isdigit():
        return {}
    passes = (value_in(preset, episodes) or 1) // (value_in(preset, envs) or 1)
    return nested({"episodes_per_update": passes * int(wanted)}, model)


def _flat(place: tuple[str, ...], known: Mapping[str, tuple[str, ...]]) -> str:
    """What a setting at this place, or around it, is called by users."""
    return next((name for name, at in known.items() if place[: len(at)] == at), ".".join(place))


def make_config(preset: str = "default", **settings: Any) -> TrainConfig:
    """A training config from a preset and settings, flat or in tables. Bad values raise ConfigError.

    For example:

        config = ff.make_config(workflow="critical_first", red_agent="meander", n_envs=100)
    """
    return resolve(TrainConfig, {"preset": preset, **settings})
