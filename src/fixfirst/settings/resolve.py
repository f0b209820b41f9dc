"""From what a person says to one checked config: Python or command line > environment > file > preset > default.

TrainConfig.resolve({"preset": "hybrid", "red_agent": "meander"})
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ValidationError, model_validator

from fixfirst.base import arguments, errors
from fixfirst.orders import order
from fixfirst.runs import manifest
from fixfirst.settings.presets import LEAGUE, PRESETS

ENVIRONMENT_PREFIX = "FIXFIRST_"
EMPTY: Mapping[str, Any] = MappingProxyType({})

# In words, what settings need to have an effect, a test of it, and their names. The first line with a name counts.
Needs = tuple[tuple[str, Callable[[Any], bool], str], ...]


def flag(name: str) -> str:
    """Return a setting as it is typed: --n-envs."""
    return "--from" if name == "from_policy" else f"--{name.replace('_', '-')}"


def check_preset(name: Any) -> str:
    """Return the name itself, if there is a preset of this name."""
    if isinstance(name, str) and name == LEAGUE:  # an array is compared element by element
        raise errors.ConfigError(f"--preset {LEAGUE} is a league: use `fixfirst train`, or ff.train_league()")
    if not isinstance(name, str) or name not in PRESETS:
        hint = errors.did_you_mean(name, (*PRESETS, LEAGUE)) if isinstance(name, str) else ""
        raise errors.ConfigError(f"--preset must be one of {', '.join((*PRESETS, LEAGUE))}, got {name!r}{hint}")
    return name


class NamedSettings(arguments.Settings):
    """Settings by name: older names are read, arrays and numbers that something would overflow with are refused."""

    @model_validator(mode="before")
    @classmethod
    def _current_names(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        for name, value in values.items():
            if isinstance(value, np.ndarray | np.void):  # which cannot even be compared with what a setting may be
                raise errors.ConfigError(f"{flag(name)} must be a plain value, got {value!r}")
        return _by_current_names(values)

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        for name in type(self).model_fields:
            if name != "seed":  # it has limits of its own
                _check_size(name, getattr(self, name))
        return self


def _check_size(name: str, value: Any) -> None:
    """Check that a number, alone or in tuples, is finite and no larger than what we count with."""
    for part in value if isinstance(value, tuple) else ():
        _check_size(name, part)
    if isinstance(value, int | float) and not abs(value) <= arguments.MOST:
        raise errors.ConfigError(f"{flag(name)} must be a number of at most {arguments.MOST:,}, got {value!r}")


class Resolvable(NamedSettings):
    """Settings that come from several places, with the presets' values where none of them says anything."""

    needs: ClassVar[Needs] = ()

    @classmethod
    def defaults_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults that depend on other settings."""
        return {}

    @classmethod
    def gather(
        cls, given: Mapping[str, Any], file: Path | None, units: Path | None
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what the caller, variables and a file name: the arguments of `resolve`. units: groups the hosts."""
        old = [name for name, now in manifest.RENAMED.items() if now in cls.model_fields]
        names = [name for name in (*cls.model_fields, *old, *manifest.GONE) if name != "units"]
        variables = {name: os.environ.get(ENVIRONMENT_PREFIX + name.upper()) for name in names}
        grouping = {} if units is None else {"units": order.read_units(units)}
        from_file = {} if file is None else _flat(cls, manifest.read_settings(file), f"{file}: ")
        if name := next((name for name in manifest.CODE if name in from_file), None):  # files go from hand to hand
            variable = ENVIRONMENT_PREFIX + name.upper()
            raise errors.ConfigError(
                f"{file}: {name} names code to be run, which no file may; say it with {flag(name)} or {variable}"
            )
        return (
            _flat(cls, {**given, **grouping}),
            _flat(cls, {name: _number(text) for name, text in variables.items() if text is not None}),
            from_file,
        )

    @classmethod
    def resolve(cls, given: Mapping[str, Any], ambient: Mapping[str, Any] = EMPTY, file: Mapping[str, Any] = EMPTY) -> Self:
        """Make one checked config. What has no effect beside the rest is refused, if a caller or a file names it.

        ambient: goes before the file, but is meant for other commands, too, as variables are, or was accepted once in a run.
        """
        given, file = _flat(cls, given), _flat(cls, file)
        named = {**file, **_flat(cls, ambient), **given}
        preset = check_preset("default" if named.get("preset") is None else named["preset"])
        usual = {name: value for name, value in PRESETS[preset].items() if name in cls.model_fields}
        values = {**usual, **_whole_passes(usual, named), **named}
        try:
            config = cls.model_validate(values)
        except ValidationError as error:  # one ConfigError that names the setting as it is typed, and what came
            raise arguments.first_problem(error, lambda path: flag(path[0]) if path else "") from None
        defaults = {name: field.get_default() for name, field in cls.model_fields.items()} | cls.defaults_of(values) | usual
        needs = {name: (words, holds) for words, holds, names in reversed(cls.needs) for name in names.split()}
        for name in [name for name in (*file, *given) if name in needs]:
            words, holds = needs[name]
            if not holds(config) and getattr(config, name) != defaults[name]:
                raise errors.ConfigError(f"{flag(name)} has no effect here: it needs {words}")
        return config


def _number(text: str) -> str:
    """Return the text of a variable, in which 1e5 is a whole number, too."""
    return str(int(float(text))) if re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", text) else text


def _flat(model: type[BaseModel], settings: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """Return settings by flat name. source: where they come from, for messages."""
    flat = _by_current_names(settings, source)
    for name in flat:
        if name not in model.model_fields:
            every = f"; known are {', '.join(sorted(model.model_fields))}"
            raise errors.ConfigError(
                f"{source}unknown setting {name!r}{errors.did_you_mean(str(name), model.model_fields) or every}"
            )
    return flat


def _by_current_names(given: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """Return flat settings without those that are gone; a line for these, and one for all that were given by old names."""
    flat = manifest.flat_settings(given)
    renamed = [f"{flag(old)} is {flag(now)}" for old, now in manifest.RENAMED.items() if old in given]
    if renamed:
        errors.note(f"{source}some settings have other names now: {', '.join(renamed)}")
    if gone := sorted(flat.keys() & manifest.GONE.keys()):
        errors.note(
            f"{source}{flag(gone[0])} has no effect: PyTorch no longer learns here. --row-parts cuts an epoch into parts; "
            "networks of your own learn with Stable-Baselines3 on our environments (docs/environments.md)"
        )
    return {name: value for name, value in flat.items() if name not in manifest.GONE}


def _whole_passes(preset: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Another number of environments than the preset's keeps its episodes per environment, unless that is named, too."""
    wanted = str(named.get("n_envs"))  # text, where it comes from the environment
    if named.get("episodes_per_update") is not None or not wanted.isdigit():
        return {}
    return {"episodes_per_update": preset.get("episodes_per_update", 1) // preset.get("n_envs", 1) * int(wanted)}
