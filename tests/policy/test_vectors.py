"""Sums in vector registers: bit by bit what NumPy adds in the same order, and nothing is touched beside them."""

import numpy as np
import pytest
from numba import njit

from fixfirst.policy import vectors
from fixfirst.policy.vectors import TILE, TILE_ROWS, WIDE, Plain


def numbers(*shape, seed=0):
    """Of very different sizes, so that another order of adding them would show."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(np.float32)


def compiled(name):
    """A function of `vectors`, ready for Python."""
    function, count = getattr(vectors, name), getattr(Plain, name).__code__.co_argcount
    arguments = ", ".join("abcdef"[: min(count, 6)])
    scope = {"function": function}
    exec(f"def call({arguments}): return function({arguments})", scope)
    return njit(scope["call"])


@pytest.mark.parametrize("terms", [0, 1, 7, 64, 160])
@pytest.mark.parametrize("name", ["add_tile", "add_outer_tile", "add_short_line", "add_wide_line"])
def test_products_add_term_by_term(name, terms):
    a, b, c = numbers(160, 160), numbers(160, 96, seed=1), numbers(20, 96, seed=2)
    expected = c.copy()
    compiled(name)(a, b, c, 8, 16, terms)
    getattr(Plain, name)(a, b, expected, 8, 16, terms)
    assert np.array_equal(c, expected)
    rows, width = (TILE_ROWS, TILE) if "tile" in name else (1, TILE if "short" in name else WIDE)
    c[8 : 8 + rows, 16 : 16 + width] = 0
    beside = numbers(20, 96, seed=2)
    beside[8 : 8 + rows, 16 : 16 + width] = 0
    assert np.array_equal(c, beside)


def test_the_order_of_terms_shows_in_these_numbers():
    """Else the tests above would not see it."""
    a, b = numbers(4, 64), numbers(64, 16, seed=1)
    forwards, backwards = np.zeros((2, 4, 16), np.float32)
    Plain.add_tile(a, b, forwards, 0, 0, 64)
    Plain.add_tile(a[:, ::-1], b[::-1], backwards, 0, 0, 64)
    assert (forwards != backwards).mean() > 0.5


@pytest.mark.parametrize("name", ["add_lines", "add_to_lines"])
@pytest.mark.parametrize("end", [2, 3, 12])
def test_lines_of_a_matrix(name, end):
    """Lines active[2 : end]; some stand there twice."""
    active = np.array([9, 9, 5, 0, 5, 8, 1, 2, 8, 8, 3, 4, 9])
    line, matrix = numbers(3, WIDE), numbers(10, WIDE, seed=1)
    ours, theirs = (line.copy(), matrix.copy()), (line.copy(), matrix.copy())
    for (c, lines), function in ((ours, compiled(name)), (theirs, getattr(Plain, name))):
        function(*((lines, active, 2, end, c, 1) if name == "add_lines" else (c, 1, lines, active, 2, end)))
    assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))
    assert (end > 2) == (not np.array_equal(ours[0], line) or not np.array_equal(ours[1], matrix))


@pytest.mark.parametrize("width", [16, 64, 160])
def test_dot_products_in_sixteen_sums(width):
    a, b = numbers(3, 160), numbers(3, 160, seed=1)
    found = compiled("dot")(a, b, 1, width)
    assert found == Plain.dot(a, b, 1, width)
    exact = (a[1, :width].astype(np.float64) * b[1, :width]).sum()
    assert found == pytest.approx(exact, abs=1e-6 * float(np.abs(a[1] * b[1]).sum()))


@pytest.mark.parametrize("width", [16, 64, 160])
def test_the_largest_of_a_row(width):
    """Wherever it stands, also where everything else is minus infinity."""
    a, find = numbers(3, 160), compiled("largest")
    assert find(a, 1, width) == Plain.largest(a, 1, width) == a[1, :width].max()
    a[2] = -np.inf
    for place in range(width):
        a[2, place] = -5
        assert find(a, 2, width) == -5
        a[2, place] = -np.inf


def test_powers_of_two():
    power = compiled("two_to")
    assert [power(n) for n in (-126, -1, 0, 1, 127)] == [2.0**-126, 0.5, 1, 2, 2.0**127]
