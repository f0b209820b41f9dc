"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?"""

import gymnasium as _gym

from fixfirst.cage2.vec_env import Cage2, VecCage2
from fixfirst.cyborg.cyborg_env import CyborgVecEnv, make_vec
from fixfirst.errors import (
    ActionError,
    ConformanceError,
    CyborgError,
    FixfirstError,
    ResetNeeded,
    WorkerError,
    WorkflowError,
    WorldError,
)
from fixfirst.workflow import UnitScheme, Workflow

__version__ = "0.1.0"
__all__ = [
    "ActionError",
    "Cage2",
    "ConformanceError",
    "CyborgError",
    "CyborgVecEnv",
    "FixfirstError",
    "ResetNeeded",
    "UnitScheme",
    "VecCage2",
    "WorkerError",
    "Workflow",
    "WorkflowError",
    "WorldError",
    "make_vec",
]

_ENVS = "fixfirst.cage2.vec_env"
_gym.register(id="fixfirst/Cage2-v0", entry_point=f"{_ENVS}:Cage2", vector_entry_point=f"{_ENVS}:VecCage2")
