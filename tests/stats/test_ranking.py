"""The final ranking: who may be best, and when a single winner is declared."""

import math

import numpy as np
import pytest
from late import Late

from fixfirst.orders.order import all_workflows
from fixfirst.stats.ranking import lead_p_bounds, lead_p_value, may_be_best, merge, rank, t_over_normal, training_spread

stats = Late("scipy.stats")

WORKFLOWS = list(all_workflows())


def rankings(truth, errors, seeds):
    k = len(truth)
    for seed in range(seeds):
        yield rank(WORKFLOWS[:k], truth + errors * np.random.default_rng([k, seed]).standard_normal(k), errors)


def test_two_orders_worked_by_hand():
    """Standard error of the difference sqrt(3^2 + 4^2) = 5: a lead of 10 (2 of them) decides, one of 9.5 (1.9) does not. A
    single order is no winner. Exact returns decide, and exact ties do not.
    """
    clear = rank(WORKFLOWS[:2], [-30.0, -20.0], [3.0, 4.0])
    assert clear.winner == WORKFLOWS[1] and [row.mean for row in clear.rows] == [-20, -30]
    close = rank(WORKFLOWS[:2], [-29.5, -20.0], [3.0, 4.0])
    assert close.winner is None and close.maybe_best == (WORKFLOWS[1], WORKFLOWS[0])
    alone = rank(WORKFLOWS[:1], [-20.0], [1.0])
    assert alone.winner is None and alone.maybe_best == (WORKFLOWS[0],)
    assert alone.rows[0].low == pytest.approx(-21.96, abs=1e-3)
    assert rank(WORKFLOWS[:3], [0.0, 1.0, 0.5], [0.0, 0.0, 0.0]).winner == WORKFLOWS[1]
    assert len(rank(WORKFLOWS[:3], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]).maybe_best) == 3


def test_a_lead_over_the_second_decides_even_when_hundreds_were_compared():
    """z = 2.24 standard errors of the difference (1 each, so 3.17) over each other order are enough, 3.1 are not."""
    means = np.zeros(120)
    for lead, declared in ((3.2, True), (3.1, False)):
        means[7] = lead
        assert (rank(WORKFLOWS, means, np.ones(120)).winner == WORKFLOWS[7]) is declared


def test_the_p_value_is_that_of_a_one_sided_z_test_for_two_orders_and_of_dunnetts_for_more_with_equal_errors():
    """SciPy's, of large samples that are made to have exactly the wanted means and errors; control first."""
    for lead in (2.0, -2.0):
        assert lead_p_value(lead, 0.3, np.array([0.4])) == pytest.approx(1 - stats.norm.cdf(lead), abs=1e-6)
    noise = np.random.default_rng(0).standard_normal((5, 4000))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, ddof=1, keepdims=True)
    control, *others = np.array([[0.0], [1.0], [2.0], [2.4], [-1.0]]) + math.sqrt(4000) * noise
    peer = stats.dunnett(*others, control=control, alternative="greater", rng=np.random.default_rng(0))
    assert lead_p_value(2.4 / math.sqrt(2), 1.0, np.ones(4)) == pytest.approx(peer.pvalue.min(), abs=2e-3)


EQUAL = [(np.ones(2), 0.08), (np.ones(3), 0.05), (np.ones(20), 0.05), (np.where(np.arange(20) < 3, 5.0, 0.1), 0.05)]


@pytest.mark.parametrize(("errors", "most"), EQUAL)
def test_where_all_orders_are_equal_a_winner_is_declared_in_at_most_5_percent_whatever_their_errors(errors, most):
    """200 seeds; the bound allows two standard errors of a share of 5 %, which only two orders come near to."""
    assert np.mean([r.winner is not None for r in rankings(np.zeros(len(errors)), errors, 200)]) <= most


def test_the_best_order_is_in_the_group_in_at_least_95_percent():
    """Twenty orders, the best only a little better: the hardest case, and the group stays useful (some are left out)."""
    truth = -np.linspace(0, 4, 20)
    results = list(rankings(truth, np.ones(20), 200))
    assert np.mean([WORKFLOWS[0] in ranking.maybe_best for ranking in results]) >= 0.95
    assert np.mean([len(ranking.maybe_best) for ranking in results]) < 17


def test_a_planted_winner_eight_standard_errors_better_is_declared_and_never_a_wrong_one():
    truth = np.zeros(120)
    truth[33] = 8.0
    winners = [ranking.winner for ranking in rankings(truth, np.ones(120), 60)]
    assert winners.count(WORKFLOWS[33]) >= 57 and winners.count(WORKFLOWS[33]) + winners.count(None) == 60


