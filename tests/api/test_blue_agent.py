"""`ff.BlueAgent`: the policy as the challenge's script plays it, with a stand-in for the script and with CybORG."""

import os
import runpy
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from cage2 import ACTIONS

import fixfirst as ff
from fixfirst.api.blue_agent import POLICY_VARIABLE
from fixfirst.base.errors import ConfigError, CyborgError, PolicyError
from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE, find_cyborg, load_cyborg
from fixfirst.game.state import RedAgent

CYBORG = os.environ.get(ENVIRONMENT_VARIABLE)
needs_cyborg = pytest.mark.skipif(not CYBORG, reason=f"{ENVIRONMENT_VARIABLE} names no checkout of CybORG")
STEPS = 25


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A policy with memory, macros and an opening."""
    out = tmp_path_factory.mktemp("agent") / "run"
    settings = {"memory": "full", "action_set": "macros", "opening": "Decoy User2, Decoy Enterprise0"}
    small = {"n_envs": 10, "max_steps": STEPS, "episodes_per_update": 10, "total_episodes": 40, "tensorboard": False}
    ff.train(out=out, workflow="none", quiet=True, **settings, **small)
    return out


def play_as_the_script(agent, begin, step, episodes):
    """The script's loop: what was seen before each action [T, N, 52], and the actions [T, N]."""
    seen, actions = np.zeros((STEPS, episodes, 52), int), np.zeros((STEPS, episodes), int)
    for i in range(episodes):
        observation = begin()
        for t in range(STEPS):
            seen[t, i] = observation
            actions[t, i] = agent.get_action(observation, 145)
            observation = step(actions[t, i])
        agent.end_episode()
    return seen, actions


# ---------------------------------------------------------------- without CybORG


def test_the_agent_plays_one_after_the_other_the_episodes_of_a_rollout(run):
    """Episode i of the loop is environment i of the rollout, whose red agent and chances are the same."""
    envs, twins = (ff.make_vec(4, red_agent="b_line:0.5,meander:0.5", max_steps=STEPS) for _ in range(2))
    envs.reset(seed=3)
    rollout = ff.rollout(envs, ff.load_policy(run), STEPS, greedy=True)
    number = -1

    def begin():
        nonlocal number
        number += 1
        return twins.reset(seed=3)[0][number]

    def step(action):
        return twins.step(np.full(4, action))[0][number]

    seen, actions = play_as_the_script(ff.BlueAgent(run), begin, step, episodes=4)
    assert np.array_equal(seen, rollout.observations[:-1]) and np.array_equal(actions, rollout.actions)
    assert [str(ACTIONS[a]) for a in actions[:2, 3]] == ["DecoyFemitter User2", "DecoyHarakaSMPT Enterprise0"]


def test_drawn_actions_follow_from_the_seed_and_differ_between_episodes(run):
    def actions(seed):
        blank = np.zeros(52, int)
        agent = ff.BlueAgent(run, greedy=False, seed=seed)
        return play_as_the_script(agent, lambda: blank, lambda action: blank, episodes=2)[1]

    first = actions(1)
    assert np.array_equal(first, actions(1)) and not np.array_equal(first, actions(2))
    assert not np.array_equal(first[:, 0], first[:, 1])


def test_the_policy_comes_from_the_environment_where_none_is_given(run, monkeypatch):
    monkeypatch.delenv(POLICY_VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=r"no policy was named: BlueAgent\(policy\), or FIXFIRST_POLICY=RUN"):
        ff.BlueAgent()
    monkeypatch.setenv(POLICY_VARIABLE, str(run))
    assert ff.BlueAgent().get_action(np.zeros(52, int), 145) == ff.load_policy(run).act(np.zeros(52, int))


def test_another_wrapper_is_noticed(run):
    agent = ff.BlueAgent(run)
    with pytest.raises(CyborgError, match="knows the 145 actions of ChallengeWrapper, here are 54"):
        agent.get_action(np.zeros(52, int), 54)
    with pytest.raises(PolicyError, match="observations must be"):
        agent.get_action(np.zeros(11293, int), 145)
    with pytest.raises(PolicyError, match=r"observations must be \[52\] bits, one at a time, got shape \(2, 52\)"):
        agent.get_action(np.zeros((2, 52)))
    with pytest.raises(PolicyError, match="observations must be an array"):
        agent.get_action([np.zeros(52), np.zeros(51)], 145)


SCRIPT = """
from CybORG.Agents.SimpleAgents.BlueLoadAgent import BlueLoadAgent
if __name__ == "__main__":
    agent = BlueLoadAgent()
    print(type(agent).__name__, agent.get_action([0] * 52, 145))
"""


@pytest.fixture
def script(tmp_path):
    """A checkout in which the example agent cannot be imported, and a script that does so."""
    package = tmp_path / "CybORG"
    for folder in ("Shared/Scenarios", "Agents/SimpleAgents", "Evaluation"):
        (package / folder).mkdir(parents=True)
    for file in ("__init__.py", "CybORG.py", "Shared/Scenarios/Scenario2.yaml"):
        (package / file).touch()
    (package / "Evaluation" / "evaluation.py").write_text(SCRIPT)
    return package / "Evaluation" / "evaluation.py"


def run_module(script, **variables):
    command = [sys.executable, "-m", "fixfirst.api.blue_agent", script]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)


def test_a_script_that_makes_its_example_agent_gets_ours(run, script):
    ran = run_module(script, FIXFIRST_POLICY=str(run))
    assert ran.stdout == f"BlueAgent {ff.load_policy(run).act(np.zeros(52, int))}\n", ran.stderr


def test_a_policy_that_is_not_there_is_told_in_one_line(script):
    ran = run_module(script, FIXFIRST_POLICY="nowhere")
    assert ran.returncode != 0 and ran.stderr.startswith("fixfirst: 'nowhere' is neither") and ran.stderr.count("\n") == 1


# ---------------------------------------------------------------- with CybORG


def play_on_cyborg(run, red_agent, episodes):
    """Episodes behind the script's own `wrap`: what was seen, the actions, and what CybORG's action numbers mean."""
    cyborg = load_cyborg(find_cyborg())
    script = cyborg.folder / "CybORG" / "Evaluation" / "evaluation.py"
    sys.modules["CybORG.Agents.SimpleAgents.BlueLoadAgent"] = type(sys)("unused")
    sys.modules["CybORG.Agents.SimpleAgents.BlueLoadAgent"].BlueLoadAgent = ff.BlueAgent
    wrap = runpy.run_path(str(script), run_name="read")["wrap"]
    env = wrap(cyborg.simulator(cyborg.scenario, "sim", agents={"Red": cyborg.red_agents[red_agent]}))
    assert env.get_action_space("Blue") == 145
    seen, actions = play_as_the_script(ff.BlueAgent(run), env.reset, lambda action: env.step(action)[0], episodes)
    meanings = [(type(a).__name__, getattr(a, "hostname", None)) for a in env.get_attr("possible_actions")]
    return seen, actions, meanings


@needs_cyborg
@pytest.mark.parametrize("red_agent", [RedAgent.B_LINE, RedAgent.MEANDER])
def test_on_cyborg_the_agent_does_what_the_policy_does_and_the_numbers_mean_the_same(run, red_agent):
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        seen, actions, meanings = process.submit(play_on_cyborg, run, red_agent, 3).result()
    policy = ff.load_policy(run)
    policy.reset(3)
    for t in range(STEPS):
        assert np.array_equal(policy.act(seen[t], greedy=True), actions[t])
    assert not seen[0].any() and seen.any(axis=(0, 2)).all()
    assert meanings == [tuple(action) for action in ACTIONS]
