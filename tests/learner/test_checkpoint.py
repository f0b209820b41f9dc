"""Policies and checkpoints on disk: they come back as they were, and damaged ones are refused in one line."""

import copy
import json
import os
import pickle
import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from cage2 import HOST_NAMES, NUM_ACTIONS
from safetensors.numpy import load, save

import fixfirst as ff
from fixfirst.base.files import sha256, with_checksum
from fixfirst.base.jobs import Interrupt
from fixfirst.learner import checkpoint
from fixfirst.learner.driver import Driver
from fixfirst.learner.stages import first_entrant
from fixfirst.learner.training import Training
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.policy_file import load_policy
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"
OTHER = "user > op_host > op_server > enterprise > defender"


def training(updates=0, entrant=0, **settings):
    given = {"workflow": ORDER, "max_steps": 10, "total_episodes": 100} | settings
    if given["workflow"] != "none":  # without an order there is nothing to keep to
        given = {"keep": "penalty"} | given
    config = make_config(ppo={"num_envs": 4}, **given)
    made = Training(config, entrant=replace(first_entrant(config), number=entrant))
    for _ in range(updates):
        made.step()
    return made


@pytest.fixture(scope="module")
def trained():
    return training(2)


@pytest.fixture
def folder(tmp_path, trained):
    """A folder with a policy."""
    trained.save_policy(tmp_path)
    return tmp_path


OBSERVATIONS = (np.random.default_rng(0).random((200, 52)) < 0.2).astype(np.int8)


# ---------------------------------------------------------------- policies


def test_a_policy_comes_back_as_it_was(folder, trained):
    for path in (folder, folder / "policy.json", folder / "policy.safetensors", str(folder)):
        policy = load_policy(path)
        assert all(np.array_equal(policy.weights[name], array) for name, array in trained.learner.weights.items())
    assert policy.workflow == Workflow.parse(ORDER)
    assert policy.config == trained.config.model_dump(mode="json")
    facts = policy.facts
    assert facts["sha256"] == sha256((folder / "policy.safetensors").read_bytes())
    assert (facts["inputs"], facts["actions"], facts["episodes"], facts["updates"]) == (77, NUM_ACTIONS, 8, 2)
    assert facts["notes"] == {"accepted": False} and {"python", "numpy", "torch"} <= set(facts["versions"])


def test_the_policy_of_a_search_is_found_in_its_best_folder(tmp_path, trained):
    trained.save_policy(tmp_path / "best")
    assert load_policy(tmp_path).workflow == Workflow.parse(ORDER)


