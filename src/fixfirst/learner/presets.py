"""Presets: nothing but values, by the names that flags have. What differs between two presets stands here.

Values that a training has no use for (a search's own) are left out there.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# The published ways of training (docs/method.md): Monte-Carlo returns normalised over the batch, the reward for compliance
# gained, the published gate, no warm-up, and inherited preferences taken as they are.
PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {
        "returns": "monte_carlo",
        "bootstrap": False,
        "entropy": 0.01,
        "reward_scale": 1.0,
        "alignment": "delta",
        "softening": 1.0,
        "gate_rule": "latest",
        "min_episodes": 0,
        "warmup_episodes": 0,
    }
)

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sequential": {**PUBLISHED, "n_envs": 1, "episodes_per_update": 1, "max_episodes": 50},
        "hybrid": {**PUBLISHED, "n_envs": 1, "episodes_per_update": 5, "max_episodes": 50},
        # Ten episodes per environment before the gate may end it.
        "parallel-25": {
            **PUBLISHED,
            "n_envs": 25,
            "episodes_per_update": 25,
            "max_episodes": 50 * 25,
            "min_episodes": 10 * 25,
        },
        "parallel-100": {**PUBLISHED, "n_envs": 100, "episodes_per_update": 100, "max_episodes": 100 * 100},
        "original": {**PUBLISHED, "n_envs": 1, "episodes_per_update": 200, "epochs": 6, "workflow": "none"},
        "default": {},
    }
)
