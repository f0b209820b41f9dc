"""exp, tanh, log and products of IEEE operations, against NumPy in double precision."""

import numpy as np
import pytest

from fixfirst.play.network import (
    Network,
    add_product,
    dots,
    exponential,
    exponentials,
    list_bits,
    log,
    lower_to_largest,
    shapes,
    tanhs,
    totals,
)

EPSILON = np.finfo(np.float32).eps  # 1.2e-7


def test_exponentials_are_within_two_roundings():
    x = np.concatenate([np.linspace(-87, 0, 200_001), [-1e-30, -0.0, 0.0]]).astype(np.float32)
    y, exact = x.copy(), np.exp(x.astype(np.float64))
    exponentials(y, np.empty(len(x), np.int32))
    assert np.abs(y / exact - 1).max() < 2 * EPSILON
    assert y[-1] == y[-2] == 1  # so that the ratio of a policy to itself is exactly 1


def test_below_the_smallest_number_the_exponential_is_zero():
    y = np.array([-87.5, -100, -1e30, -np.inf], np.float32)
    exponentials(y, np.empty(4, np.int32))
    assert y.tolist() == [0, 0, 0, 0]


def test_the_exponential_of_one_number():
    for x in np.linspace(-87, 87, 20_001).astype(np.float32):
        assert exponential(x) == pytest.approx(np.exp(np.float64(x)), rel=3e-7)
    assert exponential(np.float32(0)) == 1
    assert np.isfinite([exponential(np.float32(x)) for x in (np.nan, np.inf, -np.inf, 1e30)]).all()


def test_tanh_is_within_two_roundings_of_one():
    x = np.concatenate([np.linspace(-20, 20, 200_001), [0.0, 1e-20, -1e-20]]).astype(np.float32)
    y = x.copy()
    tanhs(y, np.empty_like(x), np.empty(len(x), np.int32))
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() < 2 * EPSILON
    assert np.array_equal(y[:200_001], -y[200_000::-1]) and y[-3] == 0  # odd


def test_log():
    for x in np.geomspace(1, 1e6, 10_001):
        assert log(x) == pytest.approx(np.log(x), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("shape", [(1, 64, 64), (2, 64, 145), (7, 145, 64), (32, 3, 5), (5, 1, 9)])
def test_products_add_their_terms_in_order(shape):
    """Against the same sums written out, bit by bit."""
    rng = np.random.default_rng(0)
    rows, terms, width = shape
    a, b = rng.normal(size=(rows, terms)).astype(np.float32), rng.normal(size=(terms, width)).astype(np.float32)
    c = rng.normal(size=(rows, width)).astype(np.float32)
    expected = c.copy()
    for j in range(terms):
        expected += a[:, j : j + 1] * b[j]
    add_product(a, b, c)
    assert np.array_equal(c, expected)


def test_sums_over_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 160)).astype(np.float32)
    sums = np.empty(5, np.float32)
    totals(x, sums)
    assert np.allclose(sums, x.sum(axis=1, dtype=np.float64), atol=1e-5)
    dots(x, y, 1, sums)
    assert np.allclose(sums, (x.astype(np.float64) * y).sum(axis=1), atol=1e-5)
    dots(x, y[2:3], 0, sums)
    assert np.allclose(sums, (x.astype(np.float64) * y[2]).sum(axis=1), atol=1e-5)


def test_logits_are_lowered_until_the_largest_is_zero():
    x = np.random.default_rng(0).normal(size=(9, 160)).astype(np.float32) * 30
    x[3, 5] = -np.inf
    expected = np.maximum(x - x.max(axis=1, keepdims=True), -100)
    lower_to_largest(x)
    assert np.array_equal(x, expected)


def test_the_set_bits_of_a_row_are_listed():
    active = np.empty(192, np.int64)
    row = np.array([1 | 1 << 63, 0, 1 << 5], np.uint64)
    assert active[: list_bits(row, active)].tolist() == [0, 63, 133]


def test_a_network_is_one_vector_and_its_arrays_are_those_of_files():
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes(77).items()}
    network = Network.of(weights)
    assert len(network.vector) == sum(array.size for array in weights.values()) == 27_794
    assert np.array_equal(network.actor.matrix1, weights["actor.0.weight"].T)
    assert all(np.array_equal(array, weights[name]) for name, array in network.as_weights().items())
    network.vector[:] = 0
    assert not network.actor.bias3.any() and not network.critic.matrix3.any()