def test_saving_twice_gives_the_same_bytes(tmp_path, trained):
    for name in ("a", "b"):
        trained.save_policy(tmp_path / name)
    for file in ("policy.safetensors", "policy.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_act_maps_observations_to_actions(folder):
    policy = ff.load_policy(folder)
    actions = policy.act(OBSERVATIONS)
    assert actions.shape == (200,) and actions.dtype == np.int64
    assert actions.min() >= 0 and actions.max() < NUM_ACTIONS and len(np.unique(actions)) > 20
    one = policy.act(OBSERVATIONS[0])
    assert np.ndim(one) == 0 and one == actions[0]
    assert policy.act(OBSERVATIONS.tolist()).tolist() == actions.tolist()
    assert policy.act(np.empty((0, 52))).shape == (0,)


def test_act_plays_in_the_environments(folder):
    envs = ff.make_vec(3)
    obs, _ = envs.reset(seed=0)
    for step in range(5):
        obs, *_ = envs.step(ff.load_policy(folder).act(obs, step=step))


def test_a_policy_that_has_played_can_be_pickled_and_copied_and_remembers_what_it_did():
    policy = ff.load_policy("champion")
    policy.act(OBSERVATIONS[:3])
    for other in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert other != policy and other == other
        for now in OBSERVATIONS[3:9].reshape(2, 3, 52):
            actions = other.act(now)
        assert np.array_equal(other._cache["episodes"].steps, [3, 3, 3])
    assert np.array_equal(policy._cache["episodes"].steps, [1, 1, 1])
    for now in OBSERVATIONS[3:9].reshape(2, 3, 52):
        expected = policy.act(now)
    assert np.array_equal(actions, expected)


def test_sampled_actions_depend_on_seed_and_step_and_nothing_else(folder):
    policy = load_policy(folder)
    first = policy.act(OBSERVATIONS, seed=1, step=2)
    assert np.array_equal(first, policy.act(OBSERVATIONS, seed=1, step=2))
    assert not np.array_equal(first, policy.act(OBSERVATIONS, seed=1, step=3))
    assert not np.array_equal(first, policy.act(OBSERVATIONS, seed=2, step=2))


def test_greedy_is_the_most_probable_action(folder):
    policy = load_policy(folder)
    inputs = np.hstack([OBSERVATIONS, np.tile(policy.workflow.encode(), (200, 1))]).astype(np.float32)
    expected = policy.probabilities(inputs).argmax(axis=1)
    for step in (0, 1):
        assert np.array_equal(policy.act(OBSERVATIONS, greedy=True, step=step), expected)


def test_a_workflow_can_be_given_and_matters(folder):
    policy = load_policy(folder)
    own = policy.act(OBSERVATIONS, step=0)
    assert np.array_equal(own, policy.act(OBSERVATIONS, workflow=ORDER, step=0))
    assert np.array_equal(own, policy.act(OBSERVATIONS, workflow=Workflow.parse(ORDER), step=0))
    assert not np.array_equal(own, policy.act(OBSERVATIONS, workflow=OTHER, step=0))


def test_a_universal_policy_must_be_told_its_order(tmp_path):
    training(workflow="all").save_policy(tmp_path)
    policy = load_policy(tmp_path)
    with pytest.raises(ff.ConfigError, match="this policy follows any order: say which one"):
        policy.act(OBSERVATIONS)
    assert policy.act(OBSERVATIONS, workflow="reverse").shape == (200,)


def test_a_policy_without_an_order_needs_none(tmp_path):
    training(workflow="none").save_policy(tmp_path)
    policy = load_policy(tmp_path)
    assert policy.scheme is None and policy.facts["inputs"] == 52
    assert policy.act(OBSERVATIONS).shape == (200,)


def test_a_policy_carries_its_own_grouping_of_hosts(tmp_path):
    groups = UnitScheme.from_dict({"cheap": list(HOST_NAMES[4:]), "dear": list(HOST_NAMES[:4])})
    training(units=groups.as_dict(), workflow="dear > cheap").save_policy(tmp_path)
    policy = load_policy(tmp_path)
    assert policy.scheme == groups and str(policy.workflow) == "dear > cheap" and policy.facts["inputs"] == 56
    with pytest.raises(ff.WorkflowError, match="this policy orders cheap, dear, not user, op_host"):
        policy.act(OBSERVATIONS, workflow=Workflow.parse(ORDER))


@pytest.mark.parametrize(
    "wrong", [np.zeros(51), np.zeros((3, 53)), np.zeros((2, 2, 52)), np.full((1, 52), 2), np.full(52, np.nan), 0, []]
)
def test_observations_must_be_52_bits(folder, wrong):
    with pytest.raises(ff.PolicyError, match=r"observations must be \[N, 52\] bits, got shape"):
        load_policy(folder).act(wrong)


@pytest.mark.parametrize("wrong", [np.ones((1, 10**6), np.uint8), np.zeros((1, 52)), np.full((1, 77), 2), np.zeros(3), None])
def test_inputs_that_compiled_code_would_look_up_beyond_the_weights(folder, wrong):
    policy = load_policy(folder)
    assert policy.spec.inputs == 77 and policy.probabilities(np.zeros((2, 77))).shape == (2, 145)
    with pytest.raises(ff.PolicyError, match=r"inputs must be \[N, 77\] bits, got shape"):
        policy.probabilities(wrong)
    with pytest.raises(ff.WorkflowError, match="orders must be a list of workflows, got"):
        policy.player_of(["user"])


# ---------------------------------------------------------------- damage


def refused(path, *says):
    with pytest.raises(ff.PolicyError) as error:
        load_policy(path)
    message = str(error.value)
    assert "\n" not in message and all(part in message for part in says), message


def rewrite(folder, change):
    """Change the arrays and sign the result as a forger would: every hash fits."""
    path = folder / "policy.safetensors"
    arrays = load(path.read_bytes())
    change(arrays)
    forge(folder, save(arrays))


def forge(folder, data=None, **changes):
    data = (folder / "policy.safetensors").read_bytes() if data is None else data
    document = json.loads((folder / "policy.json").read_bytes()) | {"sha256": sha256(data)} | changes
    document = with_checksum(document)
    (folder / "policy.safetensors").write_bytes(data)
    (folder / "policy.json").write_text(json.dumps(document))


@pytest.mark.parametrize("length", [0, 7, 100, -1])
def test_truncated_arrays(folder, length):
    path = folder / "policy.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    refused(folder, "policy.safetensors: damaged (its sha256 is not the one in policy.json)")


@pytest.mark.parametrize("length", [0, 7, 100, -3])
def test_truncated_json(folder, length):
    path = folder / "policy.json"
    path.write_bytes(path.read_bytes()[:length])
    refused(folder, "policy.json: cannot be read")


@pytest.mark.parametrize("place", [3, 200, 50_000, -1])
def test_a_flipped_bit_in_the_arrays(folder, place):
    path = folder / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    refused(folder, "damaged")


def test_every_flipped_bit_in_the_json_is_noticed(folder):
    """Bit 0 of every byte that is not white space: none is accepted, whether it breaks the JSON or only its meaning."""
    path = folder / "policy.json"
    good = path.read_bytes()
    for place in range(0, len(good), 11):
        if good[place] not in b" \n":
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            refused(folder)
    path.write_bytes(good)
    load_policy(folder)


def test_layout_of_the_json_does_not_matter(folder):
    path = folder / "policy.json"
    path.write_text(json.dumps(json.loads(path.read_bytes())))
    assert load_policy(folder).workflow == Workflow.parse(ORDER)


def test_forged_shapes_types_names_and_values(folder):
    def wrong_shape(arrays):
        arrays["critic.4.bias"] = np.zeros(2, np.float32)

    def wrong_type(arrays):
        arrays["actor.0.bias"] = arrays["actor.0.bias"].astype(np.float64)

    def missing(arrays):
        del arrays["actor.0.bias"]

    def extra(arrays):
        arrays["exploit"] = np.zeros(1, np.float32)

    def nan(arrays):
        arrays["actor.0.bias"] = np.full(64, np.nan, np.float32)

    good = {name: (folder / name).read_bytes() for name in ("policy.json", "policy.safetensors")}
    for change, says in (
        (wrong_shape, "critic.4.bias is float32 (2,), expected float32 (1,)"),
        (wrong_type, "actor.0.bias is float64 (64,), expected float32 (64,)"),
        (missing, "holds the wrong arrays (actor.0.bias)"),
        (extra, "holds the wrong arrays (exploit)"),
        (nan, "actor.0.bias holds values that are not finite"),
    ):
        for name, data in good.items():
            (folder / name).write_bytes(data)
        rewrite(folder, change)
        refused(folder, "policy.safetensors: ", says)


class Bomb:
    def __reduce__(self):
        return print, ("a pickle was opened",)


def test_a_pickle_in_disguise_is_never_opened(folder, capsys):
    forge(folder, pickle.dumps(Bomb()))
    refused(folder, "policy.safetensors: is not a safetensors file")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "XYZ"])
