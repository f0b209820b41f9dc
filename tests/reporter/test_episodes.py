"""Single episodes in plain values: they are what the world did, and every verdict has the right reason."""

import numpy as np
import pytest
from cage2 import HOST_ID, HOST_NAMES, NUM_ACTIONS, action_id

from fixfirst.base.errors import ConfigError
from fixfirst.game import parts
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import RedVerb
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.play.evaluation import play
from fixfirst.policy.scripts import make_baseline
from fixfirst.reporter.reasons import explain_repairs
from fixfirst.reporter.replay import describe_episode, notable
from fixfirst.reporter.turn import costs, summarise_turn

ORDER = Workflow.parse("enterprise > op_server > op_host > user > defender")


class Script:
    """Plays a list of actions, then sleeps."""

    def __init__(self, *actions):
        self._actions = actions

    def act(self, moment):
        done = moment.turn >= len(self._actions)
        return np.full(len(moment.words), 0 if done else action_id(*self._actions[moment.turn]))


def watch(player, episodes, *, steps=100, red_agent="b_line", seed=0, workflows=()):
    """Episodes with all their turns."""
    game = Game(red_agent=red_agent, max_steps=steps)
    return play(player, game, episodes=episodes, seed=seed, purpose="test", workflows=workflows, keep_turns=True)


def scripted(*actions, steps=6, red_agent="b_line"):
    """The only episode of a script, as a list of steps; [0] is the start."""
    played = watch(Script(*actions), 1, steps=steps, red_agent=red_agent, workflows=(ORDER,))
    return describe_episode(played, "only", 0)["steps"]


def test_an_episode_begins_with_red_on_its_foothold_and_nothing_else():
    start = scripted()[0]
    assert start["step"] == 0 and start["red"] == start["blue"] == "nothing yet"
    assert dict(zip(HOST_NAMES, start["access"], strict=True)) == dict.fromkeys(HOST_NAMES, "none") | {"User0": "root"}
    assert set(start["belief"]) == {"clean"} and set(start["activity"]) == {"none"}
    assert start["reward10"] == start["return10"] == 0 and start["verdict"] is None and not start["impact"]
    asleep = scripted(red_agent="sleep")[1:]
    assert {(step["red"], step["red_worked"]) for step in asleep} == {("Sleep", None)}  # nothing that can fail


def test_the_first_steps_against_b_line_follow_its_script():
    """It discovers the user subnet, scans a user host, exploits it. Blue restores a clean server, then places one decoy
    twice: the port is taken the second time."""
    _, one, two, three, *_ = scripted(
        ("Restore", "Op_Server0"), ("DecoyTomcat", "Enterprise0"), ("DecoyTomcat", "Enterprise0")
    )
    assert (one["red"], one["red_target"], one["red_worked"]) == ("Discover subnet User", "User", True)
    assert (one["blue"], one["blue_target"], one["blue_worked"]) == ("Restore Op_Server0", "Op_Server0", True)
    assert one["costs"] == ({"what": "restore", "tenths": -10},) and one["reward10"] == one["return10"] == -10
    assert one["ot"] == "restored"
    assert one["verdict"]["kind"] == "not judged"
    assert one["verdict"]["reason"] == "fixed op_server Op_Server0 (not held) while nothing needed repair"

    victim = two["red_target"]
    assert victim in ("User1", "User2", "User3", "User4") and two["red"] == f"Scan {victim}" and two["red_worked"]
    assert two["activity"][HOST_ID[victim]] == "scan" and two["belief"][HOST_ID[victim]] == "clean"
    assert two["decoys"][HOST_ID["Enterprise0"]] == (443,) and two["blue_worked"]
    assert two["verdict"] is None and two["reward10"] == 0 and two["return10"] == -10

    assert three["red"].startswith(f"Exploit {victim} (") and three["red_target"] == victim
    assert three["blue"] == "DecoyTomcat Enterprise0" and three["blue_worked"] is False


def test_a_sleeping_defender_loses_the_ot_service_and_every_impact_is_marked():
    """Unhindered B_line needs at least 15 steps; from then on each step costs 10, and the held hosts on its path."""
    steps = scripted(steps=40)
    impacts = [step["step"] for step in steps if step["impact"]]
    assert impacts == list(range(impacts[0], 41)) and 15 <= impacts[0] <= 30
    last = steps[-1]
    assert last["red"] == "Impact Op_Server0" and last["red_worked"] and last["ot"] == "stopped"
    parts = {cost["what"]: cost["tenths"] for cost in last["costs"]}
    assert parts["impact"] == -100 and parts["Op_Server0"] == parts["Enterprise2"] == -10
    assert sum(tenths for what, tenths in parts.items() if what.startswith("User")) == -1  # the one it came through
    assert steps[-1]["reward10"] == sum(parts.values()) == -131


