"""What callers may say, checked at the door: an error names the argument, and says what came and what is right."""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from fixfirst.base.errors import ConfigError, FixfirstError, WorldError

LONGEST_NAME, LONGEST_PATH = 255, 1_000  # of a file, bytes and characters
MOST = 2**31 - 1  # steps, environments, episodes: what a state counts with
_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def checked(**least: int) -> Callable[[_Verb], _Verb]:
    """Check what a verb is given by name: switches are true or false, counts at least so many, and nothing is an array.

    A switch is what is annotated bool; 0 and 1 are as good. All else the verb checks where it is used.
    """

    def decorate(verb: _Verb) -> _Verb:
        kinds = verb.__annotations__

        @wraps(verb)
        def call(*values: Any, **named: Any) -> Any:
            for name, value in named.items():
                if isinstance(value, np.ndarray | np.void):  # which cannot even be compared with what it may be
                    raise ConfigError(f"{name} must be a plain value, got {value!r}")
                if value is None and "None" in str(kinds.get(name)):
                    continue
                if kinds.get(name) in (bool, bool | None):
                    if not isinstance(value, bool | int | np.bool_ | np.integer) or value not in (0, 1):
                        raise ConfigError(f"{name} must be true or false, got {value!r}")
                    named[name] = bool(value)
                elif name in least:
                    named[name] = check_int(name, value, least[name])
            return verb(*values, **named)

        return cast(_Verb, call)

    return decorate


def check_int(what: str, value: Any, least: int = 1, most: int = MOST, wrong: type[FixfirstError] = WorldError) -> int:
    """Return a whole number within limits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise wrong(f"{what} must be a whole number, at least {least}, got {value!r}")
    if value > most:
        raise wrong(f"{what} must be at most {most}, got {value!r}")
    return int(value)


def check_choice(what: str, value: Any, known: Sequence[str]) -> str:
    """Return one of these names."""
    if not isinstance(value, str) or value not in known:
        raise WorldError(f"unknown {what} {value!r}; use {', '.join(known)}")
    return value


def check_strings(what: str, values: Any) -> Sequence[str]:
    """Check that `values` is a list or tuple of strings."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise WorldError(f"{what} must be a tuple of strings, got {values!r}")
    return values


def check_ints(what: str, values: Any) -> Sequence[int]:
    """Check that `values` is a list or tuple of whole numbers."""
    right = isinstance(values, list | tuple) and all(
        isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values
    )
    if not right:
        raise WorldError(f"{what} must be a tuple of whole numbers, got {values!r}")
    return cast(Sequence[int], values)


def check_path(what: str, value: Any) -> Path:
    """Return a path, as text or as a Path; one that a file may have."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise ConfigError(f"{what} must be a path, got {value!r}")
    try:
        too_long = any(len(os.fsencode(name)) > LONGEST_NAME for name in text.split(os.sep)) or len(text) > LONGEST_PATH
    except UnicodeEncodeError:
        raise ConfigError(f"{what} must be a path, got {value!r}") from None
    if too_long:
        raise ConfigError(f"{what} must be a path, got one that is too long: {text[:60]!r} ...")
    return Path(value)


def check_seed(what: str, value: Any, bits: int = 64) -> int:
    """Return a seed: one of 0..2**bits-1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise WorldError(f"{what} must be a whole number, got {value!r}")
    if not 0 <= value < 2**bits:
        raise WorldError(f"{what} must be in 0..2**{bits}-1, got {value}")
    return int(value)


def as_array(what: str, value: object, wrong: type[FixfirstError] = WorldError) -> np.ndarray:
    """Return anything as an array, unless its rows are of different lengths."""
    try:
        return np.asarray(value)
    except ValueError as e:
        raise wrong(f"{what} must be an array, got {value!r} ({e})") from None


# ---------------------------------------------------------------- settings

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _RaisesConfigError(ModelMetaclass):
    """Raise our error where settings are made by calling their class, as for any other argument."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        try:
            return super().__call__(*values, **named)
        except ValidationError as error:
            raise first_problem(error) from None
        except TypeError as error:  # values without names
            raise ConfigError(str(error)) from None


class Settings(BaseModel, metaclass=_RaisesConfigError):
    """Named values, checked when they are made, and frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_WRONG = {  # Pydantic's kinds of errors, by the beginning of their names
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "literal": "must be {expected}",
    "missing": "is missing",
    "extra": "is not known",
    "invalid_key": "must be a string, in quotes",
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "string": "must be a string",
    "tuple": "must be a list",
    "finite": "must be a finite number",
    "list": "must be a list",
    "model": "must be a table",
    "dict": "must be a table",
    "too_short": "must have {min_length} or more values",
    "too_long": "must have at most {max_length} values",
}


def first_problem(error: ValidationError, named: Callable[[tuple[str, ...]], str] = ".".join) -> FixfirstError:
    """Return the first of Pydantic's errors as one of ours: which setting, what is wrong, what came."""
    first = error.errors()[0]
    facts = {key: int(f) if isinstance(f, float) and f.is_integer() else f for key, f in first.get("ctx", {}).items()}
    if isinstance(cause := facts.get("error"), FixfirstError):
        return cause
    words = next((words for kind, words in _WRONG.items() if first["type"].startswith(kind)), None)
    message = first["msg"].removeprefix("Value error, ") if words is None else words.format(**facts).replace("'", "")
    came = "" if isinstance(first["input"], dict) or first["type"] == "missing" else f", got {first['input']!r}"
    return ConfigError(f"{named(tuple(str(part) for part in first['loc']))} {message}{came}".strip())
