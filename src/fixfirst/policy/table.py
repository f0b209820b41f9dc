"""A frozen policy as a table: each distinct row is answered once, and actions are drawn from the answers.

Observations repeat enormously: environments with the same row need one answer. What a row is, `spec.py` says. Draws are by
counter-based chance keyed by (seed, environment, episode, step), like those of the world.

N environments, M rows, K words of a row, I inputs, A choices, W workflows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base import errors
from fixfirst.base.compile import called, compiled, inlined
from fixfirst.game import chance as dice
from fixfirst.orders.order import Workflow
from fixfirst.policy.memories import Memories, read_rows, word_rows
from fixfirst.policy.network import (
    INFINITY,
    ONE,
    ZERO,
    LayerBuffers,
    Network,
    exp_nonpositive,
    forward,
    list_bits,
    load_output_layer,
    subtract_row_max,
)
from fixfirst.policy.spec import PolicySpec, Shields, bits_of, words_of

FREE = -1  # a step for which an opening says nothing
# A policy as a function: inputs [M, I] float32 -> probabilities [M, A], or anything proportional to them.
Probabilities = Callable[[np.ndarray], np.ndarray]


class RowTable(NamedTuple):
    """Distinct rows in the order in which they were met, C at most, and a hash table that finds them."""

    filled: np.ndarray  # [1] int64: how many there are
    rows: np.ndarray  # [C, K] uint64
    cumulative: np.ndarray  # [C, A] float32: odds of an action or one before it
    likely: np.ndarray  # [C] int64: the most probable action
    slots: np.ndarray  # [a power of two, at least 2 C] int32: open addressing, row's words -> row; -1 = free

    @classmethod
    def empty(cls, capacity: int, words: int, actions: int) -> "RowTable":
        slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        rows, cumulative = np.empty((capacity, words), np.uint64), np.empty((capacity, actions), np.float32)
        return cls(np.zeros(1, np.int64), rows, cumulative, np.empty(capacity, np.int64), slots)


class Answers:
    """A player that is asked once per distinct row: what it answered stays in its table."""

    table: RowTable

    @property
    def rows(self) -> np.ndarray:
        """[M, row words] all that were met since it was told to forget."""
        return self.table.rows[: self.table.filled[0]]

    def make_room(self, more: int) -> None:
        """Let the table hold so many rows more."""
        old, count, capacity = self.table, int(self.table.filled[0]), len(self.table.rows)
        if count + more > capacity:
            self.table = RowTable.empty(max(2 * capacity, count + more), old.rows.shape[1], old.cumulative.shape[1])
            self.table.cumulative[:count], self.table.likely[:count] = old.cumulative[:count], old.likely[:count]
            find_rows(self.table, old.rows[:count], np.empty(count, np.int64))

    def forget(self) -> None:
        """For networks that have changed."""
        self.table.filled[0] = 0
        self.table.slots[:] = -1


@inlined
def find_row(slots, rows, filled, read, i):
    """The number of the row read[i] in a `RowTable`, entered if it is new. There must be room."""
    mask = uint64(len(slots) - 1)
    mixed = uint64(0)
    for k in range(read.shape[1]):
        mixed = mix_in(mixed, read[i, k])
    slot = mixed & mask
    while slots[slot] >= 0:
        number = np.int64(slots[slot])
        same = True
        for k in range(read.shape[1]):
            if rows[number, k] != read[i, k]:
                same = False
                break
        if same:
            return number
        slot = (slot + uint64(1)) & mask
    number = filled[0]
    slots[slot] = number
    for k in range(read.shape[1]):
        rows[number, k] = read[i, k]
    filled[0] = number + 1
    return number


@inlined
def mix_in(mixed, word):
    """One more word of a hash: multiplied by an odd number, the upper half folded onto the lower."""
    mixed = (mixed ^ word) * uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> uint64(32))


@compiled
def find_rows(table, read, row_ids):
    """Fill row_ids [N] with the numbers of rows read [N, row words]; new ones are entered."""
    for i in range(len(read)):
        row_ids[i] = find_row(table.slots, table.rows, table.filled, read, i)


class ForwardScratch(NamedTuple):
    """Where one row at a time is answered."""

    work: LayerBuffers
    starts: np.ndarray  # [2] int64
    active: np.ndarray  # [I] int64

    @classmethod
    def make(cls, network: Network) -> "ForwardScratch":
        inputs, actions = network.size
        return cls(LayerBuffers.make(1, actions), np.zeros(2, np.int64), np.zeros(inputs, np.int64))


@called
def answer_row(actor, rows, number, words, scratch):
    """Fill scratch.work.outputs[0] with the odds of all actions for a row. After a change of weights:
    `load_output_layer` first.

    words: of a row's bits; if there are more, they hold the masked choices.
    """
    scratch.starts[1] = list_bits(rows, number, words, scratch.active, 0)
    forward(actor, scratch.starts, scratch.active, 0, 1, scratch.work)
    odds = scratch.work.outputs
    if rows.shape[1] > words:
        for a in range(len(actor.bias3)):
            if rows[number, words + (a >> 6)] >> uint64(a & 63) & uint64(1):
                odds[0, a] = -INFINITY
    subtract_row_max(odds, 1)
    for a in range(odds.shape[1]):
        odds[0, a] = exp_nonpositive(odds[0, a])


@compiled
def odds_of_rows(actor, rows, scratch, odds):
    """Fill odds [M, A] of rows [M, K]."""
    load_output_layer(actor, scratch.work)
    for i in range(len(rows)):
        answer_row(actor, rows, i, rows.shape[1], scratch)
        for a in range(odds.shape[1]):
            odds[i, a] = scratch.work.outputs[0, a]


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


def probabilities(network: Network) -> Probabilities:
    """The actor as a function. It follows the weights when they change."""
    scratch = ForwardScratch.make(network)

    def act(inputs: np.ndarray) -> np.ndarray:
        odds = np.empty((len(inputs), network.size[1]), np.float32)
        odds_of_rows(network.actor, words_of(inputs), scratch, odds)
        return odds / odds.sum(axis=1, keepdims=True)

    return act


@inlined
def draw_action(cumulative, likely, number, key, when):
    """The first action whose cumulative odds exceed the draw. The likely one is tried before others are searched."""
    last = cumulative.shape[1] - 1
    threshold = dice.counter_uniform(key, when) * cumulative[number, last]
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


@inlined
def opening_choice(openings, key, when):
    """The choice of this step, by the opening that is drawn for an episode: with the draw of its first step. FREE later."""
    if when >= openings.shape[1]:
        return FREE
    return openings[np.int64(dice.counter_uniform(key, 0) * len(openings)), when]


@compiled
def draw_choices(table, row_ids, keys, steps, openings, choices):
    """Fill choices [N] of environments that read rows row_ids [N], at these steps [N] of their episodes."""
    for i in range(len(row_ids)):
        choices[i] = opening_choice(openings, keys[i], steps[i])
        if choices[i] == FREE:
            choices[i] = draw_action(table.cumulative, table.likely, row_ids[i], keys[i], steps[i])


class PolicyTable(Answers):
    """A frozen policy that is asked once per distinct row and then remembered.

    policy: a network, or a function. spec: what it reads and chooses; unless given, no memory, all actions, and the
    order if there are workflows. prompts: the orders that it reads in place of the workflows that it must keep, one each.
    greedy: the most probable action instead of a drawn one. openings: see `begin_with`; unless given, the spec's.
    """

    def __init__(
        self,
        policy: Network | Probabilities,
        workflows: Sequence[Workflow] = (),
        *,
        spec: PolicySpec | None = None,
        prompts: Sequence[Workflow] = (),
        greedy: bool = False,
        openings: Sequence[tuple[int, ...]] = (),
    ):
        self.spec = spec if spec is not None else PolicySpec.for_orders(workflows)
        self.arrays = self.spec.arrays
        self.begin_with(openings or [self.spec.opening])
        self.network = policy if isinstance(policy, Network) else None
        self.scratch = ForwardScratch.make(policy) if isinstance(policy, Network) else None
        self._probabilities = probabilities(policy) if isinstance(policy, Network) else policy
        self.orders = self.spec.orders(prompts or workflows)  # [W, row words]
        self.shields = self.spec.shields(workflows)
        self._numbers = {workflow: number for number, workflow in enumerate(workflows)}
        self.greedy = greedy
        self.table = RowTable.empty(256, self.spec.row_words, self.spec.actions)

    def begin_with(self, openings: Sequence[tuple[int, ...]]) -> None:
        """Begin every episode with one of these from now on, all of the same length. FREE: the policy chooses."""
        self.openings = np.array(openings, np.int64)

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """The orders that it knows, each once; `number_of` has their numbers."""
        return tuple(self._numbers)

    def number_of(self, workflow: Workflow) -> int:
        """The number by which environments are assigned this order; known from now on."""
        if workflow not in self._numbers:
            self._numbers[workflow] = len(self.orders)
            self.orders = np.concatenate([self.orders, self.spec.orders([workflow])])
            more = self.spec.shields([workflow])
            self.shields = Shields(*(np.concatenate(pair) for pair in zip(self.shields, more, strict=True)))
        return self._numbers[workflow]

    def choose(
        self, memories: Memories, words: np.ndarray, assigned: np.ndarray, keys: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the row, the choice and the world's action of every environment, all [N]; the action counts as taken.

        words: what is seen; assigned [N]: workflows; steps [N]: of each environment's episode.
        """
        row_ids, choices = self.look(memories, words, assigned), np.empty(len(words), np.int64)
        draw_choices(self.table, row_ids, keys, steps, self.openings, choices)
        actions = np.array(memories.actions_of(choices))
        memories.remember(words, actions)
        return row_ids, choices, actions

    def look(self, memories: Memories, words: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        """The rows [N] that environments read now, answered if they are new."""
        self.make_room(len(words))
        rows, row_ids, count = self.orders[assigned], np.empty(len(words), np.int64), int(self.table.filled[0])
        read_rows(memories.records, self.arrays, self.shields, assigned, word_rows(words), rows)
        find_rows(self.table, rows, row_ids)
        self._answer(count)
        return row_ids

    def _answer(self, first: int) -> None:
        """Ask the policy about the rows from `first` on. A function of somebody's own may return anything."""
        count = int(self.table.filled[0])
        if count == first:
            return
        rows = self.table.rows[first:count]
        odds = np.asarray(self._probabilities(bits_of(rows, self.spec.inputs).astype(np.float32)))
        shape = (len(rows), self.spec.actions)
        if self.network is None and (
            odds.shape != shape or odds.dtype.kind not in "fiub" or not (np.isfinite(odds).all() and (odds >= 0).all())
        ):
            got = f"{odds.dtype} {list(odds.shape)}"
            raise errors.ActionError(f"the function of a PolicyTable must return odds {list(shape)} from 0 on, got {got}")
        allowed = self.spec.allowed(rows)
        if len(allowed):
            odds = odds * allowed
        if self.greedy:
            odds = np.eye(self.spec.actions, dtype=np.float32)[odds.argmax(axis=1)]
        self.table.cumulative[first:count] = np.cumsum(odds, axis=1)
        self.table.likely[first:count] = odds.argmax(axis=1)