def test_impact_on_a_restored_server_is_told_as_harmless():
    steps = scripted(("Restore", "Op_Server0"), steps=40)
    tries = [step for step in steps if step["red"].startswith("Impact")]
    assert tries and not any(step["impact"] for step in steps)
    assert {(step["red"], step["red_worked"]) for step in tries} == {("Impact Op_Server0 (harmless once restored)", False)}
    assert all(cost["what"] != "impact" for step in steps for cost in step["costs"])


def test_a_scan_of_a_host_out_of_reach_is_not_told_as_a_success():
    """Red is told that every scan worked. Meander scans operational hosts it has lost the way to."""
    world = World(Game(red_agent="meander", max_steps=None), 300)
    world.reset(1)
    restore = np.array([action_id("Restore", f"Enterprise{i}") for i in range(3)])
    unreached = 0
    for t in range(60):
        world.step(np.full(300, restore[t % 3]))
        for turn in world.turns():
            if turn["red_verb"] == RedVerb.SCAN and not turn["scan_answered"]:
                moment = summarise_turn(turn, "current")
                assert moment["red"] == f"Scan {moment['red_target']} (out of reach)" and moment["red_worked"] is False
                assert moment["red_target"].startswith("Op_")
                unreached += 1
    assert unreached > 0


@pytest.mark.parametrize("variant", [variant.name for variant in parts.VARIANTS])
def test_the_costs_of_every_turn_sum_to_its_reward(variant):
    """Random actions, all three red agents, 300 episodes: every reward is explained, in every variant."""
    red_agents = ["b_line", "meander", "sleep"] * 100
    world = World(Game(red_agent=red_agents, variant=variant, max_steps=100), 300)
    world.reset(0)
    impacts = total = 0
    for actions in np.random.default_rng(0).integers(0, NUM_ACTIONS, (100, 300)):
        world.step(actions)
        parts = [costs(turn, variant) for turn in world.turns()]
        assert [sum(cost["tenths"] for cost in part) for part in parts] == world.rewards10.tolist()
        impacts += sum(cost["what"] == "impact" for part in parts for cost in part)
        total += world.rewards10
        assert np.array_equal(world.turns()["return10"], total)
    assert impacts > 100


def test_what_is_seen_and_what_is_true_are_those_of_the_world():
    """Read from the 52 bits as the challenge defines them, not as our code packs them."""
    activities = {(0, 0): "none", (1, 0): "scan", (1, 1): "exploit"}
    beliefs = {(0, 0): "clean", (1, 0): "unknown", (0, 1): "user", (1, 1): "root"}
    world = World(Game(red_agent="b_line:0.5,meander:0.5"), 60)
    world.reset(2)
    for actions in np.random.default_rng(1).integers(0, NUM_ACTIONS, (50, 60)):
        world.step(actions)
        for turn, bits, access in zip(world.turns(), world.observations.reshape(60, 13, 4), world.access, strict=True):
            moment = summarise_turn(turn, "current")
            assert moment["activity"] == tuple(activities[tuple(four[:2].tolist())] for four in bits)
            assert moment["belief"] == tuple(beliefs[tuple(four[2:].tolist())] for four in bits)
            assert moment["access"] == tuple(("none", "user", "root")[level] for level in access)


def test_more_episodes_than_fit_side_by_side_come_in_passes(monkeypatch):
    monkeypatch.setattr("fixfirst.play.evaluation.BATCH", 4)
    played = watch(make_baseline("random"), 10, steps=15, seed=1)
    assert played.turns.shape == (16, 10) and np.array_equal(played.turns["observation"], played.rollout.packed_obs)
    assert np.array_equal(played.turns["return10"][-1], played.rollout.rewards10.sum(axis=0))


def test_worst_median_and_best_are_chosen_by_return():
    played = watch(make_baseline("random"), 21, steps=30)
    returns = played.returns
    chosen = notable(played)
    assert list(chosen) == ["worst", "median", "best"]
    assert [returns[number] for number in chosen.values()] == [returns.min(), np.median(returns), returns.max()]
    assert notable(watch(make_baseline("sleep"), 1, steps=5)) == {"only": 0}
    assert list(notable(watch(make_baseline("random"), 2, steps=20))) == ["worst", "best"]


@pytest.mark.parametrize("episodes", [0, -1, 10_001])
def test_too_few_and_too_many_episodes_are_refused(episodes):
    with pytest.raises(ConfigError, match=f"episodes must be in 1..10000, got {episodes}"):
        watch(make_baseline("sleep"), episodes)


