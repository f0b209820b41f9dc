"""The settings of functions that take many, by name and kind, for editors and type checkers.

Written by `python tests/api/test_types.py` from the configs, and tested against them: change those, not this file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict


class GameSettings(TypedDict, total=False):
    backend: Literal["simulator", "workers", "cyborg"]
    cyborg: str | None
    green: bool
    images: str | None
    max_steps: int | None
    red_agent: str | Sequence[str]
    reward: str | None
    scenario: Any
    variant: Literal["current", "leaderboard", "debugged"] | None


class EvaluateSettings(TypedDict, total=False):
    backend: Literal["simulator", "workers", "cyborg"]
    count_foothold: bool
    cyborg: str | None
    green: bool
    images: str | None
    reward: str | None
    rule: Literal["no_higher", "top", "fixed_types"]
    scenario: Any
    variant: Literal["current", "leaderboard", "debugged"] | None


class CompareSettings(TypedDict, total=False):
    backend: Literal["simulator", "workers", "cyborg"]
    cyborg: str | None
    green: bool
    images: str | None
    reward: str | None
    scenario: Any
    variant: Literal["current", "leaderboard", "debugged"] | None


class WatchSettings(TypedDict, total=False):
    backend: Literal["simulator", "workers", "cyborg"]
    beside: Any
    beside_workflow: str | None
    count_foothold: bool
    cyborg: str | None
    episodes: int | None
    greedy: bool
    green: bool
    images: str | None
    max_steps: int | None
    number: int | None
    red_agent: str | Sequence[str]
    reward: str | None
    rule: Literal["no_higher", "top", "fixed_types"]
    say: Any
    scenario: Any
    seed: int
    steps: int | None
    then: Any
    variant: Literal["current", "leaderboard", "debugged"] | None
    workflow: str | None


class VecSettings(TypedDict, total=False):
    action_set: Any
    arrays: Any
    autoreset_mode: Any
    backend: Literal["simulator", "workers", "cyborg"]
    cyborg: str | None
    env_ids: Any
    green: bool
    images: str | None
    max_steps: int | None
    memory: Any
    num_workers: int | None
    red_agent: str | Sequence[str]
    render_mode: str | None
    reward: str | None
    scenario: Any
    timeout_s: float | None
    variant: Literal["current", "leaderboard", "debugged"] | None


class TrainSettings(TypedDict, total=False):
    action_set: str
    adam_betas: tuple[float, float]
    alignment_adaptive: bool
    alignment_explore: float
    alignment_lambda: float
    alignment_limit: float
    alignment_rate: float
    alignment_target: float
    backend: Literal["simulator", "workers", "cyborg"]
    bootstrap: bool
    checkpoint_every: int
    clip: float
    compliance_threshold: float
    count_foothold: bool
    cyborg: str | None
    ends: int
    engine: Literal["auto", "compiled", "torch"]
    entropy: float
    entropy_schedule: Literal["constant", "linear"]
    episodes_per_update: int
    epochs: int
    final_episodes: int
    finals: int
    free_restores: int
    gae_lambda: float
    gamma: float
    gate_episodes: int
    gate_rule: Literal["bound", "latest"]
    green: bool
    growth: Sequence[tuple[int, int]]
    halvings: int
    idle: Sequence[str]
    images: str | None
    keep: Literal["shield", "evidence", "recheck", "expiry", "limit", "penalty", "delta", "none"]
    last_layer: float
    learning_rate: float
    lines: int
    lr_final: float
    lr_schedule: Literal["constant", "linear"]
    max_grad_norm: float
    max_steps: int | None
    memory: str
    min_episodes: int
    min_judged: int
    min_repairs: int
    minibatches: int
    n_envs: int
    norms_apart: bool
    opening: str
    opening_episodes: int
    opening_rate: float
    preset: str
    red_agent: str | Sequence[str]
    returns: Literal["monte_carlo", "gae"]
    reward: str | None
    reward_scale: float
    row_parts: int
    rule: Literal["no_higher", "top", "fixed_types"]
    scenario: Any
    seed: int
    seek_episodes: int
    settle: float
    softening: float
    start_episodes: int
    starts: int
    stop_when_compliant: bool
    tensorboard: bool
    total_episodes: int
    value_weight: float
    variant: Literal["current", "leaderboard", "debugged"] | None
    workflow: str


class SearchSettings(TypedDict, total=False):
    action_set: str
    adam_betas: tuple[float, float]
    again: bool
    alignment_adaptive: bool
    alignment_explore: float
    alignment_lambda: float
    alignment_limit: float
    alignment_rate: float
    alignment_target: float
    backend: Literal["simulator", "workers", "cyborg"]
    base_episodes: int
    bootstrap: bool
    callback: Any
    checkpoint_every: int
    clip: float
    compliance_threshold: float
    config: str | Path | None
    count_foothold: bool
    cpus_per_trial: int | None
    cyborg: str | None
    ends: int
    engine: Literal["auto", "compiled", "torch"]
    entropy: float
    entropy_schedule: Literal["constant", "linear"]
    episodes_per_update: int
    epochs: int
    executor: Literal["inline", "process", "ray"] | None
    exploit: bool
    exploit_episodes: int
    exploit_replicates: int
    exploit_rounds: int
    exploit_test_episodes: int
    exploit_updates: int
    final_episodes: int
    finals: int
    free_restores: int
    from_policy: str | None
    gae_lambda: float
    gamma: float
    gate_episodes: int
    gate_rule: Literal["bound", "latest"]
    gp_beta: float
    gp_beta_schedule: bool
    green: bool
    growth: Sequence[tuple[int, int]]
    halvings: int
    idle: Sequence[str]
    images: str | None
    inherit: Literal["last", "nearest", "best", "none"]
    initial_orders: int
    keep: Literal["shield", "evidence", "recheck", "expiry", "limit", "penalty", "delta", "none"]
    last_layer: float
    learning_rate: float
    lines: int
    log_episodes: bool
    lr_final: float
    lr_schedule: Literal["constant", "linear"]
    margin: float
    max_episodes: int
    max_grad_norm: float
    max_steps: int | None
    measure_episodes: int
    memory: str
    min_episodes: int
    min_judged: int
    min_repairs: int
    minibatches: int
    n_envs: int
    n_workflows: int | None
    norms_apart: bool
    opening: str
    opening_episodes: int
    opening_rate: float
    out: str | Path | None
    preset: str
    quiet: bool
    ray_address: str | None
    red_agent: str | Sequence[str]
    replicates: int
    report: bool
    returns: Literal["monte_carlo", "gae"]
    reward: str | None
    reward_scale: float
    round_orders: int
    round_size: int
    rounds: int
    row_parts: int
    rule: Literal["no_higher", "top", "fixed_types"]
    scenario: Any
    seed: int
    seek_episodes: int
    selection_episodes: int
    separate: bool
    settle: float
    softening: float
    start_episodes: int
    starts: int
    stop_when_compliant: bool
    strategy: Literal["gp_ucb", "random", "exhaustive", "together"]
    tensorboard: bool
    test_episodes: int
    total_episodes: int
    trainings: int
    units: str | Path | None
    value_weight: float
    variant: Literal["current", "leaderboard", "debugged"] | None
    warmup_episodes: int
    watch_episodes: int
    workers: int
    workflow: str
