"""Settings by the names they have now, flat; files, flags and variables with older names or in tables are still read."""

from collections.abc import Mapping
from typing import Any

TABLES = ("training", "game", "judging", "gate", "course", "ppo", "alignment")  # of earlier versions' files
_IN_TABLES = {  # settings that had another name in their table
    ("training", "total_episodes"): "max_episodes",
    ("ppo", "num_envs"): "n_envs",
    ("ppo", "value"): "vf_coef",
    ("alignment", "kind"): "keep",
    ("alignment", "weight"): "alignment_lambda",
    **{("alignment", name): f"alignment_{name}" for name in ("adaptive", "rate", "target", "limit", "explore")},
}
RENAMED = {
    "beginners": "trainings",
    "clip": "clip_coef",
    "ends": "finalists_kept",
    "entropy": "ent_coef",
    "finals": "finalists",
    "free_restores": "restore_cost_warmup_episodes",
    "halvings": "halving_rounds",
    "lines": "survivors",
    "softening": "initial_logit_scale",
    "softer": "initial_logit_scale",
    "starts": "entrants",
    "value_weight": "vf_coef",
}
GONE = {"engine": ("auto", "compiled", None), "minibatches": (1, "1", None)}  # and with which values nothing changes


def flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings in one level, the outermost where there are several of a name. `units` is a value, not a table."""
    inner: dict[str, Any] = {}
    for table in TABLES:
        if isinstance(content := document.get(table), Mapping):
            inner |= {_IN_TABLES.get((table, name), name): value for name, value in flatten(content).items()}
    outer = {name: value for name, value in document.items() if name not in TABLES or not isinstance(value, Mapping)}
    return _current(inner) | _current(outer)


def _current(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return flat settings by the names they have now, without those that are gone and changed nothing."""
    return {
        RENAMED.get(name, name): value
        for name, value in settings.items()
        if name not in GONE or not any(value is harmless or value == harmless for harmless in GONE[name])
    }
