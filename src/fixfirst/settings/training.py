"""Everything that decides how one policy is trained: flat fields, checked once, frozen, saved with the result.

A field's name is its flag, its variable and its key in a file; its description is its help. `Game`, `Judging`, `Gate`,
`PPOConfig` and `TournamentConfig` declare the fields that they take, and a `TrainConfig` is all of them at once.
`config.game` and `config.ppo` are made once, and carried to copies that do not change them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fixfirst.base import arguments, errors
from fixfirst.game.game_config import Game
from fixfirst.orders import compliance, order
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import action_sets
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import SHIELDS, PolicySpec
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.presets import LEAGUE, PRESETS
from fixfirst.settings.resolve import Needs, Resolvable, check_preset, flag

ALL, NONE = "all", "none"  # instead of a workflow: one drawn per episode, or no order at all; NONE also of an opening
FIND = "find"  # instead of an opening: it is searched for
MOST_UNITS_AT_ONCE = 6  # 720 orders in one training


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


class TournamentConfig(arguments.Settings):
    """What a training goes through (`learner/stages.py`): by default one start that is trained to the end, else a tournament
    of starts and of openings.
    """

    entrants: int = Field(1, ge=1, description="Short trainings from scratch, of which the best go on.")
    start_episodes: int = Field(0, ge=0, description="How many episodes each of several --entrants has.")
    opening: str = Field(
        "none",
        description="First choices of every episode: none, find (decoys that are shown to help), or names such as "
        '"Decoy User2, Decoy User2". Played everywhere, and kept in the policy file.',
    )
    survivors: int = Field(
        1, ge=1, description="How many of the best --entrants go on; the best of what they become is kept."
    )
    seek_episodes: int = Field(
        50_000,
        ge=1,
        description="With --opening find: episodes of a survivor that begin with decoys, ever fewer of them.",
    )
    halving_rounds: int = Field(6, ge=1, description="How often the worse half of the openings is dropped; 6 leave three.")
    finalists: int = Field(3, ge=1, description="How many openings are then trained separately, beside none.")
    final_episodes: int = Field(10_000, ge=1, description="Episodes of each of --finalists.")
    finalists_kept: int = Field(1, ge=1, description="How many of --finalists are trained to the end; the best is kept.")
    opening_episodes: int = Field(0, ge=0, description="Last episodes of each of --finalists-kept.")
    opening_rate: float = Field(0.0015, gt=0, description="Learning rate at the start of --opening-episodes.")

    @model_validator(mode="after")
    def _makes_sense(self) -> "TournamentConfig":
        if self.entrants > 1 and not self.start_episodes:
            raise errors.ConfigError(f"--entrants {self.entrants} needs --start-episodes: how many each of them has")
        if self.finds_opening and not self.opening_episodes:
            raise errors.ConfigError("--opening find needs --opening-episodes to train on from what was found")
        if self.survivors > self.entrants:
            raise errors.ConfigError(f"--survivors {self.survivors} needs as many --entrants, got {self.entrants}")
        if self.survivors > 1 and not self.finds_opening:
            raise errors.ConfigError(
                f"--survivors {self.survivors} are compared by the openings they find: use --opening find"
            )
        if self.finalists_kept > self.finalists + 1:
            raise errors.ConfigError(
                f"--finalists-kept {self.finalists_kept} needs as many --finalists, got {self.finalists}"
            )
        return self

    @property
    def finds_opening(self) -> bool:
        """Is an opening searched for?"""
        return self.opening == FIND

    @property
    def seeking_episodes(self) -> int:
        """Episodes in which one survivor looks for an opening."""
        return self.seek_episodes if self.finds_opening else 0

    @property
    def finishing(self) -> int:
        """How many are trained to the end."""
        return self.finalists_kept if self.finds_opening else 1

    @property
    def finishing_episodes(self) -> int:
        """Episodes with the opening, at the end, of all together."""
        return 0 if self.opening == NONE else self.finishing * self.opening_episodes

    @property
    def extra_episodes(self) -> int:
        """Episodes of all that is not a survivor's own training without an opening."""
        dropped = (self.entrants - self.survivors) * self.start_episodes
        openings = self.survivors * self.seek_episodes + (self.finalists + 1) * self.final_episodes
        return dropped + (openings if self.finds_opening else 0) + self.finishing_episodes


