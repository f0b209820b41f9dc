"""Single episodes in plain values: they are what the world did, and every verdict has the right reason."""

import numpy as np
import pytest
from approved import approve
from cage2 import HOST_NAMES, NUM_ACTIONS, action_id

from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import RedVerb
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import Workflow
from fixfirst.play.evaluation import play
from fixfirst.policy.scripts import make_baseline
from fixfirst.reporter.replay import describe_episode, notable
from fixfirst.reporter.turn import summarise_turn

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


def scripted(*actions, red_agent="b_line"):
    """The only episode of a script, as a list of steps; [0] is the start."""
    played = watch(Script(*actions), 1, steps=40, red_agent=red_agent, workflows=(ORDER,))
    return describe_episode(played, "only", 0)["steps"]


def test_steps_say_what_was_approved_and_every_impact_is_marked():
    """Red begins on its foothold, discovers the user subnet, scans a user host and exploits it. Blue restores a clean
    server, then places one decoy twice: the port is taken the second time. In the end Impact is harmless, as the service
    was restored.

    Unhindered B_line needs at least 15 steps; from then on each step costs 10, and the held hosts on its path.
    """
    story = [("Restore", "Op_Server0"), ("DecoyTomcat", "Enterprise0"), ("DecoyTomcat", "Enterprise0")]
    restored, unhindered, asleep = scripted(*story), scripted(), scripted(red_agent="sleep")
    steps = [*restored[:4], restored[-1], unhindered[-1], asleep[1]]
    approve("steps.txt", "\n\n".join("\n".join(f"{name}: {value}" for name, value in step.items()) for step in steps) + "\n")
    impacts = [step["step"] for step in unhindered if step["impact"]]
    assert impacts == list(range(impacts[0], 41)) and 15 <= impacts[0] <= 30
    assert not any(step["impact"] for step in restored)
    assert unhindered[-1]["reward10"] == sum(cost["tenths"] for cost in unhindered[-1]["costs"]) == -131


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
    turns = played.rollout.turns
    assert turns.shape == (16, 10) and np.array_equal(turns["observation"], played.rollout.packed_obs)
    assert np.array_equal(turns["return10"][-1], played.rollout.rewards10.sum(axis=0))


def test_worst_median_and_best_are_chosen_by_return():
    played = watch(make_baseline("random"), 21, steps=30)
    chosen = {label: played.returns[number] for label, number in notable(played).items()}
    assert chosen == {"worst": played.returns.min(), "median": np.median(played.returns), "best": played.returns.max()}
    assert notable(watch(make_baseline("sleep"), 1, steps=5)) == {"only": 0}
    assert list(notable(watch(make_baseline("random"), 2, steps=20))) == ["worst", "best"]


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
