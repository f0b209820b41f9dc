"""PPO (Schulman et al. 2017) over whole episodes, on distinct rows.

T steps, B episodes of one update, M = T * B transitions, U = distinct (observation, workflow) rows, A = 145 actions.
CAGE2 episodes end by their step limit only: the end is a truncation, and no return runs across it.

The networks see each distinct row once per epoch; every transition gathers its log-probability and value from its row, and
its gradient flows back there. This is the same mathematics as one row per transition (`engine="plain"`), only less work.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from fixfirst.game import NUM_ACTIONS
from fixfirst.learner.config import Engine, PPOConfig
from fixfirst.learner.networks import HIDDEN, Weights
from fixfirst.play import Rollout, inputs_of, row_keys, workflow_bits

# ---------------------------------------------------------------- networks


class ActorCritic(nn.Module):
    """Separate networks (`networks.py`): what to do, and how much reward is still to come."""

    def __init__(self, num_inputs: int, seed: int):
        super().__init__()
        self.actor = _network(num_inputs, NUM_ACTIONS)
        self.critic = _network(num_inputs, 1)
        generator = torch.Generator().manual_seed(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = 1 / math.sqrt(layer.in_features)
                nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)


def _network(num_inputs: int, num_outputs: int) -> nn.Sequential:
    layers = nn.Linear(num_inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, num_outputs)
    return nn.Sequential(*layers)


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


# ---------------------------------------------------------------- Adam


class Optimiser(Protocol):
    """What a gradient step needs; all of PyTorch's have it."""

    def zero_grad(self, set_to_none: bool = True) -> None: ...

    def step(self) -> Any: ...


class Adam:
    """The bits of `torch.optim.Adam(fused=True)`, which would import PyTorch's compiler: 1.5 s in every process."""

    def __init__(self, net: nn.Module, learning_rate: float, betas: tuple[float, float]):
        self.names, self._parameters = (list(part) for part in zip(*net.named_parameters(), strict=True))
        self.learning_rate, self._betas = learning_rate, betas
        # As PyTorch calls them: name -> one tensor per parameter.
        self.moments = {name: [torch.zeros_like(p) for p in self._parameters] for name in ("exp_avg", "exp_avg_sq")}
        self.moments["step"] = [torch.zeros(()) for _ in self._parameters]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        steps, gradients = self.moments["step"], [parameter.grad for parameter in self._parameters]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            self._parameters,
            gradients,
            self.moments["exp_avg"],
            self.moments["exp_avg_sq"],
            [],
            steps,
            lr=self.learning_rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


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
    optimiser: Optimiser,
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
    optimiser: Optimiser,
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


# ---------------------------------------------------------------- update after update


class PPO:
    """Networks and optimiser of one training. Everything in and out is NumPy."""

    def __init__(self, config: PPOConfig, num_inputs: int, seed: int):
        torch.set_num_threads(1)  # spinning thread pools lose at these sizes
        self.config = config
        self.net = ActorCritic(num_inputs, seed)
        self.optimiser = Adam(self.net, config.learning_rate, config.adam_betas)

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """All weights by name, sharing the network's memory."""
        return {name: tensor.detach().numpy() for name, tensor in self.net.state_dict().items()}

    def start_from(self, weights: Weights) -> None:
        """Take over another policy's weights."""
        self.net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})

    def update(self, rollout: Rollout, rewards: np.ndarray, *, entropy: float, progress: float, seed: int) -> UpdateStats:
        """Improve on a rollout; see `update`. progress in [0, 1]: share of the episode budget used."""
        factor = 1.0 if self.config.lr_schedule == "constant" else max(1.0 - progress, 0.0)
        self.optimiser.learning_rate = self.config.learning_rate * factor
        return update(self.net, self.optimiser, self.config, rollout, rewards, seed=seed, entropy=entropy)

    def tensors(self) -> dict[str, np.ndarray]:
        """Weights and the optimiser's moments, by name: all that `restore` needs."""
        arrays = {f"net.{name}": array for name, array in self.weights.items()}
        for moment, tensors in self.optimiser.moments.items():
            arrays |= {f"adam.{moment}.{name}": t.numpy() for name, t in zip(self.optimiser.names, tensors, strict=True)}
        return arrays

    def restore(self, tensors: Weights) -> None:
        """Go on from saved tensors."""
        self.start_from({name.removeprefix("net."): a for name, a in tensors.items() if name.startswith("net.")})
        for moment in self.optimiser.moments:
            saved = (tensors[f"adam.{moment}.{name}"] for name in self.optimiser.names)
            self.optimiser.moments[moment] = [torch.from_numpy(array.copy()) for array in saved]