def test_array_types_that_numpy_lacks(folder, kind):
    header = json.dumps({"actor.0.bias": {"dtype": kind, "shape": [2], "data_offsets": [0, 2 * (1 + (kind == "BF16"))]}})
    forge(folder, struct.pack("<Q", len(header)) + header.encode() + bytes(2 * (1 + (kind == "BF16"))))
    refused(folder, "policy.safetensors: ")


def test_other_schema_other_kind_other_document(folder):
    forge(folder, schema=2)
    refused(folder, "policy.json: has schema 2, this version reads 1")
    forge(folder, schema=1, kind="checkpoint")
    refused(folder, "policy.json: cannot be read (it is not a policy)")
    (folder / "policy.json").write_text("[1, 2]")
    refused(folder, "policy.json: cannot be read (it is not a table)")
    (folder / "policy.json").write_bytes(b"\xff\xfe")
    refused(folder, "policy.json: cannot be read")


@pytest.mark.parametrize(
    "changes",
    [
        {"workflow": "user > root"},
        {"workflow": 3},
        {"units": {"a": ["User0"]}},
        {"units": 3},
        {"config": 3},
        {"versions": "x"},
    ],
)
def test_documents_that_make_no_sense(folder, changes):
    forge(folder, **changes)
    refused(folder, "policy.json: damaged (")


