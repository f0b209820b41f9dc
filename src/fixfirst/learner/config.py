"""Everything that decides how one policy is trained, checked once, frozen, saved with the result."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fixfirst.cyborg.backends import Backend
from fixfirst.errors import ConfigError, FixfirstError
from fixfirst.game.network import VariantName
from fixfirst.game.world import check_variant, red_agent_spec
from fixfirst.learner.ppo import PRESETS, PPOConfig
from fixfirst.orders.compliance import Gate, Rule
from fixfirst.orders.workflow import FIVE_TYPES, UnitScheme, Workflow, all_workflows

ALL, NONE = "all", "none"  # instead of a workflow: one drawn per episode, or no order at all


class Alignment(BaseModel):
    """The learner's reward for keeping to the order; reports never include it.

    delta: `weight` times the change of compliance so far in the episode (the published form, weight 30).
    penalty: minus a multiplier per violation. Adaptive: after every update the multiplier moves by
    `rate` * (`target` - compliance), within 0..`limit`; else it stays at `weight`.
    While compliance is below the target, the learner's entropy bonus is at least `explore`: orders that forbid what the
    defender is used to are learned only by trying something else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["penalty", "delta", "none"] = "penalty"
    weight: float = Field(2.0, ge=0)  # of delta, or the multiplier penalty starts with
    adaptive: bool = True
    rate: float = Field(2.0, gt=0)
    target: float = Field(0.97, gt=0, le=1)
    limit: float = Field(30.0, gt=0)
    explore: float = Field(0.01, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _published_weight(cls, values: Any) -> Any:
        return {"weight": 30.0} | values if isinstance(values, dict) and values.get("kind") == "delta" else values

    def adapted(self, multiplier: float, compliance: float | None) -> float:
        """The multiplier of the next update, after one with this compliance."""
        if self.kind != "penalty" or not self.adaptive or compliance is None:
            return multiplier
        return min(max(multiplier + self.rate * (self.target - compliance), 0.0), self.limit)


class TrainConfig(BaseModel):
    """One training: a world, a workflow, a learner, a budget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workflow: str = NONE
    units: dict[str, list[str]] | None = None  # another grouping of hosts than the five types
    red_agent: str = "b_line"
    variant: VariantName = "current"
    green: bool = False
    backend: Backend = "simulator"
    cyborg: str | None = None  # backend cyborg: its checkout, if not found otherwise
    max_steps: int = Field(100, ge=1)
    total_episodes: int = Field(20_000, ge=1)
    seed: int = Field(0, ge=0, lt=2**63)
    preset: str = "default"
    ppo: PPOConfig = PRESETS["default"]
    alignment: Alignment = Alignment()
    rule: Rule = "no_higher"
    count_foothold: bool = False
    compliance_threshold: float = Field(0.95, gt=0, le=1)
    min_judged: int = Field(50, ge=1)
    gate_episodes: int = Field(500, ge=2)
    stop_when_compliant: bool = False
    min_episodes: int = Field(0, ge=0)  # before the gate may stop it
    softening: float = Field(0.5, gt=0, le=1)  # of inherited preferences that break the order; 1 = none
    checkpoint_every: int = Field(50, ge=1)  # updates

    @field_validator("red_agent")
    @classmethod
    def _known_red_agent(cls, value: str) -> str:
        return red_agent_spec(value)

    @field_validator("variant", mode="before")
    @classmethod
    def _known_variant(cls, value: str) -> str:
        return check_variant(value)

    @model_validator(mode="after")
    def _workflow_fits(self) -> "TrainConfig":
        _ = self.workflows
        if self.total_episodes < self.ppo.episodes_per_update:
            raise ValueError(
                f"total_episodes ({self.total_episodes}) is less than one update of {self.ppo.episodes_per_update} "
                "episodes; raise it, or use fewer environments"
            )
        transitions = self.max_steps * self.ppo.episodes_per_update
        if self.ppo.minibatches > transitions:
            raise ValueError(f"minibatches ({self.ppo.minibatches}) is more than the {transitions} steps of one update")
        return self

    @property
    def scheme(self) -> UnitScheme | None:
        """How hosts are grouped; None = the policy knows no order."""
        units = FIVE_TYPES if self.units is None else UnitScheme.from_dict(self.units)
        return None if self.workflow == NONE else units

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """The orders played: none, one, or all."""
        scheme = self.scheme
        if scheme is None:
            return ()
        if self.workflow != ALL:
            return (Workflow.parse(self.workflow, scheme),)
        if scheme.size > 6:
            raise ConfigError(f"workflow 'all' needs at most 6 unit types (720 orders), this scheme has {scheme.size}")
        return tuple(all_workflows(scheme))

    @property
    def gate(self) -> Gate:
        return Gate(self.compliance_threshold, self.min_judged)


def make_config(preset: str = "default", ppo: dict[str, Any] | None = None, **settings: Any) -> TrainConfig:
    """A training config from a preset; `ppo` overrides single values of it. Bad values raise ConfigError."""
    if preset == "original":
        settings.setdefault("workflow", NONE)
    with readable_errors():
        return TrainConfig(preset=preset, ppo=preset_ppo(preset, ppo), **preset_alignment(preset, settings))


def preset_alignment(preset: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The published presets learned from `delta`, unless told otherwise."""
    given = settings.get("alignment", {})
    if preset == "default" or not isinstance(given, dict):
        return settings
    return settings | {"alignment": {"kind": "delta"} | given}


def preset_ppo(preset: str, changes: dict[str, Any] | None = None) -> PPOConfig:
    """A preset with some values changed; another number of environments keeps its episodes per environment."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; use {', '.join(PRESETS)}")
    if not isinstance(changes, dict | None):
        raise ConfigError(f"setting 'ppo' must be a table, got {changes!r}")
    given = changes or {}
    values = PRESETS[preset].model_dump() | given
    if "episodes_per_update" not in given and str(given.get("num_envs")).isdigit():  # text, from the environment
        values["episodes_per_update"] = PRESETS[preset].passes * int(given["num_envs"])
    return PPOConfig(**values)


class readable_errors:
    """A `with` block in which pydantic's errors become one ConfigError that names the setting and what came."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            if isinstance(cause, FixfirstError):
                raise cause from None
            name = ".".join(str(part) for part in first["loc"])
            came = "" if isinstance(first["input"], dict) or first["type"] == "missing" else f", got {first['input']!r}"
            message = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{name + ': ' if name else ''}{message}{came if name else ''}") from None
