"""`ff.rollout`: a policy plays many steps of many environments in one compiled call."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from fixfirst.api.evaluating import load_named
from fixfirst.base.checks import check_bool, check_int, check_seed
from fixfirst.base.errors import ConfigError, quoted
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.world import World
from fixfirst.play.envs import VecWorld
from fixfirst.play.rollout import Trajectory, play_steps
from fixfirst.policy.file import Orders, Policy
from fixfirst.policy.spec import bits_of


class Steps(NamedTuple):
    """T steps of N environments. Row t is before action t; what has T + 1 rows ends with what came after the last one."""

    words: np.ndarray  # [T + 1, N] uint64: observations, bit i = observation i
    held_sets: np.ndarray  # [T + 1, N] int16: hosts red truly holds, bit h = host h
    actions: np.ndarray  # [T, N] int16
    rewards: np.ndarray  # [T, N] float64
    truncated: np.ndarray  # [T, N] bool: the episode ended with this step
    scenario: Scenario = CAGE2

    @property
    def observations(self) -> np.ndarray:
        """[T + 1, N, 52] int8, as `envs.step` shows them."""
        bits = self.scenario.observation_bits
        return bits_of(self.words.reshape(-1, 1), bits).astype(np.int8).reshape(*self.words.shape, bits)

    @property
    def held(self) -> np.ndarray:
        """[T + 1, N, 13] bool: does red hold the host?"""
        return (self.held_sets[..., None] >> np.arange(self.scenario.num_hosts) & 1).astype(np.bool_)


def rollout(
    envs: VecWorld,
    policy: Policy | str | Path,
    steps: int,
    *,
    seed: int = 0,
    greedy: bool = False,
    workflow: Orders | None = None,
) -> Steps:
    """Play on from where the environments stand, and leave them where they are then: as if stepped.

    policy: a loaded one, a run, or a policy's folder or file. One with a memory begins without any, so reset the
    environments first; or make them with its memory and action set: then what they remember goes on, too. seed: of its
    actions; greedy: the most probable action instead of a drawn one. workflow: the order to follow instead of its own, or a
    list with one for each environment. Episodes end and begin as the environments' autoreset mode says; in the mode
    `next_step` the action after an end is not played, and earns 0.

    For example:

        envs = ff.make_vec(1000, red_agent="meander")
        envs.reset(seed=0)
        played = ff.rollout(envs, "champion", steps=100)
        played.rewards.sum(axis=0)  # [1000] returns
        played.observations, played.actions, played.held  # [101, 1000, 52], [100, 1000], [101, 1000, 13]
    """
    if not isinstance(envs, VecWorld) or not isinstance(envs.world, World):
        raise ConfigError(
            "rollout() plays in compiled code: make the environments with ff.make_vec(...) on the simulator, "
            f"got {quoted(envs)}"
        )
    loaded, count = load_named(policy), check_int("steps", steps)
    records = _shared_memories(envs, loaded)
    orders, assigned = loaded.assign(workflow, envs.num_envs)
    player = loaded.player_of(orders, greedy=check_bool("greedy", greedy))
    track, number = Trajectory.empty(count, envs.num_envs), check_seed("seed", seed, bits=63)
    play_steps(envs.world, player, assigned, number, track, records)
    return Steps(track.words, track.held, track.actions, track.rewards10 / 10, track.ended, envs.world.scenario)


def _shared_memories(envs: VecWorld, policy: Policy) -> np.ndarray | None:
    """What the environments remember, if they do it for a policy like this one; None if they remember nothing."""
    mine, spec = envs.memories, policy.spec
    if mine.idle:
        return None
    if (mine.spec.memory, mine.spec.action_set) != (spec.memory, spec.action_set):
        raise ConfigError(
            f"the environments have the memory {mine.spec.memory} and the action set {mine.spec.action_set}, the policy has "
            f"{spec.memory} and {spec.action_set}; make them with the policy's, or with neither"
        )
    return mine.records
