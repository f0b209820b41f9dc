"""What a defender remembers: hand-worked turns, a plain twin over random play, and the bits that a policy reads."""

from collections import Counter

import numpy as np
import pytest
from cage2 import ACTIONS, CAGE2, HOST_ID, HOST_NAMES, NUM_ACTIONS, action_id

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.policy.action_sets import decoy_slots
from fixfirst.policy.memories import Memories
from fixfirst.policy.memory import MemoryScheme, memory_dtype, memory_groups, memory_tables, scan_hosts
from fixfirst.policy.spec import PolicySpec

EVERYTHING = "full+scans+breaks+again"
LISTED = memory_tables(CAGE2).listed
GROUPS, SLOTS, SCAN_HOSTS = memory_groups(CAGE2), decoy_slots(CAGE2).listed, scan_hosts(CAGE2)
SCAN, EXPLOIT = 0b01, 0b11  # activity as a number; a belief follows in the next two bits


def memories_of(num_envs, memory):
    return Memories(PolicySpec(MemoryScheme.parse(memory)), num_envs)


def view(**activity):
    """What blue sees, as a word [1]: view(User2=SCAN)."""
    return np.array([sum(seen << 4 * HOST_ID[host] for host, seen in activity.items())], np.uint64)


def action(verb, host=None):
    return np.array([action_id(verb, host)])


def remembered(memories):
    """The names of all that the first environment remembers."""
    return {name for name, bit in zip(memories.spec.memory.names, memories.bits()[0], strict=True) if bit}


def test_five_turns_on_user2_written_out_and_in_words():
    memories = memories_of(1, EVERYTHING)
    assert remembered(memories) == set()

    memories.remember(view(), action("DecoyFemitter", "User2"))
    assert remembered(memories) == {"quiet 1", "decoy User2 Femitter"}

    memories.remember(view(User2=SCAN), action("DecoyTomcat", "User2"))  # red saw Femitter; Tomcat came after its scan
    lasting = {"act1 User2", "last User2", "scans User2", "seen User2 Femitter"}
    assert remembered(memories) == lasting | {"decoy User2 Femitter", "decoy User2 Tomcat"}

    memories.remember(view(User2=EXPLOIT), action("Restore", "User2"))
    lasting |= {"expl User2", "rest User2"}
    assert remembered(memories) == lasting  # a Restore ends the count of break-ins

    memories.remember(view(), action("Sleep"))
    assert remembered(memories) == lasting | {"quiet 1"}
    memories.remember(view(), action("DecoyTomcat", "User2"))
    assert memories.spec.memory.in_words(memories.bits()[0]) == {
        "network": "quiet turns 2",
        "User2": "active, latest, exploited, restored, decoys Tomcat, red saw Femitter, scanned",
    }


def test_that_a_host_was_restored_2_4_8_and_16_times_is_remembered():
    memories = memories_of(1, "again")
    for count in range(1, 41):
        memories.remember(view(), action("Restore", "User2"))
        memories.remember(view(), action("Remove", "User3"))
        assert remembered(memories) == {f"again User2 {mark}" for mark in (2, 4, 8, 16) if mark <= count}
    assert memories.spec.memory.in_words(memories.bits()[0]) == {"User2": "restores 16"}
    assert memories.spec.memory.in_words([0] * memories.spec.memory.bits) == {}


