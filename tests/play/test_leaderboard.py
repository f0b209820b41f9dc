"""The leaderboard: columns and total worked by hand, the published table, and the same episodes as in an evaluation."""

import numpy as np
import pytest
from late import Late
from searches import ORDER

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.play.evaluation import EpisodeBatch
from fixfirst.play.leaderboard import COLUMN_NAMES, LEADERBOARD, LEADERBOARD_COLUMNS, LeaderboardScore
from fixfirst.play.rollout import Rollout

stats = Late("scipy.stats")


def episodes_of(*rewards10, red_agent="b_line"):
    """Two or more episodes of 100 steps, each given as {step: tenths}; all other rewards are 0."""
    n = len(rewards10)
    rewards, actions, after = (np.zeros((steps, n), np.int32) for steps in (100, 100, 101))
    for number, episode in enumerate(rewards10):
        rewards[list(episode), number] = list(episode.values())
    rollout = Rollout(after, after, after, actions, rewards, actions, after, np.empty((0, 1)), np.zeros(n, np.int64), ())
    return EpisodeBatch(rollout, ff.Game(variant="leaderboard", red_agent=red_agent))


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
        with pytest.raises(ConfigError, match=rf"in variant leaderboard, without green: leave out {name} \(--"):
            ff.leaderboard("sleep", **setting)
