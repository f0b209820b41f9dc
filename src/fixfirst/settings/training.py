"""Everything that decides how one policy is trained: flat fields, checked once, frozen, saved with the result.

A field's name is its flag, its variable and its key in a file; its description is its help. The small values that play,
judge and learn (`Game`, `Judging`, `Gate`, `PPOConfig`, `Course`) declare the fields they take, `TrainConfig` inherits all
of them, and `config.game`, `config.ppo` ... are views of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, Field, model_validator

from fixfirst.base import arguments, errors
from fixfirst.game.game_config import Game
from fixfirst.orders import compliance, order
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import action_sets
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import SHIELDS, PolicySpec
from fixfirst.settings.presets import LEAGUE, PRESETS, check_preset
from fixfirst.settings.resolve import Needs, Resolvable, flag, needs

ALL, NONE = "all", "none"  # instead of a workflow: one drawn per episode, or no order at all
MOST_UNITS_AT_ONCE = 6  # 720 orders in one training

Schedule = Literal["constant", "linear"]
Engine = Literal["auto", "compiled", "torch"]
Beta = Annotated[float, Field(ge=0, lt=1)]
_Part = TypeVar("_Part", bound=BaseModel)


class PPOConfig(arguments.Settings):
    """How one update learns. A batch is what one update sees: `episodes_per_update` whole episodes."""

    n_envs: int = Field(50, ge=1, description="Environments side by side.")
    episodes_per_update: int = Field(50, ge=1, description="What one update learns from; a multiple of --n-envs.")
    growth: tuple[tuple[int, int], ...] = Field(
        (), description="Growing updates: pairs of (from so many episodes on, times --episodes-per-update), in a file."
    )
    epochs: int = Field(4, ge=1, description="Passes over an update's episodes.")
    minibatches: int = Field(1, ge=1, description="Parts an epoch is cut into, by transitions; 1 = all at once.")
    row_parts: int = Field(1, ge=1, description="Parts an epoch is cut into, by observations; compiled learner only.")
    returns: Literal["monte_carlo", "gae"] = Field("gae", description="How advantages are computed.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="Lambda of GAE.")
    bootstrap: bool = Field(True, description="With gae: count the value of the state at the step limit.")
    gamma: float = Field(0.99, gt=0, le=1, description="Discount per step.")
    clip: float = Field(0.2, gt=0, description="How far an update may move a probability, as a ratio.")
    entropy: float = Field(0.003, ge=0, description="Weight of the entropy bonus.")
    entropy_schedule: Schedule = Field("constant", description="linear: down to 0 over the budget.")
    value_weight: float = Field(0.5, ge=0, description="Weight of the value loss.")
    max_grad_norm: float = Field(0.5, gt=0, description="Gradients are clipped to this norm.")
    learning_rate: float = Field(0.002, gt=0, description="Learning rate of Adam.")
    lr_schedule: Schedule = Field("constant", description="linear: down to --lr-final over the budget.")
    lr_final: float = Field(0.0, ge=0, le=1, description="Share of the learning rate that is left at the end, if linear.")
    settle: float = Field(0.0, ge=0, lt=1, description="Share of the budget, at its end, with the final values.")
    norms_apart: bool = Field(False, description="Clip the gradients of actor and critic separately.")
    free_restores: int = Field(
        0, ge=0, description="Episodes over which the price of Restore rises from 0 to 1 in training; 0 = at once."
    )
    adam_betas: tuple[Beta, Beta] = Field((0.9, 0.99), description="Decay rates of Adam.")
    last_layer: float = Field(
        1.0, gt=0, description="Factor on the first weights of the last layers; a small one makes all actions likely."
    )
    reward_scale: float = Field(0.1, gt=0, description="The learner sees rewards times this.")
    engine: Engine = Field(
        "auto", description="Which learner: compiled, or torch (PyTorch); auto: torch for minibatches only."
    )

    @model_validator(mode="after")
    def _whole_passes(self) -> "PPOConfig":
        if self.episodes_per_update % self.n_envs:
            raise errors.ConfigError(
                f"--episodes-per-update must be a multiple of --n-envs {self.n_envs}, got {self.episodes_per_update}"
            )
        if list(self.growth) != sorted(self.growth) or not all(start >= 0 and factor >= 1 for start, factor in self.growth):
            raise errors.ConfigError(
                f"growth has pairs of (episodes, factor from 1 on), episodes in order, got {self.growth}"
            )
        return self

    @model_validator(mode="after")
    def _engine_can(self) -> "PPOConfig":
        if self.row_parts > 1 and self.uses_torch:
            raise errors.ConfigError(f"PyTorch's learner cuts by --minibatches, got --row-parts {self.row_parts}")
        if self.engine == "compiled" and self.minibatches > 1:
            raise errors.ConfigError(
                f"--engine compiled learns from all at once, got --minibatches {self.minibatches}; use --engine torch"
            )
        return self

    @property
    def num_envs(self) -> int:
        """`n_envs`, as Gymnasium calls it."""
        return self.n_envs

    @property
    def uses_torch(self) -> bool:
        """Does PyTorch learn?"""
        return self.engine == "torch" or (self.engine == "auto" and self.minibatches > 1)

    def batch_at(self, episodes: int) -> int:
        """Return episodes of the update that comes after so many."""
        factors = [factor for start, factor in self.growth if start <= episodes]
        return self.episodes_per_update * (factors[-1] if factors else 1)

    def updates_in(self, episodes: int) -> int:
        """Return how many updates the first episodes are enough for."""
        played = updates = 0
        for _, end in pairwise([0, *(start for start, _ in self.growth if start > 0), episodes + 1]):
            size = self.batch_at(played)
            here = max(min(-(-(end - played) // size), (episodes - played) // size), 0)
            played, updates = played + here * size, updates + here
        return updates

    def entropy_at(self, progress: float) -> float:
        """Return the entropy bonus at this share of all updates."""
        return self.entropy * (1.0 if self.entropy_schedule == "constant" else 1.0 - self._way(progress))

    def learning_rate_at(self, progress: float) -> float:
        """At this share of all updates."""
        fall = 0.0 if self.lr_schedule == "constant" else self._way(progress) * (1.0 - self.lr_final)
        return self.learning_rate * (1.0 - fall)

    def _way(self, progress: float) -> float:
        """Return how far the schedules have come at this share of all updates."""
        return min(progress / (1.0 - self.settle), 1.0)

    def restore_price(self, episodes: int) -> float:
        """Return what Restore costs the learner after so many episodes, as a share of its true price."""
        return min(episodes / self.free_restores, 1.0) if self.free_restores else 1.0


class Alignment(arguments.Settings):
    """How a policy is made to keep to the order; reports never include its rewards.

    shield: what would break the order is masked (`policy/spec.py`); there is nothing to reward.
    delta: `alignment_lambda` times the change of compliance so far in the episode (the published form, there 30).
    penalty: minus a multiplier per violation. Adaptive: after every update the multiplier moves by
    `alignment_rate` * (`alignment_target` - compliance), within 0..`alignment_limit`; else it stays at `alignment_lambda`.
    While compliance is below the target, the learner's entropy bonus is at least `alignment_explore`: orders that forbid
    what the defender is used to are learned only by trying something else.
    """

    keep: Literal["shield", "evidence", "recheck", "expiry", "limit", "penalty", "delta", "none"] = Field(
        "shield",
        description="How the order is kept: shield masks repairs that would break it, as far as blue knows; evidence, "
        "recheck, expiry and limit do so less often (docs/method.md); penalty and delta are the published rewards.",
    )
    alignment_lambda: float = Field(
        2.0, ge=0, description="Weight of --keep delta (there 30), or the multiplier that --keep penalty starts with."
    )
    alignment_adaptive: bool = Field(True, description="Let the multiplier of penalty adapt.")
    alignment_rate: float = Field(2.0, gt=0, description="How fast the multiplier adapts.")
    alignment_target: float = Field(0.97, gt=0, le=1, description="Compliance that the multiplier aims at.")
    alignment_limit: float = Field(30.0, gt=0, description="The largest multiplier.")
    alignment_explore: float = Field(0.01, ge=0, description="Least entropy bonus while compliance is below the target.")

    @model_validator(mode="before")
    @classmethod
    def _published_weight(cls, values: Any) -> Any:
        is_delta = isinstance(values, Mapping) and isinstance(keep := values.get("keep"), str) and keep == "delta"
        return {"alignment_lambda": 30.0, **values} if is_delta else values

    def next_multiplier(self, multiplier: float, compliance: float | None) -> float:
        """Return the multiplier of the update after one with this compliance."""
        if self.keep != "penalty" or not self.alignment_adaptive or compliance is None:
            return multiplier
        moved = multiplier + self.alignment_rate * (self.alignment_target - compliance)
        return min(max(moved, 0.0), self.alignment_limit)


class Course(arguments.Settings):
    """What a training goes through; by default one start that is trained to the end (`tournament.py`)."""

    starts: int = Field(1, ge=1, description="Short trainings from scratch, of which the best go on.")
    start_episodes: int = Field(0, ge=0, description="How many episodes each of several starts has.")
    opening: str = Field(
        "none",
        description="First choices of every episode: none, find (decoys that are shown to help), or names such as "
        '"Decoy User2, Decoy User2". Played everywhere, and kept in the policy file.',
    )
    lines: int = Field(1, ge=1, description="How many of the best starts go on; the best of what they lead to is kept.")
    seek_episodes: int = Field(
        50_000, ge=1, description="With --opening find: episodes of a line that begin with decoys, ever fewer of them."
    )
    halvings: int = Field(6, ge=1, description="How often the worse half of the openings is dropped; 6 leave three.")
    finals: int = Field(3, ge=1, description="How many openings are then trained separately, beside none.")
    final_episodes: int = Field(10_000, ge=1, description="Episodes of each of --finals.")
    ends: int = Field(1, ge=1, description="How many of --finals are trained to the end; the best is kept.")
    opening_episodes: int = Field(0, ge=0, description="Last episodes of each of --ends.")
    opening_rate: float = Field(0.0015, gt=0, description="Learning rate at the start of --opening-episodes.")

    @model_validator(mode="after")
    def _makes_sense(self) -> "Course":
        if self.starts > 1 and not self.start_episodes:
            raise errors.ConfigError(f"--starts {self.starts} needs --start-episodes: how many each of them has")
        if self.opening == "find" and not self.opening_episodes:
            raise errors.ConfigError("--opening find needs --opening-episodes to train on from what was found")
        if self.lines > self.starts:
            raise errors.ConfigError(f"--lines {self.lines} needs as many --starts, got {self.starts}")
        if self.lines > 1 and not self.seeking:
            raise errors.ConfigError(f"--lines {self.lines} are compared by the openings they find: use --opening find")
        if self.ends > self.finals + 1:
            raise errors.ConfigError(f"--ends {self.ends} needs as many --finals, got {self.finals}")
        return self

    @property
    def before(self) -> int:
        """Episodes of the starts that are given up."""
        return (self.starts - self.lines) * self.start_episodes

    @property
    def seeking(self) -> int:
        """Episodes in which one line finds an opening."""
        return self.seek_episodes if self.opening == "find" else 0

    @property
    def finding(self) -> int:
        """Episodes in which an opening is found."""
        return self.lines * self.seeking + (self.finals + 1) * self.final_episodes if self.seeking else 0

    @property
    def last(self) -> int:
        """How many are trained to the end."""
        return self.ends if self.seeking else 1

    @property
    def after(self) -> int:
        """Episodes with the opening, at the end."""
        return 0 if self.opening == NONE else self.last * self.opening_episodes

    @property
    def aside(self) -> int:
        """All that is not those that go on, without an opening."""
        return self.before + self.finding + self.after


class PlayerSettings(Game, Judging, compliance.Gate, Alignment, PPOConfig, Course, Resolvable):
    """The settings that a training and a search share: all but their budgets."""

    workflow: str = Field(
        NONE,
        description='The order to keep to, e.g. "enterprise > op_server > op_host > user > defender", or a named one: '
        f"{', '.join(order.NAMED_ORDERS)}; none: no order; all: one drawn per episode, for a policy that follows any order "
        "(hard: start it --from a policy that can defend already).",
    )
    units: dict[str, list[str]] | None = None  # another grouping of hosts than the five types
    idle: tuple[str, ...] = Field(
        (), description="Unit types that red never holds: with a shield they come last, whatever the order; in a file."
    )
    memory: str = Field(
        "none", description="What the policy remembers: none, scans, full, or groups such as act1+last (docs/memory.md)."
    )
    action_set: str = Field(
        "all",
        description="What it chooses from: all 145 actions; macros, the 40 that can help; original, the winner's 36.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="The same seed gives the same results.")
    preset: str = Field(
        "default", description=f"Values for all that is not given: {', '.join((*PRESETS, LEAGUE))} (docs/method.md)."
    )  # only a name: what it stands for is in the values
    softening: float = Field(
        0.5, gt=0, le=1, description="Factor on inherited preferences that break the order; 1 = take them as they are."
    )
    checkpoint_every: int = Field(50, ge=1, description="Updates between two checkpoints.")
    tensorboard: bool = Field(False, description="Write TensorBoard events; needs pip install 'fixfirst[tensorboard]'.")

    needs: ClassVar[Needs] = {
        **needs("--lr-schedule linear", lambda c: c.lr_schedule == "linear", "lr_final"),
        **needs("a linear schedule", lambda c: "linear" in (c.lr_schedule, c.entropy_schedule), "settle"),
        **needs("--returns gae", lambda c: c.returns == "gae", "gae_lambda", "bootstrap"),
        **needs("--backend cyborg", lambda c: c.backend == "cyborg", "cyborg"),
        **needs("--keep penalty or delta", lambda c: c.keep in ("penalty", "delta"), "alignment_lambda"),
        **needs(
            "--keep penalty",
            lambda c: c.keep == "penalty",
            *("alignment_adaptive", "alignment_target", "alignment_explore"),
        ),
        **needs(
            "--keep penalty and --alignment-adaptive",
            lambda c: c.keep == "penalty" and c.alignment_adaptive,
            *("alignment_rate", "alignment_limit"),
        ),
        **needs("--gate-rule bound", lambda c: c.gate_rule == "bound", "min_judged"),
        **needs("--gate-rule latest", lambda c: c.gate_rule == "latest", "min_repairs"),
        **needs("--starts 2 or more", lambda c: c.starts > 1, "start_episodes"),
        **needs(
            "--opening find",
            lambda c: c.opening == "find",
            *("seek_episodes", "halvings", "finals", "final_episodes", "ends"),
        ),
        **needs("--opening", lambda c: c.opening != NONE, "opening_episodes"),
        **needs("--opening and --opening-episodes", lambda c: c.course.after > 0, "opening_rate"),
    }

    @model_validator(mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> Any:
        """Refuse arrays, which cannot even be compared with what a setting may be."""
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, np.ndarray | np.void):
                raise errors.ConfigError(f"{flag(name)} must be a plain value, got {value!r}")
        return values

    @model_validator(mode="after")
    def _makes_sense_alone(self) -> "PlayerSettings":
        for name in type(self).model_fields:
            if name != "seed":  # it has limits of its own
                _check_size(name, getattr(self, name))
        check_preset(self.preset)
        _ = self.idle_units, self.attacker  # they make sense
        if self.variant is None:
            raise errors.ConfigError("a training names its variant: current, leaderboard or debugged")
        transitions = self.steps * self.episodes_per_update
        if self.minibatches > transitions:
            raise errors.ConfigError(f"--minibatches {self.minibatches} is more than the {transitions} steps of one update")
        return self

    def _view(self, part: type[_Part]) -> _Part:
        return part.model_construct(**{name: getattr(self, name) for name in part.model_fields})

    @property
    def game(self) -> Game:
        return self._view(Game)

    @property
    def judging(self) -> Judging:
        return self._view(Judging)

    @property
    def gate(self) -> compliance.Gate:
        return self._view(compliance.Gate)

    @property
    def ppo(self) -> PPOConfig:
        return self._view(PPOConfig)

    @property
    def course(self) -> Course:
        return self._view(Course)

    @property
    def scheme(self) -> UnitScheme:
        """How hosts are grouped into unit types."""
        if self.units is None:
            return UnitScheme.by_type(self.scenario)
        return UnitScheme.from_dict(self.units, self.scenario)

    @property
    def idle_units(self) -> tuple[int, ...]:
        """`idle` by number."""
        return self.scheme.numbers(self.idle, "idle")


class TrainConfig(PlayerSettings):
    """One training: a game, an order and how it is judged, a learner, a budget.

    For example:

        config = ff.make_config(workflow="critical_first", n_envs=100)
        config.game.red_agent, config.ppo.num_envs, config.spec.inputs
    """

    total_episodes: int = Field(20_000, ge=1, description="How many episodes to train on.")

    needs: ClassVar[Needs] = {
        **needs("--workflow", lambda c: c.workflow != NONE, "keep", "rule", "count_foothold", "idle", "softening"),
        **needs(
            "--workflow with one order",
            lambda c: c.workflow not in (NONE, ALL),
            *("gate_rule", "compliance_threshold", "gate_episodes", "min_episodes", "stop_when_compliant"),
        ),
        **PlayerSettings.needs,
    }

    @model_validator(mode="after")
    def _can_be_trained(self) -> "TrainConfig":
        _ = self.workflows, self.spec  # they make sense
        self._check_budget()
        return self

    def _check_budget(self) -> None:
        """Every stage (`tournament.py`) has at least one update, whatever is left of the budget."""
        course, ppo, total = self.course, self.ppo, self.total_episodes
        update = ppo.batch_at(0)
        first = course.start_episodes if course.starts > 1 else update
        if course.starts > 1 and first < update:
            raise errors.ConfigError(f"--start-episodes {first} is less than one update of {update} episodes")
        least = course.aside + course.lines * first
        if total < least:
            parts = {"starts that are given up": course.before, "finding an opening": course.finding, "it": course.after}
            spent = ", ".join(f"{episodes:,} for {what}" for what, episodes in parts.items() if episodes)
            raise errors.ConfigError(
                f"--total-episodes must be at least {least:,}{' with ' + spent if spent else ''}, got {total:,}"
            )
        plain = (total - course.aside) // course.lines
        rest, update = plain - first, ppo.batch_at(first)
        if course.starts > 1 and 0 < rest < update:
            raise errors.ConfigError(
                f"--total-episodes {total:,} leaves {rest} episodes after the starts, less than one update of {update}; "
                f"make it {least:,}, or {least + course.lines * update:,} or more"
            )
        update = ppo.batch_at(plain + course.seeking)  # of all later stages
        later = {"opening_episodes": course.opening_episodes} if course.after else {}
        later |= {"seek_episodes": course.seek_episodes, "final_episodes": course.final_episodes} if course.seeking else {}
        for name, episodes in later.items():
            if episodes < update:
                raise errors.ConfigError(f"{flag(name)} must be at least one update, {update} episodes, got {episodes}")

    @property
    def policy_scheme(self) -> UnitScheme | None:
        """The unit types whose order the policy reads; None = it knows no order."""
        return None if self.workflow == NONE else self.scheme

    @property
    def spec(self) -> PolicySpec:
        """What the policy reads and may choose."""
        scheme = self.policy_scheme
        shield = scheme is not None and self.keep in SHIELDS
        spec = PolicySpec(
            MemoryScheme.parse(self.memory, self.scenario),
            action_sets.ActionSet.parse(self.action_set, self.scenario),
            scheme,
            (),
            shield,
            self.idle_units,
            self.keep if shield else "shield",
        )
        if self.opening == "find" and not spec.action_set.macros:
            raise errors.ConfigError(
                f"openings are found among decoy macros, the action set {spec.action_set} has none; use --action-set macros"
            )
        opened = self.opened(spec)  # makes sense, also if it is for later
        return spec if self.course.after else opened

    def opened(self, spec: PolicySpec) -> PolicySpec:
        """Return the spec with the opening that is given by name, if one is."""
        if self.opening in (NONE, "find"):
            return spec
        names = tuple(name.strip() for name in self.opening.split(","))
        if len(names) >= self.steps:
            raise errors.ConfigError(
                f"an opening of {len(names)} choices leaves nothing to choose in {self.max_steps} steps"
            )
        return replace(spec, opening=spec.action_set.numbers(names))

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """The orders played: none, one, or all."""
        scheme = self.policy_scheme
        if scheme is None:
            return ()
        if self.workflow != ALL:
            return (Workflow.parse(self.workflow, scheme),)
        if scheme.size > MOST_UNITS_AT_ONCE:
            raise errors.ConfigError(
                f"--workflow all needs at most {MOST_UNITS_AT_ONCE} unit types (720 orders), this scheme has {scheme.size}"
            )
        return tuple(order.all_workflows(scheme))


def _check_size(name: str, value: Any) -> None:
    """Finite numbers that nothing overflows with, alone or in tuples."""
    for one in value if isinstance(value, tuple) else ():
        _check_size(name, one)
    if isinstance(value, int | float) and not abs(value) <= arguments.MOST:
        raise errors.ConfigError(f"{flag(name)} must be a number of at most {arguments.MOST:,}, got {value!r}")


def make_config(preset: str = "default", **settings: Any) -> TrainConfig:
    """Return a training config from a preset and settings by name. Bad values raise ConfigError.

    For example:

        config = ff.make_config(workflow="critical_first", red_agent="meander", n_envs=100)
    """
    return TrainConfig.resolve({"preset": preset, **settings})
