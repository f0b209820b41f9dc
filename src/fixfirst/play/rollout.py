"""Playing: a policy meets a world for whole episodes, and everything worth knowing is kept as arrays.

T steps, N environments, B = episodes of a rollout (N times the number of passes), U unit types.

Observations repeat enormously, so a policy is asked once per distinct *key* (observation and workflow in one uint64) and its
answer is remembered as a row of `PolicyTable`. Actions are drawn by counter-based chance keyed by (seed, environment,
episode, step), like those of the world: a rollout is a pure function of the policy and the seeds.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numba import uint64

from fixfirst.errors import ConfigError
from fixfirst.game.actions import NUM_ACTIONS
from fixfirst.game.chance import counter_uniform, environment_key
from fixfirst.game.compiled import compiled
from fixfirst.game.kernel import OBSERVATION_BITS
from fixfirst.orders.compliance import held_mask
from fixfirst.orders.workflow import Workflow

MAX_WORKFLOWS = 1 << (63 - OBSERVATION_BITS)  # of one rollout: they share a key with the observation

# A policy as a function: inputs [M, 52 + workflow bits] float32 -> probabilities [M, 145].
Probabilities = Callable[[np.ndarray], np.ndarray]


class WorldLike(Protocol):
    """What a rollout needs of a world: `cage2.world.World`, or real CybORG behind the same arrays."""

    num_envs: int
    max_steps: int | None
    words: np.ndarray
    access: np.ndarray
    rewards10: np.ndarray

    def reset(self, seed: int, mask: np.ndarray | None = None, *, episode: int = 0) -> None: ...

    def step(self, actions: np.ndarray) -> int: ...


class Player(Protocol):
    """Whoever chooses blue's actions in a rollout."""

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """Actions [N] for observations `words` [N]; `access` [N, 13] is the truth, for players who may see it.

        assigned [N]: each environment's workflow, an index into the rollout's; keys [N]: of chance; when: the step.
        """
        ...


class Rollout(NamedTuple):
    """B whole episodes of T steps; row t is what the policy saw before action t."""

    words: np.ndarray  # [T + 1, B] uint64 observations; the last row is what came after the last action
    held: np.ndarray  # [T + 1, B] int16 sets of hosts red truly held, likewise
    actions: np.ndarray  # [T, B] int16
    rewards10: np.ndarray  # [T, B] int32 the world's reward in tenths
    assigned: np.ndarray  # [B] index of each episode's workflow in `workflows`
    workflows: tuple[Workflow, ...]  # empty: played without one

    @property
    def returns(self) -> np.ndarray:
        """[B] the world's return of each episode."""
        return np.asarray(self.rewards10.sum(axis=0) / 10)

    @property
    def ranks(self) -> np.ndarray:
        """[B, U] position of each unit type in each episode's workflow."""
        return np.array([w.ranks for w in self.workflows])[self.assigned]


def join(parts: Sequence[Rollout]) -> Rollout:
    """Rollouts of the same length and workflows, side by side."""
    if len(parts) == 1:
        return parts[0]
    return Rollout(
        words=np.concatenate([part.words for part in parts], axis=1),
        held=np.concatenate([part.held for part in parts], axis=1),
        actions=np.concatenate([part.actions for part in parts], axis=1),
        rewards10=np.concatenate([part.rewards10 for part in parts], axis=1),
        assigned=np.concatenate([part.assigned for part in parts]),
        workflows=parts[0].workflows,
    )


def collect(
    world: WorldLike,
    player: Player,
    *,
    world_seed: int,
    policy_seed: int,
    first_episode: int,
    passes: int = 1,
    workflows: Sequence[Workflow] = (),
) -> Rollout:
    """Play `passes` episodes in every environment, from episode number `first_episode` on.

    With several workflows, each episode draws its own.
    """
    if world.max_steps is None:
        raise ConfigError("a rollout needs episodes of fixed length: give the world max_steps")
    if len(workflows) > MAX_WORKFLOWS:
        raise ConfigError(f"at most {MAX_WORKFLOWS} workflows can be played in one rollout, got {len(workflows)}")
    steps, n = world.max_steps, world.num_envs
    rollout = Rollout(
        words=np.empty((steps + 1, n * passes), np.uint64),
        held=np.empty((steps + 1, n * passes), np.int16),
        actions=np.empty((steps, n * passes), np.int16),
        rewards10=np.empty((steps, n * passes), np.int32),
        assigned=np.zeros(n * passes, np.int64),
        workflows=tuple(workflows),
    )
    access = np.empty((steps + 1, n, world.access.shape[1]), np.uint8)
    keys, ones = np.empty(n, np.uint64), np.ones(n)
    for number in range(passes):
        episode, columns = first_episode + number, slice(number * n, (number + 1) * n)
        chance_keys(policy_seed, episode, keys)
        assigned = rollout.assigned[columns]
        if len(workflows) > 1:
            draws = np.empty(n)
            uniform(keys, DRAW_WORKFLOW, ones, draws)
            assigned[:] = (draws * len(workflows)).astype(np.int64)
        world.reset(world_seed, episode=episode)
        rollout.words[0, columns], access[0] = world.words, world.access
        for t in range(steps):
            actions = player.act(world.words, world.access, assigned, keys, t)
            world.step(actions)
            rollout.actions[t, columns], rollout.rewards10[t, columns] = actions, world.rewards10
            rollout.words[t + 1, columns], access[t + 1] = world.words, world.access
        rollout.held[:, columns] = held_mask(access)
    return rollout


