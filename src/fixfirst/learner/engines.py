"""Which learner a config asks for. PyTorch is an extra, and takes seconds to import: only who needs it waits for it."""

from fixfirst.base.checks import needs_torch
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.interface import Learner
from fixfirst.learner.ppo import PPO
from fixfirst.policy.spec import PolicySpec


def make_learner(config: PPOConfig, spec: PolicySpec, seed: int) -> Learner:
    """The learner that a config asks for."""
    if config.uses_torch:
        learner: Learner = needs_torch("fixfirst.learner.torch_ppo", asked_by(config)).TorchPPO(config, spec, seed)
        return learner
    return PPO(config, spec, seed)


def asked_by(config: PPOConfig) -> str:
    """Who asks for PyTorch."""
    return f"engine {config.engine!r} with minibatches={config.minibatches}"
