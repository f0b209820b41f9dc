"""Defenders that need no training, to compare with. See `Player` in `rollout.py` for their interface."""

from collections.abc import Callable, Sequence

import numpy as np

from fixfirst.errors import ConfigError
from fixfirst.game.actions import NUM_ACTIONS, SLEEP, action_id
from fixfirst.game.network import FOOTHOLD, HOST_NAMES, NUM_HOSTS
from fixfirst.orders.workflow import Workflow
from fixfirst.play.rollout import Player, PolicyTable

_RESTORE = np.array([action_id("Restore", host) for host in HOST_NAMES])
_REMOVE = np.array([action_id("Remove", host) for host in HOST_NAMES])


def _certain(actions: np.ndarray) -> np.ndarray:
    """Actions [M] as probabilities [M, 145]."""
    return np.eye(NUM_ACTIONS)[actions]


def _on_first(hosts: np.ndarray, action_of_host: np.ndarray) -> np.ndarray:
    """The action on the lowest-numbered host of hosts [M, 13] bool, else Sleep."""
    return np.where(hosts.any(axis=1), action_of_host[hosts.argmax(axis=1)], SLEEP)


def _beliefs(inputs: np.ndarray) -> np.ndarray:
    """[M, 13, 2] what blue believes of each host: 00 clean, 10 unknown, 01 user, 11 privileged."""
    return np.asarray(inputs[:, : 4 * NUM_HOSTS].reshape(-1, NUM_HOSTS, 4)[:, :, 2:] > 0)


def sleep(inputs: np.ndarray) -> np.ndarray:
    """Do nothing."""
    return _certain(np.full(len(inputs), SLEEP))


def random(inputs: np.ndarray) -> np.ndarray:
    """Any of the 145 actions."""
    return np.full((len(inputs), NUM_ACTIONS), 1 / NUM_ACTIONS)


def react_restore(inputs: np.ndarray) -> np.ndarray:
    """Restore the first host that is not believed clean."""
    return _certain(_on_first(np.asarray(_beliefs(inputs).any(axis=2)), _RESTORE))


def react_remove(inputs: np.ndarray) -> np.ndarray:
    """Remove on the first host believed to be held."""
    return _certain(_on_first(_beliefs(inputs)[:, :, 1], _REMOVE))


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
        return np.where(needs.any(axis=1), _RESTORE[ranks.argmin(axis=1)], SLEEP)


_BY_OBSERVATION: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sleep": sleep,
    "random": random,
    "react-restore": react_restore,
    "react-remove": react_remove,
}
BASELINES = (*_BY_OBSERVATION, "priority-restore")


def make_baseline(name: str, workflows: Sequence[Workflow] = ()) -> Player:
    """A baseline by name; `priority-restore` follows the given workflow."""
    if name == "priority-restore":
        if not workflows:
            raise ConfigError("priority-restore follows an order: give one with --workflow")
        return PriorityRestore(workflows)
    if name not in _BY_OBSERVATION:
        raise ConfigError(f"unknown baseline {name!r}; use {', '.join(BASELINES)}")
    return PolicyTable(_BY_OBSERVATION[name], workflows)
