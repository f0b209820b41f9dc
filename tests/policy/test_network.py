"""exp, tanh, log and products of IEEE operations, against NumPy in double precision."""

import numpy as np
import pytest
from numba import njit

from fixfirst.policy.network import (
    HIDDEN,
    LayerBuffers,
    Network,
    add_outer,
    add_product,
    exp_nonpositive,
    exponential,
    forward,
    list_bits,
    load_output_layer,
    log_of,
    shapes,
    subtract_row_max,
    tanh,
)

EPSILON = np.finfo(np.float32).eps  # 1.2e-7


def each(function):
    """A function of one number, for all of an array."""
    return njit(lambda x: np.array([function(each) for each in x]), error_model="numpy")


def test_exponentials_are_within_two_roundings():
    x = np.concatenate([np.linspace(-87, 0, 200_001), [-1e-30, -0.0, 0.0]]).astype(np.float32)
    y = each(exp_nonpositive)(x)
    assert np.abs(y / np.exp(x.astype(np.float64)) - 1).max() < 2 * EPSILON
    assert y[-1] == y[-2] == 1  # so that the ratio of a policy to itself is exactly 1


def test_below_the_smallest_number_the_exponential_is_zero():
    assert each(exp_nonpositive)(np.array([-87.5, -100, -1e30, -np.inf], np.float32)).tolist() == [0, 0, 0, 0]


def test_the_exponential_of_any_number():
    x = np.linspace(-87, 87, 20_001).astype(np.float32)
    assert np.abs(each(exponential)(x) / np.exp(x.astype(np.float64)) - 1).max() < 3e-7
    assert each(exponential)(np.zeros(1, np.float32)) == 1
    assert np.isfinite(each(exponential)(np.array([np.nan, np.inf, -np.inf, 1e30], np.float32))).all()


def test_tanh_is_within_two_roundings_of_one():
    x = np.concatenate([np.linspace(-20, 20, 200_001), [0.0, 1e-20, -1e-20]]).astype(np.float32)
    y = each(tanh)(x)
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() < 2 * EPSILON
    assert np.array_equal(y[:200_001], -y[200_000::-1]) and y[-3] == 0  # odd


def test_log():
    x = np.geomspace(1, 1e6, 10_001)
    assert np.allclose(each(log_of)(x), np.log(x), rtol=1e-13, atol=1e-15)


multiply, outer = (
    njit(lambda a, b, c, rows: add_product(a, b, c, rows)),
    njit(lambda a, b, c, rows: add_outer(a, b, c, rows)),
)


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("width", [16, 64, 160])
def test_products_add_their_terms_in_order(rows, width):
    """Against the same sums written out, bit by bit, however many rows there are."""
    a, b, c = drawn((8, 64), (64, width), (8, width))
    expected = c.copy()
    for j in range(64):
        expected += a[:, j : j + 1] * b[j]
    multiply(a, b, c, rows)
    assert np.array_equal(c[:rows], expected[:rows])


@pytest.mark.parametrize("rows", [1, 3, 32])
def test_outer_products_add_row_by_row(rows):
    a, b, c = drawn((32, 64), (32, 48), (64, 48))
    expected = c.copy()
    for r in range(rows):
        expected += a[r][:, None] * b[r]
    outer(a, b, c, rows)
    assert np.array_equal(c, expected)


def test_logits_are_lowered_until_the_largest_is_zero():
    x = np.random.default_rng(0).normal(size=(9, 160)).astype(np.float32) * 30
    x[3, 5] = -np.inf
    expected = np.maximum(x - x.max(axis=1, keepdims=True), -100)
    njit(lambda x: subtract_row_max(x, 9))(x)
    assert np.array_equal(x, expected)


def test_the_set_bits_of_a_row_are_listed():
    active = np.zeros(192, np.int64)
    rows = np.array([[7, 7, 7], [1 | 1 << 63, 0, 1 << 5]], np.uint64)
    end = njit(lambda rows, active: list_bits(rows, 1, 3, active, 2))(rows, active)
    assert end == 5 and active[:6].tolist() == [
        0,
        0,
        0,
        63,
        133,
        0,
    ]


@njit
def outputs_of(net, starts, active, first, rows, work):
    load_output_layer(net, work)
    forward(net, starts, active, first, rows, work)


@pytest.mark.parametrize("actions", [1, 40, 145])
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_rows_go_through_the_network(actions, rows):
    """Against matrices in double precision; and a row's outputs do not depend on how many are worked on."""
    rng = np.random.default_rng(0)
    network = Network.zeros(70, actions)
    network.vector[:] = rng.normal(size=len(network.vector)) * 0.3
    bits = rng.random((10, 70)) < 0.2
    starts, active = np.concatenate([[0], bits.sum(axis=1).cumsum()]), np.nonzero(bits)[1]
    several, one = LayerBuffers.make(8, actions), LayerBuffers.make(1, actions)
    outputs_of(network.actor, starts, active, 2, rows, several)
    net = [array.astype(np.float64) for array in network.actor]
    hidden = np.tanh(np.tanh(bits @ net[0] + net[1]) @ net[2] + net[3])
    assert hidden.shape == (10, HIDDEN)
    assert np.allclose(several.outputs[:rows, :actions], (hidden @ net[4] + net[5])[2 : 2 + rows], atol=1e-5)
    assert np.isneginf(several.outputs[:rows, actions:]).all()
    for r in range(rows):
        outputs_of(network.actor, starts, active, 2 + r, 1, one)
        assert np.array_equal(one.outputs[0], several.outputs[r])


def test_a_network_is_one_vector_and_its_arrays_are_those_of_files():
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes(77, 145).items()}
    network = Network.of(weights)
    assert len(network.vector) == sum(array.size for array in weights.values()) == 27_794
    assert np.array_equal(network.actor.matrix1, weights["actor.0.weight"].T)
    assert all(np.array_equal(array, weights[name]) for name, array in network.as_weights().items())
    network.vector[:] = 0
    assert not network.actor.bias3.any() and not network.critic.matrix3.any()
