"""A network that plays any scenario, compiled: the same weights for every host, with what hosts tell each other.

L hosts that blue sees; D distinct inputs of hosts, each encoded once; M rows; S orders; V = 4 verbs; A choices.

    x [37 bits of the moment, 85 facts] -> relu [64] -> relu: e [32] -> z [16]                         of each host
    g = relu(pool [mean of e, largest e, quiet turns])                                                 of the network
    m = relu(own e + around [z of hosts that lead there, of where it leads, of its subnet, of hosts whose type is ranked
        before its own, and after it] + whole g)                                                       of each host
    logits = output m, one per verb; Sleep: sleep g

Critic: an encoder of its own, the same pool, one hidden layer of 64, one value.

What is heavy is done once per distinct input of a host; a row is then its hosts' numbers, and sums. All sums run in the
order of hosts, term by term, so that bits are the same on every CPU (`network.py`).
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled
from fixfirst.game.chance import chance_keys, uniform
from fixfirst.policy import network, vectors
from fixfirst.policy.host_facts import (
    BLOCKS,
    DOUBTFUL,
    FORBIDDEN,
    MOMENT_BITS,
    NETWORK_FACTS,
    ORDER_FACTS,
    SUSPECT,
    UNCLEAN,
    VERBS,
)
from fixfirst.policy.memory import QUIET_TURNS
from fixfirst.policy.network import Weights
from fixfirst.policy.table import find_row

HIDDEN, CODE, MESSAGE, MIDDLE, POOLED, VALUE = 64, 32, 16, 48, 80, 64
AROUND = 5 * MESSAGE
QUIET = 2 * CODE  # where the quiet turns stand among what is pooled
_ZERO, _ONE = np.float32(0), np.float32(1)


class Actor(NamedTuple):
    """Matrices [inputs, outputs] and biases [outputs], float32."""

    moment: np.ndarray  # [37, 64]
    facts: np.ndarray  # [85, 64]
    bias1: np.ndarray
    code: np.ndarray  # [64, 32]
    bias2: np.ndarray
    pool: np.ndarray  # [80, 32]: mean, largest, quiet turns, nothing
    bias_pool: np.ndarray
    message: np.ndarray  # [32, 16]
    own: np.ndarray  # [32, 48]
    around: np.ndarray  # [80, 48]
    whole: np.ndarray  # [32, 48]
    bias3: np.ndarray
    output: np.ndarray  # [48, 4]
    bias_output: np.ndarray
    sleep: np.ndarray  # [32, 1]
    bias_sleep: np.ndarray


class Critic(NamedTuple):
    """Likewise."""

    moment: np.ndarray  # [37, 64]
    facts: np.ndarray  # [85, 64]
    bias1: np.ndarray
    code: np.ndarray  # [64, 32]
    bias2: np.ndarray
    pool: np.ndarray  # [80, 64]
    bias_pool: np.ndarray
    value: np.ndarray  # [64, 1]
    bias_value: np.ndarray


def _shapes() -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Return the shapes of actor and critic, by name."""
    encoder: dict[str, tuple[int, ...]] = {
        "moment": (MOMENT_BITS, HIDDEN),
        "facts": (NETWORK_FACTS + ORDER_FACTS, HIDDEN),
        "bias1": (HIDDEN,),
        "code": (HIDDEN, CODE),
        "bias2": (CODE,),
    }
    actor = encoder | {
        "pool": (POOLED, CODE),
        "bias_pool": (CODE,),
        "message": (CODE, MESSAGE),
        "own": (CODE, MIDDLE),
        "around": (AROUND, MIDDLE),
        "whole": (CODE, MIDDLE),
        "bias3": (MIDDLE,),
        "output": (MIDDLE, len(VERBS)),
        "bias_output": (len(VERBS),),
        "sleep": (CODE, 1),
        "bias_sleep": (1,),
    }
    critic = encoder | {"pool": (POOLED, VALUE), "bias_pool": (VALUE,), "value": (VALUE, 1), "bias_value": (1,)}
    return actor, critic