class PlayerSettings(Game, Judging, compliance.Gate, Alignment, PPOConfig, TournamentConfig, Resolvable):
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
    initial_logit_scale: float = Field(
        0.5, gt=0, le=1, description="Factor on inherited logits that break the order; 1 = take them as they are."
    )
    checkpoint_every: int = Field(50, ge=1, description="Updates between two checkpoints.")
    tensorboard: bool = Field(False, description="Write TensorBoard events; needs pip install 'fixfirst[tensorboard]'.")

    needs: ClassVar[Needs] = (
        ("--lr-schedule linear", lambda c: c.lr_schedule == "linear", "lr_final"),
        ("a linear schedule", lambda c: "linear" in (c.lr_schedule, c.entropy_schedule), "settle"),
        ("--returns gae", lambda c: c.returns == "gae", "gae_lambda bootstrap"),
        ("--backend cyborg", lambda c: c.backend == "cyborg", "cyborg"),
        ("--keep penalty or delta", lambda c: c.keep in ("penalty", "delta"), "alignment_lambda"),
        ("--keep penalty", lambda c: c.keep == "penalty", "alignment_adaptive alignment_target alignment_explore"),
        (
            "--keep penalty and --alignment-adaptive",
            lambda c: c.keep == "penalty" and c.alignment_adaptive,
            "alignment_rate alignment_limit",
        ),
        ("--gate-rule bound", lambda c: c.gate_rule == "bound", "min_judged"),
        ("--gate-rule latest", lambda c: c.gate_rule == "latest", "min_repairs"),
        ("--entrants 2 or more", lambda c: c.entrants > 1, "start_episodes"),
        (
            "--opening find",
            lambda c: c.finds_opening,
            "seek_episodes halving_rounds finalists final_episodes finalists_kept",
        ),
        ("--opening", lambda c: c.opening != NONE, "opening_episodes"),
        ("--opening and --opening-episodes", lambda c: c.finishing_episodes > 0, "opening_rate"),
    )

    @model_validator(mode="after")
    def _makes_sense_alone(self) -> "PlayerSettings":
        check_preset(self.preset)
        _ = self.idle_units, self.attacker  # they make sense
        if self.variant is None:
            raise errors.ConfigError("a training names its variant: current, leaderboard or debugged")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, and with all that was made of those that stay as they are."""
        copied, changed = super().model_copy(update=update, deep=deep), set(update or ())
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            part = copied.__dict__[name]
            if changed and not (isinstance(self, type(part)) and changed.isdisjoint(type(part).model_fields)):
                del copied.__dict__[name]
        return copied

    @cached_property
    def game(self) -> Game:
        """What is played."""
        return Game.model_construct(**{name: getattr(self, name) for name in Game.model_fields})

    @cached_property
    def ppo(self) -> PPOConfig:
        """How an update learns."""
        return PPOConfig.model_construct(**{name: getattr(self, name) for name in PPOConfig.model_fields})

    @cached_property
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

    needs: ClassVar[Needs] = (
        ("--workflow", lambda c: c.workflow != NONE, "keep rule count_foothold idle initial_logit_scale"),
        (
            "--workflow with one order",
            lambda c: c.workflow not in (NONE, ALL),
            "gate_rule compliance_threshold gate_episodes min_episodes stop_when_compliant",
        ),
        *PlayerSettings.needs,
    )

    @model_validator(mode="after")
    def _can_be_trained(self) -> "TrainConfig":
        _ = self.workflows, self.spec  # they make sense
        self._check_budget()
        return self

    def _check_budget(self) -> None:
        """Every stage (`learner/stages.py`) has at least one update, whatever is left of the budget."""
        ppo, total, extra = self.ppo, self.total_episodes, self.extra_episodes
        first = self.start_episodes if self.entrants > 1 else ppo.batch_at(0)
        least, plain = extra + self.survivors * first, (total - extra) // self.survivors
        rest, update = plain - first, ppo.batch_at(first)
        later = ppo.batch_at(max(plain, 0) + self.seeking_episodes)
        needed = {"start_episodes": ppo.batch_at(0)} if self.entrants > 1 else {}
        needed |= {"opening_episodes": later} if self.finishing_episodes else {}
        needed |= {"seek_episodes": later, "final_episodes": later} if self.finds_opening else {}
        for name, size in needed.items():
            if (episodes := getattr(self, name)) < size:
                raise errors.ConfigError(f"{flag(name)} must be at least one update, {size} episodes, got {episodes}")
        if total < least:
            spent = f" with {extra:,} for starts that are given up and for openings" if extra else ""
            raise errors.ConfigError(f"--total-episodes must be at least {least:,}{spent}, got {total:,}")
        if self.entrants > 1 and 0 < rest < update:
            raise errors.ConfigError(
                f"--total-episodes {total:,} leaves {rest} episodes after the starts, less than one update of {update}; "
                f"make it {least:,}, or {least + self.survivors * update:,} or more"
            )

    @property
    def policy_scheme(self) -> UnitScheme | None:
        """The unit types whose order the policy reads; None = it knows no order."""
        return None if self.workflow == NONE else self.scheme

    @cached_property
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
        if self.finds_opening and not spec.action_set.macros:
            raise errors.ConfigError(
                f"openings are found among decoy macros, the action set {spec.action_set} has none; use --action-set macros"
            )
        opened = self.opened(spec)  # makes sense, also if it is for later
        return spec if self.finishing_episodes else opened

    def opened(self, spec: PolicySpec) -> PolicySpec:
        """Return the spec with the opening that is given by name, if one is."""
        if self.opening in (NONE, FIND):
            return spec
        names = tuple(name.strip() for name in self.opening.split(","))
        if len(names) >= self.steps:
            raise errors.ConfigError(
                f"an opening of {len(names)} choices leaves nothing to choose in {self.max_steps} steps"
            )
        return replace(spec, opening=spec.action_set.numbers(names))

    @cached_property
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


def make_config(preset: str = "default", **settings: Any) -> TrainConfig:
    """Return a training config from a preset and settings by name. Bad values raise ConfigError.

    For example:

        config = ff.make_config(workflow="critical_first", red_agent="meander", n_envs=100)
    """
    return TrainConfig.resolve({"preset": preset, **settings})
