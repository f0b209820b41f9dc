"""An agent of one's own plays wherever a policy may stand, and earns there what it earns elsewhere."""

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game.scenario import CAGE2
from fixfirst.policy.scripts import DEFENDERS
from fixfirst.policy.table import PolicyTable

SMALL = {"red_agent": "b_line", "variant": "current", "steps": 20, "episodes": 30, "quiet": True}
ORDER = "enterprise > op_server > op_host > user > defender"
react = DEFENDERS["react_restore"](CAGE2, 1, np.random.default_rng(0))  # a function of observations


class Acts:
    """Reacts from the second step on, which only an agent knows that is reset."""

    def reset(self, num_envs):
        self.steps, self.num_envs = 0, num_envs

    def act(self, obs):
        assert len(obs) == self.num_envs
        self.steps += 1
        return react(obs) if self.steps > 1 else np.zeros(len(obs), int)


class Recurrent:
    """The same with a state that goes in and out, as recurrent models have it, and episodes that begin anywhere."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        steps = np.zeros(len(observation), int) if state is None else state
        steps = np.where(episode_start, 0, steps) + 1
        return np.where(steps > 1, react(observation), 0), steps


class OneGame:
    """The same for one game at a time, as CybORG's agents."""

    steps = 0

    def get_action(self, observation, action_space):
        assert observation.shape == (52,) and action_space == 145
        self.steps += 1
        return int(react(observation[None])[0]) if self.steps > 1 else 0

    def end_episode(self):
        self.steps = 0


class NeverTold:
    """Counts its steps, and nobody can tell it that an episode begins."""

    def __init__(self):
        self.steps = 0

    def act(self, obs):
        self.steps += 1
        return np.zeros(len(obs), int)


class OneGameNeverTold:
    """One game at a time, likewise."""

    steps = 0

    def get_action(self, observation, action_space):
        self.steps += 1
        return 0 if self.steps <= 20 else 139  # it would restore in its second episode


def test_an_agent_without_reset_gets_one_line_and_one_without_end_episode_a_copy_for_every_episode():
    said = []
    ff.evaluate(NeverTold(), **SMALL, say=said.append)
    assert said == [
        "NeverTold has no reset(): it is not told that an episode begins; what it remembers goes on into the next"
    ]
    assert ff.evaluate(OneGameNeverTold(), **SMALL, say=said.append) == ff.evaluate("sleep", **SMALL)
    assert len(said) == 1


def test_a_function_and_a_table_of_probabilities_earn_what_the_baseline_of_the_same_rule_earns():
    table = PolicyTable(lambda inputs: np.eye(145)[react(inputs)])
    assert ff.evaluate(react, **SMALL) == ff.evaluate(table, **SMALL) == ff.evaluate("react-restore", **SMALL)
    shown = ff.leaderboard(react, episodes=10, quiet=True)
    assert shown == ff.leaderboard("react-restore", episodes=10, quiet=True)
    (row,) = ff.compare(react, "react-restore", **SMALL)
    assert row.mean == 0 and not row.different


def test_agents_of_every_form_that_play_alike_earn_the_same():
    (right,) = ff.evaluate(lambda obs, episode_start: np.where(episode_start, 0, react(obs)), **SMALL)
    for agent in (Acts, Acts(), Recurrent(), OneGame, OneGame()):
        assert ff.evaluate(agent, **SMALL) == [right] and right.mean < 0


def test_it_is_judged_by_an_order_if_there_is_one():
    notes = []
    (shown,) = ff.evaluate(react, workflow=ORDER, say=notes.append, **SMALL)
    assert shown.compliance == ff.evaluate("react-restore", workflow=ORDER, **SMALL)[0].compliance is not None
    assert notes and "is judged by this one" in notes[0]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(
    "agent", [react, "react-restore", Recurrent(), OneGame()], ids=["function", "name", "model", "agent"]
)
def test_in_a_rollout_episodes_end_and_begin_as_if_stepped(agent, mode):
    """Step by step by hand: what a function sees is what `envs.step` shows."""
    envs, same = (ff.make_vec(3, max_steps=7, autoreset_mode=mode) for _ in range(2))
    envs.reset(seed=1)
    obs, _ = same.reset(seed=1)
    played, ended, starts = ff.rollout(envs, agent, 20), np.zeros(3, bool), np.ones(3, bool)
    for t in range(20):
        assert np.array_equal(played.observations[t], obs)
        right = react(obs) if agent in (react, "react-restore") else np.where(starts, 0, react(obs))
        assert np.array_equal(played.actions[t], right)
        had_ended = ended
        obs, reward, _, ended, info = same.step(right)
        starts = had_ended if mode == "next_step" else ended
        assert np.array_equal(played.rewards[t], reward) and np.array_equal(played.truncated[t], ended)
        assert np.array_equal(played.held[t + 1], info["access"] > 0)
    assert np.array_equal(envs.get_state(), same.get_state())


