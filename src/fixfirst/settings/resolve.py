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
from fixfirst.runs import manifest, setting_names
from fixfirst.settings.presets import PRESETS, check_preset

ENVIRONMENT_PREFIX = "FIXFIRST_"
EMPTY: Mapping[str, Any] = MappingProxyType({})

# By setting: under which condition it has an effect, in words and as a test of a config.
Needs = Mapping[str, tuple[str, Callable[[Any], bool]]]


def flag(name: str) -> str:
    """Return a setting as it is typed: --n-envs."""
    return "--from" if name == "from_policy" else f"--{name.replace('_', '-')}"


def needs(words: str, holds: Callable[[Any], bool], *names: str) -> Needs:
    """Say that the settings of these names have an effect only where a condition holds."""
    return dict.fromkeys(names, (words, holds))


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
        return without_old_names(setting_names.current(values), values)

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

    needs: ClassVar[Needs] = EMPTY

    @classmethod
    def defaults_of(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults that depend on other settings."""
        return EMPTY

    @classmethod
    def gather(
        cls, given: Mapping[str, Any], file: Path | None, units: Path | None
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What was said by the caller, by variables and by a file: the arguments of `resolve`. units: groups the hosts."""
        old = [name for name, now in setting_names.RENAMED.items() if now in cls.model_fields]
        names = [name for name in (*cls.model_fields, *old, *setting_names.GONE) if name != "units"]
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
    def resolve(
        cls,
        given: Mapping[str, Any],
        ambient: Mapping[str, Any] = EMPTY,
        file: Mapping[str, Any] = EMPTY,
    ) -> Self:
        """Make one checked config. What has no effect beside the rest is refused, if a caller or a file says so.

        ambient: over the file, but said for other commands, too, as variables are, or by a run that was accepted once.
        """
        given, file = _flat(cls, given), _flat(cls, file)
        said = {**file, **_flat(cls, ambient), **given}
        preset = check_preset("default" if said.get("preset") is None else said["preset"])
        usual = {name: value for name, value in PRESETS[preset].items() if name in cls.model_fields}
        said = {**_whole_passes(usual, said), **said}
        try:
            config = cls.model_validate({**usual, **said})
        except ValidationError as error:  # one ConfigError that names the setting as it is typed, and what came
            raise arguments.first_problem(error, lambda place: flag(place[0]) if place else "") from None
        for name, (words, holds) in cls.needs.items():
            if (
                (name in given or name in file)
                and not holds(config)
                and getattr(config, name) != cls._usual(name, usual, said)
            ):
                raise errors.ConfigError(f"{flag(name)} has no effect here: it needs {words}")
        return config

    @classmethod
    def _usual(cls, name: str, preset: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
        """Return what a setting would be if nobody said it."""
        by_mode = cls.defaults_of({**preset, **said})
        return {**by_mode, **preset}.get(name, cls.model_fields[name].get_default())


def _number(text: str) -> str:
    """Return the text of a variable, in which 1e5 is a whole number, too."""
    return str(int(float(text))) if re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", text) else text


def _flat(model: type[BaseModel], settings: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """Return settings by flat name. source: who said so, for what is to be said about it."""
    flat = without_old_names(setting_names.flatten(settings), settings, source)
    for name in flat:
        if name not in model.model_fields:
            hint = (
                errors.did_you_mean(str(name), model.model_fields) or f"; known are {', '.join(sorted(model.model_fields))}"
            )
            raise errors.ConfigError(f"{source}unknown setting {name!r}{hint}")
    return flat


def without_old_names(flat: Mapping[str, Any], said: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """Return flat settings without those that are gone; a line for these, and one for all that were said by old names."""
    renamed = [f"{flag(old)} is {flag(now)}" for old, now in setting_names.RENAMED.items() if old in said]
    if renamed:
        errors.note(f"{source}some settings have other names now: {', '.join(renamed)}")
    if gone := sorted(flat.keys() & setting_names.GONE.keys()):
        errors.note(
            f"{source}{flag(gone[0])} has no effect: PyTorch no longer learns here. --row-parts cuts an epoch into parts; "
            "networks of your own learn with Stable-Baselines3 on our environments (docs/environments.md)"
        )
    return {name: value for name, value in flat.items() if name not in setting_names.GONE}


def _whole_passes(preset: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Another number of environments than the preset's keeps its episodes per environment, unless that is said, too."""
    wanted = str(said.get("n_envs"))  # text, where it comes from the environment
    if said.get("episodes_per_update") is not None or not wanted.isdigit():
        return {}
    return {"episodes_per_update": preset.get("episodes_per_update", 1) // preset.get("n_envs", 1) * int(wanted)}
