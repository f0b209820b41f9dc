"""Gaussian process over orders: what the told returns say about every order, tried or not.

n told orders, p pending ones, m candidates, U unit types, F features, G models.

x [3, m, F]     each order seen in three ways, scaled so that the squared distance d of two orders lies in 0..1
                mallows    signs of the pairs of unit types    d = discordant pairs / all pairs (Kendall)
                positions  rank of each unit type              d = sum of squared rank differences / largest possible
                hamming    which unit type is where            d = positions with different unit types / U
k               v * exp(-d / l), GPyTorch's RBF kernel on these features; one model per kind, length l and variance v
y [n]           returns, standardised        noise [n]    squared standard errors, in the same units
K [n+p, n+p]    k + MEAN_VARIANCE + noise    L            its Cholesky factor
w [n]           y after the triangular solve with the first n rows of L

Hyper-parameters are not optimised but weighted: a model counts as much as its marginal likelihood says
(prior: each model of MODELS as its `prior`). With a handful of returns the likelihood is flat, and a single best
model would be overconfident; a grid of some forty small factorisations is also 20 times faster than three gradient fits.

Inference is algorithm 2.1 of Rasmussen & Williams, Gaussian Processes for Machine Learning, batched over models. GPyTorch's
own posterior forms the covariance of all candidates, 25 million numbers per model at 7! orders, where only its diagonal is
needed. Pending orders are hallucinated at their mean (GP-BUCB: Desautels, Krause & Burdick, JMLR 2014): they lower the
standard deviation and leave the mean and the weights alone.
"""

from copy import copy
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from fixfirst.errors import SearchError
from fixfirst.orders import merge

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

MEAN_VARIANCE = 1.0  # prior variance of the overall mean, standardised
NEGLIGIBLE = 1e-3  # models with less than this share of the heaviest model's weight are left out of predictions
NOISE_FLOOR = 1e-6  # smallest noise variance, standardised: keeps K positive definite for exact returns
CHUNK = 1024  # candidates scored at once


class Belief(NamedTuple):
    """What is believed about m candidates, in the unit of the returns."""

    mean: np.ndarray  # [m] float64
    std: np.ndarray  # [m] float64, of the true return (without evaluation noise)


def features(orders: np.ndarray) -> torch.Tensor:
    """x [3, m, F] of orders [m, U] (unit ids, first = fix first), F = U * U; unused columns are 0."""
    m, size = orders.shape
    ranks = np.argsort(orders, axis=1)
    a, b = np.array(list(combinations(range(size), 2))).T
    pairs = len(a)
    x = np.zeros((len(KINDS), m, size * size))
    x[0, :, :pairs] = np.sign(ranks[:, b] - ranks[:, a]) / np.sqrt(4 * pairs)
    x[1, :, :size] = ranks / np.sqrt((size**3 - size) / 3)
    x[2] = (ranks[:, :, None] == np.arange(size)).reshape(m, -1) / np.sqrt(2 * size)
    return torch.from_numpy(x)


