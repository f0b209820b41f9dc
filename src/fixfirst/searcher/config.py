"""What decides a search: how every trial is trained, which orders are tried, and for how long."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from fixfirst.base.checks import Settings
from fixfirst.base.errors import ConfigError
from fixfirst.base.statistics import stream_seed
from fixfirst.learner.config import ALL, NONE, Course, FlatNames, TrainConfig
from fixfirst.learner.presets import PRESETS
from fixfirst.learner.settings import merged, nested, places, resolve, value_in
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.spec import PolicySpec

Inherit = Literal["last", "nearest", "best", "none"]
StrategyName = Literal["gp_ucb", "random", "exhaustive", "together"]

# What a trial has by default, where a training of its own has something else.
TRIAL_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"total_episodes": 10_000, "gate": {"min_episodes": 2_000, "stop_when_compliant": True}}
)

# How one network for all orders learns by default: steadily, since a replicate that is stuck widens every interval.
SHARED_PPO: Mapping[str, Any] = MappingProxyType(
    {
        "entropy": 0.01,
        "entropy_schedule": "linear",
        "lr_schedule": "linear",
        "lr_final": 0.1,
        "settle": 0.3,
        "last_layer": 0.1,
        "norms_apart": True,
        "row_parts": 2,
    }
)
# Meander holds machines of all unit types but one: more orders differ, and prices settle later than against B_line.
EPISODES, MORE_EPISODES = 1_150_000, 1_800_000
# Of trainings with orders about one in twelve gets stuck, most often where user comes first: so half as many more begin than
# go on, and those that lag most are dropped. Replicates of fewer episodes have no time for it.
PER_REPLICATE, FEWEST_REPLICATES, MOST_REPLICATES = 140_000, 3, 8
CONTESTED = 0.4  # share of the rounds after which some are dropped
BASE_SHARE = 0.5  # of a training's episodes, at most, are without an order
BASE_STARTS, LEAST_START = 3, 100  # one start in six gets stuck; the best goes on, if each can have so many updates
# With orders, an update learns from so many times the episodes, at so many times the rate, if there are ENOUGH updates of
# this size; at first from half as many, in the end from twice as many, from these shares of the training on. With fewer
# updates, prices are those of learning an order, even where they seem to settle.
ORDERS_UPDATES: tuple[tuple[int, float], ...] = ((4, 1.5), (2, 1.0))
ENOUGH = 500
GROWTH = (0.2, 0.6)


class SearchConfig(Settings):
    """A search: how every trial is trained, which orders are tried, and for how long.

    By default one network is trained for all orders, under several seeds (`shared.py`); `separate` is the published way, one
    training per order, with gate and inheritance (`loop.py`).

    `training` is that of a trial: its budget is the most one trial may use, its seed that of the whole search, and its
    workflow is chosen by the strategy. Evaluation episodes are counted apart from training episodes.

    For example:

        config = ff.search_config(red_agent="meander", replicates=5)
        config.training.game.red_agent, config.replicates
    """

    FLAT_NAMES: ClassVar[FlatNames] = {("training", "total_episodes"): "max_episodes"}

    total_episodes: int = Field(
        EPISODES,
        ge=1,
        description="Training episodes of the whole search, of all replicates; against others than b_line, unless given, "
        "1,800,000.",
    )
    separate: bool = Field(
        False, description="The published way: one training per order, with gate and inheritance, instead of one for all."
    )
    replicates: int = Field(
        0,
        ge=0,
        description="Trainings under seeds of their own; prices are judged by their spread. 0: one for every 140,000 "
        "episodes of the budget, at least 3 and at most 8.",
    )
    beginners: int = Field(
        0,
        ge=0,
        description="So many trainings begin, and those that lag least go on as replicates after 40 % of the rounds. "
        "0: half as many more, if there are 140,000 episodes for each replicate, else no more than replicates.",
    )
    rounds: int = Field(10, ge=1, description="How often orders are chosen anew.")
    round_orders: int = Field(6, ge=2, description="Orders that are chosen in a round.")
    base_episodes: int = Field(
        24_000,
        ge=1,
        description="Training without an order before the first round, of each training; half of it where more begin than "
        "go on, else three starts of which the best goes on. At most half of all.",
    )
    watch_episodes: int = Field(
        2_400, ge=1, description="Episodes on which all known orders together are watched after a round, per replicate."
    )
    selection_episodes: int = Field(400, ge=2, description="Episodes on which it is chosen what to tell a policy.")
    measure_episodes: int = Field(
        8_000, ge=2, description="Fresh episodes each order is measured on, per replicate; no more than it was trained on."
    )
    margin: float = Field(0.5, gt=0, description="Orders that cost no more than this count as equally good.")
    strategy: StrategyName = Field(
        "gp_ucb", description="How orders are chosen; together: all of them in every round (not with --separate)."
    )
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
    n_workflows: int | None = Field(None, ge=1, description="Stop after so many trials; default: when the budget is spent.")
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
        training = dict(given)
        if _is_separate(values):
            gate, training = given.get("gate", {}), {**TRIAL_DEFAULTS, **given}
            if isinstance(gate, Mapping):
                training["gate"] = {**TRIAL_DEFAULTS["gate"], **gate}
        elif isinstance(ppo := given.get("ppo", {}), Mapping):
            training["ppo"] = {**SHARED_PPO, **ppo}
        if isinstance(named := training.get("workflow"), str) and named == ALL:  # which of all, the strategy will say
            training["workflow"] = NONE
        return {**values, "training": training}

    @model_validator(mode="after")
    def _searchable(self) -> "SearchConfig":
        training = self.training
        if "total_episodes" not in self.model_fields_set and training.game.red_agent != "b_line" and not self.separate:
            object.__setattr__(self, "total_episodes", MORE_EPISODES)
        for name, fitting in (("replicates", self._fitting_replicates), ("beginners", self._fitting_beginners)):
            if not getattr(self, name):
                object.__setattr__(self, name, fitting())  # it is still being made, and frozen from then on
        if self.beginners < self.replicates:
            raise ConfigError(f"{self.replicates} replicates go on: no fewer can begin, got beginners {self.beginners}")
        if training.workflow != NONE:
            raise ConfigError(f"a search chooses the workflows itself: leave workflow at 'all', got {training.workflow!r}")
        if not self.separate:
            return self._trainable_together()
        if self.strategy == "together":
            raise ConfigError("strategy 'together' trains all orders in one network; --separate trains one after the other")
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

    def _trainable_together(self) -> "SearchConfig":
        keep, course = self.training.alignment.kind, self.training.course
        if keep != "shield":
            raise ConfigError(f"one network for all orders keeps them by a shield; keep {keep!r} needs --separate")
        if self.from_policy is not None:
            raise ConfigError("--from needs --separate: replicates begin from scratch, each by itself")
        if course.starts > 1 or course.opening != NONE:
            raise ConfigError("starts and openings are for trainings without an order; leave them out of a search")
        if self.num_rounds < 1:
            raise ConfigError(
                f"total_episodes ({self.total_episodes}) is less than two updates for each of {self.beginners} trainings; "
                f"raise it to {self.beginners * (self._update + self._largest_update)} or more"
            )
        return self

    # ---- one network for all orders

    def _fitting_replicates(self) -> int:
        return min(max(self.total_episodes // PER_REPLICATE, FEWEST_REPLICATES), MOST_REPLICATES)

    def _fitting_beginners(self) -> int:
        return self.replicates + (self.replicates // 2 if self.total_episodes >= PER_REPLICATE * self.replicates else 0)

    @property
    def _update(self) -> int:
        return self.training.ppo.episodes_per_update

    @property
    def _is_contest(self) -> bool:
        """Do more trainings begin than go on?"""
        return self.beginners > self.replicates

    @property
    def base_budget(self) -> int:
        """Training episodes of one that begins before there are orders."""
        share = int(self.total_episodes // self.beginners * BASE_SHARE)
        each = self.base_episodes // 2 if self._is_contest else self.base_episodes
        return max(min(each, share) // self._update, 1) * self._update

    @property
    def num_rounds(self) -> int:
        """As many as were asked for, if there is an update for each."""
        updates = max(self._orders_left // self._largest_update, 0)
        rounds = range(min(self.rounds, updates), -1, -1)
        return next(n for n in rounds if self.played(n, self._contested(n)) <= updates)

    @property
    def contested_rounds(self) -> int:
        """The first rounds, in which all that begin are trained."""
        return self._contested(self.num_rounds)

    def _contested(self, rounds: int) -> int:
        return min(rounds, max(int(CONTESTED * rounds), 1)) if self._is_contest else 0

    def played(self, rounds: int, contested: int) -> int:
        """How many rounds of single trainings there are in so many rounds, of a search with so many contested ones."""
        contested = min(rounds, contested)
        return self.beginners * contested + self.replicates * (rounds - contested)

    @property
    def _orders_left(self) -> int:
        """Training episodes with orders, of all trainings."""
        return self.total_episodes - self.beginners * self.base_budget

    @property
    def _longest(self) -> int:
        """Training episodes with orders of one that goes on to the end, about."""
        return self._orders_left * self.rounds // self.played(self.rounds, self._contested(self.rounds))

    @property
    def _larger(self) -> tuple[int, float]:
        """How many times the episodes an update with orders has, and the rate."""
        enough = (pair for pair in ORDERS_UPDATES if self._longest >= ENOUGH * pair[0] * self._update)
        return next(enough, (1, 1.0))

    @property
    def is_long(self) -> bool:
        """Is there enough training with orders for prices to settle?"""
        return self._longest >= ENOUGH * self._larger[0] * self._update

    @property
    def _largest_update(self) -> int:
        """Episodes of the last updates with orders; those of a round are a multiple, so that it ends with an update."""
        times = self._larger[0]
        return (2 * times if times > 1 else 1) * self._update

    @property
    def round_episodes(self) -> int:
        """Training episodes of one network in one round, in whole updates."""
        played = self.played(self.num_rounds, self.contested_rounds)
        return self._orders_left // played // self._largest_update * self._largest_update

    @property
    def orders_budget(self) -> int:
        """Training episodes with orders of the one that goes on to the end."""
        return self.round_episodes * self.num_rounds

    def base_config(self, number: int) -> TrainConfig:
        """How a training learns to defend, before it keeps to an order. number: see `SharedSearch`."""
        budget, each = self.base_budget, self.base_budget // (BASE_STARTS + 1) // self._update * self._update
        several = Course(starts=BASE_STARTS, start_episodes=each) if each >= LEAST_START * self._update else Course()
        return self._training(NONE, budget, stream_seed(self.seed, "replicate", number, "base"), course=several)

    def orders_config(self, number: int, idle: tuple[str, ...], first: Workflow) -> TrainConfig:
        """How one is trained on orders, in all rounds together. first: any of them."""
        ppo, (times, faster), last = self.training.ppo, self._larger, self._largest_update
        from_on = [int(share * self.orders_budget) // last * last for share in GROWTH] if times > 1 else []
        sizes = {
            "episodes_per_update": max(times // 2, 1) * self._update,
            "growth": tuple(zip(from_on, (2, 4), strict=False)),
            "learning_rate": ppo.learning_rate * faster,
        }
        seed = stream_seed(self.seed, "replicate", number, "orders")
        own = {"idle": idle, "ppo": ppo.model_copy(update=sizes), "softening": 1.0}
        return self._training(str(first), self.orders_budget, seed, **own)

    @property
    def side_by_side(self) -> int:
        """Jobs that can run at the same time."""
        return self.round_size if self.separate else self.beginners

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
        return self._training(NONE, self.warmup_budget, stream_seed(self.seed, "warmup"), gate=gate)

    @property
    def trial_role(self) -> PolicySpec:
        """What the policies of trials read and may choose."""
        shield = self.training.alignment.kind == "shield"
        return replace(self.training.spec, units=self.scheme, shield=shield, idle=self.training.idle_units)

    def trial_config(self, number: int, workflow: Workflow, budget: int) -> TrainConfig:
        """How trial `number` is trained, with streams of its own."""
        return self._training(str(workflow), budget, stream_seed(self.seed, "trial", number))

    def _training(self, workflow: str, budget: int, seed: int, **changes: Any) -> TrainConfig:
        own = {"workflow": workflow, "total_episodes": budget, "seed": seed}
        return self.training.model_copy(update=own | changes)


def _is_separate(values: Mapping[str, Any]) -> bool:
    """As a flag, a variable or a file may have it."""
    given = values.get("separate", False)
    return given.strip().lower() in ("1", "true", "yes", "on") if isinstance(given, str) else bool(given)


def resolve_search(*layers: Mapping[str, Any]) -> SearchConfig:
    """One checked config from settings, as `resolve`."""
    preset = value_in(merged(*(nested(layer, SearchConfig) for layer in layers)), places(SearchConfig)["preset"])
    if isinstance(preset, str) and PRESETS.get(preset, {}).get("workflow") == NONE:
        raise ConfigError(f"preset {preset!r} knows no workflow; it cannot search for one")
    return resolve(SearchConfig, *layers)


def search_config(preset: str = "default", **settings: Any) -> SearchConfig:
    """A search config from a preset and settings, flat or in tables, as `make_config`.

    For example:

        config = ff.search_config("parallel-100", red_agent="meander", total_episodes=100_000)
    """
    return resolve_search({"preset": preset, **settings})
