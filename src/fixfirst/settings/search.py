"""What decides a search: how every trial is trained, which orders are tried, and for how long."""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from fixfirst.base import arguments, errors, seeds
from fixfirst.game.game_config import scenarios_listed
from fixfirst.game.red_agents import names_listed
from fixfirst.orders.order import Workflow
from fixfirst.policy.spec import SHIELDS, PolicySpec
from fixfirst.settings import presets, resolve, training
from fixfirst.settings.budget import DROP_SHARE, FEWEST_REPLICATES, MOST_REPLICATES, PER_REPLICATE, Budget, divide
from fixfirst.settings.training import TrainConfig

Inherit = Literal["last", "nearest", "best", "none"]
StrategyName = Literal["gp_ucb", "random", "exhaustive", "together"]

# Meander holds machines of all unit types but one: more orders differ, and prices settle later than against B_line.
EPISODES, MORE_EPISODES = 1_150_000, 1_800_000
BASE_STARTS, LEAST_START = 3, 100  # one start in six gets stuck; the best goes on, if each can have so many updates
# With less, prices against attackers that adapt say how far the training of either side is, not what an order is worth.
_LEAST_ATTACK, _LEAST_UPDATES = 1_000, 30
MOST_SEEDS = 10_000  # of a study: every search has a config of its own in memory


