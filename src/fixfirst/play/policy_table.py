"""A frozen policy as a table: asked once per distinct row, its answer remembered.

Observations repeat enormously. A *row* is all that a policy reads, packed into words (`network.py`): a thousand environments
with the same row need one answer. Actions are then drawn by counter-based chance keyed by (seed, environment, episode,
step), like those of the world.

N environments, M rows, K words per row, I inputs, A actions, W workflows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.game import NUM_ACTIONS, OBSERVATION_BITS, called, compiled, counter_uniform, environment_key, inlined
from fixfirst.orders import Workflow
from fixfirst.play.network import (
    ONE,
    ZERO,
    Network,
    Workspace,
    bits_of,
    fading,
    fill_up,
    forward,
    list_bits,
    lower_to_largest,
    words_of,
)

# A policy as a function: inputs [M, I] float32 -> probabilities [M, A], or anything proportional to them.
Probabilities = Callable[[np.ndarray], np.ndarray]


class Table(NamedTuple):
    """Distinct rows in the order in which they were met, C at most, and a hash table that finds them."""

    filled: np.ndarray  # [1] int64: how many there are
    rows: np.ndarray  # [C, K] uint64
    cumulative: np.ndarray  # [C, A] float32: odds of an action or one before it
    likely: np.ndarray  # [C] int64: the most probable action
    slots: np.ndarray  # [a power of two, at least 2 C] int32: open addressing, row's words -> row; -1 = free

    @classmethod
    def empty(cls, capacity: int, words: int, actions: int) -> "Table":
        slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        rows, cumulative = np.empty((capacity, words), np.uint64), np.empty((capacity, actions), np.float32)
        return cls(np.zeros(1, np.int64), rows, cumulative, np.empty(capacity, np.int64), slots)


class PolicyTable:
    """A frozen policy that is asked once per distinct row and then remembered.

    policy: a network, or a function. greedy: the most probable action instead of a drawn one.
    """

    def __init__(self, policy: Network | Probabilities, workflows: Sequence[Workflow] = (), *, greedy: bool = False):
        self.network = policy if isinstance(policy, Network) else None
        self.desk = Desk.make(policy) if isinstance(policy, Network) else None
        self._probabilities = probabilities(policy) if isinstance(policy, Network) else policy
        self.orders = order_rows(workflows)  # [W, K]
        self.inputs = OBSERVATION_BITS + (workflows[0].scheme.encoding_bits if workflows else 0)
        self.greedy = greedy
        self.table = Table.empty(256, self.orders.shape[1], NUM_ACTIONS)

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """See `Player`."""
        n = len(words)
        self.make_room(n)
        found, actions = np.empty(n, np.int64), np.empty(n, np.int64)
        known = int(self.table.filled[0])
        find_rows(self.table, words, *self.read(assigned), found)
        self._answer(known)
        draw_actions(self.table, found, keys, when, actions)
        return actions

    def read(self, assigned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Heads [N] and tails [N, K - 1]: what environments with these workflows read beside their observations."""
        return split_rows(self.orders[assigned])

    def _answer(self, known: int) -> None:
        """Ask the policy about the rows from `known` on."""
        count = int(self.table.filled[0])
        if count == known:
            return
        odds = self._probabilities(bits_of(self.table.rows[known:count], self.inputs))
        if self.greedy:
            odds = np.eye(NUM_ACTIONS, dtype=np.float32)[odds.argmax(axis=1)]
        self.table.cumulative[known:count] = np.cumsum(odds, axis=1)
        self.table.likely[known:count] = odds.argmax(axis=1)

    def make_room(self, more: int) -> None:
        """Let the table hold so many rows more."""
        count = int(self.table.filled[0])
        if count + more <= len(self.table.rows):
            return
        larger = Table.empty(max(2 * len(self.table.rows), count + more), self.table.rows.shape[1], NUM_ACTIONS)
        larger.cumulative[:count], larger.likely[:count] = self.table.cumulative[:count], self.table.likely[:count]
        enter_rows(larger, self.table.rows[:count])
        self.table = larger

    def forget(self) -> None:
        """For a policy that has changed."""
        self.table.filled[0] = 0
        self.table.slots[:] = -1


def order_rows(workflows: Sequence[Workflow]) -> np.ndarray:
    """[W, K] uint64: rows of these workflows without an observation; [1, 1] zeros without workflows."""
    if not workflows:
        return np.zeros((1, 1), np.uint64)
    none = np.zeros((len(workflows), OBSERVATION_BITS), np.int8)
    return words_of(np.concatenate([none, [workflow.encode() for workflow in workflows]], axis=1))


