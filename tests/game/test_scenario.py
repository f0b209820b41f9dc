"""A scenario is a value: sizes, names, tables and rewards follow from the one that was given."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import yaml
from approved import approve_refusals
from numba import njit

import fixfirst as ff
from fixfirst.game import chance, tables
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.tables import tables_of
from fixfirst.orders.order import UnitScheme
from fixfirst.policy.action_sets import ActionSet, action_sets, decoy_slots
from fixfirst.policy.memory import MemoryScheme, memory_dtype, memory_tables
from fixfirst.policy.scripts import DEFENDERS
from fixfirst.policy.spec import PolicySpec

SMALL = replace(Scenario.load("tiny"), name="small")


def test_the_built_in_one_has_13_hosts_145_actions_and_52_bits_and_is_one_object_everywhere():
    assert (CAGE2.num_hosts, CAGE2.num_actions, CAGE2.observation_bits) == (13, 145, 52)
    assert CAGE2.action_id("Restore", "Op_Server0") == 139 and str(CAGE2.actions[139]) == "Restore Op_Server0"
    assert pickle.loads(pickle.dumps(CAGE2)) is CAGE2 and pickle.loads(pickle.dumps(SMALL)) == SMALL != CAGE2


def test_what_a_policy_reads_and_chooses_follows_from_its_one_scenario():
    """6 hosts: 24 bits, four groups of 6, 5 quiet turns; 2 + 11 * 6 actions; 6 unit types in 36 bits."""
    memory, choices = MemoryScheme.parse("act1+last+expl+rest+quiet", SMALL), ActionSet.parse("all", SMALL)
    spec = PolicySpec(memory, choices, UnitScheme.per_host(SMALL), shield=True)
    assert (spec.inputs, spec.actions) == (24 + 4 * 6 + 5 + 6 + 36, 68)
    assert memory_tables(SMALL).effects.shape == (68, 4) and memory_dtype(SMALL) == memory_dtype(CAGE2)
    assert set(action_sets(SMALL)) == {"all", "macros"} and len(decoy_slots(SMALL).listed) == 16
    assert PolicySpec.from_dict(spec.as_dict()) == spec
    assert UnitScheme.by_type(SMALL).names == ("user", "op_server", "enterprise")
    with pytest.raises(ff.ConfigError, match="a policy of cage2 cannot have parts of generated1-7"):
        PolicySpec(action_set=ActionSet.parse("all", Scenario.generate(7)))


def test_a_game_names_its_scenario_by_value_name_or_file_and_keeps_it_whole(tmp_path):
    assert ff.Game(scenario="cage2").scenario is ff.Game().scenario is CAGE2
    assert "scenario" not in ff.Game().model_dump()
    file = tmp_path / "lab.yaml"
    file.write_text(SMALL.to_yaml())
    for named in (SMALL, "tiny", file, str(file)):
        assert ff.Game(scenario=named).scenario == SMALL
    kept = ff.Game(scenario=file).model_dump()
    assert kept["scenario"]["name"] == "lab" and ff.Game(**kept).scenario == SMALL
    with pytest.raises(ff.ScenarioError, match="unknown scenario 'ofice'; use cage2, cage1, tiny, flat, office or a file"):
        ff.Game(scenario="ofice")
    with pytest.raises(ff.ScenarioError, match="its file does not have the digest"):
        ff.Game(scenario=kept["scenario"] | {"digest": "0" * 64})
    with pytest.raises(ff.ConfigError, match="give --scenario FILE with --images"):
        ff.Game(images="there")


def test_a_folder_with_the_name_of_what_comes_with_fixfirst_does_not_stand_in_its_way(tmp_path, monkeypatch):
    for name in ("tiny", "noise"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert ff.Game(scenario="tiny").scenario == SMALL and ff.load_red("noise").seal
    assert ff.Game(red_agent="noise").learned


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: UnitScheme.per_host("office"), r"got 'office'; load it: ff.Scenario.load\('office'\)"),
        (lambda: UnitScheme.by_type(None), r"scenario must be a Scenario, got None; use ff.Scenario.load\(FILE\)"),
        (lambda: ff.load_policy("champion").in_scenario("office"), "scenario must be a Scenario, got 'office'"),
        (lambda: CAGE2.action_id("restore", "User1"), "'restore User1' is no action in cage2; did you mean 'Restore User1'"),
        (lambda: CAGE2.action_id("sleep"), "'sleep' is no action in cage2; did you mean 'Sleep'"),
    ],
)
def test_a_name_in_place_of_a_scenario_or_an_action_that_is_not_there_is_one_line(ask, says):
    with pytest.raises(ff.FixfirstError, match=says):
        ask()


def test_a_game_that_cannot_be_is_refused_in_one_line():
    lab = Scenario.from_document(yaml.safe_load(SMALL.to_yaml().replace("Op_Server0", "Plc0")), "lab")
    assert ff.Game(scenario=lab, red_agent="meander").scenario.target is None
    with pytest.raises(ff.ScenarioError, match="lab: b_line looks for a host named Op_Server0, and there is none"):
        ff.Game(scenario=lab, red_agent="b_line:0.5,meander:0.5")
    with pytest.raises(ff.ConfigError, match="needs episodes of fixed length"):
        _ = ff.Game(max_steps=None).steps
    with pytest.raises(ff.ConfigError, match="one red agent or mixture must be given for all environments"):
        _ = ff.Game(red_agent=["b_line", "sleep"]).attacker
    with pytest.raises(ff.PolicyError, match="champion: trained on cage2, not on tiny"):
        ff.evaluate("champion", scenario="tiny", episodes=2, quiet=True)
    envs = ff.make_vec(2, scenario="tiny")
    envs.reset(seed=0)
    with pytest.raises(ff.PolicyError, match="champion: trained on cage2, not on tiny"):
        ff.rollout(envs, "champion", steps=2)


def test_simple_defenders_play_where_hosts_are_not_listed_and_verbs_are_missing():
    """cage1 has Misinform and no decoys; tiny without User1 among blue's hosts has 20 bits."""
    document = Scenario.load("tiny").document()
    del document["Agents"]["Blue"]["INT"]["Hosts"]["User1"]
    sessions = document["Agents"]["Blue"]["starting_sessions"]
    sessions[:] = [session for session in sessions if session["hostname"] != "User1"]
    unlisted = Scenario.from_document(document, "unlisted")
    assert unlisted.observation_bits == 20
    for scenario in (unlisted, Scenario.load("cage1")):
        for make in DEFENDERS.values():
            choose = make(scenario, 3, np.random.default_rng(0))
            for bit in (0, 1):
                actions = choose(np.full((3, scenario.observation_bits), bit, np.int8))
                assert ((actions >= 0) & (actions < scenario.num_actions)).all()


@njit
def list_members(mask, members):
    """Write the members of a set; return how many there are."""
    for n in range(chance.size(mask)):
        members[n] = chance.nth_member(mask, n)
    return chance.size(mask)


def test_sizes_and_members_of_sets_of_hosts():
    rng, members = np.random.default_rng(0), np.zeros(63, np.int64)
    for mask in (*range(2**15), *rng.integers(0, 2**63, 1_000).tolist(), 2**63 - 1):
        count = list_members(mask, members)
        assert members[:count].tolist() == [host for host in range(63) if mask >> host & 1]


def test_tables_cannot_be_changed():
    arrays = {name: table for name, table in vars(tables).items() if isinstance(table, np.ndarray)}
    assert len(arrays) > 5 and not any(table.flags.writeable for table in (*arrays.values(), tables_of(CAGE2)))


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