SHAPES = _shapes()
WEIGHT_SHAPES = {
    f"{part}.{name}": shape
    for part, shapes in zip(("actor", "critic"), SHAPES, strict=True)
    for name, shape in shapes.items()
}
_GAINS = {"output": 0.1, "sleep": 0.1, "value": 0.5, "facts": 0.7}
_ACTIVE = {"moment": 12, "facts": 12, "pool": 69}  # so many of their inputs are about 1 at a time


class HostNetwork(NamedTuple):
    """All numbers of a policy in one vector, and the same numbers as layers."""

    vector: np.ndarray  # [P] float32
    actor: Actor
    critic: Critic

    @classmethod
    def zeros(cls) -> "HostNetwork":
        """All numbers 0; also used for whatever belongs to each of them, such as gradients."""
        actor, critic = SHAPES
        vector = np.zeros(sum(int(np.prod(shape)) for part in SHAPES for shape in part.values()), np.float32)
        arrays, start = [], 0
        for shape in (*actor.values(), *critic.values()):
            size = int(np.prod(shape))
            arrays.append(vector[start : start + size].reshape(shape))
            start += size
        return cls(vector, Actor(*arrays[: len(actor)]), Critic(*arrays[len(actor) :]))

    @classmethod
    def of(cls, weights: Weights) -> "HostNetwork":
        """From named arrays, copied."""
        net = cls.zeros()
        for name, array in net.as_weights().items():
            array[:] = weights[name]
        return net

    @classmethod
    def drawn(cls, seed: int) -> "HostNetwork":
        """Uniform, with the spread that keeps the size of what goes through relu, by counter-based chance."""
        net = cls.zeros()
        keys, draws = np.empty(len(net.vector), np.uint64), np.empty(len(net.vector))
        chance_keys(seed, 0, keys)
        uniform(keys, 0, np.full(len(keys), 2.0), draws)
        net.vector[:] = draws - 1.0
        for layers in (net.actor._asdict(), net.critic._asdict()):
            for name, array in layers.items():
                gain = 0.0 if name.startswith("bias") else _GAINS.get(name, 1.4)
                array *= np.float32(gain * np.sqrt(3 / _ACTIVE.get(name, len(array))))
            layers["pool"][QUIET + QUIET_TURNS :] = 0
        return net

    def as_weights(self) -> dict[str, np.ndarray]:
        """Named arrays, as files hold them: views, not copies."""
        parts = {"actor": self.actor._asdict(), "critic": self.critic._asdict()}
        return {f"{part}.{name}": array for part, layers in parts.items() for name, array in layers.items()}


class Folded(NamedTuple):
    """What facts of hosts and of S orders add to the first layers; it does not change while the weights stay."""

    actor: np.ndarray  # [S, L, 64]
    critic: np.ndarray  # [S, L, 64]

    @classmethod
    def empty(cls, orders: int, hosts: int) -> "Folded":
        return cls(*(np.zeros((orders, hosts, HIDDEN), np.float32) for _ in range(2)))


