"""What defenders earn, by hand and as is known: evaluations, and the leaderboard, which has the same episodes."""

import numpy as np
import pytest
from cage2 import SLEEP, action_id
from late import Late
from searches import ORDER

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import Workflow
from fixfirst.play.evaluation import BATCH, EpisodeBatch, evaluate, play
from fixfirst.play.leaderboard import COLUMN_NAMES, LEADERBOARD, LEADERBOARD_COLUMNS, LeaderboardScore
from fixfirst.play.rollout import Rollout
from fixfirst.policy.scripts import make_baseline
from fixfirst.stats.evaluation import Evaluation

stats = Late("scipy.stats")

ORDERS = (Workflow.parse(ORDER),)
STREAM = {"seed": 3, "purpose": "test"}
FALSE_ALARM = 1e-3  # of all comparisons together, had the seeds not been fixed


def evaluate_player(player, game, *, judging=DEFAULT_JUDGING, **options):
    return evaluate(play(player, game, **options, **STREAM), judging)


def judged(name, red_agent, episodes=1_000):
    orders = ORDERS if name == "priority-restore" else ()
    return evaluate_player(make_baseline(name, orders), Game(red_agent=red_agent), episodes=episodes, workflows=orders)


def test_baselines_earn_what_is_known_and_removing_at_once_is_between_restoring_and_nothing():
    """Means and standard errors of 4,000 episodes of 100 steps of a simulator verified against CybORG step by step.

    priority-restore restores at once what is held: a mean from a table that gives one decimal.
    """
    means = {}
    for red_agent, name, mean, error, rounding in (
        ("b_line", "sleep", -1134.91, 0.30, 0),
        ("meander", "random", -582.21, 4.53, 0),
        ("b_line", "react-restore", -62.9, 0, 0.05),
        ("b_line", "priority-restore", -52.2, 0, 0.05),
        ("meander", "priority-restore", -48.8, 0, 0.05),
    ):
        evaluated = judged(name, red_agent)
        margin = stats.norm.isf(FALSE_ALARM / 5 / 2) * np.hypot(error, evaluated.standard_error)
        assert evaluated.mean == pytest.approx(mean, abs=rounding + margin)
        means[name] = evaluated.mean
        if name == "priority-restore":  # it never breaks its order, and answers every need
            rates = evaluated.compliance
            assert rates.compliance.value == rates.response.value == 1.0 and rates.compliance.count > 1_000
    assert means["sleep"] < judged("react-remove", "b_line", 200).mean < means["react-restore"]


class Restores:
    """Environment i restores a clean host i + 1 times, at 1 point each."""

    def act(self, moment):
        return np.where(moment.steps <= np.arange(len(moment.words)), action_id("Restore", "Op_Server0"), SLEEP)


def test_mean_standard_error_and_interval_by_hand():
    """Returns -1, -2, -3, -4: mean -2.5, variance 5/3, standard error sqrt(5/12) = 0.6455, t(3) at 97.5 % 3.1824."""
    evaluated = evaluate_player(Restores(), Game(red_agent="sleep", variant="debugged"), episodes=4)
    assert evaluated.mean == -2.5 and evaluated.standard_error == pytest.approx(0.6455, abs=1e-4)
    assert (evaluated.low, evaluated.high) == pytest.approx((-2.5 - 2.0543, -2.5 + 2.0543), abs=1e-3)
    assert evaluated.compliance is None and evaluated.episodes == 4  # without a workflow nothing is counted
    assert (evaluated.red_agent, evaluated.steps, evaluated.variant) == ("sleep", 100, "debugged")


def test_compliance_is_judged_by_the_given_rule_and_no_variant_is_the_one_that_the_world_is():
    """Random repairs break the order under any rule; `top` also forbids needless repairs of urgent types."""
    player, game = make_baseline("random"), Game(red_agent="meander")
    by_rule = {
        rule: evaluate_player(player, game, episodes=20, workflows=ORDERS, judging=Judging(rule=rule)).compliance
        for rule in ("no_higher", "top")
    }
    assert 0 < by_rule["top"].compliance.value < by_rule["no_higher"].compliance.value < 1
    assert evaluate_player(player, Game(variant=None, max_steps=10), episodes=2).variant == "current"


def test_episodes_follow_from_seed_and_purpose_and_those_beyond_one_batch_are_new_ones():
    """1,300 episodes: a batch of 1,000 and 300 of the next; the first 1,000 are those of a shorter evaluation."""

    def returns(number, seed=3, purpose="test"):
        return play(make_baseline("random"), Game(max_steps=20), episodes=number, seed=seed, purpose=purpose).returns

    first, again, *others = (returns(20, *stream) for stream in ((0, "gate"), (0, "gate"), (1, "gate"), (0, "test")))
    assert np.array_equal(first, again) and not any(np.array_equal(first, other) for other in others)
    long, short = returns(1_300), returns(BATCH)
    assert len(long) == 1_300 and np.array_equal(long[:BATCH], short)
    assert not np.array_equal(long[BATCH:], short[:300])


def test_counts_are_cut_to_the_episodes_asked_for(monkeypatch):
    """25 episodes in passes of 10 are the first 10, 10 and 5 of three passes."""
    monkeypatch.setattr("fixfirst.play.evaluation.BATCH", 10)
    passes = []
    player = make_baseline("priority-restore", ORDERS)
    played = play(player, Game(max_steps=20), episodes=25, workflows=ORDERS, on_pass=passes.append, **STREAM)
    assert passes == sorted(passes) and {10, 20, 25} <= set(passes) and max(passes) == 25  # also within a pass
    assert len(played.returns) == 25 and played.rollout.packed_obs.shape == (21, 25)
    assert all(len(column) == 25 for column in played.counts())


