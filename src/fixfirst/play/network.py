"""The networks of a policy, compiled: what to do (actor), and how much reward is still to come (critic).

I inputs, all of them bits; H = 64 hidden units; A actions; M rows, R of them at once.

    inputs [I] -> tanh [H] -> tanh [H] -> logits [A]        actor
    inputs [I] -> tanh [H] -> tanh [H] -> value [1]         critic

The same bits on every CPU: nothing but IEEE's + - * / in single precision, in an order that is written down, never fused,
and exp and tanh made of them. A sum runs over its terms one after the other, for all its outputs side by side; so
compilers may use registers of any width. Matrices are [inputs, outputs]; files hold them the other way round (`as_weights`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from fixfirst.game import NUM_ACTIONS, OBSERVATION_BITS
from fixfirst.orders import UnitScheme

# IEEE's division, which answers inf where Python's would raise: a loop that may raise is not compiled for wide registers.
arithmetic = njit(error_model="numpy")

HIDDEN = 64
LAYERS = (0, 2, 4)  # their names in files; between them stand the tanh
Weights = Mapping[str, np.ndarray]  # "actor.0.weight" [outputs, inputs], "actor.0.bias" [outputs] and so on, float32


def num_inputs(scheme: UnitScheme | None) -> int:
    """How many bits a policy reads: the observation, and the order if it follows one."""
    return OBSERVATION_BITS + (0 if scheme is None else scheme.encoding_bits)


def shapes(inputs: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a policy with so many inputs, as in files."""
    found: dict[str, tuple[int, ...]] = {}
    for net, outputs in (("actor", NUM_ACTIONS), ("critic", 1)):
        sizes = (inputs, HIDDEN, HIDDEN, outputs)
        for layer, width, height in zip(LAYERS, sizes, sizes[1:], strict=False):
            found |= {f"{net}.{layer}.weight": (height, width), f"{net}.{layer}.bias": (height,)}
    return found


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
    def zeros(cls, inputs: int) -> "Network":
        """All numbers 0; also used for whatever belongs to each of them, such as gradients."""
        sizes = shapes(inputs)
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
        network = cls.zeros(weights["actor.0.weight"].shape[1])
        for array, name in zip((*network.actor, *network.critic), weights_in_order(weights), strict=True):
            array[:] = weights[name].T
        return network

    def as_weights(self) -> dict[str, np.ndarray]:
        """Named arrays, as files hold them, copied."""
        arrays = (*self.actor, *self.critic)
        names = shapes(len(self.actor.matrix1))
        return {name: np.ascontiguousarray(array.T) for name, array in zip(names, arrays, strict=True)}


def weights_in_order(weights: Weights) -> list[str]:
    """The names of a policy's arrays, in the order of the vector."""
    return list(shapes(weights["actor.0.weight"].shape[1]))


# ---------------------------------------------------------------- what a policy reads
# A row is what a policy reads, I bits packed into K = ceil(I / 64) words: the observation's 52, then those of the order.


