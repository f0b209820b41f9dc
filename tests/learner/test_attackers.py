"""Attackers that learn: they find a hole that was planted, and go on with the same bytes when put back. Leagues likewise."""

import numpy as np
import pytest
from learners import RED, UNTRAINED, small_league
from policies import FIRST_CHAMPION

from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2
from fixfirst.learner.population import PAST
from fixfirst.learner.red_training import Opponent, best_response, play_red
from fixfirst.policy.reds import load_red
from fixfirst.policy.scripts import make_baseline
from fixfirst.policy.trained import load_policy
from fixfirst.reporter.reasons import describe_duel

GAME = Game(max_steps=30)


class RestoresWhatIsActive:
    """A defender with a hole: it restores a host whenever somebody scans it, at one point each."""

    def act(self, moment):
        active = (moment.words[:, None] >> np.arange(0, 52, 4, dtype=np.uint64)) & np.uint64(1)
        restore = np.array([CAGE2.action_id("Restore", host) for host in CAGE2.host_names])
        return np.where(active.any(axis=1), restore[active.argmax(axis=1)], 0)


HOLE = Opponent(RestoresWhatIsActive())


def test_a_best_response_finds_a_planted_hole_and_says_so():
    tried = best_response(HOLE, GAME, RED, {"scratch": None, "untrained": UNTRAINED}, episodes=700, seed=1)
    assert len(tried) == 5 and tried[0].mean == min(attempt.mean for attempt in tried) < -25  # of 29 that noise can take
    duel = play_red(HOLE, tried[0].weights, RED, GAME, episodes=100, seed=1, purpose="exploit")
    habits = " ".join(describe_duel(duel, RED))
    assert "% of its turns it" in habits and "policy restores" in habits


def test_the_best_attacker_goes_on_less_sure_of_itself_and_is_then_refined_as_it_is():
    """With a budget below one update nothing is learned: what is left are the weights that each way begins with."""
    tried = best_response(HOLE, GAME, RED, {"known": UNTRAINED}, episodes=20, seed=1)
    ends = {attempt.start: attempt.weights["actor.4.weight"] for attempt in tried}
    longer, refined = (next(name for name in ends if name.endswith(way)) for way in (", longer", ", refined"))
    np.testing.assert_array_equal(ends[longer], 0.25 * UNTRAINED["actor.4.weight"])
    np.testing.assert_array_equal(ends[refined], ends[refined.removesuffix(", refined")])


def test_nothing_is_taken_where_blue_cannot_lose():
    """In one turn red can only look around."""
    opponent = Opponent(make_baseline("sleep"))
    duel = play_red(opponent, UNTRAINED, RED, Game(max_steps=1), episodes=20, seed=0, purpose="test")
    assert (duel.blue.returns == 0).all()


def finished(league):
    """All its steps to the end."""
    steps = []
    while not league.done:
        steps.append(league.step())
    return steps


@pytest.fixture
def watched(monkeypatch):
    """A league, and what its defender learns from: (rollout, groups) of every update."""
    league, learned = small_league(), []
    update = league.learner.update

    def note(played, rewards, **options):
        learned.append((played, options["groups"]))
        return update(played, rewards, **options)

    monkeypatch.setattr(league.learner, "update", note)
    return league, learned


def test_frozen_attackers_join_a_league_and_others_begin():
    league = small_league()
    assert [live.start for live in league.live] == ["known", "scratch"]
    steps = finished(league)
    assert league.born == 2 + len(league.pool) == 8 and [red.kind for red in league.pool].count("response") == 2
    assert [len(step.closed) for step in steps] == [0, 0, 0, 6, 0, 0, 0, 9]  # two updates, a response, the matrix; twice
    returns = steps[4].returns
    assert {"scripts", "live 1"} < set(returns) and any(name.startswith("frozen") for name in returns)
    assert "live 0" not in returns  # it meets a defender that sleeps: what that earns says nothing
    assert league.live[0].start == "known"  # from scratch it would not find the target in its life, awake or asleep
    everybody = [row.mean for row in steps[-1].closed if row.kind != "script"]
    assert [red.taken for red in league.pool] == pytest.approx(everybody, abs=1e-3)  # who found a new hole is met more often


def test_a_defender_learns_from_what_comes_after_it_slept(monkeypatch, watched):
    """In every update all its episodes have as many turns to learn from, whenever and for however long it was asleep."""
    league, learned = watched
    met, play = [], league._play_live
    monkeypatch.setattr(league, "_play_live", lambda number: met.append(play(number)) or met[-1])
    lapse = league._lapse(0)
    league.step()
    lapsing, other = (duel.blue for duel in met)
    sleep = league.spec.action_set.numbers(["Sleep"])[0]
    asleep = [turn for turn, choice in enumerate(lapse) if choice == sleep]
    assert len(asleep) >= 3 and asleep[-1] == len(lapse) - 1  # it ends with the lapse
    assert (lapsing.choices[asleep] == sleep).all() and not (other.choices[asleep] == sleep).all()
    opening, ((whole, _),) = len(league.spec.opening), learned
    assert len(other.actions) == 100 and len(lapsing.actions) == len(lapse) + 100 - opening
    assert whole.choices.shape == (100 - opening, 9)
    assert np.array_equal(whole.choices[:, 3:6], lapsing.choices[len(lapse) :])


def test_a_league_compares_what_happens_against_one_opponent_with_that_only(watched):
    """Three episodes against the scripts and against each of two live attackers; in the next round, two against a frozen."""
    league, learned = watched
    finished(league)
    assert learned[0][1] == [3, 3, 3] and learned[-1][1] == [3, 2, 3, 3]


def test_the_defender_that_is_kept_is_the_average_of_the_updates():
    """The first counts for 9 tenths against the start, the second for 9 elevenths against both."""
    league = small_league()
    biases = [league.learner.weights["actor.4.bias"].copy()]
    for _ in range(2):
        league.step()
        biases.append(league.learner.weights["actor.4.bias"].copy())
    first = biases[0] + 0.9 * (biases[1] - biases[0])
    expected = first + 9 / 11 * (biases[2] - first)
    np.testing.assert_allclose(league.average["actor.4.bias"], expected, atol=1e-6)
    assert np.abs(biases[2] - expected).max() > 1e-4


def test_attackers_of_a_league_prefer_different_hosts():
    league = small_league()

    def begin(*numbers):
        return [league.starts.choose(number, league.pool) for number in numbers]

    first, second = (weights["actor.4.bias"] for _, weights in begin(0, 4))  # both from scratch
    assert abs(first).max() > 1 and abs(first - second).max() > 1
    assert [name for name, _ in begin(1, 2, 3)] == ["scratch", "known", "known"]  # nobody is of the past yet
    while not league.pool:
        league.step()
    assert [name for name, _ in begin(1, 2, 3)] == [PAST, "known", PAST]


@pytest.mark.parametrize(
    ("name", "policy", "mean"),  # standard errors 0.3 and 8.9, but a seed gives the same episodes everywhere
    [("noise", FIRST_CHAMPION, -100.95), ("two-fronts", "champion-current", -158.10)],
)
def test_attackers_that_come_with_fixfirst_take_what_the_documents_say(name, policy, mean):
    red, defender = load_red(name), load_policy(policy)
    game = Game(variant=red.facts["variant"])
    opponent = Opponent(defender.player(greedy=True))
    duel = play_red(opponent, red.weights, red.spec, game, episodes=500, seed=5, purpose="test")
    assert duel.blue.returns.mean() == pytest.approx(mean, abs=0.01)
