"""Networks of IEEE operations: sums in registers are NumPy's bit by bit, exp, tanh and log those of double precision."""

import numpy as np
import pytest
from numba import njit

from fixfirst.policy import network, vectors
from fixfirst.policy.network import HIDDEN, LayerBuffers, Network, shapes
from fixfirst.policy.vectors import TILE, TILE_ROWS, WIDE, Plain

EPSILON = np.finfo(np.float32).eps  # 1.2e-7


def numbers(*shape, seed=0):
    """Of very different sizes, so that another order of adding them would show."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(np.float32)


def compiled(function, count):
    """A function of so many arguments, ready for Python."""
    arguments = ", ".join("abcdef"[:count])
    scope = {"function": function}
    exec(f"def call({arguments}): return function({arguments})", scope)
    return njit(scope["call"])


def both(name):
    """A function of `vectors`, and what it does in NumPy."""
    plain = getattr(Plain, name)
    return compiled(getattr(vectors, name), min(plain.__code__.co_argcount, 6)), plain


@pytest.mark.parametrize("terms", [0, 1, 7, 64, 160])
@pytest.mark.parametrize("name", ["add_tile", "add_outer_tile", "add_short_line", "add_wide_line"])
def test_products_add_term_by_term_and_touch_nothing_beside_them(name, terms):
    rows, width = (TILE_ROWS, TILE) if "tile" in name else (1, TILE if "short" in name else WIDE)
    sums = [numbers(20, 96, seed=2) for _ in range(3)]
    for function, c in zip(both(name), sums, strict=False):
        function(numbers(160, 160), numbers(160, 96, seed=1), c, 8, 16, terms)
    assert np.array_equal(sums[0], sums[1])
    for c in sums:
        c[8 : 8 + rows, 16 : 16 + width] = 0
    assert np.array_equal(sums[0], sums[2])
    a, b = numbers(4, 64), numbers(64, 16, seed=1)  # in these numbers the order of terms shows
    forwards, backwards = np.zeros((2, 4, 16), np.float32)
    Plain.add_tile(a, b, forwards, 0, 0, 64)
    Plain.add_tile(a[:, ::-1], b[::-1], backwards, 0, 0, 64)
    assert (forwards != backwards).mean() > 0.5


@pytest.mark.parametrize("name", ["add_lines", "add_to_lines"])
@pytest.mark.parametrize("end", [2, 3, 12])
def test_lines_of_a_matrix(name, end):
    """Lines active[2 : end]; some stand there twice."""
    active = np.array([9, 9, 5, 0, 5, 8, 1, 2, 8, 8, 3, 4, 9])
    ours, theirs, before = ((numbers(3, WIDE), numbers(10, WIDE, seed=1)) for _ in range(3))
    for function, (c, lines) in zip(both(name), (ours, theirs), strict=True):
        function(*((lines, active, 2, end, c, 1) if name == "add_lines" else (c, 1, lines, active, 2, end)))
    assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))
    assert (end > 2) == any((x != y).any() for x, y in zip(ours, before, strict=True))


@pytest.mark.parametrize("width", [16, 64, 160])
def test_dot_products_in_sixteen_sums_and_the_largest_of_a_row(width):
    """The largest wherever it stands, also where everything else is minus infinity."""
    a, b, (dot, plain), (largest, plainly) = numbers(3, 160), numbers(3, 160, seed=1), both("dot"), both("largest")
    exact = (a[1, :width].astype(np.float64) * b[1, :width]).sum()
    assert dot(a, b, 1, width) == plain(a, b, 1, width)
    assert dot(a, b, 1, width) == pytest.approx(exact, abs=1e-6 * float(np.abs(a[1] * b[1]).sum()))
    assert largest(a, 1, width) == plainly(a, 1, width) == a[1, :width].max()
    for position in range(width):
        a[2] = -np.inf
        a[2, position] = -5
        assert largest(a, 2, width) == -5


def each(function, x):
    """A function of one number, for all of an array."""
    return njit(lambda x: np.array([function(each) for each in x]), error_model="numpy")(x)


def test_exponentials_are_within_two_roundings_and_zero_below_the_smallest_number():
    power, _ = both("two_to")
    assert [power(n) for n in (-126, -1, 0, 1, 127)] == [2.0**-126, 0.5, 1, 2, 2.0**127]
    x = np.concatenate([np.linspace(-87, 0, 200_001), [-1e-30, -0.0, 0.0]]).astype(np.float32)
    y = each(network.exp_nonpositive, x)
    assert np.abs(y / np.exp(x.astype(np.float64)) - 1).max() < 2 * EPSILON
    assert y[-1] == y[-2] == 1  # so that the ratio of a policy to itself is exactly 1
    assert not each(network.exp_nonpositive, np.array([-87.5, -100, -1e30, -np.inf], np.float32)).any()
    x = np.linspace(-87, 87, 20_001).astype(np.float32)  # of any number
    assert np.abs(each(network.exponential, x) / np.exp(x.astype(np.float64)) - 1).max() < 3e-7
    special = each(network.exponential, np.array([0, np.nan, np.inf, -np.inf, 1e30], np.float32))
    assert special[0] == 1 and np.isfinite(special).all()


def test_tanh_is_within_two_roundings_of_one_and_log_exact():
    x = np.concatenate([np.linspace(-20, 20, 200_001), [0.0, 1e-20, -1e-20]]).astype(np.float32)
    y = each(network.tanh, x)
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() < 2 * EPSILON
    assert np.array_equal(y[:200_001], -y[200_000::-1]) and y[-3] == 0  # odd
    x = np.geomspace(1, 1e6, 10_001)
    assert np.allclose(each(network.log_of, x), np.log(x), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("width", [16, 64, 160])
def test_products_of_matrices_add_in_order_however_many_rows_there_are(rows, width):
    """Against the same sums written out, bit by bit: a [R, J] b [J, N], and a transposed times b [R, N]."""
    a, b, c, outer = numbers(8, 64), numbers(64, width, seed=1), numbers(8, width, seed=2), numbers(64, width, seed=3)
    expected, expected_outer, right = c.copy(), outer.copy(), c.copy()
    for j in range(64):
        expected += a[:, j : j + 1] * b[j]
    for r in range(rows):
        expected_outer += a[r][:, None] * right[r]
    compiled(network.add_product, 4)(a, b, c, rows)
    compiled(network.add_outer, 4)(a, right, outer, rows)
    assert np.array_equal(c[:rows], expected[:rows]) and np.array_equal(outer, expected_outer)


def test_logits_are_lowered_until_the_largest_is_zero():
    x = np.random.default_rng(0).normal(size=(9, 160)).astype(np.float32) * 30
    x[3, 5] = -np.inf
    expected = np.maximum(x - x.max(axis=1, keepdims=True), -100)
    compiled(network.subtract_row_max, 2)(x, 9)
    assert np.array_equal(x, expected)


@njit
def outputs_of(net, starts, active, first, rows, work):
    network.load_output_layer(net, work)
    network.forward(net, starts, active, first, rows, work)


@pytest.mark.parametrize("actions", [1, 40, 145])
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_rows_go_through_the_network(actions, rows):
    """Against matrices in double precision; and a row's outputs do not depend on how many are worked on."""
    rng, net = np.random.default_rng(0), Network.zeros(70, actions)
    net.vector[:] = rng.normal(size=len(net.vector)) * 0.3
    bits = rng.random((10, 70)) < 0.2
    starts, active = np.concatenate([[0], bits.sum(axis=1).cumsum()]), np.nonzero(bits)[1]
    several, single = LayerBuffers.make(8, actions), LayerBuffers.make(1, actions)
    outputs_of(net.actor, starts, active, 2, rows, several)
    layers = [array.astype(np.float64) for array in net.actor]
    hidden = np.tanh(np.tanh(bits @ layers[0] + layers[1]) @ layers[2] + layers[3])
    assert hidden.shape == (10, HIDDEN)
    assert np.allclose(several.outputs[:rows, :actions], (hidden @ layers[4] + layers[5])[2 : 2 + rows], atol=1e-5)
    assert np.isneginf(several.outputs[:rows, actions:]).all()
    for r in range(rows):
        outputs_of(net.actor, starts, active, 2 + r, 1, single)
        assert np.array_equal(single.outputs[0], several.outputs[r])


def test_a_network_is_one_vector_and_its_arrays_are_those_of_files():
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes(77, 145).items()}
    net = Network.of(weights)
    assert len(net.vector) == sum(array.size for array in weights.values()) == 27_794
    assert np.array_equal(net.actor.matrix1, weights["actor.0.weight"].T)
    assert all(np.array_equal(array, weights[name]) for name, array in net.as_weights().items())
    net.vector[:] = 0
    assert not net.actor.bias3.any() and not net.critic.matrix3.any()