def words_of(bits: np.ndarray) -> np.ndarray:
    """Bits [M, I] packed into words [M, K] uint64, bit i of the row as bit i % 64 of word i // 64."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 64) * 64), np.uint8)
    padded[:, : bits.shape[1]] = bits
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view(np.dtype(np.uint64).newbyteorder("<")).astype(np.uint64)


def bits_of(words: np.ndarray, inputs: int) -> np.ndarray:
    """Words [M, K] unpacked into bits [M, I] float32."""
    packed = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little", count=inputs).astype(np.float32)


@arithmetic
def list_bits(word_row, active):
    """Write the numbers of the set bits of a row [K] into active [I]. Returns how many there are."""
    count = 0
    for k in range(len(word_row)):
        word = word_row[k]
        bit = 64 * k
        while word:
            if word & np.uint64(1):
                active[count] = bit
                count += 1
            word >>= np.uint64(1)
            bit += 1
    return count


# ---------------------------------------------------------------- exp and tanh of IEEE operations

ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)
_LOG2_E = np.float32(1.4426950408889634)
_HALF = np.float32(0.5)
# ln 2 in two parts, the first with few bits, so that a whole multiple of it is exact.
_LN2_HIGH = np.float32(0.693145751953125)
_LN2_LOW = np.float32(1.428606765330187e-06)
_LOWEST = np.float32(-87)  # e^-87 is close to the smallest normal number
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1 / factorial) for factorial in (2, 6, 24, 120, 720, 5040))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (1 / odd for odd in range(3, 20, 2))
BARRED = np.float32(-100)  # as a logit below the largest: its e^x counts as 0
STRIDE = 32  # actions are filled up to a multiple of it, so that loops over them have no remainder
_POWERS = np.ldexp(np.float32(1), -np.arange(128)).astype(np.float32)  # 2^-n
_EXPONENT_BIAS, _EXPONENT_SHIFT = np.int32(127), np.int32(23)


@arithmetic
def exponentials(x, powers):
    """x [n] float32, none above 0, becomes e^x within 2e-7 of it; below -87 it becomes 0. powers [n] int32: scratch."""
    for i in range(len(x)):
        value = max(x[i], _LOWEST)
        n = np.int32(value * _LOG2_E - _HALF)  # to the nearest whole number: it is cut towards 0
        r = value - np.float32(n) * _LN2_HIGH - np.float32(n) * _LN2_LOW
        series = _C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
        powers[i] = (n + _EXPONENT_BIAS) << _EXPONENT_SHIFT if x[i] >= _LOWEST else np.int32(0)
        x[i] = ONE + r * (ONE + r * series)
    two_to_n = powers.view(np.float32)
    for i in range(len(x)):
        x[i] *= two_to_n[i]


@arithmetic
def exponential(x):
    """e^x of one number, within 2e-7; at most e^87."""
    value = -abs(x)
    if not value > _LOWEST:  # also for a number that is none
        value = _LOWEST
    n = np.int32(value * _LOG2_E - _HALF)
    r = value - np.float32(n) * _LN2_HIGH - np.float32(n) * _LN2_LOW
    series = _C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
    result = (ONE + r * (ONE + r * series)) * _POWERS[-n]
    return result if x <= 0 else ONE / result


@arithmetic
def tanhs(x, scratch, powers):
    """x [n] becomes tanh x = sign(x) (1 - q) / (1 + q), q = e^(-2 |x|), within 2e-7. scratch [n], powers [n] int32."""
    for i in range(len(x)):
        scratch[i] = -TWO * abs(x[i])
    exponentials(scratch, powers)
    for i in range(len(x)):
        size = (ONE - scratch[i]) / (ONE + scratch[i])
        x[i] = size if x[i] >= 0 else -size


@arithmetic
def log(x):
    """The natural logarithm of a number of at least 1, in double precision: 2 artanh((m - 1) / (m + 1)), m near 1."""
    m, n = np.float64(x), 0.0
    while m > 1.5:
        m *= 0.5
        n += 1.0
    z = (m - 1.0) / (m + 1.0)  # in -1/7..1/5
    s = z * z
    series = 1.0 + s * (
        _L3 + s * (_L5 + s * (_L7 + s * (_L9 + s * (_L11 + s * (_L13 + s * (_L15 + s * (_L17 + s * _L19)))))))
    )
    return 2.0 * z * series + n * 0.6931471805599453


# ---------------------------------------------------------------- products


@arithmetic
def add_product(a, b, c):
    """c [M, N] += a [M, J] b [J, N]. Every number of c adds its terms in the order of J; two rows share what they load."""
    rows, terms = a.shape
    for i in range(0, rows - 1, 2):
        c0, c1 = c[i], c[i + 1]
        for j in range(0, terms - 3, 4):
            p0, p1, p2, p3 = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            q0, q1, q2, q3 = a[i + 1, j], a[i + 1, j + 1], a[i + 1, j + 2], a[i + 1, j + 3]
            b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
            for n in range(len(c0)):
                c0[n] = c0[n] + p0 * b0[n] + p1 * b1[n] + p2 * b2[n] + p3 * b3[n]
                c1[n] = c1[n] + q0 * b0[n] + q1 * b1[n] + q2 * b2[n] + q3 * b3[n]
        for j in range(terms - terms % 4, terms):
            add_scaled(a[i, j], b[j], c0)
            add_scaled(a[i + 1, j], b[j], c1)
    if rows % 2:
        c0 = c[rows - 1]
        for j in range(0, terms - 3, 4):
            p0, p1, p2, p3 = a[rows - 1, j], a[rows - 1, j + 1], a[rows - 1, j + 2], a[rows - 1, j + 3]
            b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
            for n in range(len(c0)):
                c0[n] = c0[n] + p0 * b0[n] + p1 * b1[n] + p2 * b2[n] + p3 * b3[n]
        for j in range(terms - terms % 4, terms):
            add_scaled(a[rows - 1, j], b[j], c0)


@arithmetic
def add_scaled(factor, x, y):
    """y [N] += factor * x [N]."""
    for n in range(len(y)):
        y[n] += factor * x[n]


# ---------------------------------------------------------------- sums over rows
# In eight partial sums side by side: each waits only for itself. A row's length is a multiple of eight.


@arithmetic
def totals(x, sums):
    """sums [M] of rows x [M, N]."""
    for r in range(len(x)):
        a = b = c = d = e = f = g = h = ZERO
        for n in range(0, x.shape[1], 8):
            a += x[r, n]
            b += x[r, n + 1]
            c += x[r, n + 2]
            d += x[r, n + 3]
            e += x[r, n + 4]
            f += x[r, n + 5]
            g += x[r, n + 6]
            h += x[r, n + 7]
        sums[r] = ((a + b) + (c + d)) + ((e + f) + (g + h))


@arithmetic
def dots(x, y, step, sums):
    """sums [M] of x * y, rows [M, N] both (step 1), or y [1, N] for all rows (step 0)."""
    for r in range(len(x)):
        a = b = c = d = e = f = g = h = ZERO
        i = r * step
        for n in range(0, x.shape[1], 8):
            a += x[r, n] * y[i, n]
            b += x[r, n + 1] * y[i, n + 1]
            c += x[r, n + 2] * y[i, n + 2]
            d += x[r, n + 3] * y[i, n + 3]
            e += x[r, n + 4] * y[i, n + 4]
            f += x[r, n + 5] * y[i, n + 5]
            g += x[r, n + 6] * y[i, n + 6]
            h += x[r, n + 7] * y[i, n + 7]
        sums[r] = ((a + b) + (c + d)) + ((e + f) + (g + h))


@arithmetic
def lower_to_largest(x):
    """Subtract the largest number of each row from the row, x [M, N]; nothing falls below BARRED."""
    for r in range(len(x)):
        a = b = c = d = x[r, 0]
        for n in range(0, x.shape[1], 4):
            a = max(a, x[r, n])
            b = max(b, x[r, n + 1])
            c = max(c, x[r, n + 2])
            d = max(d, x[r, n + 3])
        largest = max(max(a, b), max(c, d))
        for n in range(x.shape[1]):
            x[r, n] = max(x[r, n] - largest, BARRED)


# ---------------------------------------------------------------- forward


@arithmetic
def forward(net, starts, active, hidden1, hidden2, outputs, scratch, powers):
    """Fill hidden1, hidden2 [R, H] and outputs [R, N] of one network for R rows.

    The set bits of row r are active[starts[r]:starts[r + 1]]. Scratch: [R * H] float32 and int32.
    """
    rows, size = len(outputs), len(outputs) * hidden1.shape[1]
    first_layer(net.matrix1, net.bias1, starts, active, hidden1[:rows])
    tanhs(hidden1[:rows].reshape(size), scratch[:size], powers[:size])
    hidden2[:rows] = net.bias2
    add_product(hidden1[:rows], net.matrix2, hidden2[:rows])
    tanhs(hidden2[:rows].reshape(size), scratch[:size], powers[:size])
    if outputs.shape[1] == 1:
        dots(hidden2[:rows], net.matrix3.reshape(1, -1), 0, outputs.reshape(-1))
        outputs += net.bias3
    else:
        outputs[:] = net.bias3
        add_product(hidden2[:rows], net.matrix3, outputs)


@arithmetic
def first_layer(matrix, bias, starts, active, lines):
    """lines [R, H]: the bias and the matrix's lines of all set bits, one after the other."""
    for r in range(len(lines)):
        first, last = starts[r], starts[r + 1]
        lines[r] = bias
        whole = last - (last - first) % 4
        for k in range(first, whole, 4):
            a, b, c, d = active[k], active[k + 1], active[k + 2], active[k + 3]
            for h in range(lines.shape[1]):
                lines[r, h] = lines[r, h] + matrix[a, h] + matrix[b, h] + matrix[c, h] + matrix[d, h]
        for k in range(whole, last):
            a = active[k]
            for h in range(lines.shape[1]):
                lines[r, h] += matrix[a, h]
