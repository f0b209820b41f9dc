"""How one defender is trained for any network: on many that are drawn, and on orders that are drawn."""

from functools import cached_property

from pydantic import Field

from fixfirst.game import parts
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.resolve import NamedSettings


class UniversalConfig(NamedSettings):
    """How one defender is trained for any network."""

    variant: parts.VariantName = Field("current", description="Which release of the challenge is played.")
    red_agent: str = Field("b_line:0.6,meander:0.4", description="Which attackers, and how often each is met.")
    networks: int = Field(248, ge=1, description="Networks that are drawn, of 6 to 30 machines.")
    first_network: int = Field(5_000, ge=0, lt=2**62, description="The seed of the first one.")
    side_by_side: int = Field(18, ge=1, description="Networks of an update; twice as many from half of the episodes on.")
    envs: int = Field(8, ge=1, description="Episodes on each of these.")
    total_episodes: int = Field(250_000, ge=1, description="Episodes of the training.")
    ordered: float = Field(0.7, ge=0, le=1, description="Share of episodes with an order, once there are any.")
    ordered_from: float = Field(0.05, ge=0, le=1, description="Share of the training after which there are orders.")
    free_restores: float = Field(0.04, ge=0, le=1, description="Share of the training in which Restore costs nothing.")
    learning_rate: float = Field(0.0025, gt=0, description="Learning rate of Adam, falling to a twentieth.")
    ent_coef: float = Field(0.01, ge=0, description="Weight of the entropy bonus, falling to a 25th.")
    epochs: int = Field(3, ge=1, description="Passes over an update's episodes.")
    row_parts: int = Field(3, ge=1, description="Parts that an epoch is cut into, times the growth of the update.")
    seed: int = Field(0, ge=0, lt=2**63, description="The same seed gives the same results.")

    @cached_property
    def ppo(self) -> PPOConfig:
        """How an update learns."""
        return PPOConfig(
            epochs=self.epochs,
            row_parts=self.row_parts,
            learning_rate=self.learning_rate,
            lr_schedule="linear",
            lr_final=0.05,
            adam_betas=(0.9, 0.999),
        )

    def growth_at(self, progress: float) -> int:
        """Return how many times larger updates are: late ones need less noise."""
        return 1 if progress < 0.5 else 2 if progress < 0.8 else 3

    def entropy_at(self, progress: float) -> float:
        """Return the entropy bonus at this share of the training."""
        return self.ent_coef * (1 - 0.96 * progress)
