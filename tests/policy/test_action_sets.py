"""What a defender may choose from: the lists derived from the world, what macros do there, and what is masked."""

from itertools import permutations

import numpy as np
import pytest
from cage2 import ACTIONS, CAGE2, DECOYS, HOST_ID, HOST_NAMES, HOSTS, action_id, ports_mask

import fixfirst as ff
from fixfirst.game.game_config import Game
from fixfirst.game.parts import LINUX
from fixfirst.game.simulator import World
from fixfirst.game.state import Success
from fixfirst.policy.action_sets import action_sets, decoy_slots

BOTH = "b_line:0.5,meander:0.5"
ALL, MACROS, ORIGINAL = action_sets().values()
DECOY_LISTS, SLOTS = decoy_slots(CAGE2).lists, decoy_slots(CAGE2).listed
PORT = {decoy.name: decoy.opens for decoy in DECOYS}


def test_the_macros_set_has_40_choices_all_has_the_worlds_145_and_the_winners_has_36_without_sleep():
    """A macro's list holds the decoys that fool somebody, the one of the heaviest exploit first."""
    plain_linux = ("HarakaSMPT", "Tomcat", "Apache")  # HarakaRCE 6, HTTPSRFI 4, HTTPRFI 3
    assert dict(DECOY_LISTS) == {
        **dict.fromkeys(("Defender", "Enterprise0", "Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"), plain_linux),
        **dict.fromkeys(("Enterprise1", "Enterprise2"), ("Femitter",)),
        **dict.fromkeys(("User0", "User1"), ("Tomcat", "Apache", "Smss", "Svchost")),
        "User2": ("Femitter", "Tomcat", "Apache", "SSHD"),
        "User3": ("SSHD",),
        "User4": (),
    }
    assert len(SLOTS) == 33
    takeable = [host for host in HOST_NAMES if host not in ("Defender", "User0")]
    removable = ["Enterprise1", "Enterprise2", "User2", "User3", "User4"]
    assert MACROS.names == (
        "Sleep",
        *(f"Analyse {host}" for host in takeable),
        *(f"Remove {host}" for host in removable),
        *(f"Restore {host}" for host in takeable),
        *(f"Decoy {host}" for host in HOST_NAMES if host != "User4"),
    )
    assert MACROS.size == 1 + 11 + 5 + 11 + 12 == 40
    assert ALL.names == tuple(map(str, ACTIONS)) and ALL.size == 145 and not ALL.masks
    hosts = ("Defender", "Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0", "User1", "User2", "User3", "User4")
    assert ORIGINAL.names == tuple(f"{verb} {host}" for verb in ("Analyse", "Remove", "Restore", "Decoy") for host in hosts)
    assert ORIGINAL.size == 36 and not ORIGINAL.masks
    lists = dict(zip(ORIGINAL.macros, ORIGINAL.lists, strict=True))  # Vsftpd is in no list of ours
    assert lists["Enterprise0"] == ("HarakaSMPT", "Tomcat", "Vsftpd", "Apache") and lists["User4"] == ("Vsftpd",)


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_these_are_the_hosts_red_takes_and_those_on_which_remove_can_help(variant):
    """In random play, 40,000 turns; User0 is red's anyway and Defender cannot be taken."""
    world = World(Game(red_agent=BOTH, variant=variant), 400)
    world.reset(0)
    taken, removable, rng = 0, 0, np.random.default_rng(0)
    for _ in range(100):
        world.step(rng.integers(0, 145, 400))
        states = world.get_state()
        taken |= np.bitwise_or.reduce(states["privileged"] | states["removable"] | states["stubborn"])
        removable |= np.bitwise_or.reduce(states["removable"])
    members = [{host for h, host in enumerate(HOST_NAMES) if hosts >> h & 1} for hosts in (taken, removable)]
    restores, removes = ({name.split()[1] for name in MACROS.names if verb in name} for verb in ("Restore", "Remove"))
    assert members == [restores | {"User0"}, removes]


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
@pytest.mark.parametrize("chosen", [MACROS, ORIGINAL], ids=str)
def test_a_macro_places_its_list_in_order_then_it_is_masked_or_places_its_first_again_in_vain(chosen, variant):
    """All side by side, six times each. Each placing of ours works; a masked macro, taken nevertheless, is Sleep."""
    count, lists, first = len(chosen.macros), chosen.lists, len(chosen.actions)
    envs = ff.make_vec(count, red_agent="sleep", variant=variant, action_set=chosen)
    _, info = envs.reset(seed=0)
    for _ in range(2 if chosen is ORIGINAL else 1):  # after a Restore once more
        for turn in range(6):
            left = [turn < len(decoys) for decoys in lists]
            assert info["action_mask"][:, first:].diagonal().tolist() == (left if chosen.masks else [True] * count)
            assert (info["action_mask"] == 0).sum() == (count - sum(left) if chosen.masks else 0)
            before = envs.get_state()["decoys"]
            *_, info = envs.step(np.arange(first, first + count))
            state = envs.get_state()
            again = [f"Decoy{decoys[0]}" if chosen.repeats else "Sleep" for decoys in lists]
            verbs = [f"Decoy{decoys[turn]}" if more else then for decoys, more, then in zip(lists, left, again, strict=True)]
            expected = [(verb, None if verb == "Sleep" else host) for verb, host in zip(verbs, chosen.macros, strict=True)]
            assert [ACTIONS[action] for action in state["blue_action"]] == expected
            if chosen is MACROS:
                ports = [ports_mask(*(PORT[decoy] for decoy in decoys[: turn + 1])) for decoys in lists]
                assert state["decoys"][np.arange(count), [HOST_ID[host] for host in chosen.macros]].tolist() == ports
                assert (state["blue_success"][left] == Success.TRUE).all()
            assert turn < 4 or np.array_equal(before, state["decoys"])
        if chosen is ORIGINAL:
            *_, info = envs.step(np.arange(first - count, first))


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_a_decoy_of_a_list_can_be_placed_whichever_others_stand(variant):
    orders = [(host, order) for host in MACROS.macros for order in permutations(DECOY_LISTS[host])]
    world = World(Game(red_agent="sleep", variant=variant), len(orders))
    world.reset(0)
    for position in range(4):
        placed = [(f"Decoy{order[position]}", host) if position < len(order) else ("Sleep",) for host, order in orders]
        world.step(np.array([action_id(*words) for words in placed]))
        expected = [Success.TRUE if position < len(order) else Success.UNKNOWN for _, order in orders]
        assert world.get_state()["blue_success"].tolist() == expected