@pytest.mark.parametrize(
    ("means", "error", "equivalent", "p_value", "low", "smallest"),
    [
        # Difference 0.1 with standard error 0.1414: the margin 0.5 is 2.83 standard errors away.
        ((-15.0, -14.9), 0.1, True, 0.0024, 0.1 - 1.961 * 0.1414, 0.1 + 1.646 * 0.1414),
        # Standard error 0.71: an interval of +-1.4 cannot show +-0.5.
        ((-15.0, -14.9), 0.5, False, 0.286, 0.1 - 1.961 * 0.7071, 0.1 + 1.646 * 0.7071),
        ((-15.0, -14.0), 0.01, False, 1, 1 - 1.961 * 0.01414, 1 + 1.646 * 0.01414),  # however precise
        ((0.0, 0.0), 0.0, True, 0, 0, 0),
    ],
)
def test_worlds_are_equivalent_if_their_difference_is_shown_to_be_within_a_margin(
    means, error, equivalent, p_value, low, smallest
):
    one, other = (
        Evaluation("b_line", 100, "current", 1_000, mean, error, mean - 2 * error, mean + 2 * error, None) for mean in means
    )
    gap = one.difference(other, margin=0.5)
    assert gap.mean == pytest.approx(means[1] - means[0]) and gap.equivalent == equivalent
    assert gap.p_value == pytest.approx(p_value, abs=2e-4 if equivalent else 2e-3)
    assert (gap.low, gap.smallest_margin) == pytest.approx((low, smallest), abs=2e-3)


def episodes_of(*rewards10, red_agent="b_line"):
    """Two or more episodes of 100 steps, each given as {step: tenths}; all other rewards are 0."""
    n = len(rewards10)
    rewards, actions, after = (np.zeros((steps, n), np.int32) for steps in (100, 100, 101))
    for number, episode in enumerate(rewards10):
        rewards[list(episode), number] = list(episode.values())
    rollout = Rollout(after, after, after, actions, rewards, actions, after, np.empty((0, 1)), np.zeros(n, np.int64), ())
    return EpisodeBatch(rollout, Game(variant="leaderboard", red_agent=red_agent))


def test_columns_and_total_worked_by_hand():
    """Steps 0-29 count in all three columns, 30-49 in two, 50-99 in one.

    b_line:  episodes (-1, -3, -3) and (-1, -1, -5): sums of three -7 and -7, so no error of their sum at all.
    meander: episodes (-2, -2, -2) and ( 0,  0,  0): sums of three -6 and 0, mean -3, variance 18, error sqrt(18 / 2) = 3.
    """
    b_line = episodes_of({29: -10, 30: -20}, {0: -10, 50: -20, 99: -20})
    standing = LeaderboardScore.of({"b_line": b_line, "meander": episodes_of({5: -20}, {}, red_agent="meander")})
    assert [(row.red_agent, row.steps) for row in standing.columns] == list(LEADERBOARD_COLUMNS)
    assert COLUMN_NAMES == ("B30", "M30", "B50", "M50", "B100", "M100")
    assert [row.mean for row in standing.columns] == [-1, -1, -2, -1, -4, -1]
    assert [row.standard_error for row in standing.columns] == pytest.approx([0, 1, 1, 1, 1, 1])
    total = standing.total
    assert (total.mean, total.standard_error) == pytest.approx((-10, 3))  # columns taken for independent: sqrt(5)
    assert total.high - total.mean == total.mean - total.low == pytest.approx(3 * stats.t.ppf(0.975, 1))  # meander's alone


def test_equal_episodes_have_no_interval_and_the_lead_over_the_published_totals_counts_both():
    same = episodes_of({0: -10}, {0: -10})
    standing = LeaderboardScore.of({"b_line": same, "meander": same})
    winner, best = standing.leads.values()
    assert standing.total == (-6, 0, -6, -6)
    assert winner == pytest.approx((48.57, 48.57 - 0.43, 48.57 + 0.43))  # -6 less -54.57 ± 0.43
    assert best == pytest.approx((45.64, 45.64, 45.64))
    assert [row.total for row in LEADERBOARD] == [-54.57, -51.64]
    assert all(ours >= theirs for theirs, ours in zip(*(row.columns for row in LEADERBOARD), strict=True))


def test_columns_are_what_an_evaluation_of_the_same_seed_says():
    """An episode of 30 steps is the beginning of one of 100; compliance, too, is that of its steps."""
    options = {"workflow": ORDER, "episodes": 30, "seed": 5, "quiet": True}
    standing = ff.leaderboard("priority-restore", **options)
    rows = ff.evaluate("priority-restore", red_agent="b_line,meander", variant="leaderboard", **options)
    assert sorted(standing.columns, key=lambda row: row.red_agent) == rows
    assert standing.total.mean == pytest.approx(sum(row.mean for row in rows))


def test_a_defender_that_never_acts_earns_what_the_challenge_published():
    """The last row of its own table."""
    published_means = (-218.65, -39.31, -480.17, -267.6, -1134.03, -972.43)
    for row, published in zip(ff.leaderboard("sleep", quiet=True).columns, published_means, strict=True):
        margin = stats.norm.isf(1e-3 / 6 / 2) * 2**0.5 * row.standard_error  # theirs are 1,000 episodes, too
        assert row.mean == pytest.approx(published, abs=0.005 + margin)


def test_its_rules_are_not_for_choosing():
    for setting in ({"red_agent": "b_line"}, {"steps": 30}, {"max_steps": 100}, {"variant": "current"}):
        (name,) = setting
        with pytest.raises(ff.ConfigError, match=rf"in variant leaderboard, without green: leave out {name} \(--"):
            ff.leaderboard("sleep", **setting)
