"""TensorBoard's event files, read back by TensorBoard itself."""

import sys
from dataclasses import replace

import late
import pytest
from run_folder import update_row

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.runs.rows import TensorBoard

accumulator = late.Late("tensorboard.backend.event_processing.event_accumulator")
REWARD = "rollout/ep_rew_mean"


def update(number, reward=-12.5):
    return update_row(update=number, episodes=4 * number, sampled=4 * number, env_reward=reward, compliance=0.75)


def write(folder, first_step, *rows):
    board = TensorBoard(folder, first_step)
    for row in rows:
        board.add(row)
    board.close()


def events(folder):
    """The events of each name, as (step, value)."""
    read = accumulator.EventAccumulator(str(folder)).Reload()
    return {name: [(event.step, event.value) for event in read.Scalars(name)] for name in read.Tags()["scalars"]}


def test_an_update_is_shown_with_all_its_numbers_at_the_runs_episode_count_and_without_those_that_are_missing(tmp_path):
    """By the names of Stable-Baselines3, where that has them."""
    write(tmp_path, 1, update(1), replace(update(2), compliance=None), update(3, reward=-11.0))
    points = events(tmp_path)
    assert points[REWARD] == [(4, -12.5), (8, -12.5), (12, -11.0)]
    assert points["rollout/compliance"] == [(4, 0.75), (12, 0.75)]
    names = "rollout/alignment rollout/compliance rollout/contested_share rollout/ep_rew_mean rollout/repairs"
    names += " time/collection_s time/update_s train/approx_kl train/clip_fraction train/distinct_rows train/entropy"
    names += " train/multiplier train/policy_gradient_loss train/value_loss"
    assert sorted(points) == names.split()


def test_a_resumed_run_is_one_curve(tmp_path):
    """Interrupted after episode 12, it goes on from the checkpoint at episode 8 and plays the third update again."""
    write(tmp_path, 1, update(1, -1.0), update(2, -2.0), update(3, -3.0))
    write(tmp_path, 9, update(3, -30.0), update(4, -40.0))
    assert events(tmp_path)[REWARD] == [(4, -1.0), (8, -2.0), (12, -30.0), (16, -40.0)]


def test_what_was_added_is_in_the_file_at_once_so_that_it_survives_a_kill(tmp_path):
    board = TensorBoard(tmp_path, 1)
    board.add(update(1))
    board.add(update(2))
    assert events(tmp_path)[REWARD] == [(4, -12.5), (8, -12.5)]
    board.close()


def test_without_tensorboard_whoever_wants_events_is_told_how_to_get_it_and_others_get_none(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"--tensorboard needs TensorBoard, .*: pip install 'fixfirst\[tensorboard\]'"):
        ff.train(tensorboard=True, out=tmp_path / "run")
    write(None, 1, update(1))
    assert not list(tmp_path.iterdir())