def test_missing_files(folder, tmp_path):
    refused(tmp_path / "nowhere", "holds no policy (there is no such file or run; champion")
    (folder / "policy.safetensors").unlink()
    refused(folder, "policy.safetensors: is missing")
    (folder / "policy.safetensors").mkdir()
    refused(folder, "cannot be read")
    (folder / "policy.json").unlink()
    refused(folder, "holds no policy (policy.json is missing: name a finished run")


def test_weights_that_are_not_those_of_the_role_are_refused_before_compiled_code_reads_them(folder):
    policy = load_policy(folder)
    small = {name: array[..., :1] for name, array in policy.weights.items()}
    for weights in (small, {}, {name: array.astype(np.float64) for name, array in policy.weights.items()}):
        with pytest.raises(ff.PolicyError, match="the weights of this policy"):
            replace(policy, weights=weights).act(OBSERVATIONS)


# ---------------------------------------------------------------- checkpoints


def saved(folder, training):
    checkpoint.save(folder, training, training.identity)


def restored(folder, training):
    return checkpoint.restore(folder, training, training.identity)


def state(training):
    """All that a checkpoint must bring back, as values; but for what the clock says."""
    numbers = {name: value for name, value in training.numbers().items() if name != "seconds"}
    return {name: array.tobytes() for name, array in training.learner.tensors().items()}, numbers


def test_a_training_put_back_goes_on_with_the_same_bytes(tmp_path):
    straight, resumed = training(2), training()
    saved(tmp_path, straight)
    assert restored(tmp_path, resumed) == [] and state(resumed) == state(straight)
    rows = [(t.step(), t.step())[1].row for t in (straight, resumed)]
    assert state(resumed) == state(straight)
    assert replace(rows[0], collection_s=0, update_s=0) == replace(rows[1], collection_s=0, update_s=0)


def test_without_a_checkpoint_training_starts_at_the_beginning(tmp_path):
    fresh = training()
    assert restored(tmp_path / "nowhere", fresh) == [] and fresh.updates == 0


@pytest.fixture
def two(tmp_path):
    """A folder with the checkpoints of updates 1 and 2, of three: the two newest are kept."""
    going = training()
    saved(tmp_path, going)
    for _ in range(2):
        going.step()
        saved(tmp_path, going)
    assert [path.name for path in checkpoint.paths(tmp_path)] == ["checkpoint-00000002.json", "checkpoint-00000001.json"]
    assert len(list(tmp_path.iterdir())) == 4
    return tmp_path


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "arrays truncated": lambda json_path, arrays: arrays.write_bytes(arrays.read_bytes()[:-1]),
    "arrays flipped": lambda json_path, arrays: flip(arrays, 30_000),
    "arrays missing": lambda json_path, arrays: arrays.unlink(),
    "arrays a pickle": lambda json_path, arrays: arrays.write_bytes(pickle.dumps(Bomb())),
    "json truncated": lambda json_path, arrays: json_path.write_bytes(json_path.read_bytes()[:-9]),
    "json empty": lambda json_path, arrays: json_path.write_bytes(b""),
    "one update more": lambda json_path, arrays: json_path.write_text(
        json_path.read_text().replace('"updates": 2', '"updates": 3')
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(two, damage, capsys):
    path = two / "checkpoint-00000002.json"
    DAMAGE[damage](path, path.with_suffix(".safetensors"))
    resumed = training()
    (complaint,) = restored(two, resumed)
    assert "checkpoint-00000002" in complaint and "\n" not in complaint
    assert state(resumed) == state(training(1))
    assert "a pickle was opened" not in capsys.readouterr().out


def test_when_all_are_damaged_training_is_as_new(two):
    for path in checkpoint.paths(two):
        flip(path.with_suffix(".safetensors"), -1)
    fresh = training()
    assert len(restored(two, fresh)) == 2 and state(fresh) == state(training())


@pytest.mark.parametrize("other", [training(seed=1), training(entrant=1)])
def test_a_checkpoint_of_another_training_is_refused(two, other):
    with pytest.raises(ff.PolicyError, match="belongs to a training with another configuration; delete it to begin again"):
        restored(two, other)
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
    saved(tmp_path, before)
    assert after.seconds < 1000
    assert restored(tmp_path, after) == [] and 1000 <= after.seconds < 2000
