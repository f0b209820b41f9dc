"""Attackers that learn: they find a hole that was planted, and go on with the same bytes when put back. Leagues likewise."""

import numpy as np
import pytest
from policies import FIRST_CHAMPION

from fixfirst.base import errors
from fixfirst.base.jobs import Interrupt
from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.game.scenario import CAGE2
from fixfirst.learner.driver import Driver
from fixfirst.learner.league import PAST, League
from fixfirst.learner.ppo import initial_weights
from fixfirst.learner.red_training import Opponent, RedTraining, best_response, play_red
from fixfirst.play.baselines import make_baseline
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.red_file import load_red
from fixfirst.reporter.habits import describe_duel
from fixfirst.settings.league import LeagueConfig

SPEC, GAME = RedSpec(), Game(max_steps=30)


class RestoresWhatIsActive:
    """A defender with a hole: it restores a host whenever somebody scans it, at one point each."""

    def act(self, moment):
        active = (moment.words[:, None] >> np.arange(0, 52, 4, dtype=np.uint64)) & np.uint64(1)
        restore = np.array([CAGE2.action_id("Restore", host) for host in CAGE2.host_names])
        return np.where(active.any(axis=1), restore[active.argmax(axis=1)], 0)


def test_a_best_response_finds_a_planted_hole_and_says_so():
    opponent = Opponent(RestoresWhatIsActive())
    starts = {"scratch": None, "untrained": initial_weights(SPEC.inputs, 5, SPEC.actions)}
    tried = best_response(opponent, GAME, SPEC, starts, episodes=700, seed=1)
    assert len(tried) == 5 and tried[0].mean == min(attempt.mean for attempt in tried) < -25  # of 29 that noise can take
    duel = play_red(opponent, tried[0].weights, SPEC, GAME, episodes=100, seed=1, purpose="exploit")
    told = " ".join(describe_duel(duel, SPEC))
    assert "% of its turns it" in told and "policy restores" in told


def test_the_best_attacker_goes_on_less_sure_of_itself_and_is_then_refined_as_it_is():
    """With a budget below one update nothing is learned: what is left are the weights that each way begins with."""
    starts = {"known": initial_weights(SPEC.inputs, 5, SPEC.actions)}
    tried = best_response(Opponent(RestoresWhatIsActive()), GAME, SPEC, starts, episodes=20, seed=1)
    found = {attempt.start: attempt.weights["actor.4.weight"] for attempt in tried}
    (longer,) = (name for name in found if name.endswith(", longer"))
    (refined,) = (name for name in found if name.endswith(", refined"))
    np.testing.assert_array_equal(found[longer], 0.25 * starts["known"]["actor.4.weight"])
    np.testing.assert_array_equal(found[refined], found[refined.removesuffix(", refined")])


def test_nothing_is_taken_where_blue_cannot_lose():
    """In one turn red can only look around."""
    opponent, weights = Opponent(make_baseline("sleep", ())), initial_weights(SPEC.inputs, 0, SPEC.actions)
    duel = play_red(opponent, weights, SPEC, Game(max_steps=1), episodes=20, seed=0, purpose="test")
    assert (duel.blue.returns == 0).all()


def training(seed=0):
    return RedTraining([Opponent(load_policy("champion").player())], GAME, SPEC, episodes=200, seed=seed)


def tiny_league():
    policy = load_policy("champion-current")
    sizes = {"live": 2, "lapsing": 1, "life": 2, "frozen": 1, "envs": 3, "frozen_envs": 2, "script_envs": 3}
    config = LeagueConfig(updates=4, responses=1, response_episodes=50, **sizes)
    return League(config, policy.spec, policy.weights, {"known": initial_weights(SPEC.inputs, 9, SPEC.actions)})


@pytest.mark.parametrize("make", [training, tiny_league])
def test_a_training_that_was_interrupted_ends_with_the_same_bytes(make, tmp_path):
    whole, first, second = make(), make(), make()
    while not whole.done:
        whole.step()
    for _ in Driver(tmp_path, first, {"a": 1}, every=2).steps(interrupt := Interrupt()):
        interrupt.requested = first.updates == 2
    run = Driver(tmp_path, second, {"a": 1}, every=2)
    assert second.updates == 2 and not run.complaints
    list(run.steps())
    assert second.numbers() == whole.numbers()
    ours, theirs = second.tensors(), whole.tensors()
    assert ours.keys() == theirs.keys() and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    with pytest.raises(errors.PolicyError, match="belongs to a training with another configuration"):
        Driver(tmp_path, make(), {"a": 2})