class Diary:
    """The same as a memory, kept in sets of names."""

    def __init__(self):
        self.act1, self.expl, self.rest, self.scans, self.seen, self.decoy = (set() for _ in range(6))
        self.last, self.quiet, self.breaks, self.again = None, 0, Counter(), Counter()

    def write(self, observation, action):
        activity = {host: tuple(observation[4 * h : 4 * h + 2].tolist()) for h, host in enumerate(HOST_NAMES)}
        active = [host for host in HOST_NAMES if activity[host] != (0, 0)]
        scanned = [host for host in active if activity[host] != (1, 1)]
        self.act1 |= {*active}
        self.expl |= {*active} - {*scanned}
        self.scans |= {*scanned} & {*SCAN_HOSTS}
        self.seen |= {(host, decoy) for host, decoy in self.decoy if host in scanned}
        self.last, self.quiet = (active[0], 0) if active else (self.last, self.quiet + 1)
        self.breaks.update({*active} - {*scanned})
        verb, host = ACTIONS[action]
        if verb == "Restore":
            self.rest.add(host)
            self.again[host] += 1
            del self.breaks[host]
            self.decoy = {(other, decoy) for other, decoy in self.decoy if other != host}
        if (host, verb.removeprefix("Decoy")) in SLOTS:
            self.decoy.add((host, verb.removeprefix("Decoy")))

    def names(self):
        names = {f"{group} {host}" for group in ("act1", "expl", "rest", "scans") for host in getattr(self, group)}
        names |= {f"{group} {host} {decoy}" for group in ("decoy", "seen") for host, decoy in getattr(self, group)}
        names |= {f"breaks {host} {k}" for host, count in self.breaks.items() for k in range(1, min(count, 4) + 1)}
        names |= {f"again {host} {k}" for host, count in self.again.items() for k in (2, 4, 8, 16) if k <= count}
        names |= {f"quiet {turns}" for turns in range(1, min(self.quiet, 5) + 1)}
        return names | ({f"last {self.last}"} if self.last else set())


@pytest.mark.parametrize(
    ("red_agent", "variant", "green"),
    [("b_line", "current", False), ("meander", "leaderboard", True), ("meander", "debugged", True)],
)
def test_memory_is_what_a_diary_says_in_random_play(red_agent, variant, green):
    n = 20
    world, memories = World(Game(red_agent=red_agent, variant=variant, green=green), n), memories_of(n, EVERYTHING)
    world.reset(1)
    diaries, rng, met = [Diary() for _ in range(n)], np.random.default_rng(0), set()
    repeats = rng.choice(NUM_ACTIONS, 30)  # so that decoys are also cleared, placed again and scanned
    for _ in range(100):
        actions = np.where(rng.random(n) < 0.5, rng.choice(repeats, n), rng.integers(0, NUM_ACTIONS, n))
        for diary, observation, chosen in zip(diaries, world.observations, actions, strict=True):
            diary.write(observation, chosen)
        memories.remember(world.packed_obs, actions)
        world.step(actions)
        for diary, bits in zip(diaries, memories.bits(), strict=True):
            names = {name for name, bit in zip(memories.spec.memory.names, bits, strict=True) if bit}
            assert names == diary.names()
            met |= {name.split()[0] for name in names}
    assert met == {group.name for group in GROUPS}


def test_the_four_schemes_have_52_62_175_and_279_inputs_and_any_groups_make_one_in_fixed_order():
    assert [MemoryScheme.parse(name).inputs for name in ("none", "scans", "full", "counts")] == [52, 62, 175, 279]
    assert [len(group.parts) for group in GROUPS] == [13, 13, 13, 13, 5, 33, 33, 10, 4 * 13, 4 * 13]
    assert memory_dtype(CAGE2).itemsize == 71
    scheme = MemoryScheme.parse("decoy + act1+last")
    assert scheme == MemoryScheme.parse("act1+last+decoy") == MemoryScheme(("last", "decoy", "act1"))
    assert scheme.groups == ("act1", "last", "decoy") and scheme.name == str(scheme) == "act1+last+decoy"
    assert (scheme.bits, scheme.inputs) == (13 + 13 + 33, 111)
    full = MemoryScheme.parse("seen+quiet+rest+expl+last+act1+decoy")
    assert full.name == "full" and MemoryScheme.parse(full) is full and len(set(full.names)) == 123
    assert (full.names[1], full.names[54]) == ("act1 Enterprise0", "quiet 3")
    assert (full.names[57 + 32], full.names[57 + 33]) == ("decoy User3 SSHD", "seen Defender HarakaSMPT")


def test_a_scheme_that_makes_no_sense():
    for says, memory in {
        "'everything' is not known; use none, scans, full, counts, or groups joined by '.' of act1, last": "everything",
        r"memory act1\+act1 names a group twice": "act1+act1",
        "names a group twice": "full+last",
        "memory is given by name, got 3": 3,
    }.items():
        with pytest.raises(ff.WorldError, match=says):
            memories_of(2, memory)
