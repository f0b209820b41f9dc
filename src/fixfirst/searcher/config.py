"""What decides a search: how every trial is trained, which orders are tried, and for how long."""

from typing import Any, Literal

from pydantic import Field, model_validator

from fixfirst.errors import ConfigError
from fixfirst.learner.config import ALL, NONE, TrainConfig, preset_alignment, preset_ppo, readable_errors
from fixfirst.orders.workflow import Workflow
from fixfirst.play.seeds import derive

Inherit = Literal["last", "nearest", "best", "none"]

# Episodes per workflow, at most, where the published ways of training had a limit of their own.
MAX_EPISODES = {"sequential": 50, "hybrid": 50, "parallel-25": 50 * 25, "parallel-100": 100 * 100, "default": 10_000}


class SearchConfig(TrainConfig):
    """A search: how every trial is trained, which orders are tried, and for how long.

    `total_episodes` is the training budget of the whole search; evaluation episodes are counted apart.
    """

    workflow: str = ALL
    total_episodes: int = Field(100_000, ge=1)
    max_episodes: int = Field(MAX_EPISODES["default"], ge=1)  # per trial
    strategy: Literal["gp_ucb", "random", "exhaustive"] = "gp_ucb"
    gp_beta: float = Field(2.0, ge=0)
    gp_beta_schedule: bool = False  # sqrt(2 ln(|W| pi^2 t^2 / (6 delta))) instead
    initial_orders: int = Field(8, ge=1)
    round_size: int = Field(2, ge=1)
    n_workflows: int | None = Field(None, ge=1)  # stop after so many trials
    inherit: Inherit = "last"
    warmup_episodes: int = Field(20_000, ge=0)  # training without an order that the first trials inherit; part of the budget
    from_policy: str | None = None  # where the first trials start instead
    min_episodes: int = Field(2_000, ge=0)  # per trial, before the gate may end it
    test_episodes: int = Field(1_000, ge=2)
    log_episodes: bool = False
    tensorboard: bool = True
    stop_when_compliant: bool = True

    @model_validator(mode="after")
    def _searchable(self) -> "SearchConfig":
        if self.scheme is None or self.workflow != ALL:
            raise ConfigError(f"a search chooses the workflows itself: leave workflow at 'all', got {self.workflow!r}")
        if self.max_episodes < self.ppo.episodes_per_update:
            raise ConfigError(
                f"max_episodes ({self.max_episodes}) is less than one update of {self.ppo.episodes_per_update} episodes"
            )
        if self.max_episodes < self.shortest_trial:
            raise ConfigError(
                f"no trial could pass the gate: it opens after {self.shortest_trial} episodes (min_episodes "
                f"{self.min_episodes}), and a trial has at most {self.max_episodes} (max_episodes)"
            )
        warmup = self.warmup_config
        left = self.total_episodes - (0 if warmup is None else warmup.total_episodes)
        if left < self.shortest_trial:
            raise ConfigError(
                f"total_episodes ({self.total_episodes}) leaves {left} after the warm-up, less than one trial of "
                f"{self.shortest_trial} episodes; raise it, or lower min_episodes"
            )
        return self

    @property
    def shortest_trial(self) -> int:
        """Episodes after which the gate may first be passed, in whole updates; a shorter trial could not show anything."""
        update = self.ppo.episodes_per_update
        return max(1, -(-self.min_episodes // update)) * update

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """None yet: the strategy finds them."""
        return ()

    @property
    def warmup_config(self) -> TrainConfig | None:
        """How to defend at all, before keeping to an order; None if the first trials start elsewhere."""
        update = self.ppo.episodes_per_update
        budget = min(self.warmup_episodes, self.total_episodes // 3) // update * update
        if self.from_policy is not None or budget == 0:
            return None
        fields = {name: getattr(self, name) for name in TrainConfig.model_fields}
        own = {"workflow": NONE, "total_episodes": budget, "seed": derive(self.seed, "warmup")}
        return TrainConfig(**fields | own | {"min_episodes": 0})

    def trial_config(self, number: int, workflow: Workflow, budget: int) -> TrainConfig:
        """How trial `number` is trained, with streams of its own."""
        fields = {name: getattr(self, name) for name in TrainConfig.model_fields}
        own = {"workflow": str(workflow), "total_episodes": budget, "seed": derive(self.seed, "trial", number)}
        return TrainConfig(**fields | own)


def search_config(preset: str = "default", ppo: dict[str, Any] | None = None, **settings: Any) -> SearchConfig:
    """A search config from a preset, as `make_config`."""
    if preset == "original":
        raise ConfigError("preset 'original' knows no workflow; it cannot search for one")
    if preset != "default":  # the published searches began with the first order, and let it stop at once
        settings = {"warmup_episodes": 0, "min_episodes": 0, "max_episodes": MAX_EPISODES.get(preset, 1)} | settings
    with readable_errors():
        return SearchConfig(preset=preset, ppo=preset_ppo(preset, ppo), **preset_alignment(preset, settings))
