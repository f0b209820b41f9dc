"""Trainings in several stages: starts, lines, openings that are found, and what competes trained side by side."""

import csv
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.learner.checkpoint import restore_checkpoint, save_checkpoint
from fixfirst.learner.config import make_config
from fixfirst.learner.ppo import initial_weights
from fixfirst.learner.tournament import (
    Candidate,
    Contest,
    StageKind,
    better_half,
    evaluate_openings,
    extend_openings,
    first_openings,
    stages_of,
)
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import SideBySide, TrainingRun
from fixfirst.play.evaluation import play
from fixfirst.policy.network import Network
from fixfirst.policy.table import PolicyTable, probabilities

SMALL = {
    "workflow": "none",
    "red_agent": "b_line:0.5,meander:0.5",
    "memory": "full",
    "action_set": "macros",
    "max_steps": 30,
    "n_envs": 10,
    "episodes_per_update": 10,
}
COURSE = {"starts": 2, "start_episodes": 20, "opening": "Decoy User2, Decoy User2", "opening_episodes": 20}
SEEKING = {  # 3 x 20 + 2 x 40 + 3 x 10 + 2 x 20 of 230 episodes; the rest, 10 for each line, goes on without an opening
    "starts": 3,
    "start_episodes": 20,
    "lines": 2,
    "opening": "find",
    "seek_episodes": 40,
    "halvings": 3,
    "finals": 2,
    "final_episodes": 10,
    "ends": 2,
    "opening_episodes": 20,
    "total_episodes": 230,
    "max_steps": 8,  # thousands of episodes are played to choose
}


def config(**settings):
    return make_config(**{**SMALL, "total_episodes": 200} | settings)


def trained(settings):
    training = Training(config(**settings))
    while not training.done:
        training.step()
    return training


@pytest.fixture(scope="module")
def sought():
    return trained(SEEKING)


# ---------------------------------------------------------------- stages


def test_a_course_has_its_stages():
    """Two starts of 20 of 200 episodes; the better goes on for 140; the last 20 have the opening."""
    stages = stages_of(config(**COURSE))
    assert [(stage.begin, stage.entrants, stage.episodes, stage.behind, stage.plan) for stage in stages] == [
        (StageKind.SCRATCH, 2, 20, 0, 160),
        (StageKind.BEST_START, 1, 140, 20, 160),
        (StageKind.OPENING, 1, 20, 0, 20),
    ]
    assert [stage.progress(0) for stage in stages] == [0, 1 / 8, 0]
    assert [stage.share for stage in stages] == [(2, 20), (14, 140), (2, 20)]


def test_a_course_that_finds_an_opening_has_its_stages():
    stages = stages_of(config(**SEEKING))
    assert [(stage.begin, stage.entrants, stage.advance, stage.episodes) for stage in stages] == [
        (StageKind.SCRATCH, 3, 2, 20),
        (StageKind.BEST_START, 2, 2, 10),
        (StageKind.SEEK, 2, 2, 40),
        (StageKind.FINAL, 3, 2, 10),
        (StageKind.OPENING, 2, 1, 20),
    ]
    assert sum(stage.entrants * stage.episodes for stage in stages) == 230
    assert [stage.plan for stage in stages[:2]] == [70, 70]  # schedules reach as far as the line does


def test_the_better_start_goes_on():
    training = Training(config(**COURSE))
    ends = []
    for _ in range(2):
        training.step(), training.step()
        ends.append((training.evaluate("scratch", 2_000).mean, training.learner.tensors()))
    training.next_of_stage()
    assert training.stage.begin == StageKind.BEST_START
    best = max(ends, key=lambda end: end[0])[1]
    assert all(np.array_equal(array, best[name]) for name, array in training.learner.tensors().items())
    training.step()
    assert training.learner.tensors()["adam.step"] == 3 * 4  # its optimiser goes on, too


def test_a_course_ends_with_its_opening_and_within_its_budget():
    training = trained(COURSE)
    assert training.episodes == 200 and training.spec.opening == training.spec.action_set.numbers(["Decoy User2"] * 2)