class Kernels:
    """The kernels of several models at once: [G, a, b] covariances between two lists of orders."""

    def __init__(self, models: tuple[Model, ...]):
        batch = torch.Size([len(models)])
        self.kind = torch.tensor([KINDS.index(model.kind) for model in models])
        self.variance = torch.tensor([model.variance for model in models], dtype=torch.float64)
        length = torch.tensor([model.length for model in models], dtype=torch.float64)
        self.kernel = ScaleKernel(RBFKernel(batch_shape=batch), batch_shape=batch).double()
        self.kernel.outputscale = self.variance
        # An RBF kernel is exp(-d / (2 lengthscale^2)).
        self.kernel.base_kernel.lengthscale = (length / 2).sqrt()[:, None, None]

    def __call__(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        covariance: torch.Tensor = self.kernel(x1[self.kind], x2[self.kind]).to_dense()
        return covariance


ALL_KERNELS = Kernels(MODELS)


class OrderGP:
    """The belief after some orders were told, with some pending."""

    _x: torch.Tensor
    _factor: torch.Tensor

    def __init__(
        self, orders: np.ndarray, values: np.ndarray, standard_errors: np.ndarray, pending: np.ndarray | None = None
    ):
        """orders [n, U] unit ids, values [n] mean returns, standard_errors [n]; pending [p, U]. Replicates are merged."""
        if orders.ndim != 2 or not len(orders) == len(values) == len(standard_errors) >= 1:
            raise SearchError(
                f"a GP needs at least one order, each with a return and an error; got shapes "
                f"{orders.shape}, {values.shape}, {standard_errors.shape}"
            )
        if not (np.isfinite(values).all() and np.isfinite(standard_errors).all() and (standard_errors >= 0).all()):
            raise SearchError("returns must be finite, and standard errors finite and at least 0")
        orders, values, standard_errors = merge(orders, values, standard_errors)
        self.center = float(values.mean())
        self.scale = float(values.std()) or float(standard_errors.max())
        y = (values - self.center) / self.scale
        noise = np.maximum((standard_errors / self.scale) ** 2, NOISE_FLOOR)
        self._pending_noise = float(np.median(noise))
        self._condition(features(orders), torch.from_numpy(y), torch.from_numpy(noise))
        if pending is not None and len(pending):
            self._extend(features(pending))

    def with_pending(self, pending: np.ndarray) -> "OrderGP":
        """The same belief with further orders pending [p, U]: a round is chosen without factorising the told ones again."""
        longer = copy(self)
        if len(pending):
            longer._extend(features(pending))
        return longer

    @torch.no_grad()
    def _extend(self, x: torch.Tensor) -> None:
        """Add rows to L: with L11 known, L21 = (L11^-1 K12)^T and L22 = cholesky(K22 - L21 L21^T)."""
        n, p = self._x.shape[1], x.shape[1]
        lower = torch.linalg.solve_triangular(self._factor, self._kernels(self._x, x) + MEAN_VARIANCE, upper=False).mT
        noise = self._pending_noise * torch.eye(p, dtype=torch.float64)
        corner = torch.linalg.cholesky(self._kernels(x, x) + MEAN_VARIANCE + noise - lower @ lower.mT)
        factor = torch.zeros(len(self._kept), n + p, n + p, dtype=torch.float64)
        factor[:, :n, :n], factor[:, n:, :n], factor[:, n:, n:] = self._factor, lower, corner
        self._factor, self._x = factor, torch.cat([self._x, x], 1)

    @torch.no_grad()
    def _condition(self, x: torch.Tensor, y: torch.Tensor, noise: torch.Tensor) -> None:
        factor = torch.linalg.cholesky(ALL_KERNELS(x, x) + MEAN_VARIANCE + torch.diag(noise))
        w = torch.linalg.solve_triangular(factor, y[:, None], upper=False)  # [G, n, 1]
        log_diagonal = factor.diagonal(dim1=1, dim2=2).log()
        evidence = -0.5 * (w**2).sum((1, 2)) - log_diagonal.sum(1)
        prior = torch.tensor([model.prior for model in MODELS], dtype=torch.float64)
        self.weights = torch.softmax(evidence + prior.log(), 0)  # [G]
        keep = torch.nonzero(self.weights >= NEGLIGIBLE * self.weights.max())[:, 0]
        self._kept = self.weights[keep] / self.weights[keep].sum()
        self._kernels = Kernels(tuple(MODELS[g] for g in keep))
        self._x, self._factor, self._w = x, factor[keep], w[keep]

    @torch.no_grad()
    def predict(self, orders: np.ndarray) -> Belief:
        """Mean and standard deviation of the true return of orders [m, U]."""
        parts = [self._predict(features(orders[i : i + CHUNK])) for i in range(0, len(orders), CHUNK)]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Belief(self.center + self.scale * mean, self.scale * np.sqrt(np.maximum(variance, 0.0)))

    def _predict(self, x: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance [m] of the mixture of models, standardised."""
        v = torch.linalg.solve_triangular(self._factor, self._kernels(self._x, x) + MEAN_VARIANCE, upper=False)
        means = (v[:, : self._w.shape[1]] * self._w).sum(1)  # [G, m]
        variances = self._kernels.variance[:, None] + MEAN_VARIANCE - (v**2).sum(1)
        mean = self._kept @ means
        # Law of total variance: within models, and between them.
        variance = self._kept @ (variances + (means - mean) ** 2)
        return mean.numpy(), variance.numpy()
