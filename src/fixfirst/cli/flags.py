"""Flags made of config models: their names, kinds, defaults and help are the fields' own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, make_dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Group, Parameter, Token
from pydantic import BaseModel

from fixfirst.learner import places, resolve, value_at

# What a table's flags are about. Flags outside any table come first, without a heading of their own.
GROUPS = {
    "game": Group("Game", sort_key=1),
    "judging": Group("Order and gate", sort_key=2),
    "gate": Group("Order and gate", sort_key=2),
    "alignment": Group("Learning", sort_key=3),
    "ppo": Group("Learning", sort_key=3),
}


def flags_of(
    model: type[BaseModel], without: tuple[str, ...] = ("units",), helps: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """A frozen dataclass with every setting of a config as a flag that may be left out. helps: not the fields' own."""
    config = resolve(model) if "preset" in places(model) else model()
    fields = []
    for name, place in sorted(places(model).items(), key=lambda entry: _group_key(entry[1])):
        if name in without:
            continue
        owner: Any = config if len(place) == 1 else value_at(config, place[:-1])
        info = type(owner).model_fields[place[-1]]
        default = value_at(config, place)
        said = helps.get(name, info.description or "") + ("" if default is None else f" ({_shown(default)})")
        kind = _plain(info.annotation)
        options: dict[str, Any] = {"help": said}
        if get_origin(kind) is Literal:
            options["converter"] = _choice
        if get_origin(kind) is tuple:
            options["negative"] = ""
        if len(place) > 1 and place[-2] in GROUPS:
            options["group"] = GROUPS[place[-2]]
        if name == "from_policy":
            options["name"] = "--from"
        fields.append((name, Annotated[kind | None, Parameter(**options)], field(default=None)))
    # Cyclopts looks into the fields of classes only that have a module of their own.
    return make_dataclass(f"{model.__name__}Flags", fields, frozen=True, namespace={"__module__": __name__})


def _choice(kind: Any, tokens: Sequence[Token]) -> str:
    """One of the values of a Literal, and nothing else: cyclopts would take the word none for no value at all."""
    text = tokens[0].value
    if text not in get_args(kind):
        raise ValueError(f"must be one of {', '.join(get_args(kind))}, got {text!r}")
    return text


def given(flags: Any) -> dict[str, Any]:
    """The settings that were given."""
    return {name: value for name, value in asdict(flags).items() if value is not None}


def _group_key(place: tuple[str, ...]) -> int:
    return 0 if len(place) < 2 or place[-2] not in GROUPS else 1


def _plain(kind: Any) -> Any:
    """A field's type without None and without limits, which the config checks itself."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) is tuple:
        return tuple.__class_getitem__(tuple(_plain(part) for part in get_args(kind)))
    if isinstance(kind, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
        return _plain(kind)
    return kind


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