@pytest.mark.parametrize(("settings", "stops"), [(COURSE, (1, 3, 4, 18, 19)), (SEEKING, (7, 8, 11, 14, 18, 20, 22))])
def test_a_course_goes_on_from_any_checkpoint_with_the_same_bits(settings, stops, tmp_path):
    whole = Training(config(**settings))
    while not whole.done:
        whole.step()
        if whole.updates in stops:
            save_checkpoint(tmp_path / str(whole.updates), whole)
    for stop in stops:
        again = Training(config(**settings))
        assert restore_checkpoint(tmp_path / str(stop), again) == [] and again.updates == stop
        while not again.done:
            again.step()
        assert np.array_equal(whole.learner.policy.vector, again.learner.policy.vector)
        assert whole.spec == again.spec and whole.updates == again.updates


def test_the_best_of_the_ends_is_kept(sought):
    contest = sought.contest
    assert sought.stage.begin == StageKind.OPENING and len(contest.entrants) == 2 and len(contest.best) == 1
    assert all(np.array_equal(array, contest.best[0].tensors[name]) for name, array in sought.learner.tensors().items())
    assert sought.spec.opening == contest.best[0].opening
    shown = sought.evaluate("opening", 10_000)
    assert shown.mean == contest.best[0].mean  # it is that policy which is evaluated


def test_those_that_earn_most_go_on():
    contest = Contest.from_scratch((), 4)
    for mean in (-3.0, -5.0, -1.0, -4.0):
        contest = contest.entered([Candidate(mean, (), {})], advance=2)
    assert [each.mean for each in contest.best] == [-1.0, -3.0]


# ---------------------------------------------------------------- side by side


def test_in_several_processes_it_ends_with_the_same_bytes(tmp_path):
    folders = []
    for workers in (1, 3):
        folders.append(tmp_path / str(workers))
        folders[-1].mkdir()
        with TrainingRun(config(**SEEKING), folders[-1], workers=workers) as run:
            updates = [update.row.update for update in run.updates()]
        assert updates == list(range(1, 24))
    one, three = ((folder / "policy.safetensors").read_bytes() for folder in folders)
    assert one == three
    times = ("Collection_Time", "Update_Time", "checksum")  # which covers them
    logs = [list(csv.DictReader((folder / "training_log.csv").read_text().splitlines())) for folder in folders]
    one, three = ([{name: row[name] for name in row if name not in times} for row in log] for log in logs)
    assert one == three


def test_a_process_that_dies_is_not_missed(sought):
    training = Training(config(**SEEKING))
    side, killed = SideBySide(training, workers=2), []
    try:
        while not training.done:
            side.advance(False)
            if side.scheduler._busy and len(killed) < 2:
                killed.append(side.scheduler._busy[0].process.pid)
                os.kill(killed[-1], signal.SIGKILL)
    finally:
        side.close()
    assert killed
    assert np.array_equal(training.learner.policy.vector, sought.learner.policy.vector)


def test_interrupted_while_it_waits_for_another_process_nothing_is_lost(sought):
    """The first start is trained here, the others elsewhere: what is interrupted goes on where it was."""
    training = Training(config(**SEEKING))
    side = SideBySide(training, workers=3)
    try:
        side.advance(False), side.advance(False)
        assert training.stage_is_over and side.advance(True) == []
        assert (training.updates, training.place) == (2, 1)
        while not training.done:
            side.advance(False)
    finally:
        side.close()
    assert np.array_equal(training.learner.policy.vector, sought.learner.policy.vector)


@pytest.mark.parametrize("updates", [3, 12, 16])
def test_left_with_two_processes_and_taken_up_with_one_it_ends_with_the_same_bytes(updates, tmp_path, sought):
    """Left without a word, as by a kill: what was not saved is done again."""
    with TrainingRun(config(**SEEKING, checkpoint_every=2), tmp_path, workers=2) as run:
        for update in run.updates():
            if update.row.update >= updates:
                break
    with TrainingRun(config(**SEEKING, checkpoint_every=2), tmp_path, workers=1) as run:
        assert 0 < run.training.updates <= updates
        assert [update.row.update for update in run.updates()][-1] == 23
    assert np.array_equal(run.training.learner.policy.vector, sought.learner.policy.vector)
    assert len((tmp_path / "training_log.csv").read_text().splitlines()) == 1 + 23


