"""The learner: two small networks, PPO, and everything between a setting and a policy file."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.learner.checkpoint import delete_checkpoints, restore_checkpoint, save_checkpoint
    from fixfirst.learner.config import ALL, NONE, Course, FlatNames, TrainConfig
    from fixfirst.learner.exporting import SUFFIXES, Target, export_policy
    from fixfirst.learner.policy_file import (
        Order,
        Orders,
        Policy,
        copy_policy,
        load_parent,
        load_policy,
        policy_folder,
        save_policy,
        shipped_policies,
    )
    from fixfirst.learner.presets import PRESETS
    from fixfirst.learner.settings import make_config, merged, nested, places, resolve, value_at, value_in
    from fixfirst.learner.training import Training, check_trainable
    from fixfirst.learner.training_run import TrainingRun, interrupts
else:
    __getattr__, __dir__ = offers(__name__)
