"""Policies as users have them: asked by `act`, saved and loaded; those that come with fixfirst are as good as we say."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from cage2 import HOST_NAMES, NUM_ACTIONS
from late import Late
from policies import untrained
from safetensors.numpy import load, save
from searches import ORDER, TRAINING

import fixfirst as ff
from fixfirst.base.files import sha256, with_checksum
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.policy.trained import load_policy, shipped_policies
from fixfirst.settings.training import make_config

torch = Late("torch")
OBSERVATIONS = (np.random.default_rng(0).random((200, 52)) < 0.2).astype(np.int8)
FILES = ("policy.safetensors", "policy.json")


@pytest.fixture
def folder(tmp_path, trained):
    """A folder with a policy that reads an order."""
    load_policy(trained).save(tmp_path)
    return tmp_path


def test_a_policy_comes_back_as_it_was_from_its_folder_its_files_and_the_run_of_a_search(folder, trained):
    policy = load_policy(trained)
    policy.save(folder / "run" / "best")
    for path in (folder, *(folder / file for file in FILES), str(folder), folder / "run"):
        assert all(np.array_equal(load_policy(path).weights[name], array) for name, array in policy.weights.items())
    assert policy.workflow == Workflow.parse(ORDER) and policy.config == make_config(**TRAINING).model_dump(mode="json")
    facts = policy.facts
    assert facts["sha256"] == sha256((folder / "policy.safetensors").read_bytes())
    assert (facts["inputs"], facts["actions"], facts["episodes"], facts["updates"]) == (90, NUM_ACTIONS, 12, 3)
    assert facts["notes"] == {"accepted": True} and {"python", "numpy"} <= set(facts["versions"])
    for file in FILES:  # the same bytes, whoever writes them again
        assert (folder / file).read_bytes() == (trained / file).read_bytes()


def test_act_maps_observations_to_actions_drawn_by_seed_and_step_or_the_most_probable_ones():
    """By its own order, unless another is given."""
    policy = untrained(units=FIVE_TYPES, workflow=Workflow.parse(ORDER))
    actions = policy.act(OBSERVATIONS)
    assert actions.shape == (200,) and actions.dtype == np.int64
    assert actions.min() >= 0 and actions.max() < NUM_ACTIONS and len(np.unique(actions)) > 20
    single = policy.act(OBSERVATIONS[0])
    assert np.ndim(single) == 0 and single == actions[0]
    assert policy.act(OBSERVATIONS.tolist()).tolist() == actions.tolist()
    assert policy.act(np.empty((0, 52))).shape == (0,)
    drawn = policy.act(OBSERVATIONS, seed=1, step=2)
    same = ({}, {"workflow": ORDER}, {"workflow": Workflow.parse(ORDER)})
    assert all(np.array_equal(drawn, policy.act(OBSERVATIONS, **{"seed": 1, "step": 2} | change)) for change in same)
    for change in ({"step": 3}, {"seed": 2}, {"workflow": "reverse"}):
        assert not np.array_equal(drawn, policy.act(OBSERVATIONS, **{"seed": 1, "step": 2} | change)), change
    inputs = np.hstack([OBSERVATIONS, np.tile(policy.workflow.encode(), (200, 1))]).astype(np.float32)
    assert np.array_equal(policy.act(OBSERVATIONS, greedy=True), policy.probabilities(inputs).argmax(axis=1))


def test_a_policy_that_has_played_can_be_pickled_and_copied_and_remembers_what_it_did():
    policy, plain = ff.load_policy("champion"), ff.load_policy("champion")
    for each in (policy, plain):
        each.act(OBSERVATIONS[:3])
    others = [pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy), plain]
    played = [[other.act(now).tolist() for now in OBSERVATIONS[3:9].reshape(2, 3, 52)] for other in others]
    assert played[0] == played[1] == played[2]
    assert policy.act(OBSERVATIONS[3:6]).tolist() == played[0][0]  # it was left where it was


def test_a_policy_becomes_a_pytorch_module():
    """Its logits are those of the compiled network."""
    policy = untrained(units=FIVE_TYPES)
    inputs = (np.random.default_rng(0).random((9, 77)) < 0.3).astype(np.float32)
    net = policy.to_torch()
    with torch.no_grad():
        theirs = torch.softmax(net.actor(torch.from_numpy(inputs)), dim=1).numpy()
        assert net.critic(torch.from_numpy(inputs)).shape == (9, 1)
    assert np.allclose(policy.probabilities(inputs), theirs, atol=1e-6)


def test_a_policy_carries_its_own_grouping_of_hosts_and_orders_of_it_are_texts_or_values(tmp_path):
    groups = UnitScheme.from_dict({"cheap": list(HOST_NAMES[4:]), "dear": list(HOST_NAMES[:4])})
    untrained(units=groups, workflow=Workflow.parse("dear > cheap", groups)).save(tmp_path)
    policy = load_policy(tmp_path)
    assert policy.scheme == groups and str(policy.workflow) == "dear > cheap" and policy.facts["inputs"] == 56
    with pytest.raises(ff.WorkflowError, match="this policy orders cheap, dear, not user, op_host"):
        policy.act(OBSERVATIONS, workflow=Workflow.parse(ORDER))
    policy = untrained(units=groups, shield=True)
    assert policy.act(OBSERVATIONS[:2], workflow=["cheap > dear", Workflow.parse("dear > cheap", groups)]).shape == (2,)
    assert policy.act(OBSERVATIONS[:0], workflow=[]).shape == (0,)


def test_what_compiled_code_would_look_up_beyond_its_arrays_is_refused():
    policy = untrained()
    for wrong in (np.zeros(51), np.zeros((3, 53)), np.zeros((2, 2, 52)), np.full((1, 52), 2), np.full(52, np.nan), 0, []):
        with pytest.raises(ff.PolicyError, match=r"observations must be \[N, 52\] bits, got shape"):
            policy.act(wrong)
        with pytest.raises(ff.PolicyError, match=r"inputs must be \[N, 52\] bits, got shape"):
            policy.probabilities(wrong)
    small = {name: array[..., :1] for name, array in policy.weights.items()}
    for weights in (small, {}, {name: array.astype(np.float64) for name, array in policy.weights.items()}):
        with pytest.raises(ff.PolicyError, match="the weights of this policy"):
            replace(policy, weights=weights).act(OBSERVATIONS)


def refused(path, *says):
    with pytest.raises(ff.PolicyError) as error:
        load_policy(path)
    message = str(error.value)
    assert "\n" not in message and all(part in message for part in says), message


def sign(folder, data=None, **changes):
    """Write other arrays or facts, with hashes that fit."""
    data = (folder / "policy.safetensors").read_bytes() if data is None else data
    document = json.loads((folder / "policy.json").read_bytes()) | {"sha256": sha256(data)} | changes
    (folder / "policy.safetensors").write_bytes(data)
    (folder / "policy.json").write_text(json.dumps(with_checksum(document)))


def test_a_flipped_bit_a_missing_end_and_a_missing_file_are_noticed(folder):
    for name, says in (("policy.safetensors", "damaged (its sha256 is not the one in"), ("policy.json", "cannot be read")):
        good = (folder / name).read_bytes()
        for bad in (b"", good[:-3], good[:200] + bytes([good[200] ^ 1]) + good[201:]):
            (folder / name).write_bytes(bad)
            refused(folder, name, says)
        (folder / name).write_bytes(good)
    (folder / "policy.json").write_text(json.dumps(json.loads(good)))  # the layout of the JSON does not matter
    assert load_policy(folder).workflow == Workflow.parse(ORDER)
    refused(folder / "nowhere", "holds no policy (there is no such file or run; champion, champion-current, guardian come")
    (folder / "policy.safetensors").unlink()
    refused(folder, "policy.safetensors: is missing")
    (folder / "policy.json").unlink()
    refused(folder, "holds no policy (policy.json is missing")


class Bomb:
    def __reduce__(self):
        return print, ("a pickle was opened",)


def test_wrong_shapes_types_names_and_values_are_refused_and_a_pickle_in_disguise_is_never_opened(folder, capsys):
    right = load((folder / "policy.safetensors").read_bytes())
    for says, changes in {
        "critic.4.bias is float32 (2,), expected float32 (1,)": {"critic.4.bias": np.zeros(2, np.float32)},
        "actor.0.bias is float64 (64,), expected float32 (64,)": {"actor.0.bias": np.zeros(64)},
        "holds the wrong arrays (actor.0.bias)": {"actor.0.bias": None},
        "holds the wrong arrays (exploit)": {"exploit": np.zeros(1, np.float32)},
        "actor.0.bias holds values that are not finite": {"actor.0.bias": np.full(64, np.nan, np.float32)},
    }.items():
        sign(folder, save({name: array for name, array in (right | changes).items() if array is not None}))
        refused(folder, "policy.safetensors: ", says)
    sign(folder, pickle.dumps(Bomb()))
    refused(folder, "policy.safetensors: is not a safetensors file")
    assert capsys.readouterr().out == ""


def test_documents_that_make_no_sense(folder):
    right = json.loads((folder / "policy.json").read_bytes())
    for says, changes in (
        ("has schema 2, this version reads 1", {"schema": 2}),
        ("cannot be read (it is not a policy)", {"kind": "checkpoint"}),
        *(("damaged (", wrong) for wrong in ({"workflow": "user > root"}, {"units": {"a": ["User0"]}}, {"config": 3})),
    ):
        sign(folder, **right | changes)
        refused(folder, f"policy.json: {says}")


def test_policies_come_with_fixfirst_and_a_folder_of_their_name_comes_first(tmp_path, monkeypatch):
    assert shipped_policies() == ["champion", "champion-current", "guardian"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "champion").mkdir()
    refused("champion", "champion: holds no policy")


def test_the_champion_beats_every_published_entry_in_every_column():
    """2,000 fresh episodes: standard errors of 0.03 to 0.1 per column, and leads of 0.4 to 2.7."""
    standing = ff.leaderboard("champion", greedy=True, episodes=2_000, quiet=True)
    best = (-3.47, -5.64, -5.85, -8.69, -11.39, -16.6)
    assert all(column.high < 0 and column.mean > published for column, published in zip(standing.columns, best, strict=True))
    assert standing.total.mean == pytest.approx(-44.7, abs=1.0)


@pytest.mark.parametrize(
    ("policy", "red_agent", "means", "within", "options"),
    [
        ("champion", "sleep", [0], 0, {"episodes": 200, "greedy": True}),  # it leaves a sleeping attacker alone
        ("champion-current", "b_line,meander", [-12.58, -15.57], 0.6, {"greedy": True, "variant": "current"}),
        # For attackers that adapt it gives up 1 point against B_line and 1.5 against Meander (docs/attackers.md).
        ("guardian", "b_line,meander,sleep", [-13.7, -17.0, 0.0], 0.5, {"episodes": 1_000}),
        # The three of its league that take most from it, under the numbers that they have there.
        ("guardian", "guardian-149,guardian-173,guardian-179", [-67.1, -72.1, -80.2], 2.5, {"episodes": 300}),
    ],
)
def test_shipped_policies_earn_what_the_documents_say(policy, red_agent, means, within, options):
    rows = ff.evaluate(policy, red_agent=red_agent, steps=100, quiet=True, **{"episodes": 2_000, "greedy": False} | options)
    assert [row.mean for row in rows] == pytest.approx(means, abs=within)