def standing_ports(memories):
    """[N, H] the ports of the decoys that are remembered to stand."""
    ports = np.zeros((len(memories.records), len(HOSTS)), np.int64)
    for slot, (host, decoy) in enumerate(SLOTS):
        ports[:, HOST_ID[host]] |= (memories.records["decoys"][:, 0].astype(np.int64) >> slot & 1) * ports_mask(PORT[decoy])
    return ports


@pytest.mark.parametrize(("variant", "green"), [("current", False), ("leaderboard", True), ("debugged", True)])
def test_memory_knows_which_decoys_stand_when_macros_place_them(variant, green):
    """At each of 40,000 random turns, over two episodes. The mask is what the truth leaves open."""
    n, rng = 200, np.random.default_rng(0)
    envs = ff.make_vec(n, red_agent=BOTH, variant=variant, green=green, action_set="macros")
    _, info = envs.reset(seed=0)
    lists = np.array([ports_mask(*(PORT[decoy] for decoy in DECOY_LISTS[host])) for host in MACROS.macros])
    hosts = [HOST_ID[host] for host in MACROS.macros]
    for _ in range(201):
        decoys = envs.get_state()["decoys"][:, : len(HOSTS)]
        assert np.array_equal(standing_ports(envs.memories), decoys)
        assert np.array_equal(info["action_mask"][:, -12:] == 0, decoys[:, hosts] == lists)
        assert info["action_mask"][:, :-12].all()
        *_, info = envs.step(np.where(rng.random(n) < 0.5, rng.integers(28, 40, n), rng.integers(0, 28, n)))


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_with_all_145_actions_memory_misses_vsftpd_and_nothing_else(variant):
    """Vsftpd is in no list. Where it blocks Apache, the port it opened is Apache's: what is remembered stands."""
    n, rng, missed = 200, np.random.default_rng(0), set()
    envs = ff.make_vec(n, red_agent=BOTH, variant=variant, memory="decoy")
    envs.reset(seed=0)
    vsftpd = ports_mask(21 if variant == "debugged" else 80)
    for _ in range(100):
        envs.step(rng.integers(0, 145, n))
        decoys, remembered = envs.get_state()["decoys"][:, : len(HOSTS)], standing_ports(envs.memories)
        assert not (remembered & ~decoys).any()
        assert set(np.unique(decoys & ~remembered)) <= {0, vsftpd}
        missed |= {HOSTS[h].image.os for h in np.nonzero(decoys & ~remembered)[1]}
    assert missed == {LINUX}


def test_bad_choices_are_refused_and_nothing_moves():
    envs = ff.make_vec(3, memory="full", action_set="macros")
    envs.reset(seed=0)
    envs.step([30, 30, 30])
    before = envs.get_state(), envs.memories.records.copy()
    for choices, says in (([0, 40, 0], "40 of environment 1"), ([0, 0, -1], "-1 of environment 2")):
        with pytest.raises(ff.ActionError, match=rf"action {says} is not in 0\.\.39; nothing was stepped"):
            envs.step(choices)
    assert np.array_equal(envs.get_state(), before[0]) and np.array_equal(envs.memories.records, before[1])


def test_an_action_set_that_makes_no_sense():
    for says, make in {
        "unknown action set 'some'; use all, macros, original": lambda: ff.make_vec(2, action_set="some"),
        r"'mine' needs actions of 0\.\.144, such as 0 \(Sleep\), got \(0, 145\)": lambda: ff.ActionSet("mine", (0, 145)),
        r"needs actions of 0\.\.144, such as 0 \(Sleep\), got \(\)": lambda: ff.ActionSet("mine", (), ("User3",)),
        "has macros for": lambda: ff.ActionSet("mine", (0,), ("User4",)),
        "Apache cannot be placed on User4": lambda: ff.ActionSet("mine", (0,), ("User4",), (("Apache",),)),
    }.items():
        with pytest.raises(ff.WorldError, match=says):
            make()


def test_an_action_set_of_ones_own_may_have_more_than_64_choices():
    """All actions and two macros: the decoys of User3 stand after one choice, its macro is then masked, number 145.

    The other one places the first decoys of its list that do not stand.
    """
    mine = ff.ActionSet("mine", tuple(range(145)), ("User3", "User2"))
    envs = ff.make_vec(1, red_agent="sleep", action_set=mine)
    envs.reset(seed=0)
    masks = [envs.step([chosen])[4]["action_mask"][0] for chosen in (145, action_id("Restore", "User3"))]
    assert mine.names[145:] == ("Decoy User3", "Decoy User2") and len(masks[0]) == 147
    assert np.flatnonzero(masks[0] == 0).tolist() == [145] and masks[1].all()
    envs.step([action_id("DecoyTomcat", "User2")])
    for expected in ("DecoyFemitter User2", "DecoyApache User2"):
        envs.step([146])
        assert str(ACTIONS[envs.get_state()["blue_action"][0]]) == expected
