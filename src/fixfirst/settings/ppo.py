"""How one update of PPO learns, by the names that the field has for its numbers."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fixfirst.base import arguments, errors

Schedule = Literal["constant", "linear"]
Beta = Annotated[float, Field(ge=0, lt=1)]


class PPOConfig(arguments.Settings):
    """How one update learns. A batch is what one update sees: `episodes_per_update` whole episodes."""

    n_envs: int = Field(50, ge=1, description="Environments side by side.")
    episodes_per_update: int = Field(50, ge=1, description="What one update learns from; a multiple of --n-envs.")
    growth: tuple[tuple[int, int], ...] = Field(
        (), description="Growing updates: pairs of (from so many episodes on, times --episodes-per-update), in a file."
    )
    epochs: int = Field(4, ge=1, description="Passes over an update's episodes.")
    row_parts: int = Field(1, ge=1, description="Parts an epoch is cut into, by observations.")
    returns: Literal["monte_carlo", "gae"] = Field("gae", description="How advantages are computed.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="Lambda of GAE.")
    bootstrap: bool = Field(True, description="With gae: count the value of the state at the step limit.")
    gamma: float = Field(0.99, gt=0, le=1, description="Discount per step.")
    clip_coef: float = Field(0.2, gt=0, description="How far an update may move a probability, as a ratio.")
    ent_coef: float = Field(0.003, ge=0, description="Weight of the entropy bonus.")
    entropy_schedule: Schedule = Field("constant", description="linear: down to 0 over the budget.")
    vf_coef: float = Field(0.5, ge=0, description="Weight of the value loss.")
    max_grad_norm: float = Field(0.5, gt=0, description="Gradients are clipped to this norm.")
    learning_rate: float = Field(0.002, gt=0, description="Learning rate of Adam.")
    lr_schedule: Schedule = Field("constant", description="linear: down to --lr-final over the budget.")
    lr_final: float = Field(0.0, ge=0, le=1, description="Share of the learning rate that is left at the end, if linear.")
    settle: float = Field(0.0, ge=0, lt=1, description="Share of the budget, at its end, with the final values.")
    norms_apart: bool = Field(False, description="Clip the gradients of actor and critic separately.")
    restore_cost_warmup_episodes: int = Field(
        0, ge=0, description="Episodes over which the price of Restore rises from 0 to 1 in training; 0 = at once."
    )
    adam_betas: tuple[Beta, Beta] = Field((0.9, 0.99), description="Decay rates of Adam.")
    last_layer: float = Field(
        1.0, gt=0, description="Factor on the first weights of the last layers; a small one makes all actions likely."
    )
    reward_scale: float = Field(0.1, gt=0, description="The learner sees rewards times this.")

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

    @property
    def num_envs(self) -> int:
        """`n_envs`, as Gymnasium calls it."""
        return self.n_envs

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
        return self.ent_coef * (1.0 if self.entropy_schedule == "constant" else 1.0 - self.schedule_progress(progress))

    def learning_rate_at(self, progress: float) -> float:
        """At this share of all updates."""
        fall = 0.0 if self.lr_schedule == "constant" else self.schedule_progress(progress) * (1.0 - self.lr_final)
        return self.learning_rate * (1.0 - fall)

    def schedule_progress(self, progress: float) -> float:
        """Return how far the schedules have come at this share of all updates."""
        return min(progress / (1.0 - self.settle), 1.0)