def test_it_can_be_watched(tmp_path):
    page = ff.watch(react, episodes=3, steps=10, red_agent="b_line", beside=OneGame(), out=tmp_path / "page.html")
    assert "react" not in str(page) and "OneGame" in page.read_text()


@pytest.mark.parametrize(
    "agent, error, said",
    [
        (lambda obs: 3, ff.ActionError, r"returned int64 of shape \(\); .* 30 games at once .* \(30,\) whole numbers"),
        (lambda obs: np.zeros((30, 145)), ff.ActionError, r"returned float64 of shape \(30, 145\)"),
        (lambda obs: np.full(30, 145), ff.ActionError, "returned 145, which is not in 0..144"),
        (PolicyTable(react), ff.ActionError, r"a PolicyTable must return odds \[\d+, 145\] from 0 on, got int64 \[\d+\]"),
        (PolicyTable(lambda obs: np.full((len(obs), 145), np.nan)), ff.ActionError, r"odds .*, got float64 \[\d+, 145\]"),
        (lambda obs: obs.shape[7], ff.PolicyError, r"failed in step 1 \(IndexError: tuple index out of range\)"),
        (7, ff.ConfigError, "a policy must be a path, a loaded policy, or a function"),
        (None, ff.ConfigError, "a policy must be a path, a loaded policy, or a function"),
    ],
)
def test_what_is_wrong_with_an_agent_is_said_in_one_line(agent, error, said):
    with pytest.raises(error, match=said) as caught:
        ff.evaluate(agent, **SMALL)
    if error is ff.PolicyError:  # their code failed: its traceback is a note
        assert "in <lambda>" in "".join(caught.value.__notes__)


def test_an_exported_policy_plays_as_the_policy_itself_and_one_of_all_orders_is_told_one(tmp_path):
    pytest.importorskip("onnxruntime")
    path = ff.export("champion", "onnx", tmp_path / "champion.onnx")
    for greedy in (True, False):
        assert ff.evaluate(path, greedy=greedy, **SMALL) == ff.evaluate("champion", greedy=greedy, **SMALL)
    run = ff.train(workflow="all", total_episodes=20, n_envs=10, out=tmp_path / "run", quiet=True)
    path = ff.export(run.folder, "onnx", tmp_path / "any.onnx")
    assert ff.evaluate(path, workflow=ORDER, **SMALL) == ff.evaluate(run.folder, workflow=ORDER, **SMALL)
    with pytest.raises(ff.ConfigError, match="follows any order: say which one"):
        ff.evaluate(path, **SMALL)
    fixed = ff.export(run.folder, "onnx", tmp_path / "one.onnx", workflow=ORDER)
    assert ff.evaluate(fixed, **SMALL)[0].compliance == ff.evaluate(run.folder, workflow=ORDER, **SMALL)[0].compliance


def test_an_onnx_file_of_another_maker_gives_a_value_of_each_action_and_what_is_none_is_refused(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = np.zeros((52, 145), np.float32)
    weight[:, 5] = -1.0  # action 5 while nothing is seen, then any other: the first
    bias = np.eye(145, dtype=np.float32)[5] / 2
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 52])],  # one game at a time
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 145])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    assert ff.evaluate(path, **SMALL) == ff.evaluate(lambda obs: np.where(obs.any(axis=1), 0, 5), **SMALL)
    path.write_bytes(b"nothing")
    with pytest.raises(ff.PolicyError, match=r"net\.onnx: cannot be read as an ONNX file"):
        ff.evaluate(path, **SMALL)