class HostTable(NamedTuple):
    """Distinct inputs of hosts in the order in which they were met, and what the encoder makes of each. C: room."""

    filled: np.ndarray  # [1] int64
    keys: np.ndarray  # [C, 2] uint64: bits of the moment; order * L + host
    slots: np.ndarray  # int32, as in `RowTable`
    hidden: np.ndarray  # [C, 64] float32
    code: np.ndarray  # [C, 32]: e
    message: np.ndarray  # [C, 16]: z

    @classmethod
    def empty(cls, capacity: int) -> "HostTable":
        capacity = -(-capacity // 4) * 4

        def numbers(width: int) -> np.ndarray:
            return np.zeros((capacity, width), np.float32)

        slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        keys = np.zeros((capacity, 2), np.uint64)
        return cls(np.zeros(1, np.int64), keys, slots, *map(numbers, (HIDDEN, CODE, MESSAGE)))

    def with_room(self, more: int) -> "HostTable":
        """Return a table of the same inputs that can hold so many more: itself, if there is room."""
        count, capacity = int(self.filled[0]), len(self.keys)
        if count + more <= capacity:
            return self
        larger = HostTable.empty(max(2 * capacity, count + more))
        enter_inputs(larger, self.keys[:count])
        for new, old in zip(larger[3:], self[3:], strict=True):
            new[:count] = old[:count]
        return larger

    def clear(self) -> None:
        """Forget all inputs."""
        self.filled[0] = 0
        self.slots[:] = -1


class HostScratch(NamedTuple):
    """Where R rows at a time are worked on. Row r's hosts are lines r * L to before (r + 1) * L, and so on."""

    bits: np.ndarray  # [L] int64: of the moment, of one row
    read: np.ndarray  # [1, 2] uint64
    ids: np.ndarray  # [R, L] int64
    order: np.ndarray  # [R] int64
    output: np.ndarray  # [48, 16]: the last layer, filled up
    pooled: np.ndarray  # [R, 80]
    whole: np.ndarray  # [R, 32]: g
    seen: np.ndarray  # [R, 64]: the critic's hidden layer
    base: np.ndarray  # [R, 48]
    sleep: np.ndarray  # [R, 1]: logits of Sleep
    near: np.ndarray  # [R * N, 16]: mean of z of each subnet
    kind: np.ndarray  # [R * U, 16]: sum of z of each unit type
    before: np.ndarray  # [R * U, 16]: of types ranked before each
    after: np.ndarray  # [R * U, 16]
    code: np.ndarray  # [R * L, 32]: e
    around: np.ndarray  # [R * L, 80]
    middle: np.ndarray  # [R * L, 48]: m
    logits: np.ndarray  # [R * L, 16]

    @classmethod
    def make(cls, rows: int, hosts: int, subnets: int, units: int) -> "HostScratch":
        sizes = [(MIDDLE, 16), *((rows, width) for width in (POOLED, CODE, VALUE, MIDDLE, 1)), (rows * subnets, MESSAGE)]
        sizes += [(rows * units, MESSAGE)] * 3 + [(rows * hosts, width) for width in (CODE, AROUND, MIDDLE, 16)]
        numbers = [np.zeros((whole_tiles(lines), width), np.float32) for lines, width in sizes]
        places = np.zeros((rows, hosts), np.int64), np.zeros(rows, np.int64)
        return cls(np.zeros(hosts, np.int64), np.zeros((1, 2), np.uint64), *places, *numbers)


def whole_tiles(rows: int) -> int:
    """Return how many rows there are room for."""
    return rows if rows == 1 else -(-rows // vectors.TILE_ROWS) * vectors.TILE_ROWS


@called
def fold(layers, network_facts, order_facts, hidden):
    """Fill hidden [S, L, 64] with what facts of the network and of S orders add to the first layer, bias included."""
    facts = network_facts.shape[1]
    for order in range(len(order_facts)):
        for host in range(len(network_facts)):
            line = hidden[order, host]
            line[:] = layers.bias1
            for fact in range(facts + order_facts.shape[2]):
                factor = network_facts[host, fact] if fact < facts else order_facts[order, host, fact - facts]
                if factor != _ZERO:
                    for n in range(HIDDEN):
                        line[n] += factor * layers.facts[fact, n]


@called
def read_hosts(facts, ranks, rows, row, order, words, work, r):
    """Fill work.bits [L] with every host's bits of the moment in a row that keeps `order`, and the quiet turns of r."""
    bits, bit_host, bit_number, unit = work.bits, facts.bit_host, facts.bit_number, facts.unit
    bits[:] = 0
    for n in range(QUIET_TURNS):
        work.pooled[r, QUIET + n] = _ZERO
    for k in range(words):
        word, bit = rows[row, k], 64 * k
        while word:
            if word & uint64(1):
                host = bit_host[bit]
                if host >= 0:
                    bits[host] |= 1 << bit_number[bit]
                elif host == -1:
                    work.pooled[r, QUIET + bit_number[bit]] = _ONE
            word >>= uint64(1)
            bit += 1
    top, never = 1 << 30, ranks.shape[1]
    for host in range(len(bits)):
        if host != facts.start and bits[host] & (UNCLEAN | 1 << SUSPECT):
            bits[host] |= 1 << DOUBTFUL
            top = min(top, ranks[order, unit[host]] if ranks[order, unit[host]] >= 0 else never)
    forbids = False
    for host in range(len(bits)):
        if ranks[order, unit[host]] > top:
            bits[host] |= 1 << FORBIDDEN
            forbids = True
    if forbids:
        for host in range(len(bits)):
            if bits[host] >> DOUBTFUL & 1 and ranks[order, unit[host]] == top:
                bits[host] |= 1 << BLOCKS


@compiled
def enter_inputs(table, keys):
    """Enter keys [D, 2], in their order."""
    for number in range(len(keys)):
        find_row(table.slots, table.keys, table.filled, keys, number)


@called
def number_hosts(table, order, work, r):
    """Fill work.ids [R, L] of r with the numbers of the hosts' inputs; new ones are entered. There must be room."""
    hosts = len(work.bits)
    work.order[r] = order
    for host in range(hosts):
        work.read[0, 0] = uint64(work.bits[host])
        work.read[0, 1] = uint64(order * hosts + host)
        work.ids[r, host] = find_row(table.slots, table.keys, table.filled, work.read, 0)


@called
def relu(x, first, end):
    for r in range(first, end):
        for n in range(x.shape[1]):
            x[r, n] = max(x[r, n], _ZERO)


@called
def add_lines(a, b, c, first, end):
    """c [R, N] += a [R, J] b [J, N] for the rows from `first` to before `end`, and for what fills them up to tiles."""
    count = end - first
    if count == 1:
        network.add_product(a[first:end], b, c[first:end], 1)
    elif count > 1:
        network.add_product(a[first:], b, c[first:], (count + 3) // 4 * 4)


@called
def encode_codes(layers, folded_lines, keys, hosts, hidden, code, first, end):
    """Fill hidden [D, 64] and code [D, 32] of the inputs from `first` to before `end`."""
    for number in range(first, end):
        where = np.int64(keys[number, 1])
        order, host = where // hosts, where % hosts
        for n in range(HIDDEN):
            hidden[number, n] = folded_lines[order, host, n]
        bits, bit = keys[number, 0], 0
        while bits:
            if bits & uint64(1):
                for n in range(HIDDEN):
                    hidden[number, n] += layers.moment[bit, n]
            bits >>= uint64(1)
            bit += 1
        for n in range(CODE):
            code[number, n] = layers.bias2[n]
    relu(hidden, first, end)
    add_lines(hidden, layers.code, code, first, end)
    relu(code, first, end)


@called
def encode(actor, folded, table, hosts, first):
    """Fill what the table holds of all inputs from `first` on. The table has room for whole tiles."""
    end = table.filled[0]
    encode_codes(actor, folded.actor, table.keys, hosts, table.hidden, table.code, first, end)
    table.message[first:end] = _ZERO
    add_lines(table.code, actor.message, table.message, first, end)


@called
def pool(code, ids, pooled, r):
    """Fill row r of pooled [R, 80] with the mean and the largest of what the encoder makes of the hosts ids [R, L]."""
    for n in range(2 * CODE):
        pooled[r, n] = _ZERO  # after relu nothing is smaller
    for host in range(ids.shape[1]):
        line = ids[r, host]
        for n in range(CODE):
            pooled[r, n] += code[line, n]
        for n in range(CODE):
            pooled[r, CODE + n] = max(pooled[r, CODE + n], code[line, n])
    share = _ONE / np.float32(ids.shape[1])
    for n in range(CODE):
        pooled[r, n] *= share


@called
def values_of(critic, code, rows, work, result, first):
    """Fill result [V, 1] from `first` on with the critic's values of rows of work.ids; `code` by its encoder."""
    for r in range(rows):
        pool(code, work.ids, work.pooled, r)
        work.seen[r] = critic.bias_pool
    add_lines(work.pooled, critic.pool, work.seen, 0, rows)
    relu(work.seen, 0, rows)
    for r in range(rows):
        value = critic.bias_value[0]
        for n in range(VALUE):
            value += work.seen[r, n] * critic.value[n, 0]
        result[first + r, 0] = value


@called
def host_logits(actor, facts, ranks, table, rows, work):
    """Fill work.logits [R * L, 4 of 16] and work.sleep [R] for so many rows of work.ids and work.order.

    Needs `load_output` after every change of weights.
    """
    hosts = len(facts.unit)
    for r in range(rows):
        pool(table.code, work.ids, work.pooled, r)
        work.whole[r] = actor.bias_pool
        work.base[r] = actor.bias3
    add_lines(work.pooled, actor.pool, work.whole, 0, rows)
    relu(work.whole, 0, rows)
    add_lines(work.whole, actor.whole, work.base, 0, rows)
    gather(facts, ranks, table, rows, work)
    for r in range(rows):
        work.sleep[r, 0] = actor.bias_sleep[0]
        for n in range(CODE):
            work.sleep[r, 0] += work.whole[r, n] * actor.sleep[n, 0]
        for me in range(r * hosts, (r + 1) * hosts):
            work.middle[me] = work.base[r]
            for verb in range(len(VERBS)):
                work.logits[me, verb] = actor.bias_output[verb]
    add_lines(work.code, actor.own, work.middle, 0, rows * hosts)
    add_lines(work.around, actor.around, work.middle, 0, rows * hosts)
    relu(work.middle, 0, rows * hosts)
    add_lines(work.middle, work.output, work.logits, 0, rows * hosts)


@called
def gather(facts, ranks, table, rows, work):
    """Fill work.code [R * L, 32] and work.around [R * L, 80]: what hosts are, and what others tell them."""
    unit, subnet, ids, message = facts.unit, facts.subnet, work.ids, table.message
    hosts, units, subnets = len(unit), facts.num_units, facts.num_subnets
    work.near[: rows * subnets] = _ZERO
    work.kind[: rows * units] = _ZERO
    for r in range(rows):
        for host in range(hosts):
            line, near, kind = ids[r, host], r * subnets + subnet[host], r * units + unit[host]
            for n in range(MESSAGE):
                work.near[near, n] += facts.subnet_share[host] * message[line, n]
            for n in range(MESSAGE):
                work.kind[kind, n] += message[line, n]
        rank_messages(ranks, hosts, work, r)
        for host in range(hosts):
            near, kind, me = r * subnets + subnet[host], r * units + unit[host], r * hosts + host
            work.code[me] = table.code[ids[r, host]]
            add_partners(facts.reached_from, facts.sources, host, message, ids, r, work.around, me, 0)
            add_partners(facts.leads_from, facts.targets, host, message, ids, r, work.around, me, MESSAGE)
            for n in range(MESSAGE):
                work.around[me, 2 * MESSAGE + n] = work.near[near, n]
                work.around[me, 3 * MESSAGE + n] = work.before[kind, n]
                work.around[me, 4 * MESSAGE + n] = work.after[kind, n]


@called
def add_partners(starts, partners, host, message, ids, r, around, me, column):
    """Fill around [me] from a column on with the mean of what a host's partners tell."""
    first, end = starts[host], starts[host + 1]
    for n in range(MESSAGE):
        around[me, column + n] = _ZERO
    for k in range(first, end):
        line, share = ids[r, partners[k]], _ONE / np.float32(end - first)
        for n in range(MESSAGE):
            around[me, column + n] += share * message[line, n]


@called
def rank_messages(ranks, hosts, work, r):
    """Fill work.before and work.after of row r: 2 / L of the messages of types ranked before each type, and after it."""
    order, units, share = work.order[r], ranks.shape[1], np.float32(2) / np.float32(hosts)
    first = r * units
    work.before[first : first + units] = _ZERO
    work.after[first : first + units] = _ZERO
    for kind in range(units):
        for other in range(units):
            if ranks[order, other] < ranks[order, kind]:
                for n in range(MESSAGE):
                    work.before[first + kind, n] += share * work.kind[first + other, n]
                    work.after[first + other, n] += share * work.kind[first + kind, n]


@called
def load_output(actor, work):
    """Take over the last layer of a network whose weights may have changed."""
    for n in range(MIDDLE):
        for verb in range(len(VERBS)):
            work.output[n, verb] = actor.output[n, verb]
