"""Flags made of config models, whose names, kinds, defaults and help are the fields' own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, make_dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token
from pydantic import BaseModel

from fixfirst.cli.app import RARE, default_in_words, whole
from fixfirst.game.game_config import Game
from fixfirst.orders import compliance, order
from fixfirst.orders.compliance import Judging
from fixfirst.runs import manifest
from fixfirst.settings import ppo, resolve, training

# What most people ask for, in this order; all else is in the group of the model that declares it, or here.
COMMON = ("total_episodes", "workflow", "scenario", "red_agent", "variant", "seed", "preset", "exploit")
SETTINGS = Group("Settings", sort_key=-1)
_GROUPS: dict[type[BaseModel], str] = {
    Game: "Game",
    Judging: "Order and gate",
    compliance.Gate: "Order and gate",
    training.Alignment: "Order and gate",
    ppo.PPOConfig: "Learning",
    training.TournamentConfig: "Stages",
    training.PlayerSettings: "Policy",
}
FILES = ("checkpoint_every", "tensorboard", "log_episodes")
OrderFlag = Annotated[
    str | None,
    Parameter(
        help="The order to follow and be judged by, if the policy does not carry one; also by name: "
        f"{', '.join(order.NAMED_ORDERS)}."
    ),
]


def flags_of(
    model: type[BaseModel],
    without: tuple[str, ...] = ("units",),
    helps: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """A frozen dataclass with every setting of a config as a flag that may be left out. helps, defaults: not the fields'."""
    # Without None and without limits, which the config checks itself; of several types, the first.
    kinds = {
        name: next(part for part in get_args(kind) if part is not NoneType) if isinstance(kind, UnionType) else kind
        for name, kind in get_type_hints(model).items()
    }
    fields = []
    for name in sorted(model.model_fields, key=lambda name: (*COMMON, name).index(name)):
        if name in without:
            continue
        info = model.model_fields[name]
        kind = str if name == "scenario" else kinds[name]  # by its name or its file
        default = defaults.get(name, None if info.default_factory else info.default)
        owner = next((label for declared_by, label in _GROUPS.items() if name in declared_by.model_fields), "Search")
        rare = "Files" if name in FILES else "Attackers" if name.startswith("exploit") else owner
        options: dict[str, Any] = {
            "name": resolve.flag(name),
            "help": helps.get(name, info.description or ""),
            "show_default": default_in_words(default) or False,
            "group": SETTINGS if name in COMMON else RARE[rare],
        }
        if kind is int:
            options["converter"] = whole
        if get_origin(kind) is Literal:
            options["converter"] = _choice
        if get_origin(kind) is tuple:
            options["negative"] = ""
        fields.append((name, Annotated[kind | None, Parameter(**options)], field(default=None)))
    old = {name: now for name, now in manifest.RENAMED.items() if now in model.model_fields and now not in without}
    old |= dict.fromkeys(manifest.GONE, "preset") if "preset" in model.model_fields else {}  # a word, whatever it is
    for name, now in old.items():  # still read, and shown nowhere
        kind = Annotated[kinds[now] | None, Parameter(name=resolve.flag(name), show=False)]
        fields.append((name, kind, field(default=None)))
    # Cyclopts looks into the fields of classes only that have a module of their own.
    return make_dataclass(f"{model.__name__}Flags", fields, frozen=True, namespace={"__module__": __name__})


def _choice(kind: Any, tokens: Sequence[Token]) -> str:
    """Return one of the values of a Literal, and nothing else: cyclopts would take the word none for no value at all."""
    text = tokens[0].value
    if text not in get_args(kind):
        raise ValueError(f"must be one of {', '.join(get_args(kind))}, got {text!r}")
    return text


def given(flags: Any) -> dict[str, Any]:
    """Return the settings that were given."""
    return {name: value for name, value in asdict(flags).items() if value is not None}


def _game_flags(*without: str) -> Any:
    """What a policy plays unless it was made for something else: red agent and steps are flags of the commands."""
    variant = "current, leaderboard or debugged; default: the one the policy was made for, on CybORG the one it is."
    return flags_of(Game, ("red_agent", "max_steps", *without), helps={"variant": variant}, defaults={"variant": None})


if TYPE_CHECKING:  # made of models, these are no types to a checker
    GameFlags = Any
    GameFlagsButBackend = Any
    JudgingFlags = Any
else:
    GameFlags, GameFlagsButBackend, JudgingFlags = _game_flags(), _game_flags("backend"), flags_of(Judging)
GameSettings = Annotated[GameFlags, Parameter(name="*")]
JudgingSettings = Annotated[JudgingFlags, Parameter(name="*")]
