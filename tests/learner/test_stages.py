"""Trainings in several stages: starts, survivors, openings that are found, and what competes trained side by side."""

import json
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import replace
from itertools import chain, pairwise
from multiprocessing import active_children

import numpy as np
import pytest
from searches import training_log

from fixfirst.base.jobs import Interrupt
from fixfirst.learner.driver import read_checkpoint
from fixfirst.learner.openings import evaluate_openings, extend_openings, first_openings, next_openings
from fixfirst.learner.stages import Entrant, StageKind, stages_of
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import play
from fixfirst.policy.network import Network
from fixfirst.policy.table import PolicyTable, probabilities
from fixfirst.policy.trained import load_policy
from fixfirst.settings.training import make_config

TOURNAMENT = {"entrants": 2, "start_episodes": 20, "opening": "Decoy User2, Decoy User2", "opening_episodes": 20}
SEEKING = {  # 3 x 20 + 2 x 40 + 3 x 10 + 2 x 20 of 230 episodes; the rest, 10 for each survivor, goes on without an opening
    "entrants": 3,
    "start_episodes": 20,
    "survivors": 2,
    "opening": "find",
    "seek_episodes": 40,
    "halving_rounds": 3,
    "finalists": 2,
    "final_episodes": 10,
    "finalists_kept": 2,
    "opening_episodes": 20,
    "total_episodes": 230,
    "max_steps": 5,  # thousands of episodes are played to choose
    "checkpoint_every": 2,
}


def config(**settings):
    usual = {"workflow": "none", "memory": "full", "action_set": "macros", "max_steps": 30, "total_episodes": 200}
    return make_config(**usual | {"red_agent": "b_line:0.5,meander:0.5", "n_envs": 10} | settings)


class Killed(Exception):
    pass


def train(folder, settings, stop=None, workers=1):
    """Train in a folder; stop: after so many updates, without a word, as by a kill. Returns the rows, and the end."""
    rows = []

    def tell(row):
        rows.append(row)
        if len(rows) == stop:
            raise Killed

    with suppress(Killed), train_in(folder, config(**settings), tell, workers=workers) as trained:
        return rows, trained
    return rows, None


def results(folder):
    """The candidates in each entrant's result.json, by number."""
    count = len(list((folder / "entrants").iterdir()))
    return [json.loads((folder / "entrants" / str(n) / "result.json").read_text())["candidates"] for n in range(count)]


def written(folder):
    """The policy, and the rows of the log but for what the clock says."""
    return (folder / "policy.safetensors").read_bytes(), training_log(folder)


