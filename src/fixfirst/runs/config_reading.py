"""What a run's config.toml says: settings by name. Earlier versions wrote them in tables, which are flattened on reading."""

from collections.abc import Mapping
from typing import Any

from fixfirst.orders.order import UnitScheme
from fixfirst.runs.layout import Kind

TABLES = ("training", "game", "judging", "gate", "course", "ppo", "alignment")
RENAMED = {  # settings that had another name in their table
    ("training", "total_episodes"): "max_episodes",
    ("ppo", "num_envs"): "n_envs",
    ("ppo", "value"): "value_weight",
    ("alignment", "kind"): "keep",
    ("alignment", "weight"): "alignment_lambda",
    **{("alignment", name): f"alignment_{name}" for name in ("adaptive", "rate", "target", "limit", "explore")},
}
# Settings that do not decide what a run finds.
BYSTANDERS = ("seed", "cyborg", "tensorboard", "log_episodes", "checkpoint_every")
CODE = ("cyborg",)  # settings that name code to be run: no file decides them
ASSUMED_TEST_EPISODES = 1_000  # where the configuration does not say


def flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """All settings in one level, the outermost where there are several of a name. `units` is a value, not a table."""
    inner: dict[str, Any] = {}
    for table in TABLES:
        if isinstance(content := document.get(table), Mapping):
            inner |= {RENAMED.get((table, name), name): value for name, value in flatten(content).items()}
    outer = {name: value for name, value in document.items() if name not in TABLES or not isinstance(value, Mapping)}
    return inner | outer


def setting(config: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The setting of this name, of any version's configuration."""
    return flatten(config).get(name, default)


def scheme_of(config: Mapping[str, Any]) -> UnitScheme:
    """How a run groups the hosts."""
    return UnitScheme.from_config(setting(config, "units"), setting(config, "scenario"))


def result_settings(kind: Kind, config: Mapping[str, Any]) -> dict[str, str]:
    """As text, without those that do not decide what a run finds; with the kind of run."""
    ignored = (*BYSTANDERS, "workflow") if kind == Kind.SEARCH else BYSTANDERS  # a search chooses its workflows itself
    return {"kind": str(kind)} | {key: str(value) for key, value in flatten(config).items() if key not in ignored}
