"""PPO with PyTorch: the readable twin of the compiled learner, for minibatches and for networks of your own.

T steps, B episodes of one update, M = T * B transitions, U = distinct rows, A = 145 actions.

The networks see each distinct row once per epoch; every transition gathers its log-probability and value from its row, and
its gradient flows back there: the mathematics of one row per transition, with less work. The bits of the result
depend on the CPU (PyTorch chooses among several versions of its code); those of the compiled learner do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from fixfirst.learner.batch import distinct_rows, targets
from fixfirst.learner.ppo import UpdateStats, initial_weights, named_moments, part_of, saved_steps
from fixfirst.play.rollout import Rollout
from fixfirst.policy import answers
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.policy.torch_network import ActorCritic
from fixfirst.settings.training import PPOConfig

LOWEST = -1e9  # the logit of a masked choice; its probability is 0, and so is its share of the entropy

# ---------------------------------------------------------------- networks


class ActorAndCritic(Protocol):
    """Any module with these two: inputs [M, I] -> logits [M, 145], and inputs [M, I] -> values [M, 1]."""

    actor: nn.Module
    critic: nn.Module

    def parameters(self) -> Iterator[nn.Parameter]: ...


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
class Batch:
    """M transitions over their distinct rows."""

    inputs: Tensor  # [U, I]
    row: Tensor  # [M] int64
    action: Tensor  # [M] int64
    counts: Tensor  # [U] how many transitions share a row
    after: Tensor  # [B, I] what was seen after the last step
    forbidden: Tensor | None = None  # [U, A] bool: choices that are masked


def make_batch(rollout: Rollout, spec: PolicySpec) -> Batch:
    """Return the distinct rows of a rollout."""
    seen = distinct_rows(rollout)
    inputs, allowed = torch.from_numpy(bits_of(seen.rows, spec.inputs)), spec.allowed(seen.rows[: seen.used])
    row = torch.from_numpy(seen.found[:-1].ravel())
    return Batch(
        inputs=inputs[: seen.used],
        row=row,
        action=torch.from_numpy(rollout.choices.ravel().astype(np.int64)),
        counts=torch.bincount(row, minlength=seen.used).to(torch.float32),
        after=inputs[torch.from_numpy(seen.found[-1])],
        forbidden=torch.from_numpy(~allowed) if len(allowed) else None,
    )


def log_probabilities(net: ActorAndCritic, batch: Batch) -> Tensor:
    """[U, A] of every choice in every row."""
    logits = net.actor(batch.inputs)
    if batch.forbidden is not None:
        logits = logits.masked_fill(batch.forbidden, LOWEST)
    return torch.log_softmax(logits, dim=1)


def update(
    net: ActorAndCritic,
    optimiser: Optimiser,
    config: PPOConfig,
    rollout: Rollout,
    rewards: np.ndarray,
    spec: PolicySpec,
    *,
    seed: int,
    entropy: float | None = None,
) -> UpdateStats:
    """Improve the networks on a rollout.

    rewards [T, B]: what the learner sees, alignment included. seed: of minibatches. entropy: instead of the config's.
    """
    if entropy is not None:
        config = config.model_copy(update={"entropy": entropy})
    batch = make_batch(rollout, spec)
    with torch.no_grad():
        old_log_probs = _chosen(log_probabilities(net, batch), batch.row, batch.action)
        values = net.critic(batch.inputs).squeeze(1)[batch.row].reshape(rewards.shape)
        values = torch.cat([values, net.critic(batch.after).T])
    advantages, returns = (
        torch.from_numpy(array.astype(np.float32).ravel()) for array in targets(config, rewards, values.numpy())
    )

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
    net: ActorAndCritic,
    optimiser: Optimiser,
    config: PPOConfig,
    batch: Batch,
    chosen: Tensor | None,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
) -> tuple[Tensor, ...]:
    """Take one step on all transitions, or on the chosen ones [m]."""
    row, action, counts = batch.row, batch.action, batch.counts
    if chosen is not None:
        row, action = row[chosen], action[chosen]
        counts = torch.bincount(row, minlength=len(batch.inputs)).to(torch.float32)
        old_log_probs, advantages, returns = old_log_probs[chosen], advantages[chosen], returns[chosen]
    log_probs = log_probabilities(net, batch)  # [U, A]
    values = net.critic(batch.inputs).squeeze(1)  # [U]
    log_ratio = _chosen(log_probs, row, action) - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value_loss = (values.index_select(0, row) - returns).square().mean()
    entropy = -((log_probs.exp() * log_probs).sum(dim=1) * counts).sum() / len(row)
    loss = policy_loss + config.value_weight * value_loss - config.entropy * entropy

    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    for part in (net.actor.parameters(), net.critic.parameters()) if config.norms_apart else (net.parameters(),):
        torch.nn.utils.clip_grad_norm_(part, config.max_grad_norm)
    optimiser.step()
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()  # Schulman's low-variance estimate
        clip_fraction = ((ratio - 1).abs() > config.clip).to(torch.float32).mean()
    return policy_loss.detach(), value_loss.detach(), entropy.detach(), approx_kl, clip_fraction


def _chosen(log_probs: Tensor, row: Tensor, action: Tensor) -> Tensor:
    """[m] log-probability of each transition's action, from log_probs [U, A]."""
    return log_probs.reshape(-1).index_select(0, row * log_probs.shape[1] + action)