def test_frozen_attackers_join_a_league_and_others_begin():
    league, steps = tiny_league(), []
    while not league.done:
        steps.append(league.step())
    assert league.born == 2 + len(league.pool) == 8 and [red.kind for red in league.pool].count("response") == 2
    assert [len(step.closed) for step in steps] == [0, 0, 0, 6, 0, 0, 0, 9]  # two updates, a response, the matrix; twice
    returns = steps[4].returns
    assert {"scripts", "live 1"} < set(returns) and any(name.startswith("frozen") for name in returns)
    assert "live 0" not in returns  # it meets a defender that sleeps: what that earns says nothing


def test_a_defender_learns_from_what_comes_after_it_slept(monkeypatch):
    """In every update all its episodes have as many turns to learn from, whenever and for however long it was asleep."""
    league, met, learned = tiny_league(), [], []
    play, update = league._play_live, league.learner.update
    monkeypatch.setattr(league, "_play_live", lambda number: met.append(play(number)) or met[-1])
    monkeypatch.setattr(league.learner, "update", lambda *said, **named: (learned.append(said[0]), update(*said, **named)))
    league.step()
    lapse = tiny_league()._lapse(0)
    lapsing, other = (duel.blue for duel in met)
    sleep = league.spec.action_set.numbers(["Sleep"])[0]
    asleep = [turn for turn, choice in enumerate(lapse) if choice == sleep]
    assert len(asleep) >= 3 and asleep[-1] == len(lapse) - 1  # it ends with the lapse
    assert (lapsing.choices[asleep] == sleep).all() and not (other.choices[asleep] == sleep).all()
    opening = len(league.spec.opening)
    assert len(other.actions) == 100 and len(lapsing.actions) == len(lapse) + 100 - opening
    (whole,) = learned
    assert whole.choices.shape == (100 - opening, 9)
    assert np.array_equal(whole.choices[:, 3:6], lapsing.choices[len(lapse) :])


def test_attackers_that_meet_a_defender_with_lapses_begin_with_what_is_known():
    """From scratch they would not find the target in their life, awake or asleep."""
    league = tiny_league()
    assert [live.start for live in league.live] == ["known", "scratch"]
    while not league.done:
        league.step()
    assert league.live[0].start == "known"


def test_when_a_round_is_closed_a_league_knows_what_everybody_takes_now():
    """Whom nobody met for a while may have found a new hole: attackers are drawn by what they take."""
    league = tiny_league()
    closed = ()
    while not closed:
        closed = league.step().closed
    now = [row.mean for row in closed if row.kind != "script"]
    assert [red.taken for red in league.pool] == pytest.approx(now, abs=1e-3)  # files keep so many digits


def test_a_league_compares_what_happens_against_one_opponent_with_that_only(monkeypatch):
    """Three episodes against the scripts and against each of two live attackers; in the next round, two against a frozen."""
    league, groups = tiny_league(), []
    update = league.learner.update
    monkeypatch.setattr(
        league.learner, "update", lambda *said, **named: (groups.append(named["groups"]), update(*said, **named))
    )
    while not league.done:
        league.step()
    assert groups[0] == [3, 3, 3] and groups[-1] == [3, 2, 3, 3]


def test_the_defender_that_is_kept_is_the_average_of_the_updates():
    """The first counts for 9 tenths against the start, the second for 9 elevenths against both."""
    league = tiny_league()
    seen = [league.learner.weights["actor.4.bias"].copy()]
    for _ in range(2):
        league.step()
        seen.append(league.learner.weights["actor.4.bias"].copy())
    first = seen[0] + 0.9 * (seen[1] - seen[0])
    expected = first + 9 / 11 * (seen[2] - first)
    np.testing.assert_allclose(league.average["actor.4.bias"], expected, atol=1e-6)
    assert np.abs(seen[2] - expected).max() > 1e-4


def test_attackers_of_a_league_prefer_different_hosts():
    league = tiny_league()
    biases = [league._start(number)[1]["actor.4.bias"] for number in (0, 4)]  # both from scratch
    assert abs(biases[0]).max() > 1 and abs(biases[0] - biases[1]).max() > 1
    assert [league._start(number)[0] for number in (1, 2, 3)] == ["scratch", "known", "known"]  # nobody is of the past yet
    while not league.pool:
        league.step()
    assert [league._start(number)[0] for number in (1, 2, 3)] == [PAST, "known", PAST]


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
