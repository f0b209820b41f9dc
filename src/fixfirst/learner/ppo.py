"""PPO (Schulman et al. 2017) over whole episodes, on distinct rows.

T steps, B episodes of one update, M = T * B transitions, U = distinct (observation, workflow) rows, A = 145 actions.
CAGE2 episodes end by their step limit only: the end is a truncation, and no return runs across it.

The networks see each distinct row once per epoch; every transition gathers its log-probability and value from its row, and
its gradient flows back there. This is the same mathematics as one row per transition (`engine="plain"`), only less work.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from fixfirst.learner.networks import ActorCritic
from fixfirst.play.rollout import Rollout, inputs_of, row_keys, workflow_bits

Engine = Literal["auto", "rows", "plain"]
Beta = Annotated[float, Field(ge=0, lt=1)]


class PPOConfig(BaseModel):
    """How one update learns. A batch is what one update sees: `episodes_per_update` whole episodes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_envs: int = Field(50, ge=1)
    episodes_per_update: int = Field(50, ge=1)
    epochs: int = Field(4, ge=1)
    minibatches: int = Field(1, ge=1)  # 1 = the full batch at once
    returns: Literal["monte_carlo", "gae"] = "gae"
    gae_lambda: float = Field(0.95, ge=0, le=1)
    bootstrap: bool = True  # gae: value of the state at the step limit; monte_carlo never has one
    gamma: float = Field(0.99, gt=0, le=1)
    clip: float = Field(0.2, gt=0)
    entropy: float = Field(0.003, ge=0)
    value: float = Field(0.5, ge=0)
    max_grad_norm: float = Field(0.5, gt=0)
    learning_rate: float = Field(0.002, gt=0)
    lr_schedule: Literal["constant", "linear"] = "constant"
    adam_betas: tuple[Beta, Beta] = (0.9, 0.99)
    reward_scale: float = Field(0.1, gt=0)
    engine: Engine = "auto"

    @model_validator(mode="after")
    def _whole_passes(self) -> "PPOConfig":
        if self.episodes_per_update % self.num_envs:
            raise ValueError(
                f"episodes_per_update ({self.episodes_per_update}) must be a multiple of num_envs ({self.num_envs})"
            )
        return self

    @property
    def passes(self) -> int:
        """Episodes of each environment in one update."""
        return self.episodes_per_update // self.num_envs


def _seed_preset(num_envs: int, episodes_per_update: int, epochs: int = 4) -> PPOConfig:
    """The published ways of training: Monte-Carlo returns, normalised over the batch."""
    return PPOConfig(
        num_envs=num_envs,
        episodes_per_update=episodes_per_update,
        epochs=epochs,
        returns="monte_carlo",
        bootstrap=False,
        entropy=0.01,
        reward_scale=1.0,
    )


PRESETS = {
    "sequential": _seed_preset(1, 1),
    "hybrid": _seed_preset(1, 5),
    "parallel-25": _seed_preset(25, 25),
    "parallel-100": _seed_preset(100, 100),
    "original": _seed_preset(1, 200, epochs=6),
    "default": PPOConfig(),
}


# ---------------------------------------------------------------- returns


