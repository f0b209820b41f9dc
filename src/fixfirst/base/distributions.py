"""What verdicts need of the normal, the beta and Student's t distribution.

In plain Python and NumPy: SciPy says the same (the tests compare), but takes as long to import as NumPy and Numba together,
and every command would wait for it.

I_x(a, b)   regularised incomplete beta function: the probability that a beta(a, b) variable is at most x
"""

import math
from functools import cache
from statistics import NormalDist

import numpy as np

CONFIDENCE = 0.95  # of all intervals and verdicts

normal_quantile = NormalDist().inv_cdf

_TINY = 1e-300


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Phi(x), right to some 1e-15: 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...) (Marsaglia, J. Stat. Software 11(4), 2004)."""
    x = np.clip(x, -9.0, 9.0)  # beyond, 0 and 1
    total, term, square = x, x, x * x
    for odd in range(3, 400, 2):
        term = term * (square / odd)
        total = total + term
        if np.abs(term).max(initial=0.0) < 1e-17:
            break
    return np.clip(0.5 + total * np.exp(-square / 2) / math.sqrt(2 * math.pi), 0.0, 1.0)


def beta_cdf(a: float, b: float, x: float) -> float:
    """I_x(a, b), by its continued fraction (DLMF 8.17.22) as Lentz evaluates it."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly, that of the other tail does not
        return 1 - beta_cdf(b, a, 1 - x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    fraction = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / (1 + numerator * d or _TINY)
            c = 1 + numerator / c or _TINY
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return _beta_density(a, b, x) * x * (1 - x) / a * fraction


def _beta_density(a: float, b: float, x: float) -> float:
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))


@cache
def beta_quantile(a: float, b: float, p: float) -> float:
    """Return the x with I_x(a, b) = p, for 0 < p < 1: Newton's steps, and halving where they leave the bracket."""
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        excess = beta_cdf(a, b, x) - p
        low, high = (low, x) if excess > 0 else (x, high)
        density = _beta_density(a, b, x)
        following = x - excess / density if density > 0 else low
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x


def t_cdf(freedom: float, t: float) -> float:
    """Return the probability that a t variable with so many degrees of freedom is at most t."""
    tail = beta_cdf(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t < 0 else 1 - tail


def t_quantile(freedom: float, p: float) -> float:
    """Return the t with t_cdf(freedom, t) = p, for 0 < p < 1."""
    if p == 0.5:
        return 0.0
    y = beta_quantile(0.5, freedom / 2, abs(2 * p - 1))  # t^2 / (freedom + t^2)
    x = 1 - y
    if x < y:  # found itself, the smaller of the two is exact
        x = beta_quantile(freedom / 2, 0.5, 2 * min(p, 1 - p))
        y = 1 - x
    return math.copysign(math.sqrt(freedom * y / x), p - 0.5)
