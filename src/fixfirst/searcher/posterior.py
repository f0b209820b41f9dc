"""The formulas of the Gaussian process, compiled: covariances, factors, evidence, and the mixture over candidates.

The letters are those of `gp.py`. Every sum is taken in one fixed order, and exp and log are our own, so that the bits
are the same on every CPU. Factors are kept as rows of L^T: the inner loops then run along rows, over columns that do not
depend on each other, and are fast without any change in the order of additions. Solving for a further column is the
same step as factorising: candidates and pending orders are columns appended to those of the told orders.
"""

import math

import numba
import numpy as np

from fixfirst.base import ieee
from fixfirst.base.compile import compiled

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
