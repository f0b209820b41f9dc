"""What a defender may choose from: lists derived from the world, what macros do, what is masked, what an order forbids."""

from itertools import permutations

import numpy as np
import pytest
from cage2 import ACTIONS, CAGE2, DECOYS, HOST_ID, HOST_NAMES, HOSTS, action_id, ports_mask

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.game.game_config import Game
from fixfirst.game.parts import LINUX, REPAIR_VERBS
from fixfirst.game.simulator import World
from fixfirst.game.state import Success
from fixfirst.orders.order import FIVE_TYPES, Workflow
from fixfirst.policy.action_sets import ActionSet, action_sets, decoy_slots
from fixfirst.policy.memories import Memories
from fixfirst.policy.network import Network
from fixfirst.policy.spec import SHIELDS, PolicySpec, bits_of
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import make_config

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


ENTERPRISE_FIRST = Workflow.parse("enterprise > op_server > user > op_host > defender")
USER_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
SCAN, EXPLOIT, UNKNOWN, PRIVILEGED = 0b0001, 0b0011, 0b0100, 0b1100
SLEEP, RESTORE, ANALYSE = action_id("Sleep"), action_id("Restore", "User1"), action_id("Analyse", "User1")
REPAIRS = [a for a in range(145) if CAGE2.repaired_hosts[a] == HOST_ID["Enterprise1"]]


def seen_and_allowed(turns, way="shield"):
    """For each turn: is User1 suspect, and may Enterprise1 be repaired? turns: what is seen of User1, and what blue does."""
    spec = PolicySpec(units=FIVE_TYPES, shield=True, keeping=way)
    table = PolicyTable(lambda inputs: np.ones((len(inputs), 145)), [USER_FIRST], spec=spec)
    memories, suspect, allowed = Memories(spec, 1), [], []
    for seen, action in turns:
        words = np.array([seen << 4 * HOST_ID["User1"]], np.uint64)
        number = table.look(memories, words, np.zeros(1, np.int64))
        row = table.rows[number]
        suspect.append(int(bits_of(row, spec.inputs)[0, 52 + HOST_ID["User1"]]))
        allowed.append(int(spec.allowed(row)[0, REPAIRS].all()))
        memories.remember(words, np.array([action]))
    return suspect, allowed


SCANS = [(SCAN, SLEEP)] * 3
BROKEN_IN = [(EXPLOIT, SLEEP)] + [(0, SLEEP)] * 11
REPAIRED = [*[(SCAN, SLEEP)] * 2, (0, RESTORE), (SCAN, SLEEP), (SCAN, SLEEP)]


@pytest.mark.parametrize(
    ("way", "turns", "expected"),
    [
        ("shield", SCANS, [0, 1, 1]),  # activity that comes again
        ("evidence", SCANS, [0, 0, 0]),
        ("shield", BROKEN_IN, [1] * 12),
        ("evidence", BROKEN_IN, [1] * 12),
        ("expiry", BROKEN_IN, [1] * 10 + [0, 0]),  # nothing new in the second five turns
        ("shield", [(EXPLOIT, RESTORE), (0, SLEEP)], [1, 0]),
        ("shield", [(EXPLOIT, ANALYSE), (0, SLEEP)], [1, 0]),
        ("shield", [(EXPLOIT, ANALYSE), (PRIVILEGED, SLEEP)], [1, 1]),  # it was root
        ("shield", REPAIRED, [0, 1, 1, 1, 1]),
        ("recheck", REPAIRED, [0, 1, 1, 0, 1]),  # after Restore the next scan is the first one
    ],
)
def test_what_raises_suspicion_and_how_it_ends(way, turns, expected):
    """And a user that is suspect forbids repairs of enterprise."""
    assert seen_and_allowed(turns, way) == (expected, [1 - suspect for suspect in expected])


def test_whoever_is_believed_not_clean_counts_too_and_limit_leaves_every_third_turn_free():
    assert seen_and_allowed([(UNKNOWN, SLEEP), (PRIVILEGED, SLEEP), (0, SLEEP)]) == ([0, 0, 0], [0, 0, 1])
    assert seen_and_allowed(SCANS, "limit")[0] == [0, 1, 1]
    assert seen_and_allowed([(EXPLOIT, SLEEP)] * 7, "limit")[1] == [0, 0, 1, 0, 0, 1, 0]


def test_a_policy_carries_the_way_it_keeps_its_order():
    for way in SHIELDS:
        spec = make_config(workflow=str(USER_FIRST), keep=way).spec
        assert spec.shield and spec.keeping == way and PolicySpec.from_dict(spec.as_dict()) == spec
        assert spec.inputs == spec.memory.inputs + 13 + 25  # whom it suspects, and the order
    assert "keeping" not in PolicySpec(units=FIVE_TYPES, shield=True).as_dict()  # as files were before
    with pytest.raises(ConfigError, match="unknown shield 'hope'; use shield, evidence"):
        PolicySpec(keeping="hope")


@pytest.mark.parametrize("name", ["all", "macros"])
def test_repairs_below_the_first_suspected_type_are_forbidden_and_nothing_else(name):
    chosen = ActionSet.parse(name)
    shields = PolicySpec(action_set=chosen, shield=True).shields([ENTERPRISE_FIRST])
    for top, rank in enumerate(ENTERPRISE_FIRST.order):
        assert shields.ranked[0, top] == sum(
            1 << HOST_ID[host] for host in FIVE_TYPES.hosts(rank) if host != "User0"
        )  # red's foothold cannot be cleaned
        for choice, action in enumerate(chosen.actions):
            blue = ACTIONS[action]
            repairs = blue.verb in REPAIR_VERBS and blue.host is not None
            below = repairs and ENTERPRISE_FIRST.ranks[FIVE_TYPES.host_unit[HOST_ID[blue.host]]] > top
            assert bool(int(shields.forbidden[0, top, choice // 64]) >> choice % 64 & 1) == below
    assert not shields.forbidden[0, -1].any()  # nobody is suspected


def test_orders_that_differ_in_idle_types_are_one_and_the_order_that_is_read_may_differ_from_the_one_that_is_kept():
    idle = (FIVE_TYPES.names.index("op_host"), FIVE_TYPES.names.index("defender"))
    spec = PolicySpec(shield=True, idle=idle)
    first = Workflow.parse("defender > op_host > enterprise > op_server > user")
    assert first.with_last(idle) == ENTERPRISE_FIRST.with_last(idle)
    assert np.array_equal(spec.shields([first]).forbidden, spec.shields([ENTERPRISE_FIRST]).forbidden)
    spec = PolicySpec(units=FIVE_TYPES, shield=True)
    network = Network.drawn(spec.inputs, spec.actions, 1)
    player = PolicyTable(network, [USER_FIRST], spec=spec, prompts=[ENTERPRISE_FIRST])
    assert np.array_equal(player.orders, PolicyTable(network, [ENTERPRISE_FIRST], spec=spec).orders)
    assert np.array_equal(player.shields.forbidden, PolicyTable(network, [USER_FIRST], spec=spec).shields.forbidden)