def discounted_returns(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """[T, B] sum of the episode's rewards from each step on, the later ones discounted."""
    returns = np.empty_like(rewards)
    running = np.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        running = rewards[t] + gamma * running
        returns[t] = running
    return returns


def gae(rewards: np.ndarray, values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """[T, B] advantages (Schulman et al. 2016). values [T + 1, B]; the last row is worth what follows the step limit."""
    deltas = rewards + gamma * values[1:] - values[:-1]
    return discounted_returns(deltas, gamma * lam)


def targets(config: PPOConfig, rewards: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and value targets, both [T, B], from rewards [T, B] and values [T + 1, B]."""
    rewards = (rewards * config.reward_scale).astype(np.float32)
    if config.returns == "monte_carlo":
        returns = discounted_returns(rewards, config.gamma)
        returns = (returns - returns.mean()) / (returns.std() + 1e-7)
        return returns - values[:-1], returns
    if not config.bootstrap:
        values = np.concatenate([values[:-1], np.zeros_like(values[:1])])
    advantages = gae(rewards, values, config.gamma, config.gae_lambda)
    normalised = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return normalised, advantages + values[:-1]


# ---------------------------------------------------------------- one update


@dataclass(frozen=True)
class UpdateStats:
    """How an update went; losses of the last epoch."""

    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    rows: int  # distinct rows
    transitions: int


@dataclass(frozen=True)
class Batch:
    """M transitions over their distinct rows."""

    inputs: Tensor  # [U, I]
    row: Tensor  # [M] int64
    action: Tensor  # [M] int64
    counts: Tensor  # [U] how many transitions share a row
    after: Tensor  # [B, I] what was seen after the last step


def make_batch(rollout: Rollout, engine: Engine) -> Batch:
    """The distinct rows of a rollout, or every row on its own."""
    bits = workflow_bits(rollout.workflows)
    keys = row_keys(rollout.words, rollout.assigned)  # [T + 1, B]
    flat = keys[:-1].ravel()
    distinct, row = np.unique(flat, return_inverse=True)
    if engine == "plain" or (engine == "auto" and 2 * len(distinct) > len(flat)):
        distinct, row = flat, np.arange(len(flat))
    return Batch(
        inputs=torch.from_numpy(inputs_of(distinct, bits)),
        row=torch.from_numpy(row),
        action=torch.from_numpy(rollout.actions.ravel().astype(np.int64)),
        counts=torch.from_numpy(np.bincount(row, minlength=len(distinct)).astype(np.float32)),
        after=torch.from_numpy(inputs_of(keys[-1], bits)),
    )


def update(
    net: ActorCritic,
    optimiser: torch.optim.Optimizer,
    config: PPOConfig,
    rollout: Rollout,
    rewards: np.ndarray,
    *,
    seed: int,
    entropy: float | None = None,
) -> UpdateStats:
    """Improve the networks on a rollout.

    rewards [T, B]: what the learner sees, alignment included. seed: of minibatches. entropy: instead of the config's.
    """
    if entropy is not None:
        config = config.model_copy(update={"entropy": entropy})
    batch = make_batch(rollout, config.engine)
    with torch.no_grad():
        old_log_probs = _chosen(torch.log_softmax(net.actor(batch.inputs), dim=1), batch.row, batch.action)
        values = net.critic(batch.inputs).squeeze(1)[batch.row].reshape(rewards.shape)
        values = torch.cat([values, net.critic(batch.after).T])
    advantages, returns = (torch.from_numpy(a.ravel()) for a in targets(config, rewards, values.numpy()))

    total = len(batch.row)
    generator = torch.Generator().manual_seed(seed % 2**63)
    for _ in range(config.epochs):
        order = torch.randperm(total, generator=generator) if config.minibatches > 1 else None
        for part in range(config.minibatches):
            chosen = (
                None
                if order is None
                else order[part * total // config.minibatches : (part + 1) * total // config.minibatches]
            )
            stats = _gradient_step(net, optimiser, config, batch, chosen, old_log_probs, advantages, returns)
    policy_loss, value_loss, entropy, approx_kl, clip_fraction = (float(s) for s in stats)
    return UpdateStats(policy_loss, value_loss, entropy, approx_kl, clip_fraction, len(batch.inputs), total)


def _gradient_step(
    net: ActorCritic,
    optimiser: torch.optim.Optimizer,
    config: PPOConfig,
    batch: Batch,
    chosen: Tensor | None,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
) -> tuple[Tensor, ...]:
    """One step on all transitions, or on the chosen ones [m]."""
    row, action, counts = batch.row, batch.action, batch.counts
    if chosen is not None:
        row, action = row[chosen], action[chosen]
        counts = torch.bincount(row, minlength=len(batch.inputs)).to(torch.float32)
        old_log_probs, advantages, returns = old_log_probs[chosen], advantages[chosen], returns[chosen]
    log_probs = torch.log_softmax(net.actor(batch.inputs), dim=1)  # [U, A]
    values = net.critic(batch.inputs).squeeze(1)  # [U]
    log_ratio = _chosen(log_probs, row, action) - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value_loss = (values.index_select(0, row) - returns).square().mean()
    entropy = -((log_probs.exp() * log_probs).sum(dim=1) * counts).sum() / len(row)
    loss = policy_loss + config.value * value_loss - config.entropy * entropy

    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), config.max_grad_norm)
    optimiser.step()
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()  # Schulman's low-variance estimate
        clip_fraction = ((ratio - 1).abs() > config.clip).to(torch.float32).mean()
    return policy_loss.detach(), value_loss.detach(), entropy.detach(), approx_kl, clip_fraction


def _chosen(log_probs: Tensor, row: Tensor, action: Tensor) -> Tensor:
    """[m] log-probability of each transition's action, from log_probs [U, A]."""
    return log_probs.reshape(-1).index_select(0, row * log_probs.shape[1] + action)


def make_optimiser(net: ActorCritic, config: PPOConfig) -> torch.optim.Adam:
    return torch.optim.Adam(net.parameters(), lr=config.learning_rate, betas=config.adam_betas, fused=True)


def set_learning_rate(optimiser: torch.optim.Optimizer, config: PPOConfig, progress: float) -> None:
    """progress in [0, 1]: share of the episode budget used."""
    factor = 1.0 if config.lr_schedule == "constant" else max(1.0 - progress, 0.0)
    for group in optimiser.param_groups:
        group["lr"] = config.learning_rate * factor
