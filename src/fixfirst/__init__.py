"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?"""

import gymnasium as _gym

from fixfirst.cage2.vec_env import Cage2, VecCage2
from fixfirst.errors import ActionError, ConformanceError, FixfirstError, ResetNeeded, WorkflowError, WorldError
from fixfirst.workflow import UnitScheme, Workflow

__version__ = "0.1.0"
__all__ = [
    "ActionError",
    "Cage2",
    "ConformanceError",
    "FixfirstError",
    "ResetNeeded",
    "UnitScheme",
    "VecCage2",
    "Workflow",
    "WorkflowError",
    "WorldError",
    "make_vec",
]

make_vec = VecCage2

_ENVS = "fixfirst.cage2.vec_env"
_gym.register(id="fixfirst/Cage2-v0", entry_point=f"{_ENVS}:Cage2", vector_entry_point=f"{_ENVS}:VecCage2")
