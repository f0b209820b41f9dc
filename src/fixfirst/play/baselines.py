"""Defenders that need no training, to compare with. See `Player` in `rollout.py` for their interface."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from fixfirst.errors import ConfigError, shown
from fixfirst.game.actions import NUM_ACTIONS, SLEEP
from fixfirst.game.defenders import RESTORE, Defender, react_remove, react_restore, sleep
from fixfirst.game.network import FOOTHOLD, NUM_HOSTS
from fixfirst.game.state import OBSERVATION_BITS
from fixfirst.orders.workflow import Workflow
from fixfirst.play.policy_table import PolicyTable, Probabilities
from fixfirst.play.rollout import Player


def _certain(defender: Defender) -> Probabilities:
    """A defender's actions as probabilities; it reads the observation and ignores the workflow behind it."""
    return lambda inputs: np.eye(NUM_ACTIONS)[defender(inputs[:, :OBSERVATION_BITS])]


def _random(inputs: np.ndarray) -> np.ndarray:
    """Any of the 145 actions."""
    return np.full((len(inputs), NUM_ACTIONS), 1 / NUM_ACTIONS)


class PriorityRestore:
    """Sees the truth: restores a host of the highest unit type that needs repair, the lowest-numbered first."""

    def __init__(self, workflows: Sequence[Workflow]):
        host_unit = np.array(workflows[0].scheme.host_unit)
        self._host_ranks = np.array([w.ranks[host_unit] for w in workflows])  # [W, 13]

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        needs = access > 0
        needs[:, FOOTHOLD] = False
        ranks = np.where(needs, self._host_ranks[assigned], NUM_HOSTS)
        return np.where(needs.any(axis=1), RESTORE[ranks.argmin(axis=1)], SLEEP)


_BY_OBSERVATION: Mapping[str, Probabilities] = MappingProxyType(
    {
        "sleep": _certain(sleep),
        "random": _random,
        "react-restore": _certain(react_restore),
        "react-remove": _certain(react_remove),
    }
)
BASELINES = (*_BY_OBSERVATION, "priority-restore")


def make_baseline(name: str, workflows: Sequence[Workflow] = ()) -> Player:
    """A baseline by name; `priority-restore` follows the given workflow."""
    if name == "priority-restore":
        if not workflows:
            raise ConfigError("priority-restore follows an order: give one with --workflow")
        return PriorityRestore(workflows)
    if name not in _BY_OBSERVATION:
        raise ConfigError(f"unknown baseline {shown(name)}; use {', '.join(BASELINES)}")
    return PolicyTable(_BY_OBSERVATION[name], workflows)
