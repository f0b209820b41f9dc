"""The networks of a policy, compiled: what to do (actor), and how much reward is still to come (critic).

I inputs, all of them bits; H = 64 hidden units; A actions; W = outputs filled up to whole tiles; M rows, R of them at once.

    inputs [I] -> tanh [H] -> tanh [H] -> logits [A]        actor
    inputs [I] -> tanh [H] -> tanh [H] -> value [1]         critic

The same bits on every CPU: nothing but IEEE's + - * / in single precision, in an order that is written down, never fused,
and exp and tanh made of them. A sum runs over its terms one after the other, for all its outputs side by side; so
compilers may use registers of any width. Matrices are [inputs, outputs]; files hold them the other way round (`as_weights`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fixfirst.base.compile import called, inlined
from fixfirst.game.chance import chance_keys, uniform
from fixfirst.policy import vectors

HIDDEN = 64
LAYERS = (0, 2, 4)  # their names in files; between them stand the tanh
Weights = Mapping[str, np.ndarray]  # "actor.0.weight" [outputs, inputs], "actor.0.bias" [outputs] and so on, float32


def shapes(inputs: int, actions: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a policy with so many inputs and actions, as in files."""
    named: dict[str, tuple[int, ...]] = {}
    for net, outputs in (("actor", actions), ("critic", 1)):
        sizes = (inputs, HIDDEN, HIDDEN, outputs)
        for layer, width, height in zip(LAYERS, sizes, sizes[1:], strict=False):
            named |= {f"{net}.{layer}.weight": (height, width), f"{net}.{layer}.bias": (height,)}
    return named


class Layers(NamedTuple):
    """One network: matrices [inputs, outputs] and biases [outputs], float32."""

    matrix1: np.ndarray
    bias1: np.ndarray
    matrix2: np.ndarray
    bias2: np.ndarray
    matrix3: np.ndarray
    bias3: np.ndarray


class Network(NamedTuple):
    """All numbers of a policy in one vector, and the same numbers as layers."""

    vector: np.ndarray  # [P] float32
    actor: Layers
    critic: Layers

    @classmethod
    def zeros(cls, inputs: int, actions: int) -> "Network":
        """All numbers 0; also used for whatever belongs to each of them, such as gradients."""
        sizes = shapes(inputs, actions)
        vector = np.zeros(sum(int(np.prod(shape)) for shape in sizes.values()), np.float32)
        arrays, start = [], 0
        for shape in sizes.values():
            part = vector[start : start + int(np.prod(shape))]
            arrays.append(part.reshape(shape[::-1]))
            start += part.size
        return cls(vector, Layers(*arrays[:6]), Layers(*arrays[6:]))

    @classmethod
    def of(cls, weights: Weights) -> "Network":
        """From named arrays, copied."""
        inputs, actions = weights["actor.0.weight"].shape[1], len(weights["actor.4.bias"])
        network = cls.zeros(inputs, actions)
        for array, name in zip((*network.actor, *network.critic), shapes(inputs, actions), strict=True):
            array[:] = weights[name].T
        return network

    @classmethod
    def drawn(cls, inputs: int, actions: int, seed: int, last: float = 1.0) -> "Network":
        """Uniform in +-1 / sqrt(inputs of the layer), by counter-based chance: the same numbers on every machine.

        last: factor on the last layers, which decides how sure the first policy is.
        """
        network = cls.zeros(inputs, actions)
        keys, draws = np.empty(len(network.vector), np.uint64), np.empty(len(network.vector))
        chance_keys(seed, 0, keys)
        uniform(keys, 0, np.full(len(keys), 2.0), draws)
        network.vector[:] = draws - 1.0
        for layers in (network.actor, network.critic):
            for matrix, bias, factor in zip(layers[::2], layers[1::2], (1.0, 1.0, last), strict=True):
                scale = np.float32(factor / np.sqrt(len(matrix)))
                matrix *= scale
                bias *= scale
        return network

    @property
    def size(self) -> tuple[int, int]:
        """How many inputs and actions."""
        return len(self.actor.matrix1), len(self.actor.bias3)

    def as_weights(self) -> dict[str, np.ndarray]:
        """Named arrays, as files hold them, copied."""
        arrays = (*self.actor, *self.critic)
        names = shapes(*self.size)
        return {name: np.ascontiguousarray(array.T) for name, array in zip(names, arrays, strict=True)}


@inlined
def list_bits(rows, row, words, active, start):
    """Write the numbers of the set bits in the first words of a row into active, from `start` on. Returns where they end."""
    end = start
    for k in range(words):
        word, bit = rows[row, k], 64 * k
        while word:
            if word & np.uint64(1):
                active[end] = bit
                end += 1
            word >>= np.uint64(1)
            bit += 1
    return end


ZERO, ONE, TWO, INFINITY = (np.float32(number) for number in (0, 1, 2, np.inf))
_LOG2_E = np.float32(1.4426950408889634)
_HALF = np.float32(0.5)
# ln 2 in two parts, the first with few bits, so that a whole multiple of it is exact.
_LN2_HIGH = np.float32(0.693145751953125)
_LN2_LOW = np.float32(1.428606765330187e-06)
_LOWEST = np.float32(-87)  # e^-87 is close to the smallest normal number
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1 / factorial) for factorial in (2, 6, 24, 120, 720, 5040))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (1 / odd for odd in range(3, 20, 2))
BARRED = np.float32(-100)  # as a logit below the largest: its e^x counts as 0


