"""Exported policies take the actions of `Policy.act`, with memory, masks, opening and order, without fixfirst."""

import json
from pathlib import Path

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game import ActionSet, MemoryScheme
from fixfirst.learner.networks import initial_weights
from fixfirst.learner.portable import Portable
from fixfirst.play import Role, chance_keys
from fixfirst.play.policy_table import uniform

STATE = Portable.of(ff.load_policy("champion")).state_size
ORDER = "op_server > enterprise > op_host > user > defender"


def with_weights(role, workflow=None, seed=1):
    weights = initial_weights(role.inputs, seed, role.actions, last=3.0)
    return ff.Policy(weights, workflow, role, {}, {})


def remembering(opening=(), memory="full", units=None, workflow=None):
    role = Role(MemoryScheme.parse(memory), ActionSet.parse("macros"), units, opening)
    return with_weights(role, workflow)


def onnx_player(policy, tmp_path, **options):
    runtime = pytest.importorskip("onnxruntime", reason="needs pip install fixfirst[onnx]")
    session = runtime.InferenceSession(ff.export(policy, "onnx", tmp_path / "policy.onnx", **options))
    return lambda obs, state, draw: session.run(None, {"observation": obs, "state": state, "draw": draw})


def torch_player(policy, tmp_path):
    torch = pytest.importorskip("torch", reason="needs pip install fixfirst[torch]")
    program = torch.export.load(ff.export(policy, "torch", tmp_path / "policy.pt2")).module()
    return lambda *arrays: [out.numpy() for out in program(*map(torch.as_tensor, arrays))]


def assert_same_actions(policy, player, episodes=50, steps=40, red_agent="b_line:0.5,meander:0.5", seed=None, **options):
    """Most probable ones, or those drawn with a seed. Ends of episodes are met, too: the state is 0 again."""
    envs = ff.make_vec(episodes, red_agent=red_agent, green=True, max_steps=25, autoreset_mode="same_step", **options)
    obs, _ = envs.reset(seed=0)
    keys, draw = np.empty(episodes, np.uint64), np.empty(episodes)
    chance_keys(seed or 0, 0, keys)
    state, starts, taken = np.zeros((episodes, STATE), np.float32), np.ones(episodes, bool), set()
    for step in range(steps):
        expected = policy.act(obs, episode_start=starts, greedy=seed is None, seed=seed or 0)
        uniform(keys, step % 25, np.ones(episodes), draw)
        drawn = np.full((episodes, 1), -1, np.float32) if seed is None else draw[:, None].astype(np.float32)
        action, state, odds = player(obs.astype(np.float32), state, drawn)
        assert np.array_equal(action[:, 0], expected), f"step {step}"
        assert np.allclose(odds.sum(axis=1), 1, atol=1e-5)
        obs, _, _, starts, _ = envs.step(expected)
        state[starts] = 0
        taken |= set(expected.tolist())
    assert len(taken) > 5


def test_onnx_takes_the_actions_of_the_champion_in_a_thousand_episodes(tmp_path):
    player = onnx_player("champion", tmp_path)
    policy = ff.load_policy("champion")
    envs = ff.make_vec(1_000, red_agent=["b_line", "meander"] * 500, variant="leaderboard")
    obs, _ = envs.reset(seed=0)
    policy.reset(1_000)
    state, greedy = np.zeros((1_000, STATE), np.float32), np.full((1_000, 1), -1, np.float32)
    for _ in range(100):
        action, state, _ = player(obs.astype(np.float32), state, greedy)
        assert np.array_equal(action[:, 0], policy.act(obs, greedy=True))
        obs = envs.step(action[:, 0])[0]


@pytest.mark.parametrize("memory", ["none", "scans", "full", "act1+last+expl+rest+quiet+decoy+seen+scans"])
def test_onnx_remembers_and_masks_as_the_policy_does(memory, tmp_path):
    policy = remembering(memory=memory)
    assert_same_actions(policy, onnx_player(policy, tmp_path))


def test_onnx_draws_what_the_policy_draws_with_the_same_number(tmp_path):
    policy = remembering()
    assert_same_actions(policy, onnx_player(policy, tmp_path), seed=3)


def test_onnx_plays_the_opening_first(tmp_path):
    policy = remembering(opening=(39, 27, 28))
    assert_same_actions(policy, onnx_player(policy, tmp_path))


def test_onnx_follows_the_order_that_the_policy_carries_or_is_told(tmp_path):
    order = ff.Workflow.parse(ORDER)
    carried = with_weights(Role(units=order.scheme), order)
    assert_same_actions(carried, onnx_player(carried, tmp_path))
    told = remembering(units=order.scheme)
    with pytest.raises(ff.ConfigError, match="say which one"):
        ff.export(told, "onnx", tmp_path / "policy.onnx")
    player = onnx_player(told, tmp_path, workflow=ORDER)
    assert_same_actions(remembering(units=order.scheme, workflow=order), player)


def test_pytorch_takes_the_actions_of_the_policy(tmp_path):
    policy = remembering(opening=(30,))
    assert_same_actions(policy, torch_player(policy, tmp_path))


def test_a_file_says_what_it_is(tmp_path):
    about = json.loads(str(np.load(ff.export(remembering(opening=(39,)), "numpy", tmp_path / "policy.npz"))["about"]))
    assert (about["memory"], about["action_set"], about["order"]) == ("full", "macros", "")
    assert about["opening"] == json.loads(about["choices"])[39] == "Decoy User3"


def test_a_file_goes_beside_the_policy_unless_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ff.export("champion", "numpy") == Path("champion.npz") and Path("champion.npz").exists()


def test_what_there_is_no_file_for_is_refused(tmp_path):
    with pytest.raises(ff.ConfigError, match="exported to onnx, torch, numpy, not 'jax'"):
        ff.export("champion", "jax")


def test_a_shield_is_refused_in_one_line(tmp_path):
    order = ff.Workflow.parse(ORDER)
    shielded = with_weights(Role(units=order.scheme, shield=True), order)
    with pytest.raises(ff.FixfirstError, match="keeps its order by a shield cannot be exported yet"):
        ff.export(shielded, "numpy", tmp_path / "policy.npz")
