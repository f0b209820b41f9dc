"""Which learner a config asks for."""

from fixfirst.errors import ConfigError
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.interface import Learner
from fixfirst.learner.ppo import PPO


def make_learner(config: PPOConfig, num_inputs: int, seed: int) -> Learner:
    """The learner that a config asks for."""
    if config.uses_torch:
        try:
            from fixfirst.learner.torch_ppo import TorchPPO  # PyTorch is an extra, and takes seconds to import
        except ModuleNotFoundError as e:
            raise ConfigError(
                f"engine {config.engine!r} with minibatches={config.minibatches} learns with PyTorch, which is not "
                "installed: pip install 'fixfirst[torch]'"
            ) from e
        return TorchPPO(config, num_inputs, seed)
    return PPO(config, num_inputs, seed)