@inlined
def exp_nonpositive(x):
    """e^x of a number that is not above 0, within 2e-7 of it; below -87 it is 0."""
    value = max(x, _LOWEST)
    n = np.int32(value * _LOG2_E - _HALF)  # to the nearest whole number: it is cut towards 0
    rest = value - np.float32(n) * _LN2_HIGH - np.float32(n) * _LN2_LOW
    series = _C2 + rest * (_C3 + rest * (_C4 + rest * (_C5 + rest * (_C6 + rest * _C7))))
    result = (ONE + rest * (ONE + rest * series)) * vectors.two_to(n)
    return result if x >= _LOWEST else ZERO


@inlined
def exponential(x):
    """e^x of any number, within 3e-7; between e^-87 and e^87."""
    value = -abs(x)
    result = exp_nonpositive(value if value > _LOWEST else _LOWEST)  # also for a number that is none
    return result if x <= 0 else ONE / result


@inlined
def tanh(x):
    """sign(x) (1 - q) / (1 + q), q = e^(-2 |x|), within 2e-7."""
    q = exp_nonpositive(-TWO * abs(x))
    size = (ONE - q) / (ONE + q)
    return size if x >= 0 else -size


@called
def log_of(x):
    """The natural logarithm of a number of at least 1, in double precision: 2 artanh((m - 1) / (m + 1)), m near 1."""
    m, n = np.float64(x), 0.0
    while m > 1.5:
        m *= 0.5
        n += 1.0
    z = (m - 1.0) / (m + 1.0)  # in -1/7..1/5
    s = z * z
    series = _L9 + s * (_L11 + s * (_L13 + s * (_L15 + s * (_L17 + s * _L19))))
    series = 1.0 + s * (_L3 + s * (_L5 + s * (_L7 + s * series)))
    return 2.0 * z * series + n * 0.6931471805599453


# Every number of a result adds its terms one after the other, however many rows there are.


@called
def add_product(a, b, c, rows):
    """c [R, N] += a [R, J] b [J, N] for the first rows. N is a multiple of 16; R too, of 4, unless it is 1."""
    terms, width = b.shape
    if rows > 1:
        for n in range(0, width, vectors.TILE):
            for i in range(0, rows, vectors.TILE_ROWS):
                vectors.add_tile(a, b, c, i, n, terms)
    else:
        end = width - width % vectors.WIDE
        for n in range(0, end, vectors.WIDE):
            vectors.add_wide_line(a, b, c, 0, n, terms)
        for n in range(end, width, vectors.TILE):
            vectors.add_short_line(a, b, c, 0, n, terms)


@called
def add_outer(a, b, c, rows):
    """c [J, N] += a [R, J] transposed times b [R, N], of the first rows. N is a multiple of 16, J of 4."""
    for n in range(0, c.shape[1], vectors.TILE):
        for j in range(0, len(c), vectors.TILE_ROWS):
            vectors.add_outer_tile(a, b, c, j, n, rows)


class LayerBuffers(NamedTuple):
    """Where R rows at a time go through one network, float32; made once."""

    hidden1: np.ndarray  # [R, H]
    hidden2: np.ndarray  # [R, H]
    outputs: np.ndarray  # [R, W]
    matrix3: np.ndarray  # [H, W] the last layer, filled up with outputs that nobody reads
    bias3: np.ndarray  # [W]

    @classmethod
    def make(cls, rows: int, outputs: int) -> "LayerBuffers":
        width = -(-outputs // vectors.TILE) * vectors.TILE
        shapes_in_order = (rows, HIDDEN), (rows, HIDDEN), (rows, width), (HIDDEN, width), width
        return cls(*(np.zeros(shape, np.float32) for shape in shapes_in_order))


@called
def load_output_layer(net, work):
    """Take over the last layer of a network whose weights may have changed. The e^x of outputs filled up is 0."""
    for n in range(len(work.bias3)):
        work.bias3[n] = net.bias3[n] if n < len(net.bias3) else -INFINITY
    for h in range(len(work.matrix3)):
        for n in range(len(net.bias3)):
            work.matrix3[h, n] = net.matrix3[h, n]


@called
def forward(net, starts, active, first, rows, work):
    """Fill work.outputs for the rows from `first` on: the set bits of row r are active[starts[r] : starts[r + 1]].

    Needs `load_output_layer` after every change of weights.
    """
    hidden1, hidden2, outputs, whole = work.hidden1, work.hidden2, work.outputs, whole_tiles(rows)
    for r in range(whole):
        for h in range(HIDDEN):
            hidden1[r, h] = net.bias1[h]
            hidden2[r, h] = net.bias2[h]
        for n in range(len(work.bias3)):
            outputs[r, n] = work.bias3[n]
        if r < rows:
            vectors.add_lines(net.matrix1, active, starts[first + r], starts[first + r + 1], hidden1, r)
    tanh_rows(hidden1, whole)
    add_product(hidden1, net.matrix2, hidden2, rows)
    tanh_rows(hidden2, whole)
    add_product(hidden2, work.matrix3, outputs, rows)


@inlined
def whole_tiles(rows):
    """So many rows are worked on, where several are asked for."""
    return rows if rows == 1 else (rows + vectors.TILE_ROWS - 1) // vectors.TILE_ROWS * vectors.TILE_ROWS


@called
def tanh_rows(x, rows):
    """The first rows of x [R, H] become their tanh."""
    for r in range(rows):
        for h in range(HIDDEN):
            x[r, h] = tanh(x[r, h])


@called
def subtract_row_max(x, rows):
    """Subtract the largest number of each of the first rows from the row, x [R, N], N a multiple of 16;
    nothing falls below BARRED."""
    for r in range(rows):
        top = vectors.largest(x, r, x.shape[1])
        for n in range(x.shape[1]):
            x[r, n] = max(x[r, n] - top, BARRED)
