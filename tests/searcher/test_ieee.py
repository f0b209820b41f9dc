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


@pytest.mark.parametrize(("ours", "exact", "at"), [(exp, mp.exp, EXPONENTS), (log, mp.log, NUMBERS)])
def test_the_error_is_below_one_unit_in_the_last_place(ours, exact, at):
    with mp.workprec(120):
        assert max(units_in_the_last_place(ours(x), exact(mpf(float(x)))) for x in at) < 0.85


@pytest.mark.parametrize(("ours", "numpys", "at"), [(exp, np.exp, ODD_EXPONENTS), (log, np.log, ODD_NUMBERS)])
def test_zeros_infinities_and_what_is_no_number_are_as_in_numpy(ours, numpys, at):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose([ours(x) for x in at], numpys(at), rtol=1e-15)


@pytest.mark.parametrize(("ours", "at"), [(exp, [*EXPONENTS, *ODD_EXPONENTS]), (log, [*NUMBERS, *ODD_NUMBERS])])
def test_compiled_and_not_they_have_the_same_bits(ours, at):
    at = np.array(at)

    @numba.njit
    def compiled(at):
        found = np.empty_like(at)
        for i in range(len(at)):
            found[i] = ours(at[i])
        return found

    assert np.array_equal(compiled(at), [ours(float(x)) for x in at], equal_nan=True)
