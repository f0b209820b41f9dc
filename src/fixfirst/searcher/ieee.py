"""exp and log that have the same bits on every CPU: from IEEE operations only.

The C library and NumPy choose among several versions of exp and log by what the CPU offers, and these differ in the last
bit. Here every step is one addition, subtraction, multiplication or division of doubles, which IEEE 754 rounds in one way,
or an exact move of the exponent (frexp, ldexp). The error stays below one unit in the last place.

The functions work as they stand, and are compiled where compiled code calls them; both give the same bits. They take on
the caller's compiler flags: `fastmath` there would take them apart.
"""

import math

from numba.extending import register_jitable

# log(2) in two parts: the first has 21 zero bits at its end, so that its product with an exponent is exact.
LOG2_HIGH = float.fromhex("0x1.62e42feep-1")
LOG2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
LOG2_INVERSE = float.fromhex("0x1.71547652b82fep+0")
LARGEST_EXPONENT = float.fromhex("0x1.62e42fefa39efp+9")  # exp() of more is infinite
SMALLEST_EXPONENT = -746.0  # exp() of less is 0
SQRT_HALF = math.sqrt(0.5)
ROUNDER = float.fromhex("0x1.8p+52")  # adding and subtracting it rounds to a whole number


@register_jitable
def exp(x: float) -> float:
    """exp(x) = 2^k exp(r) with k whole and |r| <= log(2) / 2; exp(r) by its Taylor series up to r^13 / 13!."""
    if x != x:
        return x
    if x > LARGEST_EXPONENT:
        return math.inf
    if x < SMALLEST_EXPONENT:
        return 0.0
    k = (x * LOG2_INVERSE + ROUNDER) - ROUNDER
    high = x - k * LOG2_HIGH
    low = k * LOG2_LOW
    r = high - low
    lost = (high - r) - low  # what rounding took from r
    tail = 1 / 6227020800
    tail = tail * r + 1 / 479001600
    tail = tail * r + 1 / 39916800
    tail = tail * r + 1 / 3628800
    tail = tail * r + 1 / 362880
    tail = tail * r + 1 / 40320
    tail = tail * r + 1 / 5040
    tail = tail * r + 1 / 720
    tail = tail * r + 1 / 120
    tail = tail * r + 1 / 24
    tail = tail * r + 1 / 6
    tail = tail * r + 0.5
    return math.ldexp(1.0 + (r + (r * r * tail + lost)), int(k))


@register_jitable
def log(x: float) -> float:
    """log(x) = k log(2) + log(1 + f), 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = 2 artanh(s), s = f / (2 + f).

    With h = f^2 / 2 this is f - (h - s (h + R)), R = 2 (s^2 / 3 + s^4 / 5 + ...): the large part f is exact.
    """
    if x != x or x == math.inf:
        return x
    if x <= 0.0:
        return -math.inf if x == 0.0 else math.nan
    mantissa, k = math.frexp(x)
    if mantissa < SQRT_HALF:
        mantissa, k = 2.0 * mantissa, k - 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    rest = 2 / 23
    rest = rest * z + 2 / 21
    rest = rest * z + 2 / 19
    rest = rest * z + 2 / 17
    rest = rest * z + 2 / 15
    rest = rest * z + 2 / 13
    rest = rest * z + 2 / 11
    rest = rest * z + 2 / 9
    rest = rest * z + 2 / 7
    rest = rest * z + 2 / 5
    rest = rest * z + 2 / 3
    half = 0.5 * f * f
    return k * LOG2_HIGH - ((half - (s * (half + rest * z) + k * LOG2_LOW)) - f)