def split_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first words [M] of rows [M, K], and the others [M, K - 1]."""
    return np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1:])


def probabilities(network: Network) -> Probabilities:
    """The actor as a function. It follows the weights when they change."""
    desk = Desk.make(network)

    def act(inputs: np.ndarray) -> np.ndarray:
        odds = np.empty((len(inputs), network.size[1]), np.float32)
        odds_of_rows(network.actor, words_of(inputs), desk, odds)
        return odds / odds.sum(axis=1, keepdims=True)

    return act


# ---------------------------------------------------------------- rows, compiled
# Numba counts references to arrays by atomic operations, for views and for tuples of arrays that are handed on: what is done
# in every step takes whole arrays and numbers. Environment i reads the row (heads[i] | its observation, tails[i]).


@inlined
def find_row(slots, rows, filled, first, tails, i):
    """The number of the row (first, tails[i]) in a `Table`, entered if it is new. There must be room."""
    mask = uint64(len(slots) - 1)
    mixed = mix_in(uint64(0), first)
    for k in range(tails.shape[1]):
        mixed = mix_in(mixed, tails[i, k])
    slot = mixed & mask
    while slots[slot] >= 0:
        number = np.int64(slots[slot])
        same = rows[number, 0] == first
        for k in range(tails.shape[1]):
            if rows[number, k + 1] != tails[i, k]:
                same = False
                break
        if same:
            return number
        slot = (slot + uint64(1)) & mask
    number = filled[0]
    slots[slot] = number
    rows[number, 0] = first
    for k in range(tails.shape[1]):
        rows[number, k + 1] = tails[i, k]
    filled[0] = number + 1
    return number


@inlined
def mix_in(mixed, word):
    """One more word of a hash: multiplied by an odd number, the upper half folded onto the lower."""
    mixed = (mixed ^ word) * uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> uint64(32))


@compiled
def find_rows(table, words, heads, tails, found):
    """Fill found [N] with the row of every observation [N] under its order; new ones are entered."""
    for i in range(len(words)):
        found[i] = find_row(table.slots, table.rows, table.filled, heads[i] | words[i], tails, i)


@compiled
def enter_rows(table, rows):
    """Enter rows [M, K], all different, in a table without any yet."""
    heads, tails = rows[:, 0].copy(), rows[:, 1:].copy()
    for i in range(len(rows)):
        find_row(table.slots, table.rows, table.filled, heads[i], tails, i)


# ---------------------------------------------------------------- answers, compiled


class Desk(NamedTuple):
    """Where one row at a time is answered."""

    work: Workspace
    starts: np.ndarray  # [2] int64
    active: np.ndarray  # [I] int64

    @classmethod
    def make(cls, network: Network) -> "Desk":
        inputs, actions = network.size
        return cls(Workspace.make(1, actions), np.zeros(2, np.int64), np.zeros(inputs, np.int64))


@called
def answer_row(actor, rows, number, desk):
    """Fill desk.work.outputs[0] with the odds of all actions for a row. Needs `fill_up` after every change of weights."""
    desk.starts[1] = list_bits(rows, number, desk.active, 0)
    forward(actor, desk.starts, desk.active, 0, 1, desk.work)
    odds = desk.work.outputs
    lower_to_largest(odds, 1)
    for a in range(odds.shape[1]):
        odds[0, a] = fading(odds[0, a])


@compiled
def odds_of_rows(actor, rows, desk, odds):
    """Fill odds [M, A] of rows [M, K]."""
    fill_up(actor, desk.work)
    for i in range(len(rows)):
        answer_row(actor, rows, i, desk)
        for a in range(odds.shape[1]):
            odds[i, a] = desk.work.outputs[0, a]


@called
def enter_odds(odds, cumulative, likely, number, greedy):
    """Enter the odds [1, A] of a row; greedy: only the first of the largest counts."""
    actions, best = cumulative.shape[1], 0
    for a in range(1, actions):
        if odds[0, a] > odds[0, best]:
            best = a
    running = ZERO
    for a in range(actions):
        if not greedy:
            running += odds[0, a]
        elif a == best:
            running = ONE
        cumulative[number, a] = running
    likely[number] = best


# ---------------------------------------------------------------- draws, compiled


@inlined
def draw_action(cumulative, likely, number, key, when):
    """The first action whose cumulative odds exceed the draw. The likely one is tried before others are searched."""
    last = cumulative.shape[1] - 1
    threshold = counter_uniform(key, when) * cumulative[number, last]
    low, high = 0, last
    guess = likely[number]
    if cumulative[number, guess] > threshold:
        if guess == 0 or cumulative[number, guess - 1] <= threshold:
            return guess
        high = guess
    while low < high:
        middle = (low + high) // 2
        if cumulative[number, middle] > threshold:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def draw_actions(table, found, keys, when, actions):
    """Fill actions [N] of environments whose rows are found [N]."""
    for i in range(len(found)):
        actions[i] = draw_action(table.cumulative, table.likely, found[i], keys[i], when)


@compiled
def chance_keys(seed, episode, keys):
    """Fill keys [N] uint64, one per environment, for the draws of one episode."""
    for i in range(len(keys)):
        keys[i] = environment_key(environment_key(seed, i), episode)


@compiled
def uniform(keys, when, scale, out):
    """Fill out [N] with draws in [0, scale)."""
    for i in range(len(keys)):
        out[i] = counter_uniform(keys[i], when) * scale[i]
