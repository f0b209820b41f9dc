"""Simple defenders: what recordings are played with, what reference numbers were measured with, what policies compare to.

A defender maps observations [N, 52] to actions [N]. Some are plain functions; those that draw, or keep something in mind,
are made anew for every episode, for N environments and a generator. `DEFENDERS` makes each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from fixfirst.base.errors import ConfigError, quoted
from fixfirst.game.actions import NUM_ACTIONS, SLEEP, action_id
from fixfirst.game.scenario import DECOYS, FOOTHOLD, HOST_NAMES, NUM_HOSTS
from fixfirst.game.state import OBSERVATION_BITS
from fixfirst.orders.order import Workflow
from fixfirst.play.rollout import Player
from fixfirst.policy.table import PolicyTable, Probabilities

Defender = Callable[[np.ndarray], np.ndarray]
MakeDefender = Callable[[int, np.random.Generator], Defender]

RESTORE = np.array([action_id("Restore", host) for host in HOST_NAMES])
REMOVE = np.array([action_id("Remove", host) for host in HOST_NAMES])
ANALYSE = np.array([action_id("Analyse", host) for host in HOST_NAMES])
DECOY = np.array([[action_id(f"Decoy{decoy.name}", host) for decoy in DECOYS] for host in HOST_NAMES])  # [H, D]
FULL_DECOYS = ("HarakaSMPT", "Tomcat", "Vsftpd", "Apache")
USEFUL_DECOYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Enterprise0": FULL_DECOYS,
        "Op_Server0": FULL_DECOYS,
        "Enterprise1": ("Femitter",),
        "Enterprise2": ("Femitter",),
        "User1": ("Apache", "Tomcat", "Smss", "Svchost"),
        "User2": ("Femitter", "Tomcat", "Apache", "SSHD"),
        "User3": ("Vsftpd", "SSHD"),
        "User4": ("Vsftpd",),
    }
)
BELIEVED_USER, BELIEVED_PRIVILEGED = 2, 3


def _beliefs(obs: np.ndarray) -> np.ndarray:
    """Per host [N, 13]: 0 clean, 1 unknown, 2 user, 3 privileged."""
    bits = obs.reshape(len(obs), NUM_HOSTS, 4)
    beliefs: np.ndarray = bits[:, :, 2] + 2 * bits[:, :, 3]
    return beliefs


def _first_host(mask: np.ndarray, action_of_host: np.ndarray) -> np.ndarray:
    """The action on the lowest-numbered host of mask [N, 13], or Sleep."""
    return np.where(mask.any(axis=1), action_of_host[mask.argmax(axis=1)], SLEEP)


# ---------------------------------------------------------------- plain functions


def sleep(obs: np.ndarray) -> np.ndarray:
    """Does nothing."""
    return np.full(len(obs), SLEEP)


def react(obs: np.ndarray) -> np.ndarray:
    """Restore the lowest host believed to be held."""
    return _first_host(_beliefs(obs) >= BELIEVED_USER, RESTORE)


def react_restore(obs: np.ndarray) -> np.ndarray:
    """Restore the lowest host that is not believed clean."""
    return _first_host(_beliefs(obs) > 0, RESTORE)


def react_remove(obs: np.ndarray) -> np.ndarray:
    """Remove on the lowest host believed to be held."""
    return _first_host(_beliefs(obs) >= BELIEVED_USER, REMOVE)


# ---------------------------------------------------------------- with chance or memory


def uniform(n: int, rng: np.random.Generator) -> Defender:
    """Any action."""
    return lambda obs: rng.integers(0, NUM_ACTIONS, n)


def opfirst(n: int, rng: np.random.Generator) -> Defender:
    """Restore Op_Server0 in the first step, then sleep."""
    first = iter([np.full(n, action_id("Restore", "Op_Server0"))])
    return lambda obs: next(first, np.full(n, SLEEP))


def decoys(n: int, rng: np.random.Generator) -> Defender:
    """Any decoy anywhere, nothing else."""
    return lambda obs: rng.choice(DECOY.ravel(), n)


def few_hosts(n: int, rng: np.random.Generator) -> Defender:
    """All kinds of actions, but on three hosts only: decoys are placed, scanned, shot at and cleared again and again."""
    hosts = np.array([rng.choice(NUM_HOSTS, 3, replace=False) for _ in range(n)])
    per_host = np.concatenate([ANALYSE[:, None], REMOVE[:, None], RESTORE[:, None], DECOY], axis=1)  # [H, kinds]

    def choose(obs: np.ndarray) -> np.ndarray:
        targets = hosts[np.arange(n), rng.integers(0, 3, n)]
        actions: np.ndarray = per_host[targets, rng.integers(0, per_host.shape[1], n)]
        return actions

    return choose


def busy(n: int, rng: np.random.Generator) -> Defender:
    """Mostly a repair of some host that is not believed clean, sometimes an Analyse or any action."""

    def choose(obs: np.ndarray) -> np.ndarray:
        actions = rng.integers(0, NUM_ACTIONS, n)
        for i, beliefs in enumerate(_beliefs(obs)):
            suspects = np.flatnonzero(beliefs)
            kind = rng.random()
            if kind < 0.7 and len(suspects):
                actions[i] = (REMOVE if kind < 0.35 else RESTORE)[rng.choice(suspects)]
            elif kind < 0.85:
                actions[i] = ANALYSE[rng.integers(NUM_HOSTS)]
        return actions

    return choose


def good_decoy_react(n: int, rng: np.random.Generator) -> Defender:
    """A host shown privileged: Restore, its decoys next; shown held: Remove; else the next useful decoy; else Analyse."""
    useful = {h: [action_id(f"Decoy{d}", h) for d in names] for h, names in USEFUL_DECOYS.items()}
    put_back = useful | {
        "Op_Server0": [action_id(f"Decoy{d}", "Op_Server0") for d in ("HarakaSMPT", "Apache", "Tomcat", "Vsftpd")]
    }
    every = [a for actions in useful.values() for a in actions]
    todo = [list(rng.permutation(every)) for _ in range(n)]

    def choose(obs: np.ndarray) -> np.ndarray:
        actions = np.empty(n, np.int64)
        for i, beliefs in enumerate(_beliefs(obs)):
            privileged, user = np.flatnonzero(beliefs == BELIEVED_PRIVILEGED), np.flatnonzero(beliefs == BELIEVED_USER)
            if len(privileged):
                host = rng.choice(privileged)
                actions[i] = RESTORE[host]
                back = put_back.get(HOST_NAMES[host], [])
                todo[i] = back + [a for a in todo[i] if a not in back]
            elif len(user):
                actions[i] = REMOVE[rng.choice(user)]
            elif todo[i]:
                actions[i] = todo[i].pop(0)
            else:
                actions[i] = ANALYSE[rng.integers(NUM_HOSTS)]
        return actions

    return choose


DEFENDERS: Mapping[str, MakeDefender] = MappingProxyType(
    {
        "sleep": lambda n, rng: sleep,
        "random": uniform,
        "react": lambda n, rng: react,
        "react_restore": lambda n, rng: react_restore,
        "react_remove": lambda n, rng: react_remove,
        "opfirst": opfirst,
        "decoys": decoys,
        "few_hosts": few_hosts,
        "busy": busy,
        "good_decoy_react": good_decoy_react,
    }
)


# ---------------------------------------------------------------- baselines
# Defenders that need no training, to compare with. See `Player` in `rollout.py` for their interface.


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
        raise ConfigError(f"unknown baseline {quoted(name)}; use {', '.join(BASELINES)}")
    return PolicyTable(_BY_OBSERVATION[name], workflows)
