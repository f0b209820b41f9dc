"""PPO as its formulas say it, by PyTorch's autograd in double precision: the oracle of the compiled learner.

M transitions, one row each; A actions; I inputs.
"""

from typing import NamedTuple

import numpy as np
from late import Late

from fixfirst.learner.batch import targets
from fixfirst.policy.spec import bits_of

torch = Late("torch")


class Seen(NamedTuple):
    """What an update learns from; fixed before its first epoch."""

    inputs: "torch.Tensor"  # [M + B, I], those after the last step included
    allowed: np.ndarray  # [M + B, A], or empty where nothing is masked
    action: "torch.Tensor"  # [M]
    old_log_probs: "torch.Tensor"  # [M] of these actions
    advantages: "torch.Tensor"  # [M]
    returns: "torch.Tensor"  # [M]


def losses(log_probs, values, seen, clip_coef):
    """Policy loss, value loss, entropy, approximate KL and share of clipped ratios. log_probs [M, A], values [M]."""
    log_ratio = log_probs.gather(1, seen.action[:, None])[:, 0] - seen.old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    policy_loss = -torch.minimum(ratio * seen.advantages, clipped * seen.advantages).mean()
    value_loss = (values - seen.returns).square().mean()
    entropy = -(log_probs.exp() * log_probs.clamp(min=-1e9)).sum(dim=1).mean()
    outside = ((ratio - 1).abs() > clip_coef).double().mean()
    return policy_loss, value_loss, entropy, (ratio - 1 - log_ratio).mean(), outside


class Oracle:
    """Networks and optimiser. config: a training's; weights: by name, as policy files hold them."""

    def __init__(self, config, weights):
        self.config, self.ppo = config, config.ppo
        self.weights = {
            name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in weights.items()
        }
        betas = self.ppo.adam_betas
        self._optimiser = torch.optim.Adam(self.weights.values(), lr=self.ppo.learning_rate, betas=betas)

    def _forward(self, net, inputs, allowed=()):
        hidden = inputs
        for layer in (0, 2):
            hidden = torch.tanh(hidden @ self.weights[f"{net}.{layer}.weight"].T + self.weights[f"{net}.{layer}.bias"])
        out = hidden @ self.weights[f"{net}.4.weight"].T + self.weights[f"{net}.4.bias"]
        return out.masked_fill(~torch.from_numpy(allowed), -1e30) if len(allowed) else out

    def _log_probs(self, inputs, allowed, m):
        return torch.log_softmax(self._forward("actor", inputs, allowed)[:m], dim=1)

    def see(self, rollout, rewards):
        """What is learned from a rollout that the present weights have played."""
        rows = rollout.rows[rollout.row_ids.ravel()]  # what was read, transition by transition
        inputs = torch.from_numpy(bits_of(rows, self.config.spec.inputs)).double()
        masks = self.config.spec.allowed(rows)
        action = torch.from_numpy(rollout.choices.ravel().astype(np.int64))
        with torch.no_grad():
            values = self._forward("critic", inputs).reshape(rollout.packed_obs.shape).numpy()
            old = self._log_probs(inputs, masks, len(action)).gather(1, action[:, None])[:, 0]
        advantages, returns = (torch.from_numpy(array.ravel()) for array in targets(self.ppo, rewards, values))
        return Seen(inputs, masks, action, old, advantages, returns)

    def differentiate(self, seen, entropy):
        """Fill the gradients of the loss at the present weights; return its statistics."""
        m = len(seen.action)
        log_probs = self._log_probs(seen.inputs, seen.allowed, m)
        statistics = losses(log_probs, self._forward("critic", seen.inputs)[:m, 0], seen, self.ppo.clip_coef)
        policy_loss, value_loss, spread, *_ = statistics
        self._optimiser.zero_grad()
        (policy_loss + self.ppo.vf_coef * value_loss - entropy * spread).backward()
        return [number.item() for number in statistics]

    def update(self, rollout, rewards, entropy):
        """Learn from a rollout in all epochs; return the statistics of the last one."""
        seen = self.see(rollout, rewards)
        nets = [[t for name, t in self.weights.items() if name.startswith(net)] for net in ("actor", "critic")]
        for _ in range(self.ppo.epochs):
            statistics = self.differentiate(seen, entropy)
            for group in nets if self.ppo.norms_apart else [[*nets[0], *nets[1]]]:
                torch.nn.utils.clip_grad_norm_(group, self.ppo.max_grad_norm)
            self._optimiser.step()
        return statistics