class SearchConfig(training.PlayerSettings):
    """A search: how every trial is trained, which orders are tried, and for how long.

    By default one network is trained for all orders, under several seeds (`shared.py`); `separate` is the published way, one
    training per order, with gate and inheritance (`published.py`).

    `training` is the view of a trial: its budget is the most one trial may use, its seed that of the whole search, and its
    workflow is chosen by the strategy. Evaluation episodes are counted apart from training episodes.

    For example:

        config = ff.search_config(red_agent="meander", replicates=5)
        config.game.red_agent, config.replicates
    """

    separate: bool = Field(False, description="The published way: one training per order, with a gate.")
    total_episodes: int = Field(
        default_factory=lambda values: _enough_episodes(values),
        ge=1,
        description=f"Training episodes of the whole search, of all replicates; default: {EPISODES:,}, and "
        f"{MORE_EPISODES:,} against others than b_line.",
    )
    replicates: int = Field(
        0,
        ge=0,
        validate_default=True,
        description=f"Trainings under seeds of their own; prices are judged by their spread. 0: one for every "
        f"{PER_REPLICATE:,} episodes of the budget, at least {FEWEST_REPLICATES} and at most {MOST_REPLICATES}.",
    )
    trainings: int = Field(
        0,
        ge=0,
        validate_default=True,
        description=f"Trainings that begin. After {DROP_SHARE:.0%} of the rounds the worst are dropped, and --replicates go "
        f"on. 0: half as many more than replicates if each has {PER_REPLICATE:,} episodes, else as many.",
    )
    rounds: int = Field(10, ge=1, description="How often orders are chosen again.")
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
    selection_episodes: int = Field(
        400, ge=2, description="Episodes that decide which order a policy is given, for each order."
    )
    measure_episodes: int = Field(
        8_000, ge=2, description="Fresh episodes each order is measured on, per replicate; no more than it was trained on."
    )
    margin: float = Field(0.5, gt=0, description="Orders that cost no more than this count as equally good.")
    strategy: StrategyName = Field(
        "gp_ucb", description="How orders are chosen; together: all of them in every round (not with --separate)."
    )
    gp_beta: float = Field(2.0, ge=0, description="Weight of uncertainty: the search tries the largest mean + beta * std.")
    gp_beta_schedule: bool = Field(
        False, description="Let beta grow with the number of choices, as in the theory of GP-UCB, instead of --gp-beta."
    )
    initial_orders: int = Field(8, ge=1, description="Random orders before the Gaussian process chooses.")
    round_size: int = Field(
        2,
        ge=1,
        description="Trials that are chosen together and run side by side. It changes the result; --workers does not.",
    )
    max_episodes: int = Field(10_000, ge=1, description="Training episodes of one order, at most.")
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

    exploit: bool = Field(False, description="Price orders against attackers that adapt, too.")
    exploit_rounds: int = Field(
        2, ge=0, description="How often defenders then learn against attackers that answer them; 0: they stay as they are."
    )
    exploit_episodes: int = Field(
        2_000, ge=50, description="Training episodes of an attacker from each start; the best goes on for twice as many."
    )
    exploit_updates: int = Field(60, ge=1, description="Updates of a defender in a round against attackers.")
    exploit_replicates: int = Field(
        3, ge=1, description="Replicates that are attacked, at most; with fewer than 3 there are no intervals."
    )
    exploit_test_episodes: int = Field(1_000, ge=2, description="Fresh episodes on which the best attacker is played.")

    needs: ClassVar[resolve.Needs] = (
        (
            "--separate",
            lambda c: c.separate,
            "n_workflows inherit warmup_episodes max_episodes round_size test_episodes log_episodes tensorboard "
            "initial_logit_scale gate_rule compliance_threshold gate_episodes min_judged min_repairs min_episodes "
            "stop_when_compliant",
        ),
        (
            "a search without --separate",
            lambda c: not c.separate,
            "replicates trainings rounds round_orders base_episodes watch_episodes selection_episodes measure_episodes "
            "margin exploit",
        ),
        (
            "--exploit",
            lambda c: c.exploit,
            "exploit_rounds exploit_episodes exploit_updates exploit_replicates exploit_test_episodes",
        ),
        ("--no-gp-beta-schedule", lambda c: not c.gp_beta_schedule, "gp_beta"),
        *training.PlayerSettings.needs,
    )

    @classmethod
    def defaults_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is usual in the kind of search that the values ask for."""
        is_separate = str(values.get("separate")).strip().lower() in ("1", "true", "yes", "on")  # from wherever it comes
        return {**(presets.TRIAL_DEFAULTS if is_separate else presets.SHARED_DEFAULTS)}

    @model_validator(mode="before")
    @classmethod
    def _usual_values(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        chosen = isinstance(order := values.get("workflow"), str) and order == training.ALL  # by the strategy, of all
        return {**cls.defaults_of(values), **values, **({"workflow": training.NONE} if chosen else {})}

    @field_validator("replicates", "trainings")
    @classmethod
    def _fitting_number(cls, given: int, info: ValidationInfo) -> int:
        total, replicates = info.data.get("total_episodes"), info.data.get("replicates")
        if given or info.data.get("separate") or total is None or (info.field_name == "trainings" and replicates is None):
            return given
        if replicates is None:
            return min(max(total // PER_REPLICATE, FEWEST_REPLICATES), MOST_REPLICATES)
        return replicates + (replicates // 2 if total >= PER_REPLICATE * replicates else 0)

    @model_validator(mode="after")
    def _searchable(self) -> "SearchConfig":
        if presets.PRESETS[self.preset].get("workflow") == training.NONE:
            raise errors.ConfigError(f"--preset {self.preset} knows no order; it cannot search for one")
        if not self.separate and self.trainings < self.replicates:
            raise errors.ConfigError(
                f"--trainings begin and --replicates go on: give {self.replicates} or more, got --trainings {self.trainings}"
            )
        if self.workflow != training.NONE:
            raise errors.ConfigError(
                f"a search chooses the workflows itself: leave workflow at 'all', got {self.workflow!r}"
            )
        if self.entrants > 1 or self.opening != training.NONE:
            raise errors.ConfigError("--entrants and --opening are for trainings without an order; a search has neither")
        _ = self.training.spec  # it makes sense
        if self.separate:
            self._check_separate()
        else:
            self._check_shared()
        return self

    def _check_separate(self) -> None:
        if self.strategy == "together":
            raise errors.ConfigError(
                "--strategy together trains all orders in one network; --separate trains one after the other"
            )
        if self.max_episodes < self.shortest_trial:
            raise errors.ConfigError(
                f"no trial could pass the gate: it opens after {self.shortest_trial} episodes (--min-episodes "
                f"{self.min_episodes}), and a trial has at most {self.max_episodes} (--max-episodes)"
            )
        left = self.total_episodes - self.warmup_budget
        if left < self.shortest_trial:
            raise errors.ConfigError(
                f"--total-episodes {self.total_episodes} leaves {left} after the warm-up, less than one trial of "
                f"{self.shortest_trial} episodes; raise it, or lower --min-episodes"
            )

    def _check_shared(self) -> None:
        if self.keep not in SHIELDS:
            raise errors.ConfigError(
                f"one network for all orders keeps them by a shield; --keep {self.keep} needs --separate"
            )
        if self.from_policy is not None:
            raise errors.ConfigError("--from needs --separate: replicates begin from scratch, each by itself")
        if self.exploit and self.training.game.backend != "simulator":
            raise errors.ConfigError(f"--exploit: attackers learn on the simulator, not on {self.training.game.backend}")
        if self.budget.num_rounds < 1:
            least = self.trainings * (self.episodes_per_update + self.budget.largest_update)
            raise errors.ConfigError(
                f"--total-episodes {self.total_episodes} is less than two updates for each of {self.trainings} trainings; "
                f"raise it to {least} or more"
            )

    @cached_property
    def training(self) -> TrainConfig:
        """A trial, before it has an order and a seed of its own."""
        shared = {name: getattr(self, name) for name in training.PlayerSettings.model_fields}
        made = TrainConfig.model_construct(**shared, total_episodes=self.max_episodes)
        _ = made.game, made.ppo  # once, for all that is copied from it
        return made

    @cached_property
    def budget(self) -> Budget:
        """How its training episodes are divided, if one network learns all orders."""
        return self._divide(self.total_episodes, self.replicates, self.trainings)

    def _divide(self, total: int, replicates: int, trainings: int) -> Budget:
        return divide(total, self.episodes_per_update, self.base_episodes, self.rounds, replicates, trainings)

    @property
    def next_budget(self) -> int:
        """How many episodes to try where these did not settle, with as many trainings as are needed; at least the usual."""
        if self.budget.can_settle:
            return 2 * self.total_episodes
        replicates = max(self.replicates, FEWEST_REPLICATES)
        total = max(self.total_episodes, _enough_episodes({"red_agent": self.red_agent}))
        while not self._divide(total, replicates, max(self.trainings, replicates)).is_long:
            total *= 2
        return total

    @property
    def adapts_long(self) -> bool:
        """Is there enough training of attackers, and of defenders against them?"""
        defends = not self.exploit_rounds or self.exploit_updates >= _LEAST_UPDATES
        return defends and self.exploit_episodes >= _LEAST_ATTACK

    @cached_property
    def base_configs(self) -> tuple[TrainConfig, ...]:
        """How each training learns to defend, before it keeps to an order, see `SharedSearch`."""
        budget, update = self.budget.base, self.episodes_per_update
        each = budget // (BASE_STARTS + 1) // update * update
        several = {"entrants": BASE_STARTS, "start_episodes": each} if each >= LEAST_START * update else {}
        streams = (("replicate", number, "base") for number in range(self.trainings))
        return tuple(self._training(training.NONE, budget, *stream, **several) for stream in streams)

    def orders_configs(self, idle: tuple[str, ...]) -> tuple[TrainConfig, ...]:
        """Return how each training goes on with orders, in all rounds together."""
        any_order = " > ".join(sorted(self.scheme.names, key=idle.__contains__))  # idle ones come last
        changes = {"initial_logit_scale": 1.0, "idle": idle, **self.budget.update_sizes(self.learning_rate)}
        made = self._training(any_order, self.budget.orders, "replicate", 0, "orders", **changes)
        others = (seeds.stream_seed(self.seed, "replicate", number, "orders") for number in range(1, self.trainings))
        return (made, *(made.model_copy(update={"seed": seed}) for seed in others))

    @property
    def shortest_trial(self) -> int:
        """Episodes after which the gate may first be passed, in whole updates; a shorter trial could not show anything."""
        update = self.episodes_per_update
        return max(1, -(-self.min_episodes // update)) * update

    @property
    def warmup_budget(self) -> int:
        """Training episodes of the warm-up; 0 if the first trials start elsewhere."""
        if self.from_policy is not None:
            return 0
        update = self.episodes_per_update
        return min(self.warmup_episodes, self.total_episodes // 3) // update * update

    def warmup_config(self) -> TrainConfig:
        """Return how to defend at all, before keeping to an order."""
        return self._training(training.NONE, self.warmup_budget, "warmup", min_episodes=0)

    @property
    def trial_role(self) -> PolicySpec:
        """What the policies of trials read and may choose."""
        return self.training.model_copy(update={"workflow": training.ALL}).spec

    def trial_config(self, number: int, workflow: Workflow, budget: int) -> TrainConfig:
        """Return how trial `number` is trained, with streams of its own."""
        return self._training(str(workflow), budget, "trial", number)

    def _training(self, workflow: str, budget: int, *stream: str | int, **changes: Any) -> TrainConfig:
        own = {"workflow": workflow, "total_episodes": budget, "seed": seeds.stream_seed(self.seed, *stream)}
        made = self.training.model_copy(update=own | changes)
        _ = made.ppo
        return made


def _enough_episodes(values: Mapping[str, Any]) -> int:
    """Return the budget of a search that is given none."""
    hard = values.get("red_agent") != "b_line" and not values.get("separate")
    return MORE_EPISODES if hard else EPISODES


def search_config(preset: str = "default", **settings: Any) -> SearchConfig:
    """Return a search config from a preset and settings by name, as `make_config`.

    For example:

        config = ff.search_config("parallel-100", red_agent="meander", total_episodes=100_000)
    """
    return SearchConfig.resolve({"preset": preset, **settings})


def search_configs(
    given: Mapping[str, Any], file: Path | None = None, units: Path | None = None, seeds: int = 1
) -> list[SearchConfig]:
    """Return the configs of a study's searches: in every scenario, every red agent under every seed; of one search, one."""
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise errors.ConfigError(f"--seeds must be at least 1, got {seeds}")
    if seeds > MOST_SEEDS:
        raise errors.ConfigError(f"--seeds must be at most {MOST_SEEDS:,}, got {seeds:,}")
    given, environment, from_file = SearchConfig.gather(given, file, units)
    named = ChainMap(given, environment, from_file)
    agents, network = named.get("red_agent", "b_line"), named.get("scenario")
    scenarios = [] if network is None else scenarios_listed(network)
    if not scenarios and network is not None:
        raise errors.ConfigError("--scenario names no network")
    firsts = [
        SearchConfig.resolve({**given, **world, "red_agent": agent}, environment, from_file)
        for world in ([{"scenario": scenario} for scenario in scenarios] or [{}])
        for agent in (names_listed(agents) if isinstance(agents, str) else [agents])
    ]
    if firsts[0].seed + seeds > 2**63:
        raise errors.ConfigError(f"--seed must be below 2**63 less --seeds, got {firsts[0].seed}")
    return [first.model_copy(update={"seed": first.seed + i}) if i else first for first in firsts for i in range(seeds)]


