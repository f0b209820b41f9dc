"""Red as a player: what it may choose and read, and that it reads nothing it cannot know."""

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.game.scenario import CAGE2
from fixfirst.game.simulator import World
from fixfirst.game.state import LEARNED, RedVerb, Success, state_dtype
from fixfirst.game.tables import SMALL

SPEC, PICKY = RedSpec(), RedSpec(picky=True)

# All that red is told or did itself, or concluded from it. Everything else in the record is hidden from it.
KNOWN = {"step", "remembered", "ot_known", "red_verb", "red_target", "red_success", "red_exploit", "red_met", "red_wish"}
KNOWN |= {"scan_answered", "known_subnets", "known_hosts", "known_names", "exploited", "escalated", "breached", "lost"}
KNOWN |= {"failed", "failed_again", "resisted", "impact_reported", "sleeps", "red_agent"}
HIDDEN = sorted(set(state_dtype(SMALL).names or ()) - KNOWN)


class RandomReds:
    """Attackers that choose anything which is not masked."""

    def __init__(self, spec: RedSpec, seed: int):
        self.spec, self.view, self.rng = spec, spec.arrays, np.random.default_rng(seed)

    def decide(self, states, chances):
        allowed = self.spec.allowed(rows_of(states, self.spec))
        choices = (self.rng.random(allowed.shape) * allowed).argmax(axis=1)
        states["red_verb"], states["red_target"] = self.view.verbs[choices], self.view.targets[choices]
        states["red_wish"] = self.view.wishes[choices]

    def conclude(self, states):
        self.spec.conclude(states)


def rows_of(states, spec=SPEC):
    rows = np.empty((len(states), spec.row_words), np.uint64)
    spec.read(states, rows)
    return rows


def choices(state):
    """The names of the choices that red has."""
    return {SPEC.names[k] for k in np.flatnonzero(SPEC.allowed(rows_of(np.array([state])))[0])}


def played(spec=SPEC, variant="current", steps=60, n=40, seed=0, green=False):
    """Play at random, red among its choices and blue among its actions; return the states after each turn."""
    world = World(Game(scenario=spec.scenario, variant=variant, green=green), n, autoreset="disabled")
    world.meet(RandomReds(spec, seed), [1.0])
    world.reset(seed)
    rng, states = np.random.default_rng(seed + 1), [world.get_state()]
    for _ in range(steps):
        world.step(np.where(rng.random(n) < 0.5, 0, rng.integers(0, spec.scenario.num_actions, n)))
        states.append(world.get_state())
    return states


def test_plain_red_has_44_choices_picky_red_69_and_both_read_198_bits():
    assert (SPEC.actions, PICKY.actions, SPEC.inputs, PICKY.inputs) == (44, 69, 198, 198)
    assert SPEC.names == PICKY.names[:44]
    assert SPEC.names[0] == "Discover Enterprise" and SPEC.names[-2:] == ("Impact Op_Server0", "Sleep")
    assert PICKY.names[45] == "Exploit Enterprise1 (BlueKeep)"
    assert not any("Defender (" in name or "User0 (" in name for name in PICKY.names)  # nothing works on either


FAIR = [(spec, variant) for spec in (SPEC, PICKY) for variant in ("current", "leaderboard", "debugged")]
RANDOM = [ff.Scenario.generate(seed, hosts=8 + 8 * seed) for seed in range(4)]  # 8 to 32 hosts
FAIR += [(RedSpec(scenario, picky=bool(number % 2)), "current") for number, scenario in enumerate(RANDOM)]


@pytest.mark.parametrize(("spec", "variant"), FAIR, ids=lambda value: value if isinstance(value, str) else "spec")
def test_what_red_cannot_know_changes_neither_its_input_nor_its_choices_nor_its_beliefs(spec, variant):
    """On CAGE2 and on random networks, over all fields of the record."""
    rng = np.random.default_rng(3)
    for states in played(spec, variant, green=variant == "debugged")[::3]:
        rows, after = rows_of(states, spec), states.copy()
        spec.conclude(after)
        for field in HIDDEN:
            other, shape = states.copy(), states[field].shape
            other[field] = rng.integers(0, 2, shape) if states[field].dtype == np.bool_ else rng.integers(0, 100, shape)
            np.testing.assert_array_equal(rows_of(other, spec), rows, err_msg=field)
            spec.conclude(other)
            for belief in KNOWN:
                np.testing.assert_array_equal(other[belief], after[belief], err_msg=f"{belief} follows {field}")