# ---------------------------------------------------------------- update after update


class TorchPPO:
    """The learner of PyTorch; see `Learner`. net: one of your own (`ActorAndCritic`) instead of the usual networks."""

    def __init__(self, config: PPOConfig, spec: PolicySpec, seed: int, net: nn.Module | None = None):
        torch.set_num_threads(1)  # spinning thread pools lose at these sizes
        self.config, self.spec = config, spec
        self.net: Any = net if net is not None else ActorCritic(spec.inputs, spec.actions)
        self.optimiser = Adam(self.net, config.learning_rate, config.adam_betas)
        self._network = Network.zeros(spec.inputs, spec.actions)  # a copy, to play with
        self.policy: Network | answers.Probabilities = self._network if net is None else self._probabilities
        if net is None:
            self.start_from(initial_weights(spec.inputs, seed, spec.actions, config.last_layer))

    @torch.no_grad()
    def _probabilities(self, inputs: np.ndarray) -> np.ndarray:
        return torch.softmax(self.net.actor(torch.from_numpy(inputs)), dim=1).numpy()

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """See `Learner`. They share PyTorch's memory."""
        return {name: tensor.detach().numpy() for name, tensor in self.net.state_dict().items()}

    @property
    def is_sound(self) -> bool:
        """See `Learner`."""
        return all(np.isfinite(array).all() for array in self.weights.values())

    def start_from(self, weights: Weights) -> None:
        """See `Learner`."""
        self.net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
        self._follow()

    def _follow(self) -> None:
        if self.policy is self._network:
            self._network.vector[:] = Network.of(self.weights).vector

    def update(self, rollout: Rollout, rewards: np.ndarray, *, entropy: float, progress: float, seed: int) -> UpdateStats:
        """See `Learner`."""
        self.optimiser.learning_rate = self.config.learning_rate_at(progress)
        stats = update(self.net, self.optimiser, self.config, rollout, rewards, self.spec, seed=seed, entropy=entropy)
        self._follow()
        return stats

    def tensors(self) -> dict[str, np.ndarray]:
        """See `Learner`."""
        first, second = (
            {name: tensor.numpy() for name, tensor in zip(self.optimiser.names, self.optimiser.moments[moment], strict=True)}
            for moment in ("exp_avg", "exp_avg_sq")
        )
        weights = {f"net.{name}": array for name, array in self.weights.items()}
        return weights | named_moments(first, second, float(self.optimiser.moments["step"][0]))

    def restore(self, tensors: Weights) -> None:
        """See `Learner`."""
        steps = saved_steps(tensors)
        self.start_from(part_of(tensors, "net."))
        for moment in ("exp_avg", "exp_avg_sq"):
            saved = part_of(tensors, f"adam.{moment}.")
            self.optimiser.moments[moment] = [torch.from_numpy(saved[name].copy()) for name in self.optimiser.names]
        self.optimiser.moments["step"] = [torch.tensor(float(steps)) for _ in self.optimiser.names]
