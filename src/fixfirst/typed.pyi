"""The settings of functions that take many, by name and kind, for editors and type checkers.

Written by `python tests/api/test_types.py` from the configs, and tested against them: change those, not this file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

class CompareSettings(TypedDict, total=False):
    backend: Literal["simulator", "workers", "cyborg"]
    cyborg: str | None
    green: bool
    images: str | None
    reward: str | None
    scenario: Any
    variant: Literal["current", "leaderboard", "debugged"] | None

class GameSettings(CompareSettings, total=False):
    max_steps: int | None
    red_agent: str | Sequence[str]

class JudgingSettings(TypedDict, total=False):
    count_foothold: bool
    rule: Literal["no_higher", "top", "fixed_types"]

class EvaluateSettings(CompareSettings, JudgingSettings, total=False):
    pass

class WatchSettings(GameSettings, JudgingSettings, total=False):
    beside: Any
    beside_workflow: str | None
    episodes: int | None
    greedy: bool
    number: int | None
    say: Any
    seed: int
    steps: int | None
    then: Any
    workflow: str | None

class VecSettings(GameSettings, total=False):
    action_set: Any
    arrays: Any
    autoreset_mode: Any
    env_ids: Any
    memory: Any
    num_workers: int | None
    render_mode: str | None
    timeout_s: float | None

class TrainSettings(GameSettings, JudgingSettings, total=False):
    action_set: str
    adam_betas: tuple[float, float]
    alignment_adaptive: bool
    alignment_explore: float
    alignment_lambda: float
    alignment_limit: float
    alignment_rate: float
    alignment_target: float
    bootstrap: bool
    checkpoint_every: int
    clip_coef: float
    compliance_threshold: float
    ent_coef: float
    entrants: int
    entropy_schedule: Literal["constant", "linear"]
    episodes_per_update: int
    epochs: int
    final_episodes: int
    finalists: int
    finalists_kept: int
    gae_lambda: float
    gamma: float
    gate_episodes: int
    gate_rule: Literal["bound", "latest"]
    growth: Sequence[tuple[int, int]]
    halving_rounds: int
    idle: Sequence[str]
    initial_logit_scale: float
    keep: Literal["shield", "evidence", "recheck", "expiry", "limit", "penalty", "delta", "none"]
    last_layer: float
    learning_rate: float
    lr_final: float
    lr_schedule: Literal["constant", "linear"]
    max_grad_norm: float
    memory: str
    min_episodes: int
    min_judged: int
    min_repairs: int
    n_envs: int
    norms_apart: bool
    opening: str
    opening_episodes: int
    opening_rate: float
    preset: str
    restore_cost_warmup_episodes: int
    returns: Literal["monte_carlo", "gae"]
    reward_scale: float
    row_parts: int
    seed: int
    seek_episodes: int
    settle: float
    start_episodes: int
    stop_when_compliant: bool
    survivors: int
    tensorboard: bool
    total_episodes: int
    vf_coef: float
    workflow: str

class SearchSettings(TrainSettings, total=False):
    again: bool
    base_episodes: int
    callback: Any
    config: str | Path | None
    cpus_per_trial: int | None
    executor: Literal["inline", "process", "ray"] | None
    exploit: bool
    exploit_episodes: int
    exploit_replicates: int
    exploit_rounds: int
    exploit_test_episodes: int
    exploit_updates: int
    from_policy: str | None
    gp_beta: float
    gp_beta_schedule: bool
    inherit: Literal["last", "nearest", "best", "none"]
    initial_orders: int
    log_episodes: bool
    margin: float
    max_episodes: int
    measure_episodes: int
    n_workflows: int | None
    out: str | Path | None
    quiet: bool
    ray_address: str | None
    replicates: int
    report: bool
    round_orders: int
    round_size: int
    rounds: int
    selection_episodes: int
    separate: bool
    strategy: Literal["gp_ucb", "random", "exhaustive", "together"]
    test_episodes: int
    trainings: int
    units: str | Path | None
    warmup_episodes: int
    watch_episodes: int
    workers: int
