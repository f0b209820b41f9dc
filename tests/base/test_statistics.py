"""Our quantiles are SciPy's."""

import math

import numpy as np
import pytest
from scipy import special

from fixfirst.base.distributions import beta_cdf, beta_quantile, normal_cdf, normal_quantile, t_cdf, t_quantile

LEVELS = (1e-6, 0.0125, 0.05, 0.3, 0.95, 0.975, 1 - 1e-6)


def test_the_normal_distribution_is_scipys():
    x = np.linspace(-40, 40, 4001).reshape(-1, 1)
    assert normal_cdf(x) == pytest.approx(special.ndtr(x), abs=2e-15)
    assert normal_cdf(np.array([-np.inf, 0, np.inf])).tolist() == [0, 0.5, 1]
    assert [normal_quantile(p) for p in LEVELS] == pytest.approx([special.ndtri(p) for p in LEVELS], rel=1e-12)


@pytest.mark.parametrize("a", [0.5, 1, 3, 99, 5_000, 250_000])
@pytest.mark.parametrize("b", [0.5, 1, 7, 1_000, 250_000])
def test_the_beta_distribution_is_scipys(a, b):
    for p in LEVELS:
        x = beta_quantile(a, b, p)
        assert x == pytest.approx(special.betaincinv(a, b, p), rel=1e-9)
        assert beta_cdf(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-7)


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 29, 99, 999, 1e5, 1e7])
def test_the_t_distribution_is_scipys(freedom):
    for p in LEVELS:
        t = t_quantile(freedom, p)
        assert t == pytest.approx(special.stdtrit(freedom, p), rel=1e-7)
        assert t_cdf(freedom, t) == pytest.approx(p, rel=1e-7)


def test_what_tables_and_pencil_say():
    assert t_quantile(9, 0.975) == pytest.approx(2.262157, abs=1e-6)  # from a table
    assert t_quantile(1, 0.75) == pytest.approx(1)  # Cauchy's quartile
    assert t_quantile(5, 0.5) == 0 and t_cdf(5, 0) == 0.5
    assert beta_quantile(1, 1, 0.3) == pytest.approx(0.3)  # uniform
    assert beta_quantile(10, 1, 0.05) == pytest.approx(0.05 ** (1 / 10))  # ten of ten: x^10 = 0.05
    assert beta_cdf(2, 3, 0.0) == 0 and beta_cdf(2, 3, 1.0) == 1
    assert beta_cdf(2, 3, 0.5) == pytest.approx(11 / 16)  # at least two heads of four
    assert normal_cdf(np.array(1.0)) == pytest.approx((1 + math.erf(math.sqrt(0.5))) / 2)
