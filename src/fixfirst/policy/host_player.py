"""A `HostNetwork` on one network of machines, as a player: what the input of a host says is worked out once, and kept.

L hosts that blue sees, S orders, the first of them none; M rows, A choices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import host_network as hosts, network, vectors
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.host_facts import MEMORY, VERBS, HostFacts, host_facts, order_facts
from fixfirst.policy.host_network import QUIET, Actor, Folded, HostNetwork, HostScratch, HostTable
from fixfirst.policy.memories import Memories, read_rows, word_rows
from fixfirst.policy.memory import QUIET_TURNS, MemoryScheme
from fixfirst.policy.spec import PolicySpec, Shields, words_of
from fixfirst.policy.table import PolicyTable, enter_odds, find_rows

BLOCK = 16  # rows that are answered, or learned from, at a time
_FIRST_ROOM = 256


def universal_spec(units: UnitScheme) -> PolicySpec:
    """Return what a policy for any network reads and chooses where hosts are grouped like this."""
    memory, choices = MemoryScheme.parse(MEMORY, units.scenario), ActionSet.parse("macros", units.scenario)
    return PolicySpec(memory, choices, units, shield=True)


class HostSide(NamedTuple):
    """What a player is for compiled functions. What rows had is kept for learning."""

    actor: Actor
    facts: HostFacts
    order_facts: np.ndarray  # [S, L, F] float32 of the orders that it reads
    told: np.ndarray  # [S, U] int64: their ranks; -1: no order
    ranks: np.ndarray  # [S, U] int64 of the orders that it must keep
    folded: Folded
    inputs: HostTable
    ids: np.ndarray  # [M, L] int32: the inputs of every row's hosts
    order: np.ndarray  # [M] int64
    quiet: np.ndarray  # [M] int64: turns
    work: HostScratch
    outputs: np.ndarray  # [1, W] float32: odds of one row

    @classmethod
    def of(cls, policy: HostNetwork, spec: PolicySpec) -> "HostSide":
        """Return the side of a player that knows no order yet."""
        facts = host_facts(spec)
        count, width = len(facts.unit), -(-spec.actions // vectors.TILE) * vectors.TILE
        by_order, told = order_facts(spec, [None])
        return cls(
            policy.actor,
            facts,
            by_order,
            told,
            told,
            Folded.empty(1, count),
            HostTable.empty(_FIRST_ROOM),
            np.zeros((_FIRST_ROOM, count), np.int32),
            np.zeros(_FIRST_ROOM, np.int64),
            np.zeros(_FIRST_ROOM, np.int64),
            HostScratch.make(BLOCK, count, facts.num_subnets, facts.num_units),
            np.zeros((1, width), np.float32),
        )

    def with_room(self, rows: int, more: int) -> "HostSide":
        """Return it with room for so many rows, and so many more of them that are all new."""
        side, inputs = self, self.inputs.with_room(more * self.ids.shape[1])
        if len(self.ids) < rows:
            ids, order, quiet = (_longer(array, rows) for array in (self.ids, self.order, self.quiet))
            side = self._replace(ids=ids, order=order, quiet=quiet)
        return side if inputs is self.inputs else side._replace(inputs=inputs)


def _longer(array: np.ndarray, rows: int) -> np.ndarray:
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class HostPlayer(PolicyTable):
    """A `HostNetwork` that is asked once per distinct row, with orders or without; number 0 is without.

    prompts: the orders that it reads in place of the workflows that it must keep, one each.
    """

    def __init__(
        self,
        policy: HostNetwork,
        workflows: Sequence[Workflow] = (),
        *,
        spec: PolicySpec,
        prompts: Sequence[Workflow] = (),
        greedy: bool = False,
    ):
        super().__init__(self._odds, spec=spec, greedy=greedy)
        self.policy, self.side = policy, HostSide.of(policy, spec)
        self._known(workflows, prompts or workflows)

    def know(self, workflows: Sequence[Workflow]) -> None:
        """Forget all answers, and know these orders from now on."""
        self._known(workflows, workflows)
        self.forget()

    _numbers: dict[Workflow | None, int]  # type: ignore[assignment]  # None: without an order

    def _known(self, kept: Sequence[Workflow], told: Sequence[Workflow]) -> None:
        """Work out what orders mean for hosts."""
        spec, scheme = self.spec, self.spec.units
        assert scheme is not None
        self._numbers = {order: number for number, order in enumerate((None, *kept))}
        self._told = tuple(told)
        by_order, read = order_facts(spec, (None, *told))
        _, ranks = order_facts(spec, (None, *kept))
        folded = Folded.empty(len(ranks), len(self.side.facts.unit))
        self.side = self.side._replace(order_facts=by_order, told=read, ranks=ranks, folded=folded)
        self.orders = np.concatenate([spec.orders([]), spec.orders(told)]) if kept else spec.orders([])
        forbidden = spec.shields(kept).forbidden if kept else np.zeros((0, scheme.size + 1, spec.row_words - spec.words))
        none = Shields(np.zeros((1, scheme.size), np.int64), np.zeros((1, *forbidden.shape[1:]), np.uint64))
        self.shields = Shields(*map(np.concatenate, zip(none, spec.shields(kept), strict=True))) if kept else none
        self._fold()

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        return tuple(order for order in self._numbers if order is not None)

    def number_of(self, workflow: Workflow | None) -> int:
        if workflow not in self._numbers:
            assert workflow is not None
            self._known((*self.workflows, workflow), (*self._told, workflow))
        return self._numbers[workflow]

    def make_room(self, more: int) -> None:
        super().make_room(more)
        self.side = self.side.with_room(len(self.table.rows), more)

    def forget(self) -> None:
        super().forget()
        self.side.inputs.clear()
        self._fold()

    def _fold(self) -> None:
        side = self.side
        fold_all(self.policy.actor, self.policy.critic, side.facts.network, side.order_facts, side.folded)

    def look(self, memories: Memories, words: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        self.make_room(len(words))
        rows, row_ids, count = self.orders[assigned], np.empty(len(words), np.int64), int(self.table.filled[0])
        read_rows(memories.records, self.arrays, self.shields, assigned, word_rows(words), rows)
        find_rows(self.table, rows, row_ids)
        self._answer_rows(count, row_ids, assigned)
        return row_ids

    def _answer_rows(self, first: int, row_ids: np.ndarray, assigned: np.ndarray) -> None:
        """Answer the rows from `first` on, which are among those of row_ids [N] and keep the orders assigned [N]."""
        new = row_ids >= first
        orders = np.zeros(int(self.table.filled[0]) - first, np.int64)
        orders[row_ids[new] - first] = assigned[new]
        answer_all(self.side, self.table, first, orders, self.arrays.words, self.greedy)

    def _odds(self, inputs: np.ndarray) -> np.ndarray:
        """Return the odds of all choices, [M, A], of inputs [M, I], whatever is masked: the policy as a function."""
        spec, scheme = self.spec, self.spec.units
        assert scheme is not None
        words, order_bits = words_of(inputs), np.asarray(inputs)[:, spec.inputs - scheme.encoding_bits :]
        orders = np.array([self.number_of(_order_of(scheme, bits)) for bits in order_bits], np.int64)
        alone = HostPlayer(self.policy, self.workflows, spec=spec)
        rows, row_ids = np.zeros((len(words), spec.row_words), np.uint64), np.empty(len(words), np.int64)
        rows[:, : spec.words] = words
        alone.make_room(len(rows))
        find_rows(alone.table, rows, row_ids)
        alone._answer_rows(0, row_ids, orders)
        cumulative = alone.table.cumulative[row_ids]
        return np.diff(cumulative, axis=1, prepend=np.float32(0)) / cumulative[:, -1:]


def _order_of(scheme: UnitScheme, bits: np.ndarray) -> Workflow | None:
    """Return the order of these bits, as `Workflow.encode` writes them; None: no bit is set."""
    if not bits.any():
        return None
    return scheme.order_of(tuple(int(unit) for unit in bits.reshape(scheme.size, scheme.size).argmax(axis=1)))


@compiled
def fold_all(actor, critic, facts, order_facts, folded):
    """Fill a `Folded` for weights that have changed."""
    hosts.fold(actor, facts, order_facts, folded.actor)
    hosts.fold(critic, facts, order_facts, folded.critic)


@compiled
def answer_all(side, answered, first, orders, words, greedy):
    """Answer the rows of a `RowTable` from `first` on, which keep `orders`."""
    hosts.load_output(side.actor, side.work)
    end = answered.filled[0]
    answer_host_rows(side, answered.rows, first, end, orders, words, answered.cumulative, answered.likely, greedy)


@called
def answer_host_rows(side, rows, first, end, orders, words, cumulative, likely, greedy):
    """Enter the odds of the rows from `first` to before `end`, which are new, and keep what they had. orders [end - first].

    words: of a row's bits; behind them stand the masked choices. After a change of weights: `load_output` first.
    """
    work, outputs, facts = side.work, side.outputs, side.facts
    num_hosts = len(work.bits)
    for start in range(first, end, len(work.ids)):
        count, met = min(len(work.ids), end - start), side.inputs.filled[0]
        for r in range(count):
            number = start + r
            order = orders[number - first]
            hosts.read_hosts(facts, side.ranks, rows, number, order, words, work, r)
            hosts.number_hosts(side.inputs, order, work, r)
            quiet = 0
            for n in range(QUIET_TURNS):
                quiet += np.int64(work.pooled[r, QUIET + n])
            side.order[number], side.quiet[number] = order, quiet
            for host in range(num_hosts):
                side.ids[number, host] = work.ids[r, host]
        hosts.encode(side.actor, side.folded, side.inputs, num_hosts, met)
        hosts.host_logits(side.actor, facts, side.told, side.inputs, count, work)
        for r in range(count):
            number = start + r
            for a in range(outputs.shape[1]):
                if a >= len(facts.choice_output) or rows[number, words + (a >> 6)] >> uint64(a & 63) & uint64(1):
                    outputs[0, a] = -network.INFINITY
                else:
                    output = facts.choice_output[a]
                    sleeps = output >= len(VERBS) * num_hosts
                    outputs[0, a] = work.sleep[r, 0] if sleeps else work.logits[r * num_hosts + (output >> 2), output & 3]
            network.subtract_row_max(outputs, 1)
            for a in range(outputs.shape[1]):
                outputs[0, a] = network.exp_nonpositive(outputs[0, a])
            enter_odds(outputs, cumulative, likely, number, greedy)
