"""Which learner a config asks for. PyTorch is an extra, and takes seconds to import: only who needs it waits for it."""

from importlib import import_module
from types import ModuleType

from fixfirst.errors import ConfigError
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.interface import Learner
from fixfirst.learner.ppo import PPO
from fixfirst.play.role import Role


def make_learner(config: PPOConfig, role: Role, seed: int) -> Learner:
    """The learner that a config asks for."""
    if config.uses_torch:
        learner: Learner = torch_twin(asked_by(config)).TorchPPO(config, role, seed)
        return learner
    return PPO(config, role, seed)


def asked_by(config: PPOConfig) -> str:
    """Who asks for PyTorch."""
    return f"engine {config.engine!r} with minibatches={config.minibatches}"


def torch_twin(asked: str) -> ModuleType:
    """What needs PyTorch. asked: by what, for the error."""
    try:
        return import_module("fixfirst.learner.torch_ppo")
    except ModuleNotFoundError as e:
        raise ConfigError(f"{asked} needs PyTorch, which is not installed: pip install 'fixfirst[torch]'") from e
