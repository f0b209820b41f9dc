"""What an episode cost, and two defenders on the same ones."""

import numpy as np
import pytest
from cage2 import action_id, hosts_mask

import fixfirst as ff
from fixfirst.api import evaluate as evaluating
from fixfirst.game.game_config import Game
from fixfirst.orders.order import UnitScheme
from fixfirst.play.comparison import paired
from fixfirst.play.evaluation import count_verb, episode_costs, evaluate, play
from fixfirst.policy.scripts import make_baseline
from fixfirst.policy.table import PolicyTable
from fixfirst.reporter.turn import costs
from fixfirst.stats.pricing import part_names

SCHEME = UnitScheme.by_type()


def played(verb, red_agent="b_line"):
    """50 episodes of 10 steps of a defender that takes one action in every turn."""
    player = PolicyTable(lambda inputs: np.eye(145)[np.full(len(inputs), action_id(verb, "User1"))])
    return play(player, Game(red_agent=red_agent, max_steps=10), episodes=50, seed=0, purpose="test")


def test_a_restore_in_every_turn_costs_its_price_in_every_episode():
    row = paired(played("Analyse", "sleep"), played("Restore", "sleep"))
    assert (row.first, row.second, row.mean, row.standard_error) == (0.0, -10.0, -10.0, 0.0)
    assert row.different and row.low == row.high == -10.0 and row.independent_episodes is None


def test_against_b_line_the_difference_is_the_sum_of_what_is_paid_for_each_part():
    """A Restore in each of 10 turns, at one point each; the intervals of several red agents are wider, so that all hold."""
    first, second = played("Analyse"), played("Restore")
    row, both = paired(first, second), paired(first, second, comparisons=2)
    assert both.low < row.low and row.high < both.high and row.mean == both.mean
    assert sum(part.mean for part in row.parts.values()) == pytest.approx(row.mean)
    restores = row.parts["Restore"]
    assert restores.mean == restores.low == restores.high == -10 and (row.restores, row.removes) == ((0, 10), (0, 0))
    evaluated = evaluate(second)
    assert (evaluated.restores, evaluated.removes) == (10, 0) and sum(evaluated.costs.values()) == pytest.approx(
        -evaluated.mean
    )
    worst = row.worst_of_second[0]
    assert worst.second == second.returns.min() == second.returns[worst.number]
    assert worst.first == first.returns[worst.number]


def test_common_luck_is_worth_episodes_and_the_means_are_those_of_evaluate_and_nobody_differs_from_itself():
    options = {"red_agent": "meander", "episodes": 300, "greedy": True, "quiet": True, "variant": "current"}
    (row,) = ff.compare("champion", "champion-current", **options)
    first, second = (ff.evaluate(name, steps=100, **options)[0] for name in ("champion", "champion-current"))
    assert (row.first, row.second) == (first.mean, second.mean) and row.independent_episodes > 300
    assert row.standard_error < np.hypot(first.standard_error, second.standard_error)
    rows = ff.compare("react-restore", "react-restore", episodes=20, steps=30, quiet=True)
    assert [(row.red_agent, row.mean, row.different) for row in rows] == [("b_line", 0.0, False), ("meander", 0.0, False)]
    with pytest.raises(ff.FixfirstError, match="at least 2, got 1"):
        ff.compare("sleep", "random", episodes=1, quiet=True)


CHAMPION, CURRENT = "champion was made for variant leaderboard", "champion-current was made for variant current"


@pytest.mark.parametrize(
    ("names", "asked", "variants", "says"),
    [
        ("champion", {}, "leaderboard", []),
        ("champion", {"variant": "current"}, "current", [f"{CHAMPION}; it is played in current, as asked"]),
        ("sleep", {"variant": "debugged"}, "debugged", []),
        ("champion champion-current", {}, "leaderboard current", [f"{CHAMPION}, {CURRENT}: both are played in each"]),
        ("champion sleep", {}, "leaderboard", []),
    ],
)
def test_a_policy_is_played_in_the_variant_it_was_made_for_unless_asked_otherwise_and_that_is_said(
    names, asked, variants, says
):
    lines, verb = [], ff.compare if " " in names else ff.evaluate
    rows = verb(*names.split(), red_agent="b_line", steps=5, episodes=2, quiet=True, say=lines.append, **asked)
    assert [row.variant for row in rows] == variants.split() and lines == says


def test_a_leaderboard_a_rollout_and_a_cyborg_in_another_variant_say_so(monkeypatch):
    """CybORG is of one variant; here our simulator stands in for it."""
    lines, envs, plain = [], ff.make_vec(2, variant="leaderboard"), evaluating.play_all

    def on_simulator(defenders, games, **options):
        there = [game.model_copy(update={"backend": "simulator", "variant": "current"}) for game in games]
        return plain(defenders, there, **options)

    ff.leaderboard("champion-current", episodes=2, quiet=True, say=lines.append)
    for policy in ("champion", "champion-current"):
        envs.reset(seed=0)
        ff.rollout(envs, policy, steps=2, say=lines.append)
    monkeypatch.setattr(evaluating, "play_all", on_simulator)
    few = {"red_agent": "b_line", "steps": 5, "episodes": 2, "backend": "cyborg", "quiet": True, "say": lines.append}
    for policy in ("champion", "champion-current", "sleep"):
        assert [row.variant for row in ff.evaluate(policy, **few)] == ["current"]
    assert lines == [
        f"{CURRENT}; it is played in leaderboard, as asked",
        "the policy was made for variant current; the environments play leaderboard",
        "champion was made for variant leaderboard; this CybORG is current",
    ]


def test_parts_worked_by_hand():
    """Two steps: Enterprise1 (1) and User1 (0.1) are held after the first, with a Restore (1); then only User1, and the
    service is stopped (10).
    """
    charged = np.array([[0], [hosts_mask("Enterprise1", "User1")], [hosts_mask("User1")]], np.int16)
    actions = np.array([[action_id("Restore", "User2")], [action_id("Remove", "User2")]], np.int16)
    parts = episode_costs(charged, actions, np.array([[-21], [-101]], np.int32), SCHEME)
    expected = {"user": 0.2, "enterprise": 1.0, "stopped service": 10.0, "Restore": 1.0}
    assert dict(zip(part_names(SCHEME), parts[:, 0].tolist(), strict=True)) == {
        name: expected.get(name, 0.0) for name in part_names(SCHEME)
    }
    assert [count_verb(actions, verb, SCHEME).tolist() for verb in ("Restore", "Remove", "Sleep")] == [[1], [1], [0]]


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_parts_add_up_to_what_each_turn_says_it_cost(variant):
    """Of 20 episodes of a defender that does anything: the parts of all turns, taken apart one by one."""
    game = Game(red_agent="meander", variant=variant)
    batch = play(make_baseline("random"), game, episodes=20, seed=0, purpose="test", keep_turns=True)
    parts, names = batch.costs(SCHEME), part_names(SCHEME)
    assert np.array_equal(np.round(10 * parts.sum(axis=0)), -batch.rollout.rewards10.sum(axis=0)) and (parts >= 0).all()
    slow = np.zeros(parts.shape)
    units = {host.name: host.unit for host in SCHEME.scenario.hosts} | {"impact": "stopped service", "restore": "Restore"}
    for turn in batch.rollout.turns[1:].ravel().reshape(len(batch.rollout.turns) - 1, -1):
        for episode, one in enumerate(turn):
            for cost in costs(one, variant):
                slow[names.index(units[cost["what"]]), episode] -= cost["tenths"] / 10
    assert parts == pytest.approx(slow)
    assert (parts.sum(axis=1) > 0).sum() >= 5
