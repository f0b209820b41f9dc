"""Checkpoints: what they bring back goes on with the same bytes; damaged ones are named, and an earlier one is used."""

import os
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.base.jobs import Interrupt
from fixfirst.learner import checkpoint
from fixfirst.learner.driver import Driver
from fixfirst.learner.stages import first_entrant
from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"


def training(updates=0, entrant=0, **settings):
    given = {"workflow": ORDER, "max_steps": 10, "total_episodes": 100} | settings
    if given["workflow"] != "none":  # without an order there is nothing to keep to
        given = {"keep": "penalty"} | given
    config = make_config(ppo={"num_envs": 4}, **given)
    made = Training(config, entrant=replace(first_entrant(config), number=entrant))
    for _ in range(updates):
        made.step()
    return made


def save(folder, training):
    checkpoint.save(folder, training, training.identity)


def restore(folder, training):
    return checkpoint.restore(folder, training, training.identity)


def state(training):
    """All that a checkpoint must bring back, as values; but for what the clock says."""
    numbers = {name: value for name, value in training.numbers().items() if name != "seconds"}
    return {name: array.tobytes() for name, array in training.learner.tensors().items()}, numbers


def test_a_training_put_back_goes_on_with_the_same_bytes(tmp_path):
    straight, resumed = training(2), training()
    save(tmp_path, straight)
    assert restore(tmp_path, resumed) == [] and state(resumed) == state(straight)
    rows = [(t.step(), t.step())[1].row for t in (straight, resumed)]
    assert state(resumed) == state(straight)
    assert replace(rows[0], collection_s=0, update_s=0) == replace(rows[1], collection_s=0, update_s=0)


@pytest.fixture
def two(tmp_path):
    """A folder with the checkpoints of updates 1 and 2, of three: the two newest are kept."""
    going = training()
    save(tmp_path, going)
    for _ in range(2):
        going.step()
        save(tmp_path, going)
    assert [path.name for path in checkpoint.paths(tmp_path)] == ["checkpoint-00000002.json", "checkpoint-00000001.json"]
    assert len(list(tmp_path.iterdir())) == 4
    return tmp_path


@pytest.mark.parametrize("damaged", ["checkpoint-00000002.safetensors", "checkpoint-00000002.json"])
def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(two, damaged):
    (two / damaged).write_bytes((two / damaged).read_bytes()[:-9])
    resumed = training()
    complaint, consequence = Driver(two, resumed, resumed.identity).complaints
    assert "checkpoint-00000002" in complaint and "\n" not in complaint
    assert consequence == "going on from update 1, the newest good checkpoint"
    assert state(resumed) == state(training(1))


@pytest.mark.parametrize("other", [training(seed=1), training(entrant=1)])
def test_a_checkpoint_of_another_training_is_refused(two, other):
    with pytest.raises(ff.PolicyError, match="belongs to a training with another configuration; delete it to begin again"):
        restore(two, other)
    assert other.updates == 0


class Counter:
    """The smallest training there is: it counts its updates."""

    updates = 0

    @property
    def done(self):
        return self.updates == 7

    def step(self):
        self.updates += 1

    def numbers(self):
        return {"updates": self.updates}

    def tensors(self):
        return {"a": np.full(3, self.updates, np.float32)}

    def restore(self, tensors, numbers):
        assert tensors["a"][0] == numbers["updates"]
        self.updates = numbers["updates"]


@pytest.mark.parametrize("operation", range(9))
def test_a_kill_while_a_checkpoint_is_replaced_leaves_a_whole_one(tmp_path, monkeypatch, operation):
    """Nothing happens before so many files are replaced or deleted."""
    counter = Counter()
    for counter.updates in (1, 2):
        checkpoint.save(tmp_path, counter, {})
    left = [operation]

    def dying(act):
        def go(*places, **options):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            return act(*places, **options)

        return go

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", dying(os.replace))
        patch.setattr(os, "unlink", dying(os.unlink))
        counter.updates = 3
        checkpoint.save(tmp_path, counter, {})
    again = Counter()
    assert checkpoint.restore(tmp_path, again, {}) == [] and again.updates in (2, 3)


def test_a_training_is_saved_every_so_often_where_it_stops_and_at_its_end(tmp_path):
    def newest():
        return [int(path.stem[-8:]) for path in checkpoint.paths(tmp_path)]

    run, seen = Driver(tmp_path, Counter(), {}, every=3), []
    for _ in run.steps(interrupt := Interrupt()):
        seen.append(newest()[:1])
        interrupt.requested = run.training.updates == 5
    assert seen == [[], [], [], [3], [3]] and newest() == [5, 3] and run.interrupted
    again = Driver(tmp_path, Counter(), {}, every=3)
    assert again.training.updates == 5 and again.complaints == []
    list(again.steps())
    assert newest() == [7, 6] and not again.interrupted


def test_a_training_counts_the_seconds_of_earlier_sessions(tmp_path):
    before, after = training(1), training()
    before._began -= 1000  # it took so long
    save(tmp_path, before)
    assert after.seconds < 1000
    assert restore(tmp_path, after) == [] and 1000 <= after.seconds < 2000
