"""Whoever plays in CAGE2 plays in a network of another size, too: one table of ways to play, each tried in three scenarios.

Sleeping for 30 turns earns the same by every way, so that a way that played elsewhere would be found.
"""

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game.scenario import CAGE2
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

SMALL = {"red_agent": "b_line", "steps": 30, "episodes": 8, "quiet": True}
SCENARIOS = {
    "tiny": ff.Scenario.load("tiny"),
    "office": ff.Scenario.load("office"),
    "sixty": ff.Scenario.generate(3, hosts=60),
}


class CyborgAgent:
    """A blue agent as CybORG knows them, which counts actions."""

    def get_action(self, observation, action_space):
        self.sizes = len(observation), action_space
        return 0


class Model:
    """What Stable-Baselines3 asks of a model: `predict`, and the spaces it was trained on."""

    def __init__(self, envs):
        self.observation_space, self.action_space = envs.single_observation_space, envs.single_action_space

    def predict(self, observations, state=None, episode_start=None, deterministic=False):
        assert observations.shape[1:] == self.observation_space.shape
        return np.zeros(len(observations), int), state


def always_sleep(inputs, actions):
    return np.eye(1, actions, dtype=float).repeat(len(inputs), axis=0)


def ways_to_sleep(scenario):
    """Somebody who always takes action 0, which is Sleep, in every shape in which one can play."""
    spec = PolicySpec.for_orders((), scenario)
    remembering = {"memory": "full", "action_set": "macros"}
    return {
        "a baseline": "sleep",
        "a function": lambda obs: np.zeros(len(obs), int),
        "an agent of CybORG": CyborgAgent(),
        "a model": Model(ff.make_vec(1, scenario=scenario)),
        "a model with memory and macros": ff.Agent(Model(ff.make_vec(1, scenario=scenario, **remembering)), **remembering),
        "a table": PolicyTable(lambda inputs: always_sleep(inputs, spec.actions), spec=spec),
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_way_to_play_is_open_in_every_scenario(name):
    scenario, returns = SCENARIOS[name], {}
    for way, player in ways_to_sleep(scenario).items():
        returns[way] = ff.evaluate(player, scenario=scenario, **SMALL)[0].mean
        envs = ff.make_vec(2, scenario=scenario)
        envs.reset(seed=0)
        returns[f"{way} in a rollout"] = ff.rollout(envs, player, steps=3).rewards.sum()
    assert len({value for way, value in returns.items() if "rollout" not in way}) == 1, returns
    assert len({value for way, value in returns.items() if "rollout" in way}) == 1, returns
    assert returns["a function"] < -100  # B_line has reached its target


@pytest.mark.parametrize("way", ways_to_sleep(CAGE2))
def test_every_way_to_play_is_attacked(way):
    options = {"train_episodes": 50, "episodes": 20, "max_steps": 20, "starts": ("noise",), "quiet": True}
    exploit = ff.exploit(ways_to_sleep(CAGE2)[way], **options)
    assert exploit.mean < 0 and exploit.habits and exploit.tried[0][1] == min(mean for _, mean in exploit.tried)


def test_a_model_of_another_scenario_is_told_what_it_lacks():
    model = Model(ff.make_vec(1, scenario="tiny"))
    with pytest.raises(ff.ConfigError, match=r"Model reads \(24,\) and has 68 choices, office has \(120,\) and 332"):
        ff.evaluate(model, scenario="office", **SMALL)


@pytest.mark.parametrize("name", SCENARIOS)
def test_one_environment_remembers_in_every_scenario(name):
    scenario = SCENARIOS[name]
    env = ff.Remember(ff.Cage2(scenario=scenario))
    many = ff.make_vec(1, scenario=scenario, memory="full", action_set="macros")
    shown, info = env.reset(seed=0)
    all_shown, _ = many.reset(seed=0)
    assert info["action_mask"].shape == (many.single_action_space.n,)
    for choice in range(0, many.single_action_space.n, many.single_action_space.n // 12):
        np.testing.assert_array_equal(shown, all_shown[0])
        shown, *_ = env.step(choice)
        all_shown, *_ = many.step([choice])


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_exported_policy_plays_in_its_scenario_as_before_and_nowhere_else(name, tmp_path):
    pytest.importorskip("onnxruntime")
    scenario = SCENARIOS[name]
    units = ff.UnitScheme.by_type(scenario)
    spec = PolicySpec(ff.MemoryScheme.parse("full", scenario), ff.ActionSet.parse("macros", scenario), units, shield=True)
    policy = ff.Policy(Network.drawn(spec.inputs, spec.actions, 1, last=3.0).as_weights(), None, spec, {}, {})
    file = ff.export(policy, "onnx", tmp_path / "policy.onnx")
    order = " > ".join(units.names)
    mean = ff.evaluate(file, workflow=order, greedy=True, **SMALL)[0].mean
    assert mean == ff.evaluate(policy, workflow=order, greedy=True, **SMALL)[0].mean
    with pytest.raises(ff.PolicyError, match=f"policy.onnx: plays in {scenario.name} .*, not on cage2"):
        ff.evaluate(file, workflow=order, scenario="cage2", **SMALL)
