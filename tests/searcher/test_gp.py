"""The Gaussian process over orders: kernels, posterior, replicates, pending orders."""

import numpy as np
import pytest
from late import Late

from fixfirst.orders.order import UnitScheme, Workflow, all_workflows
from fixfirst.searcher import gp as gp_module
from fixfirst.searcher.gp import (
    BLOCK,
    KINDS,
    MEAN_VARIANCE,
    MODELS,
    Model,
    OrderGP,
    covariances,
    distances,
    largest_distances,
    ranks_of,
)

botorch, gpytorch, torch = map(Late, ("botorch", "gpytorch", "torch"))
WORKFLOWS = list(all_workflows())
ORDERS = np.array([w.order for w in WORKFLOWS])
RNG = np.random.default_rng(0)
TOLD = RNG.permutation(120)[:12]
VALUES = -20 + 5 * RNG.standard_normal(12)
ERRORS = RNG.uniform(0.5, 2, 12)


def distances_between(a, b):
    return distances(ranks_of(np.array([a])), ranks_of(np.array([b])))[:, 0, 0].tolist()


@pytest.mark.parametrize(("size", "pairs", "squares"), [(2, 1, 2), (5, 10, 40), (13, 78, 728)])
def test_reversing_an_order_is_the_largest_kendall_and_rank_distance(size, pairs, squares):
    """By hand, 0 1 2 3 4 against 1 0 2 4 3: 2 pairs turned, four ranks off by one, 4 places differ."""
    assert distances_between((0, 1, 2, 3, 4), (1, 0, 2, 4, 3)) == [2, 4, 4]
    order = np.arange(size)
    assert distances_between(order, order[::-1])[:2] == [pairs, squares]
    assert largest_distances(size).tolist() == [pairs, squares, size]
    table = covariances(np.arange(3), np.full(3, 0.5), np.full(3, 2.0), largest_distances(size))
    for kind, largest in enumerate((pairs, squares, size)):
        assert table[kind, 0] == 2 + MEAN_VARIANCE
        assert table[kind, largest] == pytest.approx(2 * np.exp(-1 / 0.5) + MEAN_VARIANCE)
        assert not table[kind, largest + 1 :].any()


def numpy_posterior(model, told, y, noise, candidates):
    """Mean, variance and log evidence by the textbook formulas, with distances counted by hand."""

    def covariance(a, b):
        k = np.empty((len(a), len(b)))
        for i, j in np.ndindex(k.shape):
            u, v = WORKFLOWS[a[i]], WORKFLOWS[b[j]]
            distance = {
                "mallows": u.kendall_distance(v),
                "positions": ((u.ranks - v.ranks) ** 2).sum() / 40,
                "hamming": np.mean(np.array(u.order) != v.order),
            }[model.kind]
            k[i, j] = model.variance * np.exp(-distance / model.length) + MEAN_VARIANCE
        return k

    big = covariance(told, told) + np.diag(noise)
    inverse, cross = np.linalg.inv(big), covariance(told, candidates)
    variance = model.variance + MEAN_VARIANCE - np.einsum("nm,nk,km->m", cross, inverse, cross)
    return cross.T @ inverse @ y, variance, -0.5 * y @ inverse @ y - 0.5 * np.linalg.slogdet(big)[1]


def test_the_posterior_is_the_evidence_weighted_mixture_of_textbook_posteriors(monkeypatch):
    monkeypatch.setattr(gp_module, "NEGLIGIBLE", 0.0)
    center, scale = VALUES.mean(), VALUES.std()
    y, noise = (VALUES - center) / scale, (ERRORS / scale) ** 2
    candidates = np.arange(0, 120, 7)
    mean, variance, evidence = zip(*(numpy_posterior(m, TOLD, y, noise, candidates) for m in MODELS), strict=True)
    weight = np.exp(evidence) * [m.prior for m in MODELS]
    weight /= weight.sum()
    mixed = weight @ mean
    spread = np.sqrt(weight @ (np.array(variance) + np.array(mean) ** 2) - mixed**2)
    belief = OrderGP(ORDERS[TOLD], VALUES, ERRORS).predict(ORDERS[candidates])
    np.testing.assert_allclose(belief.mean, center + scale * mixed, rtol=1e-9)
    np.testing.assert_allclose(belief.std, scale * spread, rtol=1e-8)


def test_one_model_equals_botorchs_gp_with_the_same_kernel(monkeypatch):
    model = Model("mallows", 0.4, 1.5, 1.0)
    monkeypatch.setattr(gp_module, "MODELS", (model,))
    belief = OrderGP(ORDERS[TOLD], VALUES, ERRORS).predict(ORDERS)

    signs = torch.tensor(np.array([w.pair_signs() for w in WORKFLOWS]), dtype=torch.float64)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    # exp(-d / 0.4) with d = |signs difference|^2 / 40 is an RBF of length scale sqrt(0.4 * 40 / 2).
    kernel.outputscale, kernel.base_kernel.lengthscale = 1.5, np.sqrt(8.0)
    constant = gpytorch.kernels.ConstantKernel().double()
    constant.constant = torch.tensor(MEAN_VARIANCE)
    center, scale = VALUES.mean(), VALUES.std()
    y, noise = torch.tensor((VALUES - center) / scale)[:, None], torch.tensor((ERRORS / scale) ** 2)[:, None]
    peer = botorch.models.SingleTaskGP(
        signs[TOLD], y, noise, covar_module=kernel + constant, mean_module=gpytorch.means.ZeroMean(), outcome_transform=None
    )
    with torch.no_grad():
        posterior = peer.posterior(signs)
    np.testing.assert_allclose(belief.mean, center + scale * posterior.mean[:, 0], rtol=1e-8)
    np.testing.assert_allclose(belief.std, scale * posterior.variance.sqrt()[:, 0], rtol=1e-6)