def judged(*story, order="enterprise > op_server > op_host > user > defender", scheme=FIVE_TYPES, **options):
    """Kind and reason per (repair, held before): the last set of held hosts does not matter."""
    actions = np.array([action_id(*repair) for repair, _ in story])
    held = np.array([sum(1 << HOST_ID[name] for name in names) for _, names in story] + [0], np.int16)
    verdicts = explain_repairs(actions, held, Workflow.parse(order, scheme), Judging(**options))
    return [None if verdict is None else (verdict["kind"], verdict["reason"]) for verdict in verdicts]


def test_reasons_name_what_was_fixed_and_what_was_waiting():
    assert judged(
        (("Restore", "User1"), ["User0", "User1", "Enterprise1"]),
        (("Remove", "User1"), ["User1", "Enterprise1", "Enterprise2", "Op_Server0"]),
        (("Restore", "Enterprise1"), ["User0", "Enterprise1", "User1", "User2"]),
        (("Restore", "Enterprise1"), ["Enterprise1"]),
        (("Restore", "Enterprise0"), ["User1"]),
        (("Restore", "User0"), ["User0"]),
        (("Analyse", "User1"), ["User1", "Enterprise1"]),
    ) == [
        ("violation", "fixed user User1 while enterprise Enterprise1 was held"),
        ("violation", "fixed user User1 while enterprise Enterprise1, Enterprise2 and op_server Op_Server0 were held"),
        ("in order", "fixed enterprise Enterprise1 before user User1, User2"),
        ("in order", "fixed enterprise Enterprise1; nothing more urgent was held"),
        ("in order", "fixed enterprise Enterprise0 (not held) before user User1"),
        ("not judged", "fixed user User0 (the foothold) while nothing needed repair"),
        None,
    ]


def test_reasons_are_those_of_the_rule_and_in_the_words_of_the_grouping():
    """Rule top: a needless repair of an urgent type is a violation. fixed_types: types that were skipped are named."""
    story = (("Restore", "Enterprise0"), ["User1"])
    assert judged(story, rule="top") == [("violation", "fixed enterprise Enterprise0 (not held) while user User1 was held")]
    story = [(("Restore", "Op_Server0"), []), (("Restore", "Enterprise0"), []), (("Restore", "Op_Server0"), [])]
    assert judged(*story, rule="fixed_types") == [
        ("violation", "fixed op_server Op_Server0 (not held) before any repair of enterprise"),
        ("in order", "fixed enterprise Enterprise0 (not held); every type above it was fixed before"),
        ("in order", "fixed op_server Op_Server0 (not held); every type above it was fixed before"),
    ]
    order, story = (
        "user > enterprise > op_server > op_host > defender",
        (("Restore", "Enterprise0"), ["User0", "Enterprise0"]),
    )
    assert judged(story, order=order)[0][0] == "in order"
    reason = "fixed enterprise Enterprise0 while user User0 was held"
    assert judged(story, order=order, count_foothold=True) == [("violation", reason)]
    scheme = UnitScheme.from_dict({"server": ["Op_Server0"], "rest": [name for name in HOST_NAMES if name != "Op_Server0"]})
    story, reason = (("Remove", "User1"), ["User1", "Op_Server0"]), "fixed rest User1 while server Op_Server0 was held"
    assert judged(story, order="server > rest", scheme=scheme) == [("violation", reason)]


@pytest.mark.parametrize("rule", ["no_higher", "top", "fixed_types"])
def test_verdicts_agree_with_the_compliance_of_the_evaluation(rule):
    """40 episodes of random actions: as many violations as the evaluation counts; every reason of one names a host that
    red truly held, in a type above the repaired one (rule no_higher)."""
    played, judging = watch(make_baseline("random"), 40, red_agent="meander", workflows=(ORDER,)), Judging(rule=rule)
    counts = played.counts(judging)
    ranks = {name: ORDER.ranks[unit] for name, unit in zip(HOST_NAMES, ORDER.scheme.host_unit, strict=True)}
    for number in range(40):
        episode = describe_episode(played, "", number, judging)
        assert episode["violations"] == counts.judged[number] - counts.compliant[number]
        assert episode["judged"] == counts.judged[number]
        for before, step in zip(episode["steps"], episode["steps"][1:], strict=False):
            access = zip(HOST_NAMES, before["access"], strict=True)
            assert {*step["needed"]} == {name for name, level in access if level != "none"} - {"User0"}
            if rule == "no_higher" and step["verdict"] is not None and step["verdict"]["kind"] == "violation":
                waiting = step["verdict"]["reason"].partition(" while ")[2].replace(",", "").split()
                assert any(name in step["needed"] and ranks[name] < ranks[step["blue_target"]] for name in waiting)