@dataclass(frozen=True)
class Execution:
    """Where trials run; the result does not depend on it."""

    workers: int = 0
    """Trials side by side; 0 = as many as there are cores and trials; 1 = in this process."""

    executor: Literal["inline", "process", "ray"] | None = None
    """inline (this process), process (worker processes; default with several workers) or ray (a cluster, docs/scale.md)."""

    ray_address: str | None = None
    """With --executor ray: local (default: a cluster of this machine alone), auto, or the address of a running cluster."""

    cpus_per_trial: int | None = None
    """With --executor ray: CPUs a trial asks for. Default 1; with --backend cyborg or workers, all of the smallest node."""

    def __post_init__(self) -> None:
        arguments.check_int("--workers", self.workers, 0, wrong=errors.ConfigError)
        if self.cpus_per_trial is not None:
            arguments.check_int("--cpus-per-trial", self.cpus_per_trial, wrong=errors.ConfigError)
        if self.executor is not None:
            arguments.check_choice("executor", self.executor, ("inline", "process", "ray"))
        if not isinstance(self.ray_address, str | None):
            raise errors.ConfigError(f"--ray-address must be a string, got {self.ray_address!r}")
        if self.executor == "inline" and self.workers > 1:
            raise errors.ConfigError(f"--executor inline runs one trial at a time, --workers {self.workers} asks for more")
        if self.executor != "ray" and (self.ray_address, self.cpus_per_trial) != (None, None):
            raise errors.ConfigError("--ray-address and --cpus-per-trial need --executor ray")
        if self.workers and self.ray_address not in (None, "local"):
            raise errors.ConfigError(
                "--workers is for this machine; how many trials run on a Ray cluster follows from its CPUs"
            )