# ---------------------------------------------------------------- chance of the player

DRAW_WORKFLOW = 1 << 40  # a counter no step reaches


@compiled
def chance_keys(seed, episode, keys):  # type: ignore[no-untyped-def]
    """Fill keys [N] uint64, one per environment, for the draws of one episode."""
    for i in range(len(keys)):
        keys[i] = environment_key(environment_key(seed, i), episode)


@compiled
def uniform(keys, when, scale, out):  # type: ignore[no-untyped-def]
    """Fill out [N] with draws in [0, scale)."""
    for i in range(len(keys)):
        out[i] = counter_uniform(keys[i], when) * scale[i]


# ---------------------------------------------------------------- policies as tables


class PolicyTable:
    """A frozen policy that is asked once per distinct (observation, workflow) and then remembered.

    greedy: the most probable action instead of a drawn one.
    """

    def __init__(self, probabilities: Probabilities, workflows: Sequence[Workflow] = (), *, greedy: bool = False):
        self._probabilities = probabilities
        self._bits = workflow_bits(workflows)
        self._greedy = greedy
        self._count = 0
        self._row_keys = np.empty(256, np.uint64)  # [capacity]
        self._cumulative = np.empty((256, NUM_ACTIONS), np.float32)  # [capacity, 145]
        self._slots = np.full(1024, -1, np.int32)  # open addressing: key -> row

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        n = len(words)
        self._make_room(n)
        rows, actions = np.empty(n, np.int32), np.empty(n, np.int64)
        known = self._count
        self._count = find_rows(words, assigned, self._slots, self._row_keys, known, rows)
        if self._count > known:
            self._answer(known)
        draw_actions(self._cumulative, rows, keys, when, actions)
        return actions

    def _answer(self, known: int) -> None:
        """Ask the policy about the rows from `known` on."""
        probabilities = self._probabilities(inputs_of(self._row_keys[known : self._count], self._bits))
        if self._greedy:
            probabilities = probabilities == probabilities.max(axis=1, keepdims=True)
        self._cumulative[known : self._count] = np.cumsum(probabilities, axis=1)

    def _make_room(self, more: int) -> None:
        needed = self._count + more
        if needed > len(self._row_keys):
            capacity = max(2 * len(self._row_keys), needed)
            self._row_keys = np.resize(self._row_keys, capacity)
            self._cumulative = np.resize(self._cumulative, (capacity, NUM_ACTIONS))
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << (4 * needed - 1).bit_length(), -1, np.int32)
            insert_rows(self._slots, self._row_keys, self._count)


class PlainPolicy:
    """The same frozen policy without memory: asked for every environment in every step. The slow twin of `PolicyTable`."""

    def __init__(self, probabilities: Probabilities, workflows: Sequence[Workflow] = ()):
        self._probabilities = probabilities
        self._bits = workflow_bits(workflows)

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        inputs = inputs_of(row_keys(words, assigned), self._bits)
        cumulative = np.cumsum(self._probabilities(inputs), axis=1, dtype=np.float32)
        actions = np.empty(len(words), np.int64)
        draw_actions(cumulative, np.arange(len(words), dtype=np.int32), keys, when, actions)
        return actions


def workflow_bits(workflows: Sequence[Workflow]) -> np.ndarray:
    """[W, U * U] float32 encodings; [1, 0] without workflows."""
    return np.array([w.encode() for w in workflows], np.float32) if workflows else np.empty((1, 0), np.float32)


def row_keys(words: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    """Observation and workflow index in one uint64 each."""
    return words | assigned.astype(np.uint64) << np.uint64(OBSERVATION_BITS)


_SHIFTS = np.arange(OBSERVATION_BITS, dtype=np.uint64)


def inputs_of(keys: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """[M, 52 + workflow bits] float32: what the policy reads for keys [M]."""
    observation = (keys[:, None] >> _SHIFTS & np.uint64(1)).astype(np.float32)
    return np.concatenate([observation, bits[(keys >> np.uint64(OBSERVATION_BITS)).astype(np.int64)]], axis=1)


@compiled
def find_rows(words, assigned, slots, known_keys, count, rows):  # type: ignore[no-untyped-def]
    """Fill rows [N] with the row of every key, appending unknown keys. Returns the new number of rows."""
    mask = uint64(len(slots) - 1)
    for i in range(len(words)):
        key = words[i] | uint64(assigned[i]) << uint64(OBSERVATION_BITS)
        slot = environment_key(key, 0) & mask
        while slots[slot] >= 0 and known_keys[slots[slot]] != key:
            slot = (slot + uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = count
            known_keys[count] = key
            count += 1
        rows[i] = slots[slot]
    return count


@compiled
def insert_rows(slots, known_keys, count):  # type: ignore[no-untyped-def]
    """Enter the first `count` rows into empty slots."""
    mask = uint64(len(slots) - 1)
    for row in range(count):
        slot = environment_key(known_keys[row], 0) & mask
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = row


@compiled
def draw_actions(cumulative, rows, keys, when, actions):  # type: ignore[no-untyped-def]
    """Fill actions [N]: the first action whose cumulative probability exceeds the environment's draw."""
    last = cumulative.shape[1] - 1
    for i in range(len(rows)):
        row = cumulative[rows[i]]
        threshold = counter_uniform(keys[i], when) * row[last]
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if row[middle] > threshold:
                high = middle
            else:
                low = middle + 1
        actions[i] = low
