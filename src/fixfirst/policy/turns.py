"""Any player, in any world: in compiled code where both allow it (`policy/compiled_loop.py`), else by one loop in Python.

N environments, T steps, H hosts.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from fixfirst.base import errors
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.chance import chance_keys
from fixfirst.game.simulator import World
from fixfirst.policy.compiled_loop import Trajectory, play_steps
from fixfirst.policy.memories import Memories
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

_USER, ROOT = 1, 2  # red's access to a host


class Moment(NamedTuple):
    """What a player is asked about: N environments before a turn."""

    words: np.ndarray  # [N], or [N, W]: uint64 observations
    access: np.ndarray  # [N, H] the truth, for players who may see it
    assigned: np.ndarray  # [N] each environment's workflow, an index into the rollout's
    memories: Memories
    keys: np.ndarray  # [N] uint64, of chance
    steps: np.ndarray  # [N] of each environment's episode; 0 where one begins, or where the play begins
    turn: int  # of the play, from 0


class TurnPlayer(Protocol):
    """Whoever chooses blue's actions turn by turn."""

    def act(self, moment: Moment) -> np.ndarray:
        """Return actions [N]; they count as taken."""


Player = PolicyTable | TurnPlayer


class Turn(NamedTuple):
    """What was seen, and what a player did then."""

    moment: Moment
    rows: np.ndarray  # [N] numbers of the rows that a `PolicyTable` read; 0 of others
    choices: np.ndarray  # [N]
    actions: np.ndarray  # [N] of the world


def play_turns(
    world: BaseWorld,
    player: Player,
    assigned: np.ndarray,
    policy_seed: int,
    *,
    episode: int = 0,
    memories: Memories | None = None,
) -> Iterator[Turn]:
    """Ask a player, step the world and yield the turn, again and again. assigned [N] may change between turns.

    episode: the number of the first one, for the player's chance; its memory is empty unless given.
    """
    n = world.num_envs
    own = memories if memories is not None else Memories(_spec_of(player, world), n)
    keys, fresh, steps, turn = np.empty(n, np.uint64), np.empty(n, np.uint64), np.zeros(n, np.int64), 0
    chance_keys(policy_seed, episode, keys)
    while True:
        moment = Moment(world.packed_obs.copy(), world.access.copy(), assigned, own, keys, steps, turn)
        if isinstance(player, PolicyTable):
            rows, choices, actions = player.choose(own, moment.words, assigned, keys, steps)
        else:
            choices = actions = player.act(moment)
            rows = np.zeros(n, np.int64)
        had_ended = world.ended.copy()
        world.step(actions)
        yield Turn(moment, rows, choices, actions)
        turn, steps = turn + 1, steps + 1
        begun = {"next_step": had_ended, "same_step": world.ended}.get(world.autoreset)
        if begun is not None and begun.any():
            own.forget(begun)
            chance_keys(policy_seed, episode + turn, fresh)
            keys[begun], steps[begun] = fresh[begun], 0


def _spec_of(player: Player, world: BaseWorld) -> PolicySpec:
    """Return what a player reads and may choose; of one that does not say, all actions without memory."""
    spec: PolicySpec = getattr(player, "spec", PolicySpec.for_orders((), world.scenario))
    return spec


def play_on(
    world: BaseWorld,
    player: Player,
    assigned: np.ndarray,
    policy_seed: int,
    steps: int,
    *,
    episode: int = 0,
    memories: Memories | None = None,
    before_turn: Callable[[int], None] = lambda turn: None,
    turn_by_turn: bool = False,
) -> Trajectory:
    """Play on from where the environments stand, so many steps. assigned [N]: each one's workflow.

    memories: what the environments remember, for a player that remembers the same, changed in place; unless given, nothing
    yet. before_turn gets every turn's number, and last T, where turns are played one by one; turn_by_turn: they must be.
    """
    spec, track = _spec_of(player, world), Trajectory.empty(steps, world.num_envs, world.scenario)
    own = memories if memories is not None and not memories.idle else Memories(spec, world.num_envs)
    if (own.spec.memory, own.spec.action_set) != (spec.memory, spec.action_set):
        raise errors.ConfigError(
            f"the environments have the memory {own.spec.memory} and the action set {own.spec.action_set}, the policy has "
            f"{spec.memory} and {spec.action_set}; make them with the policy's, or with neither"
        )
    if isinstance(player, PolicyTable) and player.network is not None and isinstance(world, World) and not turn_by_turn:
        play_steps(world, player, assigned, policy_seed, track, own)
        return track
    access = np.empty((len(track.packed_obs), *world.access.shape), np.uint8)
    turns = play_turns(world, player, assigned, policy_seed, episode=episode, memories=own)
    for t in range(len(track.actions)):
        before_turn(t)
        turn = next(turns)
        track.packed_obs[t], access[t] = turn.moment.words, turn.moment.access
        track.row_ids[t], track.choices[t], track.actions[t] = turn.rows, turn.choices, turn.actions
        track.rewards10[t], track.ended[t] = world.rewards10, world.ended
    before_turn(len(track.actions))
    track.packed_obs[-1], access[-1] = world.packed_obs, world.access
    if isinstance(player, PolicyTable):
        track.row_ids[-1] = player.look(own, world.packed_obs, assigned)
    track.held[:], track.privileged[:] = held_mask(access), held_mask(access, ROOT)
    return track


def held_mask(access: np.ndarray, least: int = _USER) -> np.ndarray:
    """Return access [..., H] as sets of hosts [...] on which red has at least so much, one bit per host."""
    hosts = access.shape[-1]
    bits = (1 << np.arange(hosts)).astype(np.int16 if hosts <= 15 else np.int64)  # a signed word holds one bit less
    return (access >= least) @ bits
