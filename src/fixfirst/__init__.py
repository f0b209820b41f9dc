"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?"""

from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

import gymnasium as _gym

from fixfirst.cyborg.backends import CyborgVecEnv, make_vec
from fixfirst.errors import (
    ActionError,
    ConfigError,
    ConformanceError,
    CyborgError,
    FixfirstError,
    PolicyError,
    ResetNeeded,
    RunDirError,
    WorkerError,
    WorkflowError,
    WorldError,
)
from fixfirst.game.gym_env import Cage2, VecCage2
from fixfirst.orders.workflow import UnitScheme, Workflow

if TYPE_CHECKING:  # PyTorch takes seconds to import: these come when they are first used
    from fixfirst.learner.checkpoint import Policy, load_policy
    from fixfirst.learner.config import TrainConfig, make_config
    from fixfirst.learner.train_run import start as train
    from fixfirst.play.evaluation import evaluate

__version__ = "0.1.0"
__all__ = [
    "ActionError",
    "Cage2",
    "ConfigError",
    "ConformanceError",
    "CyborgError",
    "CyborgVecEnv",
    "FixfirstError",
    "Policy",
    "PolicyError",
    "ResetNeeded",
    "RunDirError",
    "TrainConfig",
    "UnitScheme",
    "VecCage2",
    "WorkerError",
    "Workflow",
    "WorkflowError",
    "WorldError",
    "evaluate",
    "load_policy",
    "make_config",
    "make_vec",
    "train",
]

_LAZY = {
    "Policy": ("fixfirst.learner.checkpoint", "Policy"),
    "TrainConfig": ("fixfirst.learner.config", "TrainConfig"),
    "evaluate": ("fixfirst.play.evaluation", "evaluate"),
    "load_policy": ("fixfirst.learner.checkpoint", "load_policy"),
    "make_config": ("fixfirst.learner.config", "make_config"),
    "train": ("fixfirst.learner.train_run", "start"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(_import(module), attribute)
    raise AttributeError(f"module 'fixfirst' has no attribute {name!r}")


_ENVS = "fixfirst.game.gym_env"
_gym.register(id="fixfirst/Cage2-v0", entry_point=f"{_ENVS}:Cage2", vector_entry_point=f"{_ENVS}:VecCage2")
