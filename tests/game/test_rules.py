"""The rules of the game, one fact per row, oddities included. A host's four bits: two of activity, two of belief."""

import numpy as np
import pytest
from cage2 import EXPLOIT_NAMES, HOST_ID, HOST_NAMES, action_id, hosts_mask
from scene import Scene, open_ports

from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import OTService, RedAgent

OUTCOMES = {  # host: exploit: what it gains on a host without decoys
    "Enterprise0": {"SSHBruteForce": "stubborn"},
    **{
        host: {"HTTPSRFI": "removable", "HTTPRFI": "removable", "EternalBlue": "none", "BlueKeep": "privileged"}
        | {"SSHBruteForce": "stubborn"}
        for host in ("Enterprise1", "Enterprise2")
    },
    "Op_Server0": {"SSHBruteForce": "stubborn"},
    "User1": {"FTPDirectoryTraversal": "privileged", "SSHBruteForce": "stubborn"},
    "User2": {"EternalBlue": "privileged", "BlueKeep": "removable"},
    "User3": {"HarakaRCE": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable", "BlueKeep": "none"},
    "User4": {"HarakaRCE": "privileged", "SQLInjection": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable"}
    | {"SSHBruteForce": "stubborn"},
}
HEAVIEST = {"Enterprise1": "HTTPSRFI", "Enterprise2": "HTTPSRFI", "User1": "FTPDirectoryTraversal"}
HEAVIEST |= {"User2": "EternalBlue", "User3": "HarakaRCE", "User4": "HarakaRCE"}
WEB = (80, 443, 22, 3389, 139)  # ports of Enterprise1 that red remembers


def attack(host, exploit, scene=None, detected=1):
    """Red scans a host, then attacks it with this exploit."""
    scene = scene or Scene()
    via = host if host.startswith("User") else "User3" if host == "Enterprise0" else "User1"
    scene.holds("stubborn", "Enterprise2" if host == "Op_Server0" else host).red_will("scan", host, via).turn()
    scene.state["stubborn"] &= ~hosts_mask(host)
    top = exploit == HEAVIEST.get(host)
    other = next(e for e in OUTCOMES[host] if e != HEAVIEST.get(host)) if top else exploit
    return scene.chance(other=other, top=int(top), detected=detected).red_will("exploit", host, via).turn()


def held(kind, host, then="impact", variant="current"):
    """Red holds a host and does this there next."""
    scene = Scene(variant).holds(kind, host)
    return scene.red_will(then, host) if then else scene


def shoot(host, *remembered, scene=None, other="HTTPSRFI", **chance):
    """Red attacks a host whose ports it remembers, with an exploit that is not the heaviest."""
    scene = (scene or Scene()).remembers(host, *remembered)
    return scene.chance(other=other, **{"top": 0, **chance}).red_will("exploit", host, host if "User" in host else "User1")


def meander(**fields):
    scene = Scene()
    scene.state["red_agent"] = RedAgent.MEANDER
    scene.state["known_subnets"] = scene.state["explored_subnets"] = 0b111
    scene.state["known_hosts"] = scene.state["scanned"] = 2**13 - 1
    for name, value in fields.items():
        scene.state[name] = value
    return scene


E0, E1, E2, OP, U1, U2 = "Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0", "User1", "User2"
TURNS = {  # a fact: the turn that shows it, and what is to be seen of it
    # the OT service
    "impact stops the service: 10 for it, 1 for the server": (
        lambda: held("privileged", OP).ot("RUNNING").turn(),
        {"reward": -11.0},
    ),
    "impact needs any session on the server, not root": (
        lambda: held("stubborn", OP).ot("RUNNING").turn(),
        {"red": ("impact", 1, None)},
    ),
    "without a session impact fails": (lambda: Scene().red_will("impact", OP).turn(), {"red": ("impact", 0, None)}),
    "a stopped service costs ten even when red is gone": (lambda: Scene().ot("STOPPED").turn(), {"reward": -10.0}),
    # reach
    "scanning the unreachable server reports success and teaches nothing": (
        lambda: Scene().red_will("scan", OP).turn(),
        {"red": ("scan", 1, None), f"remembers {OP}": set(), f"sees {OP}": "0000"},
    ),
    "blue closes the operational subnet before red uses it in the same turn": (
        lambda: held("stubborn", E2, None).remembers(OP, 22).red_will("exploit", OP).turn("Restore", E2),
        {"red": ("exploit", 0, "SSHBruteForce")},
    ),
    # exploits
    "a deaf smb service fails the exploit unseen": (lambda: attack(E1, "EternalBlue"), {f"sees {E1}": "0000"}),
    "a deaf rdp service fails the exploit unseen": (lambda: attack("User3", "BlueKeep"), {"sees User3": "0000"}),
    "brute force is always seen and leaves no file": (
        lambda: attack(E0, "SSHBruteForce"),
        {f"sees {E0}": "1101", f"malware {E0}": False},
    ),
    "an undetected shell looks like a scan and cannot be removed": (
        lambda: attack(E1, "HTTPSRFI", detected=0),
        {f"sees {E1}": "1000", f"access {E1}": "stubborn", f"malware {E1}": True},
    ),
    "a detected shell shows as exploit by a user": (lambda: attack(E1, "HTTPSRFI"), {f"sees {E1}": "1101"}),
    "without a scan no exploit is tried": (
        lambda: Scene().red_will("exploit", U1).turn(),
        {"red": ("exploit", 0, None)},
    ),
    "ports that no exploit fits lead to a silent failure": (
        lambda: Scene().remembers(U1, 135).red_will("exploit", U1).turn(),
        {"red": ("exploit", 0, None)},
    ),
    "red shoots at a decoy that is gone and nobody notices": (
        lambda: shoot(U1, 21, 22, 443).turn(),
        {"red": ("exploit", 0, "HTTPSRFI"), f"sees {U1}": "0000"},
    ),
    "a decoy stops the exploit and shows it as a scan": (
        lambda: shoot(U1, 21, 22, 443, scene=Scene().decoy_ports(U1, 443)).turn(),
        {"red": ("exploit", 0, "HTTPSRFI"), f"sees {U1}": "1000", f"access {U1}": "none"},
    ),
    "a brute forced ssh decoy is a false alarm": (
        lambda: shoot(U2, 22, 139, 3389, scene=Scene().decoy_ports(U2, 22), other="SSHBruteForce").turn(),
        {"red": ("exploit", 0, "SSHBruteForce"), f"sees {U2}": "1101", f"access {U2}": "none"},
    ),
    # escalation
    "escalation never fails on a held host and is unseen": (
        lambda: held("removable", E1, "escalate").turn(),
        {"red": ("escalate", 1, None), f"access {E1}": "privileged", f"malware {E1}": True}
        | {f"sees {E1}": "0000", "reward": -1.0},
    ),
    "escalation fails when blue removed the session in the same turn": (
        lambda: held("removable", E1, "escalate").turn("Remove", E1),
        {"red": ("escalate", 0, None)},
    ),
    # blue
    "remove kills a session whose process blue knows": (
        lambda: held("removable", U2, None).turn("Remove", U2),
        {f"access {U2}": "none", "blue": 1},
    ),
    "remove does not kill a session that blue did not see": (
        lambda: held("stubborn", U2, None).turn("Remove", U2),
        {f"access {U2}": "stubborn"},
    ),
    "remove does not kill a session of root": (
        lambda: held("privileged", U2, None).turn("Remove", U2),
        {f"access {U2}": "privileged"},
    ),
    "remove leaves a clean host alone": (lambda: Scene().turn("Remove", E1), {f"sees {E1}": "0000", "blue": 1}),
    "analyse does not see what red does in the same turn": (
        lambda: held("removable", E1, "escalate").turn("Analyse", E1),
        {f"sees {E1}": "0000"},
    ),
    "restore clears sessions, files and decoys and costs one": (
        lambda: held("privileged", E1, None).malware_on(E1).decoy_ports(E1, 21).turn("Restore", E1),
        {f"access {E1}": "none", f"malware {E1}": False, f"decoys {E1}": set(), "reward": -1.0},
    ),
    "restore does not touch what red remembers": (
        lambda: Scene().remembers(U1, 21, 22, 80).turn("Restore", U1),
        {f"remembers {U1}": {21, 22, 80}},
    ),
    "red cannot be driven off its foothold": (
        lambda: Scene().turn("Restore", "User0"),
        {"access User0": "privileged", "reward": -1.0},
    ),
    "the foothold costs nothing": (lambda: Scene().turn(), {"reward": 0.0}),
    "a user host costs a tenth": (lambda: held("privileged", U1, None).turn(), {"reward": -0.1}),
    "an operational host costs a tenth": (lambda: held("privileged", "Op_Host1", None).turn(), {"reward": -0.1}),
    "costs add up": (lambda: Scene().holds("privileged", E0, OP, "User3").turn(), {"reward": -2.1}),
    "only root costs": (lambda: held("stubborn", E0, None).turn(), {"reward": 0.0}),
    # decoys
    "a decoy placed in the same turn hides a small scan: two ports are no scan": (
        lambda: Scene().red_will("scan", E0, "User3").turn("DecoyTomcat", E0),
        {f"sees {E0}": "0000"},
    ),
    "with a third port it shows": (
        lambda: Scene().decoy_ports(E0, 25).red_will("scan", E0, "User3").turn("DecoyTomcat", E0),
        {f"sees {E0}": "1000"},
    ),
    "a decoy placed in the same turn hides an undetected shell": (
        lambda: shoot(E1, *WEB, other="HTTPRFI", top=1, detected=0).turn("DecoyFemitter", E1),
        {"red": ("exploit", 1, "HTTPSRFI"), f"sees {E1}": "0000"},
    ),
    "a decoy placed and hit in the same turn shows as an exploit": (
        lambda: shoot(U1, 21, 22, 443).turn("DecoyTomcat", U1),
        {f"sees {U1}": "1101"},
    ),
    # Meander and green
    "meander brute-forces the defender in vain and raises a false alarm": (
        lambda: (
            meander(escalated=hosts_mask("User0"), exploited=2**13 - 1 & ~hosts_mask("Defender"))
            .remembers("Defender", 22, 53, 68)
            .turn()
        ),
        {"red": ("exploit", 0, "SSHBruteForce"), "sees Defender": "1101"},
    ),
    "meander scans every address once even when unreachable": (
        lambda: meander(known_hosts=hosts_mask("User0", "Op_Host0"), scanned=hosts_mask("User0")).turn(),
        {"red": ("scan", 1, None), "scanned": hosts_mask("User0", "Op_Host0"), "remembers Op_Host0": set()},
    ),
    "green scans show like red's": (
        lambda: Scene(green=True).chance(green=1, green_host=E0).turn(),
        {f"sees {E0}": "1000"},
    ),
    "green that sleeps shows nothing": (lambda: Scene(green=True).chance(green=0).turn(), {f"sees {E0}": "0000"}),
    **{
        f"green's scan {'does not mask' if variant == 'debugged' else 'masks'} an exploit in {variant}": (
            lambda variant=variant: shoot(
                E1, *WEB, scene=Scene(variant, green=True), other="HTTPRFI", top=1, detected=1, green=1, green_host=E1
            ).turn(),
            {f"sees {E1}": seen},
        )
        for variant, seen in (("current", "1000"), ("debugged", "1101"))
    },
    # variants
    **{
        f"a scan in {variant} leaves red {len(ports)} ports": (
            lambda variant=variant: Scene(variant).remembers(U1, 22, 80).red_will("scan", U1).turn(),
            {f"remembers {U1}": ports},
        )
        for variant, ports in (("current", {21, 22}), ("leaderboard", {21, 22, 80}))
    },
    "debugged charges for any session": (lambda: held("stubborn", E0, None, "debugged").turn(), {"reward": -1.0}),
    "in debugged remove says when it killed nothing": (lambda: Scene("debugged").turn("Remove", U2), {"blue": 0}),
    "in debugged remove says when it killed something": (
        lambda: held("removable", U2, None, "debugged").turn("Remove", U2),
        {"blue": 1},
    ),
    "in debugged EternalBlue works on enterprise hosts": (
        lambda: attack(E1, "EternalBlue", Scene("debugged")),
        {f"access {E1}": "privileged"},
    ),
}


def seen(turn, what):
    """What is to be seen of a turn: `reward`, `sees User1`, `remembers User1`, ..."""
    what, _, host = what.partition(" ")
    if what in ("remembers", "decoys"):
        return open_ports(turn.state["remembered" if what == "remembers" else "decoys"][HOST_ID[host]])
    if what in ("blue", "scanned"):
        return turn.state["blue_success" if what == "blue" else what]
    value = getattr(turn, "holds_malware" if what == "malware" else what)
    return value(host) if host else value


@pytest.mark.parametrize("fact", TURNS)
def test_in_one_turn(fact):
    play, expected = TURNS[fact]
    turn = play()
    assert {what: seen(turn, what) for what in expected} == expected


@pytest.mark.parametrize(
    ("host", "exploit", "gain"), [(host, exploit, gain) for host, row in OUTCOMES.items() for exploit, gain in row.items()]
)
def test_what_each_exploit_gains_on_each_host(host, exploit, gain):
    turn = attack(host, exploit)
    assert turn.red == ("exploit", int(gain != "none"), exploit) and turn.access(host) == gain


@pytest.mark.parametrize("kind", ["privileged", "removable", "stubborn"])
@pytest.mark.parametrize("host", ["Enterprise0", "Enterprise1", "Enterprise2"])
def test_any_session_on_an_enterprise_host_opens_the_operational_subnet(kind, host):
    turn = Scene().holds(kind, host).red_will("scan", OP).turn()
    assert seen(turn, f"remembers {OP}") == {22} and turn.sees(OP) == "1000"


def test_a_stopped_service_stays_so_until_restore_makes_impact_harmless_for_the_rest_of_the_episode():
    scene = held("privileged", OP).ot("RUNNING")
    assert [scene.turn().reward, scene.turn().reward] == [-11.0, -11.0]
    assert scene.red_sleeps().turn("Restore", OP).reward == -1.0
    again = scene.holds("privileged", OP).red_will("impact", OP).turn()
    assert again.red == ("impact", 1, None) and again.reward == -1.0  # red believes that it worked; the server only
    assert OTService(again.state["ot"]) == OTService.RESTORED


def test_b_line_starts_over_when_the_server_did_not_answer_its_scan():
    scene = Scene().red_will("scan", OP)
    scene.state["bline_seen_server"] = False
    scene.turn()
    turn = scene.turn()
    assert turn.red[0] == "scan" and turn.state["red_target"] == HOST_ID[U1]


def test_the_heaviest_exploit_is_taken_three_times_in_four_and_the_others_share_the_rest():
    """Enterprise1: HTTPSRFI 3/4, four others 1/16 each; 40,000 attacks, five standard deviations."""
    n = 40_000
    world = World(Game(max_steps=None), n)
    world.reset(seed=1)
    world.set_state(np.repeat(Scene().remembers(E1, 22, 135, 139, 445, 80, 443, 3389).red_will("exploit", E1).state, n))
    world.step(np.zeros(n, int))
    counts = np.bincount(world.get_state()["red_exploit"], minlength=len(EXPLOIT_NAMES))
    for exploit in OUTCOMES[E1]:
        p = 3 / 4 if exploit == "HTTPSRFI" else 1 / 16
        assert abs(counts[EXPLOIT_NAMES.index(exploit)] - n * p) < 5 * np.sqrt(n * p * (1 - p))
    assert counts.sum() == n
    detected = world.observations[:, 4 * HOST_ID[E1] + 1][world.get_state()["malware"] > 0]
    assert abs(detected.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 / len(detected))


def test_remove_turns_a_belief_into_unknown_and_a_new_exploit_lowers_privileged_to_user():
    scene = Scene()
    assert attack(E1, "HTTPSRFI", scene).sees(E1) == "1101"
    assert scene.red_sleeps().turn("Remove", E1).sees(E1) == "0010"
    scene = Scene().malware_on(E1)
    assert scene.turn("Analyse", E1).sees(E1) == "0011" and attack(E1, "HTTPSRFI", scene).sees(E1) == "1101"


def test_analyse_reports_privileged_for_any_file_also_after_remove():
    scene = Scene().malware_on(U2)
    verbs = ("Analyse", "Remove", "Analyse", "Restore", "Analyse")
    assert [scene.turn(verb, U2).sees(U2) for verb in verbs] == ["0011", "0010", "0011", "0000", "0000"]


def test_a_failed_exploit_makes_meander_forget_the_operational_hosts_it_escalated_else_the_enterprise_hosts():
    operational, enterprise = hosts_mask("Op_Host0", OP), hosts_mask(E1)
    everything = operational | enterprise | hosts_mask("User0")
    failed = {"red_verb": 3, "red_target": 0, "red_success": 0}
    after = meander(escalated=everything, exploited=everything, breached=everything, **failed).turn().state
    assert after["escalated"] & operational == 0 and after["escalated"] & enterprise
    scene = meander(escalated=enterprise | 256, exploited=enterprise, breached=enterprise, **failed)
    assert scene.turn().state["escalated"] & enterprise == 0


POSSIBLE_DECOYS = {
    **{host: "Apache HarakaSMPT Tomcat Vsftpd" for host in ("Defender", E0, "Op_Host0", "Op_Host1", "Op_Host2", OP)},
    **{host: "Femitter" for host in (E1, E2)},
    **{host: "Apache Smss Svchost Tomcat" for host in ("User0", U1)},
    **{U2: "Apache Femitter SSHD Tomcat", "User3": "SSHD Vsftpd", "User4": "Vsftpd"},
}
ALL_DECOYS = ["Apache", "Femitter", "HarakaSMPT", "SSHD", "Smss", "Svchost", "Tomcat", "Vsftpd"]


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
@pytest.mark.parametrize("host", HOST_NAMES)
def test_which_decoys_can_be_placed_where(host, variant):
    assert " ".join(d for d in ALL_DECOYS if seen(Scene(variant).turn(f"Decoy{d}", host), "blue")) == POSSIBLE_DECOYS[host]


def test_a_decoy_can_be_placed_once_but_vsftpd_again_and_again_on_port_80_which_it_takes_from_apache():
    scene = Scene()
    verbs = ("DecoyTomcat", "DecoyTomcat", "DecoyVsftpd", "DecoyVsftpd", "DecoyApache")
    turns = [scene.turn(verb, E0) for verb in verbs]
    assert [seen(turn, "blue") for turn in turns] == [1, 0, 1, 1, 0] and seen(turns[-1], f"decoys {E0}") == {80, 443}


def test_debugged_vsftpd_opens_21_once_and_swallows_ftp_attacks_silently():
    scene = Scene("debugged")
    turns = [scene.turn("DecoyVsftpd", OP) for _ in range(2)]
    assert [seen(turn, "blue") for turn in turns] == [1, 0] and seen(turns[0], f"decoys {OP}") == {21}
    scene.remembers(OP, 21, 22).holds("stubborn", "Enterprise2").chance(other="SSHBruteForce", top=1)
    turn = scene.red_will("exploit", OP).turn()
    assert turn.red == ("exploit", 0, "FTPDirectoryTraversal") and turn.sees(OP) == "0000"


@pytest.mark.parametrize("host", ["User3", "User4"])
def test_leaderboard_restore_makes_smtp_immune(host):
    scenes = {variant: Scene(variant) for variant in ("leaderboard", "current")}
    for scene in scenes.values():
        scene.turn("Restore", host)
    turn = attack(host, "HarakaRCE", scenes["leaderboard"])
    assert turn.red == ("exploit", 0, "HarakaRCE") and turn.sees(host) == "1000"
    assert turn.access(host) == "none" and not turn.holds_malware(host)
    assert attack(host, "HarakaRCE", scenes["current"]).access(host) == "privileged"


def test_action_ids_follow_the_challenge():
    ids = {("Sleep",): 0, ("Monitor",): 1, ("Analyse", "Defender"): 2, ("Remove", "Defender"): 15}
    ids |= {("DecoyApache", "Defender"): 28, ("DecoyVsftpd", "User4"): 131}
    ids |= {("Restore", "Defender"): 132, ("Restore", OP): 139, ("Restore", "User4"): 144}
    assert {action: action_id(*action) for action in ids} == ids
