"""Simple blue policies over a batch, and a loop that plays them: what the reference numbers were measured with.

A policy is made for N environments and maps observations [N, 52] to actions [N].
"""

from typing import NamedTuple

import numpy as np

import fixfirst as ff
from fixfirst.actions import NUM_ACTIONS, SLEEP, action_id
from fixfirst.network import HOST_NAMES, NUM_HOSTS

RESTORE = np.array([action_id("Restore", host) for host in HOST_NAMES])
REMOVE = np.array([action_id("Remove", host) for host in HOST_NAMES])
ANALYSE = np.array([action_id("Analyse", host) for host in HOST_NAMES])
FULL_DECOYS = ("HarakaSMPT", "Tomcat", "Vsftpd", "Apache")
USEFUL_DECOYS = {
    "Enterprise0": FULL_DECOYS,
    "Op_Server0": FULL_DECOYS,
    "Enterprise1": ("Femitter",),
    "Enterprise2": ("Femitter",),
    "User1": ("Apache", "Tomcat", "Smss", "Svchost"),
    "User2": ("Femitter", "Tomcat", "Apache", "SSHD"),
    "User3": ("Vsftpd", "SSHD"),
    "User4": ("Vsftpd",),
}


class Play(NamedTuple):
    """T steps of N episodes, without their first observations."""

    rewards10: np.ndarray  # [T, N]
    access: np.ndarray  # [T, N, 13]
    observations: np.ndarray  # [T, N, 52]

    def returns(self, length):
        """Returns [N] of the first `length` steps."""
        return self.rewards10[:length].sum(axis=0) / 10


def play(red_agent, policy, episodes, *, steps=100, seed=0, **world):
    """Play one episode in each of `episodes` environments."""
    envs = ff.make_vec(episodes, red_agent=red_agent, max_steps=steps, **world)
    obs, _ = envs.reset(seed=seed)
    choose = POLICIES[policy](episodes, np.random.default_rng(seed))
    rewards10, access, observations = [], [], []
    for _ in range(steps):
        obs, _, _, _, info = envs.step(choose(obs))
        rewards10.append(envs.world.rewards10.copy())
        access.append(info["access"])
        observations.append(obs)
    return Play(np.array(rewards10), np.array(access), np.array(observations))


def _first_host(mask, action_of_host):
    """The action on the lowest-numbered host of mask [N, 13], or Sleep."""
    return np.where(mask.any(axis=1), action_of_host[mask.argmax(axis=1)], SLEEP)


def _bits(obs):
    return obs.reshape(len(obs), NUM_HOSTS, 4)


def sleep(n, rng):
    return lambda obs: np.full(n, SLEEP)


def uniform(n, rng):
    return lambda obs: rng.integers(0, NUM_ACTIONS, n)


def react(n, rng):
    """Restore the lowest host whose fourth bit is set."""
    return lambda obs: _first_host(_bits(obs)[:, :, 3] == 1, RESTORE)


def react_restore(n, rng):
    """Restore the lowest host that is not believed clean."""
    return lambda obs: _first_host(_bits(obs)[:, :, 2:].any(axis=2), RESTORE)


def react_remove(n, rng):
    """Remove on the lowest host believed to be held."""
    return lambda obs: _first_host(_bits(obs)[:, :, 3] == 1, REMOVE)


def opfirst(n, rng):
    """Restore Op_Server0 in the first step, then sleep."""
    first = iter([np.full(n, action_id("Restore", "Op_Server0"))])
    return lambda obs: next(first, np.full(n, SLEEP))


def good_decoy_react(n, rng):
    """A host shown privileged: Restore, its decoys next; shown held: Remove; else the next useful decoy; else Analyse."""
    decoys = {h: [action_id(f"Decoy{d}", h) for d in names] for h, names in USEFUL_DECOYS.items()}
    put_back = decoys | {
        "Op_Server0": [action_id(f"Decoy{d}", "Op_Server0") for d in ("HarakaSMPT", "Apache", "Tomcat", "Vsftpd")]
    }
    every = [a for actions in decoys.values() for a in actions]
    todo = [list(rng.permutation(every)) for _ in range(n)]

    def choose(obs):
        held = _bits(obs)[:, :, 2] + 2 * _bits(obs)[:, :, 3]  # 3 privileged, 2 user
        actions = np.empty(n, np.int64)
        for i, beliefs in enumerate(held):
            privileged, user = np.flatnonzero(beliefs == 3), np.flatnonzero(beliefs == 2)
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


POLICIES = {
    "sleep": sleep,
    "random": uniform,
    "react": react,
    "react_restore": react_restore,
    "react_remove": react_remove,
    "opfirst": opfirst,
    "good_decoy_react": good_decoy_react,
}
