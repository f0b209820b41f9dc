"""What a run's config.toml says, whichever version wrote it.

Settings stand in tables (`[game]`, `[training.gate]`); earlier runs had most of them on the top level, under the same names.
So a setting is found by its name alone.
"""

from collections.abc import Iterator
from typing import Any

from fixfirst.orders.order import FIVE_TYPES, UnitScheme
from fixfirst.runs.layout import Kind

GROUPING = ("training", "game", "judging", "gate")  # tables whose name adds nothing to a setting's
NAMED = ("ppo", "alignment")  # tables whose settings need the table's name beside theirs
# Settings that do not decide what a run finds.
BYSTANDERS = ("seed", "cyborg", "tensorboard", "log_episodes", "checkpoint_every")
CODE = ("cyborg",)  # settings that name code to be run: no file decides them
ASSUMED_TEST_EPISODES = 1_000  # where the configuration does not say


def setting(config: dict[str, Any], name: str, default: Any = None) -> Any:
    """The setting of this name, wherever it stands; the outermost, where there are several: a search's own seed."""
    return next((table[name] for table in _tables(config) if name in table), default)


def _tables(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A configuration and the tables in it, outermost first. `[units]` is a value: its keys are names of unit types."""
    yield config
    for key in (*GROUPING, *NAMED):
        if isinstance(config.get(key), dict):
            yield from _tables(config[key])


def named_code(config: dict[str, Any]) -> str | None:
    """The first setting in a configuration that names code."""
    return next((name for table in _tables(config) for name in CODE if name in table), None)


def without_code(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the settings that name code."""
    kept = {name: value for name, value in config.items() if name not in CODE}
    tables = {name: without_code(kept[name]) for name in (*GROUPING, *NAMED) if isinstance(kept.get(name), dict)}
    return kept | tables


def scheme_of(config: dict[str, Any]) -> UnitScheme:
    """How a run groups the hosts."""
    units = setting(config, "units")
    return FIVE_TYPES if units is None else UnitScheme.from_dict(units)


def flat_settings(config: dict[str, Any]) -> dict[str, Any]:
    """All settings in one level: `red_agent`, `ppo.num_envs`. As with `setting`, the outermost wins."""
    flat = {key: value for key, value in config.items() if not isinstance(value, dict)}
    for key, table in config.items():
        if isinstance(table, dict):
            prefix = "" if key in GROUPING else f"{key}."
            inner = {f"{prefix}{name}": value for name, value in flat_settings(table).items()}
            flat |= {name: value for name, value in inner.items() if name not in flat}
    return flat


def result_settings(kind: Kind, config: dict[str, Any]) -> dict[str, str]:
    """As text, without those that do not decide what a run finds; with the kind of run."""
    ignored = (*BYSTANDERS, "workflow") if kind == Kind.SEARCH else BYSTANDERS  # a search chooses its workflows itself
    return {"kind": str(kind)} | {key: str(value) for key, value in flat_settings(config).items() if key not in ignored}
