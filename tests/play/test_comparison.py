"""Two defenders on the same episodes."""

import json

import numpy as np
import pytest
from cage2 import action_id

import fixfirst as ff
from fixfirst.api import evaluate as evaluating
from fixfirst.cli import main
from fixfirst.game.game_config import Game
from fixfirst.play.comparison import paired
from fixfirst.play.evaluation import evaluate, play
from fixfirst.policy.table import PolicyTable


def always(verb, host):
    """Takes one action in every turn."""
    return PolicyTable(lambda inputs: np.eye(145)[np.full(len(inputs), action_id(verb, host))])


def played(player, episodes=50, red_agent="sleep"):
    return play(player, Game(red_agent=red_agent, max_steps=10), episodes=episodes, seed=0, purpose="test")


def test_a_restore_in_every_turn_costs_its_price_in_every_episode():
    row = paired(played(always("Analyse", "User1")), played(always("Restore", "User1")))
    assert (row.first, row.second, row.mean, row.standard_error) == (0.0, -10.0, -10.0, 0.0)
    assert row.different and row.low == row.high == -10.0 and row.independent_episodes is None


def test_a_policy_is_not_told_from_itself():
    rows = ff.compare("react-restore", "react-restore", episodes=20, steps=30, quiet=True)
    assert [(row.red_agent, row.mean, row.different) for row in rows] == [("b_line", 0.0, False), ("meander", 0.0, False)]


def test_common_luck_is_worth_episodes_and_the_means_are_those_of_evaluate():
    champion, current = "champion", "champion-current"
    there = {"red_agent": "meander", "episodes": 300, "greedy": True, "quiet": True, "variant": "current"}
    (row,) = ff.compare(champion, current, **there)
    shown = [ff.evaluate(name, steps=100, **there)[0] for name in (champion, current)]
    assert (row.first, row.second) == (shown[0].mean, shown[1].mean)
    assert row.standard_error < np.hypot(shown[0].standard_error, shown[1].standard_error)
    assert row.independent_episodes > 300


def test_a_policy_is_played_in_the_variant_it_was_made_for_unless_asked_otherwise():
    """The champion was made for the leaderboard; of two made for different variants, each is played in both."""
    said, few = [], {"red_agent": "b_line", "episodes": 2, "quiet": True, "say": lambda text: said.append(text)}
    assert [row.variant for row in ff.evaluate("champion", steps=5, **few)] == ["leaderboard"] and said == []
    assert [row.variant for row in ff.evaluate("champion", steps=5, variant="current", **few)] == ["current"]
    assert said == ["champion was made for variant leaderboard; it is played in current, as asked"]
    assert [row.variant for row in ff.evaluate("sleep", steps=5, variant="debugged", **few)] == ["debugged"]
    said.clear()
    assert [row.variant for row in ff.compare("champion", "champion-current", steps=5, **few)] == ["leaderboard", "current"]
    assert said == [
        "champion was made for variant leaderboard, champion-current was made for variant current: both are played in each"
    ]
    assert [row.variant for row in ff.compare("champion", "sleep", steps=5, **few)] == ["leaderboard"]
    said.clear()
    ff.leaderboard("champion-current", episodes=2, quiet=True, say=few["say"])
    assert said == ["champion-current was made for variant current; it is played in leaderboard, as asked"]
    said.clear()
    envs = ff.make_vec(2, variant="leaderboard")
    for policy in ("champion", "champion-current"):
        envs.reset(seed=0)
        ff.rollout(envs, policy, steps=2, say=few["say"])
    assert said == ["the policy was made for variant current; the environments play leaderboard"]


def test_what_cyborg_is_instead_is_said(monkeypatch):
    """CybORG is of one variant; here our simulator stands in for it."""
    plain, said = evaluating.play_all, []

    def on_simulator(defenders, games, **options):
        there = [game.model_copy(update={"backend": "simulator", "variant": "current"}) for game in games]
        return plain(defenders, there, **options)

    monkeypatch.setattr(evaluating, "play_all", on_simulator)
    few = {"red_agent": "b_line", "steps": 5, "episodes": 2, "backend": "cyborg", "quiet": True, "say": said.append}
    for policy in ("champion", "champion-current", "sleep"):
        assert [row.variant for row in ff.evaluate(policy, **few)] == ["current"]
    assert said == ["champion was made for variant leaderboard; this CybORG is current"]


def test_intervals_of_several_red_agents_are_wider_so_that_all_hold():
    a, b = (played(always(verb, "User1"), red_agent="b_line") for verb in ("Analyse", "Restore"))
    one, both = paired(a, b), paired(a, b, comparisons=2)
    assert both.low < one.low and one.high < both.high and one.mean == both.mean


def test_a_difference_is_the_sum_of_what_is_paid_for_each_part():
    first, second = (played(always(verb, "User1"), red_agent="b_line") for verb in ("Analyse", "Restore"))
    row = paired(first, second)
    assert sum(part.price for part in row.parts) == pytest.approx(row.mean)
    paid = {part.name: part for part in row.parts}["Restore"]
    steps = len(first.rollout.actions)
    assert paid.price == paid.low == paid.high == -steps  # one a turn, at one point each
    assert row.restores == (0.0, steps) and row.removes == (0.0, 0.0)
    shown = evaluate(second)
    assert (shown.restores, shown.removes) == (steps, 0) and sum(shown.costs.values()) == pytest.approx(-shown.mean)


def test_the_worst_episodes_of_each_are_named_with_what_the_other_earned():
    first, second = (played(always(verb, "User1"), red_agent="b_line") for verb in ("Analyse", "Restore"))
    row = paired(first, second)
    worst = row.worst_of_second[0]
    assert worst.second == second.returns.min() == second.returns[worst.number]
    assert worst.first == first.returns[worst.number]


def test_the_command_says_who_is_better_by_how_much_and_where_each_is_worst(capsys):
    arguments = ["compare", "sleep", "react-restore", "--episodes", "50", "--quiet"]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "b_line" in told and "meander" in told and "next: fixfirst watch sleep --beside react-restore" in told
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["red_agent"] for row in rows] == ["b_line", "meander"] and all(row["different"] for row in rows)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"episodes": 1}, "episodes must be at least 2"), ({"seed": -1}, "seed must be"), ({"red_agent": "x"}, "unknown red")],
)
def test_what_makes_no_sense_is_refused(options, says):
    with pytest.raises(ff.FixfirstError, match=says):
        ff.compare("sleep", "random", quiet=True, **options)
