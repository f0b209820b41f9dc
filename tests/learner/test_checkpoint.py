"""Checkpoints: what they bring back goes on with the same bytes; damaged ones are named, and an earlier one is used."""

import os
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from learners import small_attacker, small_defender, small_league, state

from fixfirst.base.errors import PolicyError
from fixfirst.base.jobs import Interrupt
from fixfirst.learner.driver import Driver, checkpoint_paths, restore_checkpoint, save_checkpoint
from fixfirst.learner.training import Training


def updates(folder):
    """Of the checkpoints in a folder, the newest first."""
    return [int(path.stem[-8:]) for path in checkpoint_paths(folder)]


@pytest.mark.parametrize("make", [lambda: small_defender(total_episodes=16), small_attacker, small_league])
def test_a_training_that_was_interrupted_ends_with_the_same_bytes(make, tmp_path):
    whole, first, second, complaints = make(), make(), make(), []
    while not whole.done:
        whole.step()
    for _ in Driver(tmp_path, first, {"a": 1}, complaints.append, every=2).steps(interrupt := Interrupt()):
        interrupt.requested = first.updates == 2
    run = Driver(tmp_path, second, {"a": 1}, complaints.append, every=2)
    assert second.updates == 2 and not complaints
    list(run.steps())
    assert state(second) == state(whole)
    with pytest.raises(PolicyError, match="belongs to a training with another configuration; delete it to begin again"):
        Driver(tmp_path, make(), {"a": 2}, print)


@pytest.mark.parametrize("damaged", ["checkpoint-00000003.safetensors", "checkpoint-00000003.json"])
def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(tmp_path, damaged):
    """The two newest of three are kept, each of two files."""
    training, states = small_defender(), {}
    for update in (1, 2, 3):
        training.step()
        save_checkpoint(tmp_path, training, training.identity)
        states[update] = state(training)
    assert updates(tmp_path) == [3, 2] and len(list(tmp_path.iterdir())) == 4
    (tmp_path / damaged).write_bytes((tmp_path / damaged).read_bytes()[:-9])
    resumed, complaints = small_defender(), []
    Driver(tmp_path, resumed, resumed.identity, complaints.append)
    complaint, consequence = complaints
    assert "checkpoint-00000003" in complaint and "\n" not in complaint
    assert consequence == "going on from update 2, the newest good checkpoint" and state(resumed) == states[2]


def test_another_seed_or_entrant_is_another_training():
    here = small_defender()
    other = Training(here.config, entrant=replace(here.entrant, number=1))
    assert here.identity == small_defender().identity not in (small_defender(seed=1).identity, other.identity)


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
    """Nothing happens after so many files were replaced or deleted."""
    counter, left = Counter(), iter(range(operation))
    for counter.updates in (1, 2):
        save_checkpoint(tmp_path, counter, {})

    def dying(act):
        def act_or_die(*paths, **options):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return act(*paths, **options)

        return act_or_die

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", dying(os.replace))
        patch.setattr(os, "unlink", dying(os.unlink))
        counter.updates = 3
        save_checkpoint(tmp_path, counter, {})
    again = Counter()
    assert restore_checkpoint(tmp_path, again, {}) == [] and again.updates in (2, 3)


def test_a_training_is_saved_every_so_often_where_it_stops_and_at_its_end(tmp_path):
    run, seen = Driver(tmp_path, Counter(), {}, print, every=3), []
    for _ in run.steps(interrupt := Interrupt()):
        seen.append(updates(tmp_path)[:1])
        interrupt.requested = run.training.updates == 5
    assert seen == [[], [], [], [3], [3]] and updates(tmp_path) == [5, 3] and run.interrupted
    again = Driver(tmp_path, Counter(), {}, print, every=3)
    assert again.training.updates == 5
    list(again.steps())
    assert updates(tmp_path) == [7, 6] and not again.interrupted


def test_a_training_counts_the_seconds_of_earlier_sessions(tmp_path):
    before, after = small_defender(), small_defender()
    before._began -= 1000  # it took so long
    save_checkpoint(tmp_path, before, {})
    assert after.seconds < 1000
    assert restore_checkpoint(tmp_path, after, {}) == [] and 1000 <= after.seconds < 2000
