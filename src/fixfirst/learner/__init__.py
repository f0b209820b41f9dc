"""The learner: two small networks, PPO, and everything between a setting and a policy file."""

from fixfirst.learner.config import ALL, NONE, TrainConfig
from fixfirst.learner.networks import Weights
from fixfirst.learner.policy_file import Policy, load_parent, load_policy, policy_folder
from fixfirst.learner.presets import PRESETS
from fixfirst.learner.settings import (
    Place,
    make_config,
    merged,
    nested,
    places,
    readable_errors,
    resolve,
    value_at,
    value_in,
)
from fixfirst.learner.training import Training, Update
from fixfirst.learner.training_run import TrainingRun, interrupts

__all__ = [
    "ALL",
    "NONE",
    "PRESETS",
    "Place",
    "Policy",
    "TrainConfig",
    "Training",
    "TrainingRun",
    "Update",
    "Weights",
    "interrupts",
    "load_parent",
    "load_policy",
    "make_config",
    "merged",
    "nested",
    "places",
    "policy_folder",
    "readable_errors",
    "resolve",
    "value_at",
    "value_in",
]
