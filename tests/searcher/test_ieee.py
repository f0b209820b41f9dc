"""exp and log from IEEE operations: accurate, and the same compiled or not."""

import math

import numba
import numpy as np
import pytest
from mpmath import mp, mpf

from fixfirst.searcher.ieee import exp, log

RNG = np.random.default_rng(0)
EXPONENTS = np.concatenate([RNG.uniform(-745, 709, 2000), RNG.uniform(-1, 1, 2000), RNG.uniform(-1e-8, 1e-8, 100)])
NUMBERS = np.concatenate(
    [2.0 ** RNG.uniform(-1074, 1023, 2000), RNG.uniform(0.5, 2, 2000), 1 + RNG.uniform(-1e-8, 1e-8, 100)]
)
ODD_EXPONENTS = (0.0, math.inf, -math.inf, math.nan, 710.0, -750.0, -745.1, 1e308, -1e308)
ODD_NUMBERS = (1.0, 0.0, -0.0, -1.0, -math.inf, math.inf, math.nan, 5e-324, 1.7976931348623157e308)


def units_in_the_last_place(found, exact):
    return float(abs(mpf(float(found)) - exact) / mpf(math.ulp(float(exact))))


@pytest.mark.parametrize(
    ("ours", "exact", "numpys", "at", "odd"),
    [(exp, mp.exp, np.exp, EXPONENTS, ODD_EXPONENTS), (log, mp.log, np.log, NUMBERS, ODD_NUMBERS)],
)
def test_errors_stay_below_a_unit_in_the_last_place_odd_numbers_are_as_in_numpy_and_compiled_bits_the_same(
    ours, exact, numpys, at, odd
):
    with mp.workprec(120):
        assert max(units_in_the_last_place(ours(x), exact(mpf(float(x)))) for x in at) < 0.85
    with np.errstate(all="ignore"):
        np.testing.assert_allclose([ours(x) for x in odd], numpys(odd), rtol=1e-15)

    @numba.njit
    def compiled(at):
        found = np.empty_like(at)
        for i in range(len(at)):
            found[i] = ours(at[i])
        return found

    at = np.array([*at, *odd])
    assert np.array_equal(compiled(at), [ours(float(x)) for x in at], equal_nan=True)
