"""Exported policies take the actions of `Policy.act`, with memory, masks, opening and order, without fixfirst."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cage2 import REPAIRED_HOSTS

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.learner.ppo import initial_weights
from fixfirst.orders.order import FIVE_TYPES, UnitScheme
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.draws import chance_keys, uniform
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.portable import Portable
from fixfirst.policy.spec import PolicySpec

ORDER = "op_server > enterprise > op_host > user > defender"


def with_weights(spec, workflow=None, seed=1):
    weights = initial_weights(spec.inputs, seed, spec.actions, last=3.0)
    return ff.Policy(weights, workflow, spec, {}, {})


def remembering(opening=(), memory="full", units=None, workflow=None, **more):
    spec = PolicySpec(MemoryScheme.parse(memory), ActionSet.parse("macros"), units, opening, **more)
    return with_weights(spec, workflow)


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory):
    """A short search with one network for all orders."""
    out = tmp_path_factory.mktemp("search") / "run"
    measured = {"selection_episodes": 20, "measure_episodes": 50, "report": False}  # its policy alone is asked for
    ff.search(red_agent="b_line", total_episodes=3_000, workers=1, out=out, quiet=True, **measured)
    return out


def onnx_player(policy, tmp_path, **options):
    runtime = pytest.importorskip("onnxruntime", reason="needs pip install fixfirst[onnx]")
    session = runtime.InferenceSession(ff.export(policy, "onnx", tmp_path / "policy.onnx", **options))
    names = [place.name for place in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def torch_player(policy, tmp_path):
    torch = pytest.importorskip("torch", reason="needs pip install fixfirst[torch]")
    return playing(torch, ff.export(policy, "torch", tmp_path / "policy.pt2"))


def playing(torch, file):
    program = torch.export.load(file).module()
    return lambda *arrays: [out.numpy() for out in program(*map(torch.as_tensor, arrays))]


def assert_same_actions(
    policy, player, episodes=50, steps=40, red_agent="b_line:0.5,meander:0.5", seed=None, told=None, **options
):
    """Most probable ones, or those drawn with a seed. Ends of episodes are met, too: the state is 0 again.

    told: gives the orders of all environments at a step, which are then a fourth input.
    """
    envs = ff.make_vec(episodes, red_agent=red_agent, green=True, max_steps=25, autoreset_mode="same_step", **options)
    obs, _ = envs.reset(seed=0)
    keys, draw = np.empty(episodes, np.uint64), np.empty(episodes)
    chance_keys(seed or 0, 0, keys)
    state, starts, taken = np.zeros((episodes, Portable.of(policy).state_size), np.float32), np.ones(episodes, bool), set()
    for step in range(steps):
        orders = None if told is None else told(step)
        expected = policy.act(obs, episode_start=starts, greedy=seed is None, seed=seed or 0, workflow=orders)
        uniform(keys, step % 25, np.ones(episodes), draw)
        drawn = np.full((episodes, 1), -1, np.float32) if seed is None else draw[:, None].astype(np.float32)
        more = [] if orders is None else [np.array([order.ranks for order in orders], np.float32)]
        action, state, odds = player(obs.astype(np.float32), state, drawn, *more)
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
    state, greedy = np.zeros((1_000, Portable.of(policy).state_size), np.float32), np.full((1_000, 1), -1, np.float32)
    for _ in range(100):
        action, state, _ = player(obs.astype(np.float32), state, greedy)
        assert np.array_equal(action[:, 0], policy.act(obs, greedy=True))
        obs = envs.step(action[:, 0])[0]


@pytest.mark.parametrize("memory", ["none", "scans", "full", "full+scans+breaks", "counts"])
def test_onnx_remembers_and_masks_as_the_policy_does(memory, tmp_path):
    policy = remembering(memory=memory)
    assert_same_actions(policy, onnx_player(policy, tmp_path))


def test_onnx_draws_what_the_policy_draws_with_the_same_number(tmp_path):
    policy = remembering()
    assert_same_actions(policy, onnx_player(policy, tmp_path), seed=3)


def test_onnx_plays_the_opening_first(tmp_path):
    policy = remembering(opening=(39, 27, 28))
    assert_same_actions(policy, onnx_player(policy, tmp_path))


SHIELDED = {
    "all actions": PolicySpec(units=FIVE_TYPES, shield=True),
    "idle types": PolicySpec(units=FIVE_TYPES, shield=True, idle=(1, 4)),
    "macros and an opening": PolicySpec(
        MemoryScheme.parse("full"), ActionSet.parse("macros"), FIVE_TYPES, (30,), shield=True
    ),
    "by host": PolicySpec(MemoryScheme.parse("scans"), units=UnitScheme.per_host(), shield=True, idle=(2, 5, 7)),
    "read only": PolicySpec(MemoryScheme.parse("full"), units=FIVE_TYPES),
}


def any_orders(scheme, episodes=50):
    """An order for each environment, and others at every step."""
    rng = np.random.default_rng(5)
    return lambda step: [ff.Workflow(tuple(rng.permutation(scheme.size).tolist()), scheme) for _ in range(episodes)]


@pytest.mark.parametrize("spec", SHIELDED.values(), ids=SHIELDED)
def test_onnx_suspects_shields_and_is_told_an_order_at_every_turn(spec, tmp_path):
    policy = with_weights(spec)
    assert_same_actions(policy, onnx_player(policy, tmp_path), told=any_orders(spec.units))


def test_pytorch_is_told_an_order_and_plays_the_opening_too(tmp_path):
    policy = with_weights(replace(SHIELDED["macros and an opening"], idle=(1, 4)))
    assert_same_actions(policy, torch_player(policy, tmp_path), told=any_orders(FIVE_TYPES))


@pytest.mark.parametrize("shield", [True, False])
def test_an_order_that_is_settled_is_part_of_the_file(shield, tmp_path):
    """The one that a policy carries which knows no other, or the one that is named when the file is written."""
    order = ff.Workflow.parse(ORDER)
    carried = with_weights(PolicySpec(units=order.scheme, shield=shield, idle=(1,) if shield else ()), order)
    assert_same_actions(carried, onnx_player(carried, tmp_path))
    told = remembering(units=order.scheme, shield=shield)
    player = onnx_player(told, tmp_path, workflow=ORDER)
    assert_same_actions(remembering(units=order.scheme, workflow=order, shield=shield), player)


def test_a_policy_of_all_orders_is_told_one_although_it_prefers_one(tmp_path):
    """As the best policy of a search does: it has the best order for those who name none."""
    order = ff.Workflow.parse(ORDER)
    best = replace(with_weights(SHIELDED["all actions"], order), facts={"follows": "any"})
    assert_same_actions(best, onnx_player(best, tmp_path), told=any_orders(FIVE_TYPES))


def test_onnx_takes_the_actions_of_a_searchs_policy_in_a_thousand_episodes(shared_run, tmp_path):
    """Trained with the shield, with an order for each game: 1,000 games of 100 turns."""
    policy = ff.load_policy(shared_run)
    rng = np.random.default_rng(0)
    orders = [ff.Workflow.from_number(int(number)) for number in rng.integers(0, 120, 1_000)]
    player = onnx_player(policy, tmp_path)
    envs = ff.make_vec(1_000, red_agent=["b_line", "meander"] * 500)
    obs, _ = envs.reset(seed=0)
    policy.reset(1_000)
    state, greedy = np.zeros((1_000, Portable.of(policy).state_size), np.float32), np.full((1_000, 1), -1, np.float32)
    ranks, repairs = np.array([order.ranks for order in orders], np.float32), 0
    for _ in range(100):
        action, state, _ = player(obs.astype(np.float32), state, greedy, ranks)
        assert np.array_equal(action[:, 0], policy.act(obs, greedy=True, workflow=orders))
        obs = envs.step(action[:, 0])[0]
        repairs += (np.array(REPAIRED_HOSTS)[action[:, 0]] >= 0).sum()
    assert repairs > 1_000


def test_pytorch_takes_the_actions_of_the_champion_exported_as_documented(tmp_path, monkeypatch):
    """It remembers, and has macros."""
    torch = pytest.importorskip("torch", reason="needs pip install fixfirst[torch]")
    monkeypatch.chdir(tmp_path)
    document = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
    (command,) = re.findall(r"^fixfirst (export champion --to torch [^#\n]*)", document, re.M)
    assert main(command.split()) == 0
    policy = ff.load_policy("champion")
    assert policy.spec.memory.groups and policy.spec.action_set.macros
    assert_same_actions(policy, playing(torch, Path("policy.pt2")), variant="leaderboard")


def test_a_file_says_what_it_is(tmp_path):
    about = json.loads(str(np.load(ff.export(remembering(opening=(39,)), "numpy", tmp_path / "policy.npz"))["about"]))
    assert (about["memory"], about["action_set"], about["order"], about["shield"]) == ("full", "macros", "", "")
    assert about["opening"] == json.loads(about["choices"])[39] == "Decoy User3"
    about = json.loads(str(np.load(ff.export(with_weights(SHIELDED["idle types"]), "numpy", tmp_path / "any.npz"))["about"]))
    assert (about["order"], about["shield"]) == ("any", "yes") and json.loads(about["units"])["op_server"] == ["Op_Server0"]


def test_a_file_goes_beside_the_policy_unless_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ff.export("champion", "numpy") == Path("champion.npz") and Path("champion.npz").exists()


def test_what_there_is_no_file_for_is_refused(tmp_path):
    with pytest.raises(ff.ConfigError, match="this policy knows no order: leave out workflow"):
        ff.export("champion", "numpy", tmp_path / "policy.npz", workflow=ORDER)
    with pytest.raises(ff.ConfigError, match="out must be a file, got the folder"):
        ff.export("champion", "numpy", "")
    with pytest.raises(ff.ConfigError, match="exported to onnx, torch, numpy, not 'jax'"):
        ff.export("champion", "jax")