def test_which_exploit_the_game_drew_is_hidden_if_nothing_answered():
    silent = [
        state
        for states in played()
        for state in states
        if state["red_verb"] == RedVerb.EXPLOIT and state["red_exploit"] >= 0 and not state["red_met"]
    ]
    assert len(silent) > 10
    others = np.array(silent)
    others["red_exploit"] = (others["red_exploit"] + 1) % len(CAGE2.exploits)
    np.testing.assert_array_equal(rows_of(others), rows_of(np.array(silent)))


@pytest.mark.parametrize("spec", [SPEC, PICKY], ids=["plain", "picky"])
def test_choices_that_are_not_masked_can_be_taken_and_a_named_exploit_is_the_one_that_is_used(spec):
    """Subnets and hosts are known; attacked hosts were scanned; names of hosts are known once they were broken into."""
    used = []
    for states in played(spec):
        allowed = spec.allowed(rows_of(states, spec))
        for state, row in zip(states, allowed, strict=True):
            if state["red_verb"] == RedVerb.EXPLOIT and state["red_wish"] >= 0:
                used.append((state["red_exploit"], state["red_wish"]))
            for choice in (spec.choices[k] for k in np.flatnonzero(row)):
                bit = 1 << max(choice.target, 0)
                if choice.verb == RedVerb.DISCOVER:
                    assert state["known_subnets"] & bit
                elif choice.verb in (RedVerb.SCAN, RedVerb.EXPLOIT):
                    assert state["known_hosts"] & bit
                    assert choice.verb == RedVerb.SCAN or state["remembered"][choice.target]
                elif choice.verb != RedVerb.SLEEP:
                    assert state["known_names"] & bit
    assert len(used) > 50 if spec is PICKY else not used
    assert all(exploit == wish for exploit, wish in used)


def test_beliefs_follow_what_was_reported():
    """Red breaks into User1, is thrown out unseen, believes it holds the host until an escalation fails."""
    user1, restore = CAGE2.host_ids["User1"], CAGE2.action_id("Restore", "User1")
    world = World(Game(), 1, autoreset="disabled")
    names, view = list(SPEC.names), SPEC.arrays

    class Story:
        def decide(self, states, chances):
            choice = names.index(self.does)
            states["red_verb"], states["red_target"], states["red_wish"] = view.verbs[choice], view.targets[choice], -1

        def conclude(self, states):
            SPEC.conclude(states)

    red = Story()
    world.meet(red, [1.0])
    world.reset(0)
    assert choices(world.get_state()[0]) == {"Discover User", "Scan User0", "Escalate User0", "Sleep"}

    def turn(does, blue=0):
        red.does = does
        world.step(np.array([blue]))
        return world.get_state()[0]

    state = turn("Discover User")
    assert state["red_agent"] == LEARNED and "Scan User1" in choices(state) and "Exploit User1" not in choices(state)
    assert "Exploit User1" in choices(turn("Scan User1"))
    while (state := turn("Exploit User1"))["red_success"] != Success.TRUE:
        assert state["failed"] >> user1 & 1
    assert state["exploited"] == 1 << user1 and not state["failed"] and "Escalate User1" in choices(state)
    state = turn("Escalate User1")
    assert state["escalated"] == 1 << user1 and "Scan Enterprise1" in choices(state)
    state = turn("Sleep", restore)
    assert not state["privileged"] >> user1 & 1 and state["exploited"] == 1 << user1 and state["sleeps"] == 1
    state = turn("Escalate User1")
    assert state["red_success"] == Success.FALSE and state["exploited"] == 0 and state["lost"] == 1 << user1
    assert state["sleeps"] == 0 and "Escalate User1" in choices(state)  # its name stays known
