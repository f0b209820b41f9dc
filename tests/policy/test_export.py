"""Exported policies take the actions of `Policy.act`, with memory, masks, opening and order, without fixfirst."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from policies import untrained

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.game.chance import chance_keys, uniform
from fixfirst.orders.order import FIVE_TYPES, UnitScheme
from fixfirst.policy.portable import Portable

ORDER = ff.Workflow.parse("op_server > enterprise > op_host > user > defender")
N, STEPS = 50, 40


PLAIN = {memory: untrained(memory, "macros") for memory in ("none", "full+scans+breaks", "counts")}
PLAIN |= {"an opening": untrained("full", "macros", opening=(39, 27, 28))}
TOLD = {
    "all actions": untrained("none", "all", FIVE_TYPES, shield=True),
    "idle types": untrained("none", "all", FIVE_TYPES, shield=True, idle=(1, 4)),
    "macros and an opening": untrained("full", "macros", FIVE_TYPES, (30,), shield=True),
    "by host": untrained("scans", "all", UnitScheme.per_host(), shield=True, idle=(2, 5, 7)),
    "read only": untrained("full", "all", FIVE_TYPES),
}
# The best policy of a search has the best order for those who name none, and is told one all the same.
TOLD["with a favourite"] = TOLD["all actions"].with_favourite(ORDER)


def onnx_player(policy, folder, **options):
    runtime = pytest.importorskip("onnxruntime", reason="needs pip install fixfirst[onnx]")
    session = runtime.InferenceSession(ff.export(policy, "onnx", folder / "policy.onnx", **options))
    names = [tensor.name for tensor in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def torch_player(file):
    torch = pytest.importorskip("torch", reason="needs pip install fixfirst[torch]")
    program = torch.export.load(file).module()
    return lambda *arrays: [out.numpy() for out in program(*map(torch.as_tensor, arrays))]


def assert_same_actions(policy, player, seed=None, told=False, variant="current"):
    """Most probable ones, or those drawn with a seed. Ends of episodes are met, too: the state is 0 again.

    told: every environment is given another order at every step, which is then a fourth input.
    """
    rng = np.random.default_rng(5)
    settings = {"red_agent": "b_line:0.5,meander:0.5", "variant": variant, "green": True, "max_steps": 25}
    envs = ff.make_vec(N, autoreset_mode="same_step", **settings)
    obs, _ = envs.reset(seed=0)
    keys, draw, starts, taken = np.empty(N, np.uint64), np.empty(N), np.ones(N, bool), set()
    chance_keys(seed or 0, 0, keys)
    state = np.zeros((N, Portable.of(policy).state_size), np.float32)
    for step in range(STEPS):
        size = policy.scheme.size if told else 0
        orders = [ff.Workflow(tuple(rng.permutation(size).tolist()), policy.scheme) for _ in range(N)] if told else None
        expected = policy.act(obs, episode_start=starts, greedy=seed is None, seed=seed or 0, workflow=orders)
        uniform(keys, step % 25, np.ones(N), draw)
        drawn = np.full((N, 1), -1, np.float32) if seed is None else draw[:, None].astype(np.float32)
        more = [np.array([order.ranks for order in orders], np.float32)] if told else []
        action, state, odds = player(obs.astype(np.float32), state, drawn, *more)
        assert np.array_equal(action[:, 0], expected), f"step {step}"
        assert np.allclose(odds.sum(axis=1), 1, atol=1e-5)
        obs, _, _, starts, _ = envs.step(expected)
        state[starts] = 0
        taken |= set(expected.tolist())
    assert len(taken) > 5


@pytest.mark.parametrize("seed", [None, 3], ids=["most probable", "drawn"])
@pytest.mark.parametrize("name", PLAIN)
def test_onnx_remembers_masks_and_plays_the_opening_as_the_policy_does(name, seed, tmp_path):
    assert_same_actions(PLAIN[name], onnx_player(PLAIN[name], tmp_path), seed)


@pytest.mark.parametrize("name", TOLD)
def test_onnx_suspects_shields_and_is_told_an_order_at_every_turn(name, tmp_path):
    assert_same_actions(TOLD[name], onnx_player(TOLD[name], tmp_path), told=True)


@pytest.mark.parametrize("shield", [True, False])
def test_an_order_that_is_settled_is_part_of_the_file(shield, tmp_path):
    """The one that a policy carries which knows no other, or the one that is named when the file is written."""
    carried = untrained("none", "all", FIVE_TYPES, workflow=ORDER, shield=shield, idle=(1,) if shield else ())
    assert_same_actions(carried, onnx_player(carried, tmp_path))
    player = onnx_player(untrained("full", "macros", FIVE_TYPES, shield=shield), tmp_path, workflow=str(ORDER))
    assert_same_actions(untrained("full", "macros", FIVE_TYPES, workflow=ORDER, shield=shield), player)


def test_pytorch_plays_too_and_the_champion_as_documented(tmp_path, monkeypatch):
    """Told an order, with an opening; the champion remembers, and has macros."""
    pytest.importorskip("torch", reason="needs pip install fixfirst[torch]")
    told = untrained("full", "macros", FIVE_TYPES, (30,), shield=True, idle=(1, 4))
    assert_same_actions(told, torch_player(ff.export(told, "torch", tmp_path / "told.pt2")), told=True)
    monkeypatch.chdir(tmp_path)
    document = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
    (command,) = re.findall(r"^fixfirst (export champion --to torch [^#\n]*)", document, re.M)
    assert main(command.split()) == 0
    policy = ff.load_policy("champion")
    for player in (torch_player("policy.pt2"), onnx_player("champion", tmp_path)):
        assert_same_actions(policy, player, variant="leaderboard")


def test_a_file_says_what_it_is(tmp_path, monkeypatch):
    """And goes beside the policy unless told."""
    monkeypatch.chdir(tmp_path)

    def about(policy):
        return json.loads(str(np.load(ff.export(policy, "numpy", "policy.npz"))["about"]))

    plain, any_order = about(untrained("full", "macros", opening=(39,))), about(TOLD["idle types"])
    assert (plain["memory"], plain["action_set"], plain["order"], plain["shield"]) == ("full", "macros", "", "")
    assert plain["opening"] == json.loads(plain["choices"])[39] == "Decoy User3"
    assert (any_order["order"], any_order["shield"]) == ("any", "yes")
    assert json.loads(any_order["units"])["op_server"] == ["Op_Server0"]
    assert ff.export("champion", "numpy") == Path("champion.npz") and Path("champion.npz").exists()


def test_what_there_is_no_file_for_is_refused():
    for says, asked in {
        "this policy knows no order: leave out workflow": {"to": "numpy", "out": "policy.npz", "workflow": "reverse"},
        "out must be a file, got the folder": {"to": "numpy", "out": ""},
        "exported to onnx, torch, numpy, not 'jax'": {"to": "jax"},
    }.items():
        with pytest.raises(ff.ConfigError, match=says):
            ff.export("champion", **asked)
