"""Flags made of config models: their names, kinds, defaults and help are the fields' own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, make_dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Group, Parameter, Token
from pydantic import BaseModel

from fixfirst.cli.app import shown, whole
from fixfirst.learner.settings import places, resolve, value_at
from fixfirst.orders.order import NAMED_ORDERS

# What everybody asks for comes first, without a heading; then what a table's flags are about, and a config's own.
MAIN = ("total_episodes", "red_agent", "workflow", "seed", "preset")
GROUPS = {
    "game": Group("Game", sort_key=1),
    "judging": Group("Order and gate", sort_key=2),
    "gate": Group("Order and gate", sort_key=2),
    "search": Group("Search", sort_key=3),
    "training": Group("Policy and training", sort_key=4),
    "course": Group("Policy and training", sort_key=4),
    "alignment": Group("Learning", sort_key=5),
    "ppo": Group("Learning", sort_key=5),
}
Order = Annotated[
    str | None,
    Parameter(
        help="The order to follow and be judged by, if the policy does not carry one; also by name: "
        f"{', '.join(NAMED_ORDERS)}."
    ),
]
WHERE = Group("Where trials run", sort_key=6)
_OWN = {"SearchConfig": "search", "TrainConfig": "training", "Game": "game", "Judging": "judging"}


def flags_of(
    model: type[BaseModel], without: tuple[str, ...] = ("units",), helps: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """A frozen dataclass with every setting of a config as a flag that may be left out. helps: not the fields' own."""
    config = resolve(model) if "preset" in places(model) else model()
    fields = []
    for name, place in sorted(places(model).items(), key=lambda entry: (*MAIN, entry[0]).index(entry[0])):
        if name in (*without, "scenario"):  # there is one scenario: nothing to choose from
            continue
        owner: Any = config if len(place) == 1 else value_at(config, place[:-1])
        info = type(owner).model_fields[place[-1]]
        default = value_at(config, place)
        kind = _plain(info.annotation)
        options: dict[str, Any] = {
            "help": helps.get(name, info.description or ""),
            "show_default": shown(default) or False,
        }
        if kind is int:
            options["converter"] = whole
        if get_origin(kind) is Literal:
            options["converter"] = _choice
        if get_origin(kind) is tuple:
            options["negative"] = ""
        if name not in MAIN:
            options["group"] = GROUPS[place[-2] if len(place) > 1 else _OWN[model.__name__]]
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


def _plain(kind: Any) -> Any:
    """A field's type without None and without limits, which the config checks itself."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) is tuple:
        return tuple.__class_getitem__(tuple(_plain(part) for part in get_args(kind)))
    if isinstance(kind, UnionType):
        return _plain(next(part for part in get_args(kind) if part is not NoneType))
    return kind