def test_the_highest_mean_is_too_high_but_its_interval_holds_and_it_is_no_winner():
    """The largest of 40 standard normal numbers is 2.16 on average; ± 1.96 around it holds 0 in 0.975^40 = 36 % only."""
    results = list(rankings(np.zeros(40), np.ones(40), 200))
    tops = [ranking.rows[0] for ranking in results]
    assert np.mean([top.mean for top in tops]) == pytest.approx(2.16, abs=0.15)
    assert np.mean([top.low <= 0 <= top.high for top in tops]) >= 0.93
    assert np.mean([abs(top.mean) <= 1.96 for top in tops]) == pytest.approx(0.36, abs=0.1)
    assert np.mean([ranking.winner is not None for ranking in results]) <= 0.05


def test_replicates_are_averaged_before_ranking_and_merging_sorts_by_order():
    """-20 ± 1 and -14 ± 2 make -18.8 ± 0.894; alone the first would be behind -19."""
    ranking = rank([WORKFLOWS[4], WORKFLOWS[9], WORKFLOWS[4]], [-20.0, -19.0, -14.0], [1.0, 1.0, 2.0])
    assert [row.workflow.number for row in ranking.rows] == [4, 9]
    assert ranking.rows[0].mean == pytest.approx(-18.8) and ranking.rows[0].standard_error == pytest.approx(math.sqrt(0.8))
    orders, values, errors = merge(np.array([[1, 0], [0, 1]]), np.array([5.0, 7.0]), np.array([0.1, 0.2]))
    assert orders.tolist() == [[0, 1], [1, 0]]
    np.testing.assert_allclose([values, errors], [[7.0, 5.0], [0.2, 0.1]])


def test_few_episodes_make_errors_less_certain():
    """2.78 is the 97.5 % quantile of t with 4 degrees of freedom, 1.96 the normal one."""
    assert t_over_normal(4, 0.025) == pytest.approx(2.776 / 1.960, abs=1e-3)
    few, many = (rank(WORKFLOWS[:2], [-20.0, -30.0], [3.0, 4.0], episodes=[n, m]) for n, m in ((5, 1000), (5000, 5000)))
    assert few.winner is None and few.rows[0].standard_error == 3.0 and many.winner == WORKFLOWS[0]


def test_the_spread_between_trainings_is_found_from_neighbouring_orders_and_hardly_moved_by_what_matters():
    """120 orders of one worth, trained with a spread of 0.5 and evaluated with an error of 0.25. Where enterprise before
    user is worth 10 points, one swap in five crosses that line. Three orders are too few.
    """
    rng = np.random.default_rng(0)
    means = -15 + rng.normal(0, np.hypot(0.5, 0.25), 120)
    assert training_spread(WORKFLOWS, means, [0.25] * 120) == pytest.approx(0.5, abs=0.1)
    assert training_spread(WORKFLOWS, -15 + rng.normal(0, 0.25, 120), [0.25] * 120) < 0.15
    means = [rng.normal(-15 if w.ranks[3] < w.ranks[0] else -25, 0.5) for w in WORKFLOWS]
    assert training_spread(WORKFLOWS, means, [0.0] * 120) == pytest.approx(0.5, abs=0.25)
    assert training_spread(WORKFLOWS[:3], [0.0, 1.0, 2.0], [0.1] * 3) == 0.0


@pytest.mark.parametrize("lead", [0.5, 2.0, 3.5, 4.5])
def test_the_bounds_of_a_p_value_hold_it_and_meet_for_equal_errors(lead):
    rng = np.random.default_rng(0)
    for spread in (0.0, 0.1, 1.0):
        errors = np.exp(spread * rng.normal(size=300))
        low, high = lead_p_bounds(lead, 1.0, errors)
        exact = lead_p_value(lead, 1.0, errors)
        assert low - 1e-9 <= exact <= high + 1e-9
        assert spread or high - low < 1e-9


def test_the_bounds_change_no_verdict():
    """300 orders whose leads lie around the decision: each is decided as by its exact p-value."""
    rng = np.random.default_rng(1)
    mean, error = np.linspace(0, -4, 300), rng.uniform(0.5, 1.5, 300)
    lead = (mean - mean[:, None]) / np.hypot(error[:, None], error)
    np.fill_diagonal(lead, -np.inf)
    exact = [lead_p_value(lead[i].max(), error[i], np.delete(error, i)) >= 0.025 for i in range(300)]
    assert may_be_best(mean, error, 0.025).tolist() == exact and 0 < sum(exact) < 300
