"""Rewards of one's own: a part of the scenario, in its file or in one that replaces that part. Numbers by hand."""

import numpy as np
import pytest
from approved import approve_refusals

import fixfirst as ff
from fixfirst.game.scenario import CAGE2

MINE = """
hosts: {user: 0.3, User0: 1.5, Op_Server0: 5}
service: 20
restore: 2.5
detection: 0.8
steps: 7
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(MINE)
    return file


def test_every_part_counts_and_what_is_not_named_stays(mine):
    """Red sleeps on User0, as root: 1.5 a step; a Restore costs 2.5 more. The seventh step is the last."""
    scenario = CAGE2.with_reward(mine)
    values = {host.name: host.value for host in scenario.hosts}
    assert values == {host.name: host.value for host in CAGE2.hosts} | {
        "User0": 1.5, "User1": 0.3, "User2": 0.3, "User3": 0.3, "User4": 0.3, "Op_Server0": 5.0
    }  # fmt: skip
    assert (scenario.ot_cost, scenario.restore_cost, scenario.detection, scenario.steps) == (20.0, 2.5, 0.8, 7)
    envs = ff.make_vec(1, scenario=scenario, red_agent="sleep")
    envs.reset(seed=0)
    actions = [0, CAGE2.action_id("Restore", "User1"), 0, 0, 0, 0, 0]
    played = [envs.step([action]) for action in actions]
    assert [float(rewards[0]) for _, rewards, *_ in played] == [-1.5, -4.0, -1.5, -1.5, -1.5, -1.5, -1.5]
    assert [bool(truncated[0]) for *_, truncated, _ in played] == [False] * 6 + [True]


@pytest.mark.parametrize(("odds", "seen"), [(0, {False}), (1, {True}), (0.5, {False, True})])
def test_shells_are_seen_as_often_as_the_file_says(odds, seen, tmp_path):
    """On User2, BlueKeep gives a shell without root: Remove can end it if it was seen."""
    file = tmp_path / "odds.yaml"
    file.write_text(f"detection: {odds}")
    envs = ff.make_vec(400, reward=file, red_agent="b_line")
    envs.reset(seed=0)
    found, bit = set(), 1 << CAGE2.host_ids["User2"]
    for _ in range(4):
        envs.step(np.zeros(400, int))
        states = envs.get_state()
        with_shell = states[(states["removable"] | states["stubborn"]) & bit != 0]
        found |= set((with_shell["removable"] & bit != 0).tolist())
    assert found == seen


def test_it_is_part_of_the_scenario_goes_wherever_that_goes_and_replaces_another(mine, tmp_path):
    scenario = CAGE2.with_reward(mine)
    assert scenario.name == "cage2+mine" and scenario.digest != CAGE2.digest and scenario != CAGE2
    kept = ff.Game(reward=mine).model_dump()
    assert ff.Game(**kept).scenario == scenario and ff.Game(**kept).max_steps == kept["max_steps"] == 7
    assert ff.Game(reward=mine, max_steps=30).max_steps == 30
    again = ff.Scenario.from_dict(scenario.as_dict())
    assert again == scenario and again.map_rows == CAGE2.map_rows
    assert scenario.without_reward == CAGE2.without_reward and "not CAGE2's reward" in scenario.notes[0]
    office = tmp_path / "office.yaml"
    office.write_text(ff.Scenario.load("office").to_yaml() + "Reward: {restore: 0.5, steps: 30}\n")
    assert (ff.Game(scenario=office).scenario.restore_cost, ff.Game(scenario=office).max_steps) == (0.5, 30)
    both = ff.Game(scenario=office, reward=mine)
    assert (both.scenario.restore_cost, both.max_steps, both.scenario.num_hosts) == (2.5, 7, 30)


def test_what_is_wrong_is_said_with_its_place(mine, monkeypatch):
    monkeypatch.chdir(mine.parent)

    def refuse(text):
        mine.write_text(text)
        CAGE2.with_reward(mine.name)

    approve_refusals("reward-refusals.txt", refuse)
    mine.write_text(MINE)
    flat = ff.Scenario.generate(2).to_yaml().replace("OP_Server", "Gateway").replace("Services:\n        - OTService", "")
    mine.with_name("none.yaml").write_text(flat)
    with pytest.raises(ff.ScenarioError, match="service: no service can be stopped"):
        ff.Game(scenario="none.yaml", reward=mine)
    with pytest.raises(ff.ScenarioError, match="which CybORG cannot give"):
        ff.Game(reward=mine, backend="cyborg")


def test_a_policy_plays_under_another_reward_and_everything_says_so(mine, tmp_path):
    said = []
    mean = ff.evaluate("champion", reward=mine, red_agent="sleep", episodes=2, quiet=True, say=said.append)[0].mean
    assert mean <= -1.5 * 7  # User0 costs in each of seven steps
    assert "trained for the reward of cage2; it plays for that of cage2+mine" in said[0]
    assert said[1].startswith("cage2+mine: not CAGE2's reward: Restore 2.5 and a stopped service 20 points")
    page = ff.watch("champion", reward=mine, episodes=2, out=tmp_path / "watch.html", say=said.append).read_text()
    assert '"reward":"not CAGE2' in page.replace(": ", ":")
    with pytest.raises(ff.ConfigError, match="the leaderboard is of CAGE2 and its reward, not of cage2"):
        ff.leaderboard("champion", reward=mine, episodes=2, quiet=True)