# ---------------------------------------------------------------- schedules


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
    training = Training(config(free_restores=100))
    first = training._play()
    seen, restores = training._rewards(first), np.isin(first.actions, range(132, 145))
    assert restores.any() and np.allclose(seen - first.rewards10 / 10, restores * 1.0)
    training._stage_episodes = 50
    assert np.allclose(training._rewards(first) - first.rewards10 / 10, restores * 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"starts": 3}, "--starts 3 needs --start-episodes: how many each of them has"),
        ({"lines": 2}, "--lines 2 needs as many --starts, got 1"),
        (
            {"lines": 2, "starts": 2, "start_episodes": 20},
            "--lines 2 are compared by the openings they find",
        ),
        ({"ends": 5}, "--ends 5 needs as many --finals, got 3"),
        ({"opening": "find"}, "--opening find needs --opening-episodes"),
        ({"opening": "Decoy User9"}, "the action set macros has no choice 'Decoy User9'; did you mean 'Decoy User"),
        ({"opening": "Decoy User3, Decoy User3", "opening_episodes": 10}, "its choice 2, Decoy User3, is masked"),
        ({"opening": "Sleep, Sleep", "max_steps": 2}, "an opening of 2 choices leaves nothing to choose in 2 steps"),
        ({"opening": "find", "opening_episodes": 10, "action_set": "all"}, "the action set all has none"),
        (
            {"starts": 30, "start_episodes": 20},
            "--total-episodes must be at least 600 with 580 for starts that are given up, got",
        ),
        ({"growth": [[20, 2], [10, 3]]}, r"growth has pairs of \(episodes, factor from 1 on\), episodes in order, got"),
        ({"memory": "elephant"}, "memory 'elephant' is not known; use none, scans, full"),
        ({"row_parts": 2, "engine": "torch"}, "PyTorch's learner cuts by --minibatches, got --row-parts 2"),
    ],
)
def test_bad_settings_get_one_line(settings, message):
    with pytest.raises((ConfigError, ff.WorldError), match=message):
        config(**settings)


# ---------------------------------------------------------------- openings


def sleepy():
    spec = config().spec
    network = Network.zeros(spec.inputs, spec.actions)
    network.actor.bias3[0] = 50.0
    return network


def test_the_better_half_of_openings_earns_most():
    """A policy that sleeps, against B_line."""
    spec, game = config().spec, config(red_agent="b_line", max_steps=30).game
    openings = extend_openings(spec, first_openings(spec))
    kept = better_half(sleepy(), spec, openings, game, seed=3)
    assert kept == better_half(sleepy(), spec, openings, game, seed=3) and len(kept) == -(-len(openings) // 2)
    earned = dict(
        zip(openings, evaluate_openings(sleepy(), spec, openings, game, 3, "opening", 30_000 // len(openings)), strict=True)
    )
    means = [earned[opening] for opening in kept]
    dropped = [earned[opening] for opening in set(openings) - set(kept)]
    assert means == sorted(means, reverse=True) and means[-1] >= max(dropped) and means[0] > max(dropped) + 0.5


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
    training = Training(config(**SEEKING))
    left = []
    while training.stage.begin != StageKind.FINAL:
        training.step()
        if training.stage.begin == StageKind.SEEK and training.place == 0:
            left.append(training._openings)
    assert [len(openings) for openings in left[:2]] == [6, 3] and set(left[1]) < set(left[0])  # of 12
    assert left[2] == left[3] and {len(opening) for opening in left[2]} == {2}  # the last two are followed
    assert len({first for first, _ in left[2]}) == 2 and {(first,) for first, _ in left[2]} < set(left[1])


def test_every_episode_begins_with_one_of_the_openings():
    spec = config().spec
    network, openings = (
        Network.of(initial_weights(spec.inputs, 1, spec.actions)),
        extend_openings(spec, first_openings(spec))[:5],
    )
    game = config(max_steps=5).game
    players = (PolicyTable(each, spec=spec, openings=openings) for each in (network, probabilities(network)))
    drawn, alone = (play(player, game, episodes=2_000, seed=1, purpose="test").rollout for player in players)
    counts = [int((opening == drawn.choices[:2].T).all(axis=1).sum()) for opening in openings]
    assert sum(counts) == 2_000 and min(counts) > 330  # each some 400 times
    assert np.array_equal(alone.choices[:2], drawn.choices[:2])  # step by step, too
