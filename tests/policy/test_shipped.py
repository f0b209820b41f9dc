"""The policies that come with fixfirst: found by name, and as good as the documents say."""

import pytest

import fixfirst as ff
from fixfirst.policy.trained import shipped_policies


def test_their_names():
    assert shipped_policies() == ["champion", "champion-current", "guardian"]


def test_the_champion_beats_every_published_entry_in_every_column():
    """2,000 fresh episodes: standard errors of 0.03 to 0.1 per column, and leads of 0.4 to 2.7."""
    standing = ff.leaderboard("champion", greedy=True, episodes=2_000, quiet=True)
    best = (-3.47, -5.64, -5.85, -8.69, -11.39, -16.6)
    assert all(column.high < 0 and column.mean > published for column, published in zip(standing.columns, best, strict=True))
    assert standing.total.mean == pytest.approx(-44.7, abs=1.0)


def test_the_champion_leaves_a_sleeping_attacker_alone():
    (row,) = ff.evaluate("champion", greedy=True, red_agent="sleep", steps=100, episodes=200, quiet=True)
    assert row.mean == 0


def test_the_champion_of_the_current_challenge():
    rows = ff.evaluate(
        "champion-current", greedy=True, red_agent="b_line,meander", steps=100, episodes=2_000, variant="current", quiet=True
    )
    assert [row.mean for row in rows] == pytest.approx([-12.58, -15.57], abs=0.6)


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "champion").mkdir()
    with pytest.raises(ff.PolicyError, match="champion: holds no policy"):
        ff.load_policy("champion")


def test_the_guardian_keeps_what_it_is_said_to_keep_against_scripts():
    """For attackers that adapt it gives up 1 point against B_line and 1.5 against Meander (docs/attackers.md)."""
    rows = ff.evaluate("guardian", greedy=False, red_agent="b_line,meander,sleep", steps=100, episodes=1_000, quiet=True)
    assert [row.mean for row in rows] == pytest.approx([-13.7, -17.0, 0.0], abs=0.5)


def test_the_guardians_attackers_are_red_agents_by_name():
    """The three of its league that take most from it, under the numbers that they have there."""
    names = "guardian-149,guardian-173,guardian-179"
    rows = ff.evaluate("guardian", greedy=False, red_agent=names, steps=100, episodes=300, quiet=True)
    assert [row.mean for row in rows] == pytest.approx([-67.1, -72.1, -80.2], abs=2.5)
