"""How attackers learn, and how a defender is trained against a population of them (a league)."""

from functools import cached_property
from typing import Any

from pydantic import Field

from fixfirst.game import parts
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.resolve import NamedSettings

_BOTH: dict[str, Any] = {"epochs": 4, "row_parts": 2, "norms_apart": True}
_BOTH |= {"lr_schedule": "linear", "lr_final": 0.05, "entropy_schedule": "linear"}
RED_PPO = PPOConfig(**_BOTH, growth=((10_000, 2), (25_000, 5)), learning_rate=0.003, ent_coef=0.05, last_layer=0.1)


class LeagueConfig(NamedSettings):
    """How a defender is trained against a population of attackers."""

    variant: parts.VariantName = Field("current", description="Which release of the challenge is played.")
    updates: int = Field(900, ge=1, description="Updates of the defender.")
    live: int = Field(6, ge=1, description="Attackers trained in parallel (per order).")
    lapsing: int = Field(2, ge=0, description="How many of these meet a defender that sleeps for some turns of an episode.")
    life: int = Field(
        50,
        ge=1,
        description="Updates of a round, after which a live attacker is frozen and another begins.",
    )
    frozen: int = Field(12, ge=0, description="Frozen attackers that are met in every update.")
    frozen_envs: int = Field(20, ge=1, description="Episodes against each of these in every update.")
    responses: int = Field(4, ge=0, description="Attackers that learn against the defender as it is at the end of a round.")
    response_episodes: int = Field(4_000, ge=50, description="Episodes of each of those.")
    envs: int = Field(40, ge=1, description="Episodes against each live attacker in every update.")
    script_envs: int = Field(400, ge=1, description="Episodes against the scripts in every update.")
    scripts: str = Field("b_line:0.6,meander:0.3,sleep:0.1", description="Which scripts, and how often each is met.")
    matrix_episodes: int = Field(200, ge=2, description="Episodes of every defender and attacker of the matrix.")
    counts: bool = Field(True, description="The defender also counts break-ins and Restores.")
    learning_rate: float = Field(0.002, gt=0, description="The defender's, falling to a twentieth.")
    ent_coef: float = Field(0.03, ge=0, description="The defender's entropy bonus, falling to 0.")
    average: float = Field(
        0.99, ge=0, lt=1, description="Share of the updates before in the average that is kept; 0: the last update alone."
    )
    initial_logit_scale: float = Field(
        0.2, gt=0, le=1, description="Factor on the logits with which the defender begins; below 1 it explores more."
    )
    preference: float = Field(4.0, ge=0, description="By how much a new attacker prefers one host, as a logit.")
    picky: bool = Field(False, description="Attackers name their exploit.")
    seed: int = Field(0, ge=0, lt=2**63, description="The same seed gives the same results.")

    @property
    def episodes(self) -> int:
        """Of one update, once there are enough frozen attackers."""
        return self.script_envs + self.live * self.envs + self.frozen * self.frozen_envs

    @property
    def rounds(self) -> int:
        """How many there are; the last may be shorter."""
        return -(-self.updates // self.life)

    @property
    def total_episodes(self) -> int:
        """Of all updates and responses."""
        return self.updates * self.episodes + self.rounds * self.responses * self.response_episodes

    @property
    def blue_ppo(self) -> PPOConfig:
        """How the defender learns."""
        return PPOConfig(**_BOTH, learning_rate=self.learning_rate, ent_coef=self.ent_coef)

    @cached_property
    def red_ppo(self) -> PPOConfig:
        """How an attacker learns in its life."""
        return RED_PPO.model_copy(update={"n_envs": self.envs, "episodes_per_update": self.envs, "growth": ()})