def test_returns_that_depend_on_precedence_speak_for_mallows_and_on_places_for_hamming():
    told = RNG.permutation(120)[:30]
    precedence = np.array([w.pair_signs() for w in WORKFLOWS]) @ RNG.standard_normal(10)
    places = np.array([w.encode() for w in WORKFLOWS]) @ RNG.standard_normal(25)
    for values, kind in ((precedence, "mallows"), (places, "hamming")):
        gp = OrderGP(ORDERS[told], values[told], np.full(30, 0.25 * values.std()))
        weights = {kind: sum(w for m, w in zip(MODELS, gp.weights, strict=True) if m.kind == kind) for kind in KINDS}
        assert sum(weights.values()) == pytest.approx(1) and max(KINDS, key=weights.get) == kind
        untried = np.delete(np.arange(120), told)
        assert np.corrcoef(gp.predict(ORDERS[untried]).mean, values[untried])[0, 1] > 0.75


def test_replicates_equal_their_precision_weighted_average_and_the_unit_of_returns_does_not_matter():
    """Returns -20 ± 1 and -14 ± 2 of one order: weights 1 and 1/4, so -18.8 ± sqrt(0.8)."""
    others, values, errors = ORDERS[TOLD], VALUES, ERRORS
    twice = np.vstack([others, ORDERS[[5, 5]]])
    once = np.vstack([others, ORDERS[[5]]])
    a = OrderGP(twice, np.append(values, [-20, -14]), np.append(errors, [1, 2])).predict(ORDERS)
    b = OrderGP(once, np.append(values, -18.8), np.append(errors, np.sqrt(0.8))).predict(ORDERS)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-10)
    a = OrderGP(ORDERS[TOLD], VALUES, ERRORS).predict(ORDERS)
    b = OrderGP(ORDERS[TOLD], 1000 * VALUES + 7, 1000 * ERRORS).predict(ORDERS)
    np.testing.assert_allclose(b.mean, 1000 * a.mean + 7, rtol=1e-9)
    np.testing.assert_allclose(b.std, 1000 * a.std, rtol=1e-9)


def test_pending_orders_lower_the_std_and_leave_the_mean_and_a_belief_does_not_depend_on_what_else_is_asked():
    free = np.setdiff1d(np.arange(120), TOLD)
    plain = OrderGP(ORDERS[TOLD], VALUES, ERRORS).predict(ORDERS)
    busy = OrderGP(ORDERS[TOLD], VALUES, ERRORS).with_pending(ORDERS[free[:2]]).predict(ORDERS)
    np.testing.assert_allclose(busy.mean, plain.mean, rtol=1e-12)
    assert (busy.std <= plain.std + 1e-12).all()
    assert (busy.std[free[:2]] < 0.9 * plain.std[free[:2]]).all()
    gp = OrderGP(ORDERS[TOLD], VALUES, ERRORS).with_pending(ORDERS[:1])
    together = gp.predict(ORDERS)
    for part in (slice(0, 1), slice(BLOCK - 1, BLOCK + 1), slice(7, 120)):
        alone = gp.predict(ORDERS[part])
        assert np.array_equal(alone.mean, together.mean[part]) and np.array_equal(alone.std, together.std[part])


def test_a_repeated_fit_gives_the_same_bytes_whatever_the_order_of_telling_and_the_global_seed():
    beliefs = []
    for shuffle in (np.arange(12), np.arange(12)[::-1]):
        torch.manual_seed(len(beliefs))
        np.random.seed(len(beliefs))
        beliefs.append(OrderGP(ORDERS[TOLD][shuffle], VALUES[shuffle], ERRORS[shuffle]).predict(ORDERS))
    assert beliefs[0].mean.tobytes() == beliefs[1].mean.tobytes() and beliefs[0].std.tobytes() == beliefs[1].std.tobytes()


@pytest.mark.parametrize(("values", "errors"), [([3.0], [0.5]), ([3.0, 3.0], [0.0, 0.0]), ([0.0, 0.0], [1.0, 0.0])])
def test_one_return_equal_returns_exact_returns_and_orders_of_thirteen_units_are_no_trouble(values, errors):
    belief = OrderGP(ORDERS[: len(values)], np.array(values), np.array(errors)).predict(ORDERS)
    assert np.isfinite(belief.mean).all() and np.isfinite(belief.std).all()
    assert belief.mean == pytest.approx(np.full(120, values[0]))
    orders = np.array([Workflow.from_number(number, UnitScheme.per_host()).order for number in (0, 10**9, 2 * 10**9)])
    belief = OrderGP(orders, np.array([1.0, 2.0, 3.0]), np.full(3, 0.1)).predict(orders)
    assert belief.mean == pytest.approx([1, 2, 3], abs=0.1)
