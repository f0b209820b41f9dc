"""What decides a search: how every trial is trained, which orders are tried, and for how long."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fixfirst.errors import ConfigError
from fixfirst.learner import ALL, NONE, PRESETS, FlatNames, TrainConfig, merged, nested, places, resolve, value_in
from fixfirst.orders import UnitScheme, Workflow
from fixfirst.play import derive

Inherit = Literal["last", "nearest", "best", "none"]
StrategyName = Literal["gp_ucb", "random", "exhaustive"]

# What a trial has by default, where a training of its own has something else.
TRIAL_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"total_episodes": 10_000, "gate": {"min_episodes": 2_000, "stop_when_compliant": True}}
)


class SearchConfig(BaseModel):
    """A search: how every trial is trained, which orders are tried, and for how long.

    `training` is that of a trial: its budget is the most one trial may use, its seed that of the whole search, and its
    workflow is chosen by the strategy. Evaluation episodes are counted apart from training episodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    FLAT_NAMES: ClassVar[FlatNames] = {("training", "total_episodes"): "max_episodes"}

    total_episodes: int = Field(100_000, ge=1, description="Training episodes of the whole search.")
    strategy: StrategyName = Field("gp_ucb", description="How orders are chosen.")
    gp_beta: float = Field(
        2.0, ge=0, description="How much the search likes uncertainty: it tries the largest mean + beta * std."
    )
    gp_beta_schedule: bool = Field(
        False, description="Let beta grow with the number of choices, as the theory of GP-UCB has it, instead of --gp-beta."
    )
    initial_orders: int = Field(8, ge=1, description="Random orders before the Gaussian process has a say.")
    round_size: int = Field(
        2, ge=1, description="Trials that are chosen together and run side by side. Part of the result, unlike --workers."
    )
    n_workflows: int | None = Field(None, ge=1, description="Stop after so many trials.")
    inherit: Inherit = Field("last", description="Whose weights a trial starts from: last is the last accepted one.")
    warmup_episodes: int = Field(
        20_000,
        ge=0,
        description="Training without an order that the first trials inherit; at most a third of the budget, which includes "
        "it.",
    )
    from_policy: str | None = Field(None, description="A policy or run the first trials start from, instead of a warm-up.")
    test_episodes: int = Field(1_000, ge=2, description="Held-out episodes each trained policy is judged on.")
    log_episodes: bool = Field(False, description="Write one row per training episode to episodes.csv.")
    tensorboard: bool = Field(True, description="Write TensorBoard events.")
    training: TrainConfig

    @model_validator(mode="before")
    @classmethod
    def _trial_defaults(cls, values: Any) -> Any:
        given = values.get("training", {})
        if not isinstance(given, Mapping):
            return values
        gate = given.get("gate", {})
        training = {**TRIAL_DEFAULTS, **given}
        if isinstance(gate, Mapping):
            training["gate"] = {**TRIAL_DEFAULTS["gate"], **gate}
        if training.get("workflow") == ALL:  # which of all, the strategy will say
            training["workflow"] = NONE
        return {**values, "training": training}

    @model_validator(mode="after")
    def _searchable(self) -> "SearchConfig":
        training = self.training
        if training.workflow != NONE:
            raise ConfigError(f"a search chooses the workflows itself: leave workflow at 'all', got {training.workflow!r}")
        if training.total_episodes < self.shortest_trial:
            raise ConfigError(
                f"no trial could pass the gate: it opens after {self.shortest_trial} episodes (min_episodes "
                f"{training.gate.min_episodes}), and a trial has at most {training.total_episodes} (max_episodes)"
            )
        left = self.total_episodes - self.warmup_budget
        if left < self.shortest_trial:
            raise ConfigError(
                f"total_episodes ({self.total_episodes}) leaves {left} after the warm-up, less than one trial of "
                f"{self.shortest_trial} episodes; raise it, or lower min_episodes"
            )
        return self

    @property
    def seed(self) -> int:
        return self.training.seed

    @property
    def scheme(self) -> UnitScheme:
        return self.training.scheme

    @property
    def shortest_trial(self) -> int:
        """Episodes after which the gate may first be passed, in whole updates; a shorter trial could not show anything."""
        update = self.training.ppo.episodes_per_update
        return max(1, -(-self.training.gate.min_episodes // update)) * update

    @property
    def warmup_budget(self) -> int:
        """Training episodes of the warm-up; 0 if the first trials start elsewhere."""
        if self.from_policy is not None:
            return 0
        update = self.training.ppo.episodes_per_update
        return min(self.warmup_episodes, self.total_episodes // 3) // update * update

    def warmup_config(self) -> TrainConfig:
        """How to defend at all, before keeping to an order."""
        gate = self.training.gate.model_copy(update={"min_episodes": 0})
        return self._training(NONE, self.warmup_budget, derive(self.seed, "warmup"), gate=gate)

    def trial_config(self, number: int, workflow: Workflow, budget: int) -> TrainConfig:
        """How trial `number` is trained, with streams of its own."""
        return self._training(str(workflow), budget, derive(self.seed, "trial", number))

    def _training(self, workflow: str, budget: int, seed: int, **changes: Any) -> TrainConfig:
        own = {"workflow": workflow, "total_episodes": budget, "seed": seed}
        return self.training.model_copy(update=own | changes)


def resolve_search(*layers: Mapping[str, Any]) -> SearchConfig:
    """One checked config from settings, as `resolve`."""
    preset = value_in(merged(*(nested(layer, SearchConfig) for layer in layers)), places(SearchConfig)["preset"])
    if isinstance(preset, str) and PRESETS.get(preset, {}).get("workflow") == NONE:
        raise ConfigError(f"preset {preset!r} knows no workflow; it cannot search for one")
    return resolve(SearchConfig, *layers)


def search_config(preset: str = "default", **settings: Any) -> SearchConfig:
    """A search config from a preset and settings, flat or in tables, as `make_config`."""
    return resolve_search({"preset": preset, **settings})
