"""Gaussian process over orders: the posterior of every order's return, tried or not, given those that were observed.

n observed orders, p pending ones, m candidates, U unit types, G models.

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

Inference is algorithm 2.1 of Rasmussen & Williams, Gaussian Processes for Machine Learning, compiled, with the same bits on
every CPU: every sum is taken in one fixed order, and exp and log are our own. Factors are kept as rows of L^T: the inner
loops then run along rows, over columns that do not depend on each other, and are fast without any change in the order of
additions. Solving for a further column is the same step as factorising: candidates and pending orders are columns appended
to those of the told orders. In Python, sums of floats are `math.fsum`, which rounds once. Pending orders are hallucinated at
their mean (GP-BUCB: Desautels, Krause & Burdick, JMLR 2014): they lower the standard deviation and leave the mean and the
weights alone.
"""

import math
from copy import copy
from typing import NamedTuple

import numba
import numpy as np

from fixfirst.base.compile import compiled
from fixfirst.searcher import ieee
from fixfirst.stats import ranking

# ---------------------------------------------------------------- formulas, compiled

MEAN_VARIANCE = 1.0  # prior variance of the overall mean, standardised
BLOCK = 64  # candidates scored at once: their columns stay in the fastest cache


@numba.njit
def distances(a, b):
    """[3, n, m] whole numbers: discordant pairs, summed squares of rank differences, positions that differ.

    a [U, n], b [U, m] ranks, one order per column.
    """
    size, n = a.shape
    m = b.shape[1]
    found = np.zeros((3, n, m), np.int16)
    for i in range(n):
        for u in range(size):
            for j in range(m):
                step = a[u, i] - b[u, j]
                found[1, i, j] += step * step
                found[2, i, j] += step != 0
            for v in range(u):
                first = a[u, i] < a[v, i]
                for j in range(m):
                    found[0, i, j] += (b[u, j] < b[v, j]) != first
    return found


@compiled
def covariances(kind, length, variance, largest):
    """[G, D] k + MEAN_VARIANCE of two orders at every distance as counted by `distances`; largest [3] distances."""
    table = np.zeros((len(kind), max(largest) + 1))
    for g in range(len(kind)):
        most = largest[kind[g]]
        for d in range(most + 1):
            table[g, d] = variance[g] * ieee.exp(-(d / most) / length[g]) + MEAN_VARIANCE
    return table


@numba.njit
def subtract(row, factor, solved, i):
    """row -= sum over j < i of factor[j, i] * the same columns of solved[j], in the order of j; a row may lack the first.

    Four at a time: a row is then read and written a fourth as often.
    """
    first = solved.shape[1] - len(row)
    j = 0
    while j + 4 <= i:
        f0, f1, f2, f3 = factor[j, i], factor[j + 1, i], factor[j + 2, i], factor[j + 3, i]
        r0, r1, r2, r3 = solved[j, first:], solved[j + 1, first:], solved[j + 2, first:], solved[j + 3, first:]
        for c in range(len(row)):
            row[c] = (((row[c] - f0 * r0[c]) - f1 * r1[c]) - f2 * r2[c]) - f3 * r3[c]
        j += 4
    while j < i:
        f0, r0 = factor[j, i], solved[j, first:]
        for c in range(len(row)):
            row[c] -= f0 * r0[c]
        j += 1


@compiled
def factorise(known, kind, table, ranks, noise):
    """[G, N, N] rows of L^T for N orders; known [G, n, n]: those of the first n, so that only N - n are new.

    ranks [U, N], noise [N].
    """
    models, n, _ = known.shape
    total = ranks.shape[1]
    distance = distances(ranks, ranks)
    factors = np.zeros((models, total, total))
    for g in range(models):
        factor = factors[g]
        for i in range(total):
            first = max(i, n)
            row = factor[i, first:]
            for c in range(len(row)):
                row[c] = table[g, distance[kind[g], i, first + c]]
            if i >= n:
                row[0] += noise[i]
            subtract(row, factor, factor, i)
            if i >= n:
                diagonal = math.sqrt(row[0])
            else:
                diagonal = known[g, i, i]
                for c in range(n):
                    factor[i, c] = known[g, i, c]
            scale = 1.0 / diagonal
            for c in range(len(row)):
                row[c] *= scale
            factor[i, i] = diagonal
    return factors


