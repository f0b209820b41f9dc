"""Presets: nothing but values, by the names that flags have. What differs between two of them stands here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# The published ways of training (docs/method.md): Monte-Carlo returns normalised over the batch, the reward for compliance
# gained, the published gate, no warm-up, and inherited preferences taken as they are.
_PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {
        "returns": "monte_carlo",
        "bootstrap": False,
        "ent_coef": 0.01,
        "reward_scale": 1.0,
        "keep": "delta",
        "initial_logit_scale": 1.0,
        "gate_rule": "latest",
        "min_episodes": 0,
        "warmup_episodes": 0,
        "separate": True,
    }
)

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sequential": {**_PUBLISHED, "n_envs": 1, "episodes_per_update": 1, "max_episodes": 50},
        "hybrid": {**_PUBLISHED, "n_envs": 1, "episodes_per_update": 5, "max_episodes": 50},
        # Ten episodes per environment before the gate may end it.
        "parallel-25": {
            **_PUBLISHED,
            "n_envs": 25,
            "episodes_per_update": 25,
            "max_episodes": 50 * 25,
            "min_episodes": 10 * 25,
        },
        "parallel-100": {**_PUBLISHED, "n_envs": 100, "episodes_per_update": 100, "max_episodes": 100 * 100},
        # The challenge's winner, one red agent at a time.
        "original": {
            **_PUBLISHED,
            "workflow": "none",
            "memory": "scans",
            "action_set": "original",
            "n_envs": 1,
            "episodes_per_update": 200,
            "epochs": 6,
        },
        "default": {},
        # One defender for both red agents that remembers, chooses among what can help, and has an opening (docs/model.md).
        "champion": {
            "workflow": "none",
            "red_agent": "b_line:0.46,meander:0.46,sleep:0.04,late:0.04",  # without the last two it restores without a cause
            "variant": "leaderboard",
            "memory": "full",
            "action_set": "macros",
            "n_envs": 50,
            "episodes_per_update": 50,
            "growth": ((10_000, 2), (25_000, 5)),  # early on nearly every row is new, and small updates learn faster
            "total_episodes": 620_000,
            "entrants": 4,  # one in six gets stuck
            "start_episodes": 25_000,
            "opening": "find",
            "seek_episodes": 50_000,
            "final_episodes": 10_000,
            "finalists_kept": 2,
            "opening_episodes": 200_000,  # with half of it 0.2 to 0.4 less
            "ent_coef": 0.01,
            "entropy_schedule": "linear",
            "learning_rate": 0.003,
            "lr_schedule": "linear",
            "lr_final": 0.02,
            "norms_apart": True,
            "row_parts": 2,
            "last_layer": 0.1,
            "restore_cost_warmup_episodes": 12_000,  # else it never learns to restore users early
            "checkpoint_every": 25,
        },
    }
)


PUBLISHED = tuple(name for name, values in PRESETS.items() if values.get("separate") and "workflow" not in values)
LEAGUE = "guardian"  # the preset of a league, whose settings are its own (`league.py`)

# What a trial has by default, where a training of its own has something else.
TRIAL_DEFAULTS: Mapping[str, Any] = MappingProxyType({"min_episodes": 2_000, "stop_when_compliant": True})

# How one network for all orders learns by default: steadily, since a replicate that is stuck widens every interval.
SHARED_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "ent_coef": 0.01,
        "entropy_schedule": "linear",
        "lr_schedule": "linear",
        "lr_final": 0.1,
        "settle": 0.3,
        "last_layer": 0.1,
        "norms_apart": True,
        "row_parts": 2,
    }
)