@pytest.fixture(scope="module")
def sought(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sought")
    _, trained = train(folder, SEEKING)
    return folder, trained


def test_a_tournament_has_its_stages():
    """Two starts of 20 of 200 episodes; the better goes on for 140; the last 20 have the opening. Or openings are sought."""
    stages = stages_of(config(**TOURNAMENT))
    assert [(stage.begin.name, stage.entrants, stage.episodes, stage.behind, stage.plan) for stage in stages] == [
        ("SCRATCH", 2, 20, 0, 160),
        ("BEST_START", 1, 140, 20, 160),
        ("OPENING", 1, 20, 0, 20),
    ]
    assert [stage.progress(0) for stage in stages] == [0, 1 / 8, 0]
    assert [stage.share for stage in stages] == [(2, 20), (14, 140), (2, 20)]
    stages = stages_of(config(**SEEKING))
    assert [(stage.begin.name, stage.entrants, stage.advance, stage.episodes) for stage in stages] == [
        ("SCRATCH", 3, 2, 20),
        ("BEST_START", 2, 2, 10),
        ("SEEK", 2, 2, 40),
        ("FINAL", 3, 2, 10),
        ("OPENING", 2, 1, 20),
    ]
    assert [stage.plan for stage in stages[:2]] == [70, 70]  # schedules reach as far as the survivor does


def test_the_better_start_goes_on(tmp_path):
    _, trained = train(tmp_path, TOURNAMENT)
    assert trained.episodes == 200
    assert trained.spec.opening == trained.spec.action_set.numbers(["Decoy User2"] * 2)
    means = [candidates[0][0] for candidates in results(tmp_path)[:2]]
    stages, entrants = stages_of(config(**TOURNAMENT)), tmp_path / "entrants"
    by_hand = Training(config(**TOURNAMENT), entrant=Entrant(stages[1], 2, (), 4, 40))
    by_hand.load_parent(read_checkpoint(entrants / str(int(np.argmax(means)))))
    assert by_hand.learner.tensors()["adam.step"] == 2 * 4  # its optimiser goes on, too
    while not by_hand.done:
        by_hand.step()
    ended = read_checkpoint(entrants / "2")
    assert all(np.array_equal(array, ended[name]) for name, array in by_hand.learner.tensors().items())


def test_the_best_of_the_ends_is_kept(sought):
    folder, training = sought
    *earlier, [first], [second] = results(folder)
    mean, opening = max(first, second, key=lambda end: end[0])
    assert len(earlier) == 3 + 2 + 2 + 3 and training.stage.begin == StageKind.OPENING
    assert training.entrant.number == (10 if mean == first[0] else 11) and list(training.spec.opening) == opening
    assert training.evaluate("opening", 10_000).mean == mean  # it is that policy which is evaluated
    assert load_policy(folder).facts["episodes"] == training.episodes == 230


def test_those_that_earn_most_go_on(sought):
    """Two of three starts; then none and the two best openings of all; then the two best of these."""
    every = results(sought[0])
    ranked = [sorted(chain(*every[a:b]), key=lambda each: -each[0]) for a, b in pairwise((0, 3, 5, 7, 10))]
    openings = [candidates[0][1] for candidates in every]
    assert openings[7:10] == [[], *(opening for _, opening in ranked[2][:2])]
    assert openings[10:] == [opening for _, opening in ranked[3][:2]]
    assert [mean for mean, _ in ranked[1]] == [0.0, 0.0]  # all go on, whatever they earn


def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path, sought):
    """What was not saved is done again; what is finished is not."""
    seen, begun = [], 0
    for stop in (3, 5, 5, 4, 5, 3, None):
        rows, _ = train(tmp_path, SEEKING, stop)
        finished = list((tmp_path / "entrants").glob("*/result.json"))
        assert stop in (None, len(rows)) and rows[0].update >= begun - 1  # a checkpoint every second update
        seen, begun = seen + [row.update for row in rows], rows[-1].update
    assert {*seen} == {*range(1, 24)} and len(seen) < 23 + 2 * 7 and len(finished) == 12
    assert written(tmp_path) == written(sought[0])


def test_in_several_processes_it_ends_with_the_same_bytes(tmp_path, sought):
    rows, _ = train(tmp_path, SEEKING, workers=3)
    assert sorted(row.update for row in rows) == list(range(1, 24))
    assert [row.episodes for row in rows] == list(range(10, 231, 10))  # all that were played, by whomever
    assert written(tmp_path) == written(sought[0])


def test_a_process_that_dies_is_not_missed_and_who_is_interrupted_then_goes_on_with_one_to_the_same_bytes(tmp_path, sought):
    """One of two is killed; the other and its successor go on to the second stage, in which they are interrupted."""
    interrupt, killed = Interrupt(), []

    def tell(message):
        if not killed:
            killed.append(active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)
        interrupt.requested = (tmp_path / "entrants" / "3").exists()

    with train_in(tmp_path, config(**SEEKING), tell, interrupt, workers=2) as trained:
        assert trained is None
    assert killed and len(list((tmp_path / "entrants").glob("[012]/result.json"))) == 3
    assert not (tmp_path / "policy.json").exists()
    again, _ = train(tmp_path, SEEKING)
    assert 0 < len(again) < 23
    assert written(tmp_path) == written(sought[0])


@pytest.mark.parametrize("damaged", ["result.json", "checkpoint"])
def test_a_damaged_entrant_is_trained_again(damaged, tmp_path, sought):
    shutil.copytree(sought[0], tmp_path, dirs_exist_ok=True)
    path = next((tmp_path / "entrants" / "9").glob(f"{damaged}*"))
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    train(tmp_path, SEEKING)
    assert written(tmp_path) == written(sought[0])


def test_the_first_that_passes_the_gate_ends_a_tournament(tmp_path):
    easy = {"workflow": "critical_first", "stop_when_compliant": True, "compliance_threshold": 0.1, "min_judged": 1}
    _, training = train(tmp_path, easy | {"entrants": 2, "start_episodes": 20, "gate_episodes": 20})
    assert training.passes_gate() and training.episodes == 10 and load_policy(tmp_path).facts["notes"] == {"accepted": True}