@compiled
def weigh(prior, factors, y):
    """w [G, n] and the weights [G] of the models, which add up to 1: prior times marginal likelihood."""
    models, n, _ = factors.shape
    w = np.empty((models, n))
    weights = np.empty(models)
    for g in range(models):
        left = w[g]
        for i in range(n):
            left[i] = y[i]
        evidence = ieee.log(prior[g])
        for i in range(n):
            left[i] /= factors[g, i, i]
            for j in range(i + 1, n):
                left[j] -= factors[g, i, j] * left[i]
            evidence -= 0.5 * left[i] * left[i] + ieee.log(factors[g, i, i])
        weights[g] = evidence
    heaviest = max(weights)
    total = 0.0
    for g in range(models):
        weights[g] = ieee.exp(weights[g] - heaviest)
        total += weights[g]
    for g in range(models):
        weights[g] /= total
    return w, weights


@compiled
def mixture(weights, kind, table, factors, w, ranks, candidates):
    """Mean and variance [m] of the candidates [U, m] under the weighted models, standardised; ranks [U, n + p]."""
    models, total, _ = factors.shape
    size, m = candidates.shape
    block = np.empty((size, BLOCK), np.int16)
    v = np.empty((total, BLOCK))
    means = np.empty((models, BLOCK))
    variances = np.empty((models, BLOCK))
    mean, variance = np.empty(m), np.empty(m)
    for start in range(0, m, BLOCK):
        for u in range(size):
            for c in range(BLOCK):
                block[u, c] = candidates[u, min(start + c, m - 1)]  # the last block is filled up
        distance = distances(ranks, block)
        for g in range(models):
            for c in range(BLOCK):
                means[g, c], variances[g, c] = 0.0, table[g, 0]
            for i in range(total):
                row = v[i]
                for c in range(BLOCK):
                    row[c] = table[g, distance[kind[g], i, c]]
                subtract(row, factors[g], v, i)
                scale = 1.0 / factors[g, i, i]
                for c in range(BLOCK):
                    row[c] *= scale
                    variances[g, c] -= row[c] * row[c]
                if i < w.shape[1]:
                    for c in range(BLOCK):
                        means[g, c] += row[c] * w[g, i]
        for c in range(min(BLOCK, m - start)):
            mixed = 0.0
            for g in range(models):
                mixed += weights[g] * means[g, c]
            # Law of total variance: within models, and between them.
            spread = 0.0
            for g in range(models):
                apart = means[g, c] - mixed
                spread += weights[g] * (variances[g, c] + apart * apart)
            mean[start + c], variance[start + c] = mixed, spread
    return mean, variance


# ---------------------------------------------------------------- models and what they say

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
    """What is believed about m candidates, in the unit of the returns; about one, without an axis."""

    mean: np.ndarray  # [m] float64
    std: np.ndarray  # [m] float64, of the true return (without evaluation noise)


def ranks_of(orders: np.ndarray) -> np.ndarray:
    """[U, m] int16 rank of each unit type in orders [m, U] (unit ids, first = fix first)."""
    return np.ascontiguousarray(np.argsort(orders, axis=1).T, dtype=np.int16)


def largest_distances(size: int) -> np.ndarray:
    """[3] for orders of `size` unit types, by kind: the first two of an order and its reverse."""
    return np.array([size * (size - 1) // 2, (size**3 - size) // 3, size])


class OrderGP:
    """Posterior over orders, given those that were observed, and those that are pending if `with_pending` says so."""

    def __init__(self, orders: np.ndarray, values: np.ndarray, standard_errors: np.ndarray):
        """orders [n, U] of unit ids, n > 0; values and errors [n] of returns. Replicates are merged."""
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

    def with_pending(self, pending: np.ndarray) -> "OrderGP":
        """The same belief with further orders pending [p, U]: a round is chosen without factorising the told ones again."""
        longer = copy(self)
        if len(pending):
            longer._ranks = np.hstack([self._ranks, ranks_of(pending)])
            longer._noise = np.append(self._noise, np.full(len(pending), self._pending_noise))
            longer._factors = factorise(self._factors, self._kind, self._table, longer._ranks, longer._noise)
        return longer

    def predict(self, orders: np.ndarray) -> Belief:
        """Mean and standard deviation of the true return of orders [m, U]."""
        mean, variance = mixture(self._kept, self._kind, self._table, self._factors, self._w, self._ranks, ranks_of(orders))
        return Belief(self.center + self.scale * mean, self.scale * np.sqrt(np.maximum(variance, 0.0)))
