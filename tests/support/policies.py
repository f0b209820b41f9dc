"""Policies nobody trained; a loop that plays the simple defenders, one episode per environment; a defender of the past."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import fixfirst as ff
from fixfirst.game.scenario import CAGE2
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.network import Network
from fixfirst.policy.scripts import DEFENDERS
from fixfirst.policy.spec import PolicySpec

# The champion that was trained with attackers that neither sleep nor come late: `noise` takes 101 points from it.
FIRST_CHAMPION = Path(__file__).with_name("first-champion")


def untrained(memory="none", action_set="all", units=None, opening=(), workflow=None, **more):
    """A policy that learned nothing but is sure of itself: what it does depends on all that it reads."""
    spec = PolicySpec(MemoryScheme.parse(memory), ActionSet.parse(action_set), units, opening, **more)
    return ff.Policy(Network.drawn(spec.inputs, spec.actions, 1, last=3.0).as_weights(), workflow, spec, {}, {})


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
    choose = DEFENDERS[policy](CAGE2, episodes, np.random.default_rng(seed))
    rewards10, access, observations = [], [], []
    for _ in range(steps):
        obs, _, _, _, info = envs.step(choose(obs))
        rewards10.append(envs.world.rewards10.copy())
        access.append(info["access"])
        observations.append(obs)
    return Play(np.array(rewards10), np.array(access), np.array(observations))