def test_all_starts_begin_from_the_policy_that_is_given(tmp_path):
    start = Training(config(seed=5)).learner.weights
    with train_in(tmp_path, config(**TOURNAMENT, learning_rate=1e-12), lambda row: None, False, Begin(start)):
        for number in (0, 1):
            ended = read_checkpoint(tmp_path / "entrants" / str(number))
            assert all(np.allclose(ended[f"net.{name}"], array, atol=1e-6) for name, array in start.items())


def test_updates_grow():
    ppo = config(growth=[[30, 2], [70, 5]]).ppo
    assert [ppo.batch_at(episodes) for episodes in (0, 29, 30, 69, 70, 1000)] == [10, 10, 20, 20, 50, 50]
    assert ppo.updates_in(170) == 3 + 2 + 2
    for growth in ((), [[30, 2], [70, 5]], [[0, 3], [35, 4]], [[15, 2], [15, 7], [1_000, 9]]):
        ppo, played = config(growth=growth).ppo, 0
        for updates in range(30):
            after = played + ppo.batch_at(played)
            assert [ppo.updates_in(episodes) for episodes in (played, after - 1, after)] == [updates, updates, updates + 1]
            played = after
    assert ppo.updates_in(10**12) > 10**9  # at once


def test_the_price_of_restore_rises_and_the_worlds_reward_stays():
    training = Training(config(restore_cost_warmup_episodes=100))
    first = training._play()
    seen, restores = training._rewards(first), np.isin(first.actions, range(132, 145))
    assert restores.any() and np.allclose(seen - first.rewards10 / 10, restores * 1.0)
    training.episodes = 50
    assert np.allclose(training._rewards(first) - first.rewards10 / 10, restores * 0.5)


def test_the_better_half_of_openings_earns_most():
    """A policy that sleeps, against B_line."""
    spec, game = config().spec, config(red_agent="b_line").game
    network = Network.zeros(spec.inputs, spec.actions)
    network.actor.bias3[0] = 50.0
    openings = extend_openings(spec, first_openings(spec))
    better = next_openings(network, spec, openings, game, seed=3)
    means = evaluate_openings(network, spec, openings, game, 3, "opening", 30_000 // len(openings))
    mean = dict(zip(openings, means, strict=True))
    ranked, dropped = [mean[opening] for opening in better], max(mean[opening] for opening in {*openings} - {*better})
    assert len(better) == -(-len(openings) // 2)
    assert ranked == sorted(ranked, reverse=True) and ranked[-1] >= dropped and ranked[0] > dropped + 0.5


def test_openings_are_followed_by_every_decoy_that_is_left():
    """12 macros are 78 pairs; of Enterprise1, Enterprise2 and User3 there is one decoy only."""
    spec = config().spec
    pairs = extend_openings(spec, first_openings(spec))
    assert len(pairs) == 78 - 3 and all(replace(spec, opening=opening) for opening in pairs)
    user2, user3 = spec.action_set.numbers(["Decoy User2", "Decoy User3"])
    after = extend_openings(spec, [(user3,), (user2,)])
    assert after[0][0] == user3 and len(after) == 11 + 11  # both once; no second decoy on User3
    assert (user3, user2) in after and (user2, user3) not in after and (user2, user2) in after


def test_openings_become_fewer_and_then_longer():
    stage = next(stage for stage in stages_of(config(**SEEKING)) if stage.begin == StageKind.SEEK)
    training, left = Training(config(**SEEKING), entrant=Entrant(stage)), []
    while not training.done:
        training.step()
        left.append(training.openings)
    assert [len(openings) for openings in left[:2]] == [6, 3] and set(left[1]) < set(left[0])  # of 12
    assert left[2] == left[3] and {len(opening) for opening in left[2]} == {2}  # the last two are followed
    assert len({first for first, _ in left[2]}) == 2 and {(first,) for first, _ in left[2]} < set(left[1])


def test_every_episode_begins_with_one_of_the_openings():
    spec, game = config().spec, config(max_steps=5).game
    network = Network.drawn(spec.inputs, spec.actions, 1)
    openings = extend_openings(spec, first_openings(spec))[:5]
    players = (PolicyTable(each, spec=spec, openings=openings) for each in (network, probabilities(network)))
    drawn, alone = (play(player, game, episodes=2_000, seed=1, purpose="test").rollout for player in players)
    counts = [int((opening == drawn.choices[:2].T).all(axis=1).sum()) for opening in openings]
    assert sum(counts) == 2_000 and min(counts) > 330  # each some 400 times
    assert np.array_equal(alone.choices[:2], drawn.choices[:2])  # step by step, too
