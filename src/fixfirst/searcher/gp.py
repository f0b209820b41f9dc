"""Gaussian process over orders: what the told returns say about every order, tried or not.

n told orders, p pending ones, m candidates, U unit types, G models.

d               distance of two orders, 0..1, in three ways
                mallows    discordant pairs of unit types / all pairs (Kendall)
                positions  sum of squared rank differences / largest possible
                hamming    positions with different unit types / U
k               v * exp(-d / l); one model per kind, length l and variance v
y [n]           returns, standardised        noise [n]    squared standard errors, in the same units
K [n+p, n+p]    k + MEAN_VARIANCE + noise    L            its Cholesky factor
w [n]           y after the triangular solve with the first n rows of L

Hyper-parameters are not optimised but weighted: a model counts as much as its marginal likelihood says
(prior: each model of MODELS as its `prior`). With a handful of returns the likelihood is flat, and a single best
model would be overconfident; a grid of some forty small factorisations is also faster by far than three gradient fits.

Inference is algorithm 2.1 of Rasmussen & Williams, Gaussian Processes for Machine Learning, compiled in `posterior.py` with
the same bits on every CPU; here, sums of floats are `math.fsum`, which rounds once. Pending orders are hallucinated at their
mean (GP-BUCB: Desautels, Krause & Burdick, JMLR 2014): they lower the standard deviation and leave the mean and the weights
alone.
"""

import math
from copy import copy
from typing import NamedTuple

import numpy as np

from fixfirst.base import errors
from fixfirst.orders import ranking
from fixfirst.searcher.posterior import covariances, factorise, mixture, weigh

KINDS = ("mallows", "positions", "hamming")


class Model(NamedTuple):
    """One hypothesis about how returns vary over orders."""

    kind: str
    length: float  # l, in units of the largest distance
    variance: float  # v, in units of the variance of the told returns
    prior: float


LENGTHS = (0.15, 0.4, 1.0, 3.0)
VARIANCES = (0.3, 1.0, 3.0)
# Orders that tell nothing about each other: even the nearest two correlate by less than 0.001.
UNRELATED_LENGTH, UNRELATED_PRIOR = 0.02, 0.1
MODELS = tuple(
    Model(kind, length, variance, (1 - UNRELATED_PRIOR) / (len(KINDS) * len(LENGTHS) * len(VARIANCES)))
    for kind in KINDS
    for length in LENGTHS
    for variance in VARIANCES
) + tuple(Model("hamming", UNRELATED_LENGTH, variance, UNRELATED_PRIOR / len(VARIANCES)) for variance in VARIANCES)

NEGLIGIBLE = 1e-3  # models with less than this share of the heaviest model's weight are left out of predictions
NOISE_FLOOR = 1e-6  # smallest noise variance, standardised: keeps K positive definite for exact returns


class Belief(NamedTuple):
    """What is believed about m candidates, in the unit of the returns."""

    mean: np.ndarray  # [m] float64
    std: np.ndarray  # [m] float64, of the true return (without evaluation noise)


def ranks_of(orders: np.ndarray) -> np.ndarray:
    """[U, m] int16 rank of each unit type in orders [m, U] (unit ids, first = fix first)."""
    return np.ascontiguousarray(np.argsort(orders, axis=1).T, dtype=np.int16)


def largest_distances(size: int) -> np.ndarray:
    """[3] for orders of `size` unit types, by kind: the first two of an order and its reverse."""
    return np.array([size * (size - 1) // 2, (size**3 - size) // 3, size])


class OrderGP:
    """The belief after some orders were told, with some pending."""

    def __init__(
        self, orders: np.ndarray, values: np.ndarray, standard_errors: np.ndarray, pending: np.ndarray | None = None
    ):
        """orders [n, U] unit ids, values [n] mean returns, standard_errors [n]; pending [p, U]. Replicates are merged."""
        if orders.ndim != 2 or not len(orders) == len(values) == len(standard_errors) >= 1:
            raise errors.SearchError(
                f"a GP needs at least one order, each with a return and an error; got shapes "
                f"{orders.shape}, {values.shape}, {standard_errors.shape}"
            )
        if not (np.isfinite(values).all() and np.isfinite(standard_errors).all() and (standard_errors >= 0).all()):
            raise errors.SearchError("returns must be finite, and standard errors finite and at least 0")
        orders, values, standard_errors = ranking.merge(orders, values, standard_errors)
        self.center = math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((values - self.center) ** 2) / len(values))
        self.scale = deviation if np.ptp(values) > 0 else float(standard_errors.max())
        y = (values - self.center) / self.scale
        self._noise = np.maximum((standard_errors / self.scale) ** 2, NOISE_FLOOR)
        self._pending_noise = float(np.median(self._noise))
        self._ranks = ranks_of(orders)
        kind = np.array([KINDS.index(model.kind) for model in MODELS])
        length, variance, prior = (np.array(column) for column in list(zip(*MODELS, strict=True))[1:])
        table = covariances(kind, length, variance, largest_distances(orders.shape[1]))
        factors = factorise(np.empty((len(MODELS), 0, 0)), kind, table, self._ranks, self._noise)
        w, self.weights = weigh(prior, factors, y)
        keep = self.weights >= NEGLIGIBLE * self.weights.max()
        self._kept = self.weights[keep] / math.fsum(self.weights[keep])
        self._kind, self._table, self._factors, self._w = kind[keep], table[keep], factors[keep], w[keep]
        if pending is not None:
            self._extend(pending)

    def with_pending(self, pending: np.ndarray) -> "OrderGP":
        """The same belief with further orders pending [p, U]: a round is chosen without factorising the told ones again."""
        longer = copy(self)
        longer._extend(pending)
        return longer

    def _extend(self, pending: np.ndarray) -> None:
        if len(pending):
            self._ranks = np.hstack([self._ranks, ranks_of(pending)])
            self._noise = np.append(self._noise, np.full(len(pending), self._pending_noise))
            self._factors = factorise(self._factors, self._kind, self._table, self._ranks, self._noise)

    def predict(self, orders: np.ndarray) -> Belief:
        """Mean and standard deviation of the true return of orders [m, U]."""
        mean, variance = mixture(self._kept, self._kind, self._table, self._factors, self._w, self._ranks, ranks_of(orders))
        return Belief(self.center + self.scale * mean, self.scale * np.sqrt(np.maximum(variance, 0.0)))
