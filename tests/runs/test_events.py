"""TensorBoard's event files, read back by TensorBoard itself."""

import os
import signal
import subprocess
import sys

import late
import pytest

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.runs.rows import UpdateRow
from fixfirst.runs.tensorboard import TensorBoard

accumulator = late.Late("tensorboard.backend.event_processing.event_accumulator")


def update(number, reward=-12.5, compliance=0.75):
    return UpdateRow(
        trial=0,
        workflow="user > op_host",
        update=number,
        episodes=4 * number,
        sampled=4 * number,
        env_reward=reward,
        alignment=0.5,
        total_reward=reward + 0.5,
        compliance=compliance,
        repairs=None,
        collection_s=0.25,
        update_s=0.125,
        contested_share=None,
        multiplier=2.0,
        approx_kl=0.0625,
        entropy=1.5,
        policy_loss=-0.5,
        value_loss=3.0,
        clip_fraction=0.25,
        distinct_rows=317,
    )


def write(folder, first_step, rows):
    board = TensorBoard(folder, first_step)
    for row in rows:
        board.add(row)
    board.close()


def shown(folder, name="rollout/ep_rew_mean"):
    return [(event.step, event.value) for event in accumulator.EventAccumulator(str(folder)).Reload().Scalars(name)]


def test_an_update_is_shown_with_all_its_numbers_at_the_runs_episode_count(tmp_path):
    write(tmp_path / "run" / "tb", 1, [update(1), update(2, reward=-11.0)])
    events = accumulator.EventAccumulator(str(tmp_path / "run" / "tb")).Reload()
    last = {name: events.Scalars(name)[-1] for name in events.Tags()["scalars"]}
    assert {name: event.value for name, event in last.items()} == {
        "rollout/ep_rew_mean": -11.0,
        "rollout/alignment": 0.5,
        "rollout/compliance": 0.75,
        "time/collection_s": 0.25,
        "time/update_s": 0.125,
        "train/multiplier": 2.0,
        "train/approx_kl": 0.0625,
        "train/entropy": 1.5,
        "train/policy_gradient_loss": -0.5,
        "train/value_loss": 3.0,
        "train/clip_fraction": 0.25,
        "train/distinct_rows": 317.0,
    }
    assert {event.step for event in last.values()} == {8}


def test_a_number_that_is_missing_in_an_update_has_no_point_there(tmp_path):
    write(tmp_path, 1, [update(1), update(2, compliance=None), update(3)])
    assert [step for step, _ in shown(tmp_path, "rollout/compliance")] == [4, 12]
    assert [step for step, _ in shown(tmp_path)] == [4, 8, 12]


def test_a_resumed_run_is_one_curve(tmp_path):
    """Interrupted after episode 12, it goes on from the checkpoint at episode 8 and plays the third update again."""
    write(tmp_path, 1, [update(1, -1.0), update(2, -2.0), update(3, -3.0)])
    write(tmp_path, 9, [update(3, -30.0), update(4, -40.0)])
    assert shown(tmp_path) == [(4, -1.0), (8, -2.0), (12, -30.0), (16, -40.0)]


def test_what_was_added_survives_a_killed_process(tmp_path):
    code = f"""
import os, sys
from pathlib import Path
sys.path[:0] = {[os.path.dirname(__file__), os.path.dirname(late.__file__)]!r}
from test_events import TensorBoard, update
board = TensorBoard(Path({str(tmp_path)!r}), 1)
board.add(update(1)), board.add(update(2))
os.kill(os.getpid(), {int(signal.SIGKILL)})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert [step for step, _ in shown(tmp_path)] == [4, 8]


def test_half_a_record_hides_nothing_else(tmp_path):
    write(tmp_path, 1, [update(1), update(2)])
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-7])
    write(tmp_path, 5, [update(2), update(3)])
    assert [step for step, _ in shown(tmp_path)] == [4, 8, 12]


def test_whoever_wants_events_without_tensorboard_is_told_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"--tensorboard needs TensorBoard, .*: pip install 'fixfirst\[tensorboard\]'"):
        ff.train(tensorboard=True, out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_nobody_wants_events(tmp_path):
    write(None, 1, [update(1)])
    assert not list(tmp_path.iterdir())
