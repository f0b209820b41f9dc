"""The rules of the game, one fact per row, oddities included. A host's four bits: two of activity, two of belief."""

import re

import numpy as np
import pytest
from cage2 import DECOYS, EXPLOIT_NAMES, HOST_ID, HOST_NAMES, action_id, hosts_mask
from scene import Scene, open_ports

from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import OTService, RedAgent

E0, E1, E2, OP, U1, U2 = "Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0", "User1", "User2"
OUTCOMES = {  # host: exploit: what it gains on a host without decoys
    E0: {"SSHBruteForce": "stubborn"},
    **{
        host: {"HTTPSRFI": "removable", "HTTPRFI": "removable", "EternalBlue": "none", "BlueKeep": "privileged"}
        | {"SSHBruteForce": "stubborn"}
        for host in (E1, E2)
    },
    OP: {"SSHBruteForce": "stubborn"},
    U1: {"FTPDirectoryTraversal": "privileged", "SSHBruteForce": "stubborn"},
    U2: {"EternalBlue": "privileged", "BlueKeep": "removable"},
    "User3": {"HarakaRCE": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable", "BlueKeep": "none"},
    "User4": {"HarakaRCE": "privileged", "SQLInjection": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable"}
    | {"SSHBruteForce": "stubborn"},
}
HEAVIEST = {E1: "HTTPSRFI", E2: "HTTPSRFI", U1: "FTPDirectoryTraversal"}
HEAVIEST |= {U2: "EternalBlue", "User3": "HarakaRCE", "User4": "HarakaRCE"}


class Story(Scene):
    """A scene with more words for what happens before its turn."""

    def meander(self):
        """Meander plays, and knows every host and subnet."""
        self.state["red_agent"] = RedAgent.MEANDER
        self.state["known_subnets"] = self.state["explored_subnets"] = 0b111
        self.state["known_hosts"] = self.state["scanned"] = 2**13 - 1
        return self

    def believes(self, field, *hosts):
        names = [name for name in HOST_NAMES if name not in hosts] if hosts[0] == "all_but" else hosts
        self.state[field] = hosts_mask(*names)
        return self

    def shoots(self, other, host, *remembered, top=0, **chance):
        """Red attacks a host whose ports it remembers, with an exploit that is not the heaviest."""
        self.remembers(host, *remembered).chance(other=other, top=top, **chance)
        return self.red_will("exploit", host, host if "User" in host else U1)

    def attack(self, host, exploit, detected=1):
        """Red has scanned a host and attacks it with this exploit."""
        via = host if host.startswith("User") else "User3" if host == E0 else U1
        self.holds("stubborn", E2 if host == OP else host).red_will("scan", host, via).turn()
        self.state["stubborn"] &= ~hosts_mask(host)
        top = exploit == HEAVIEST.get(host)
        other = next(e for e in OUTCOMES[host] if e != HEAVIEST.get(host)) if top else exploit
        return self.chance(other=other, top=int(top), detected=detected).red_will("exploit", host, via)


# A fact; what is set up, as calls of Scene; what blue does, unless it sleeps; and what is then to be seen.
FACTS = """
impact stops the service: 10 for it, 1 for the server
    holds privileged Op_Server0, ot RUNNING, red_will impact Op_Server0 -> reward -11
impact needs any session on the server, not root
    holds stubborn Op_Server0, ot RUNNING, red_will impact Op_Server0 -> red impact 1
without a session impact fails
    red_will impact Op_Server0 -> red impact 0
a stopped service costs ten even when red is gone
    ot STOPPED -> reward -10
scanning the unreachable server reports success and teaches nothing
    red_will scan Op_Server0 -> red scan 1, remembers Op_Server0, sees Op_Server0 0000
blue closes the operational subnet before red uses it in the same turn
    holds stubborn Enterprise2, remembers Op_Server0 22, red_will exploit Op_Server0, blue Restore Enterprise2
    -> red exploit 0 SSHBruteForce
a deaf smb service fails the exploit unseen
    attack Enterprise1 EternalBlue -> sees Enterprise1 0000
a deaf rdp service fails the exploit unseen
    attack User3 BlueKeep -> sees User3 0000
brute force is always seen and leaves no file
    attack Enterprise0 SSHBruteForce -> sees Enterprise0 1101, malware Enterprise0 False
an undetected shell looks like a scan and cannot be removed
    attack Enterprise1 HTTPSRFI detected=0 -> sees Enterprise1 1000, access Enterprise1 stubborn, malware Enterprise1 True
a detected shell shows as exploit by a user
    attack Enterprise1 HTTPSRFI -> sees Enterprise1 1101
without a scan no exploit is tried
    red_will exploit User1 -> red exploit 0
ports that no exploit fits lead to a silent failure
    remembers User1 135, red_will exploit User1 -> red exploit 0
red shoots at a decoy that is gone and nobody notices
    shoots HTTPSRFI User1 21 22 443 -> red exploit 0 HTTPSRFI, sees User1 0000
a decoy stops the exploit and shows it as a scan
    decoy_ports User1 443, shoots HTTPSRFI User1 21 22 443
    -> red exploit 0 HTTPSRFI, sees User1 1000, access User1 none
a brute forced ssh decoy is a false alarm
    decoy_ports User2 22, shoots SSHBruteForce User2 22 139 3389
    -> red exploit 0 SSHBruteForce, sees User2 1101, access User2 none
escalation never fails on a held host and is unseen
    holds removable Enterprise1, red_will escalate Enterprise1
    -> red escalate 1, access Enterprise1 privileged, malware Enterprise1 True, sees Enterprise1 0000, reward -1
escalation fails when blue removed the session in the same turn
    holds removable Enterprise1, red_will escalate Enterprise1, blue Remove Enterprise1 -> red escalate 0
remove kills a session whose process blue knows
    holds removable User2, blue Remove User2 -> access User2 none, blue 1
remove does not kill a session that blue did not see
    holds stubborn User2, blue Remove User2 -> access User2 stubborn
remove does not kill a session of root
    holds privileged User2, blue Remove User2 -> access User2 privileged
remove leaves a clean host alone
    blue Remove Enterprise1 -> sees Enterprise1 0000, blue 1
analyse does not see what red does in the same turn
    holds removable Enterprise1, red_will escalate Enterprise1, blue Analyse Enterprise1 -> sees Enterprise1 0000
restore clears sessions, files and decoys and costs one
    holds privileged Enterprise1, malware_on Enterprise1, decoy_ports Enterprise1 21, blue Restore Enterprise1
    -> access Enterprise1 none, malware Enterprise1 False, decoys Enterprise1, reward -1
restore does not touch what red remembers
    remembers User1 21 22 80, blue Restore User1 -> remembers User1 21 22 80
red cannot be driven off its foothold
    blue Restore User0 -> access User0 privileged, reward -1
the foothold costs nothing
    -> reward 0
a user host costs a tenth
    holds privileged User1 -> reward -0.1
an operational host costs a tenth
    holds privileged Op_Host1 -> reward -0.1
costs add up
    holds privileged Enterprise0 Op_Server0 User3 -> reward -2.1
only root costs
    holds stubborn Enterprise0 -> reward 0
a decoy placed in the same turn hides a small scan: two ports are no scan
    red_will scan Enterprise0 User3, blue DecoyTomcat Enterprise0 -> sees Enterprise0 0000
with a third port it shows
    decoy_ports Enterprise0 25, red_will scan Enterprise0 User3, blue DecoyTomcat Enterprise0 -> sees Enterprise0 1000
a decoy placed in the same turn hides an undetected shell
    shoots HTTPRFI Enterprise1 80 443 22 3389 139 top=1 detected=0, blue DecoyFemitter Enterprise1
    -> red exploit 1 HTTPSRFI, sees Enterprise1 0000
a decoy placed and hit in the same turn shows as an exploit
    shoots HTTPSRFI User1 21 22 443, blue DecoyTomcat User1 -> sees User1 1101
meander brute-forces the defender in vain and raises a false alarm
    meander, believes escalated User0, believes exploited all_but Defender, remembers Defender 22 53 68
    -> red exploit 0 SSHBruteForce, sees Defender 1101
meander scans every address once even when unreachable
    meander, believes known_hosts User0 Op_Host0, believes scanned User0
    -> red scan 1, scanned Op_Host0 User0, remembers Op_Host0
green scans show like red's
    green, chance green=1 green_host=Enterprise0 -> sees Enterprise0 1000
green that sleeps shows nothing
    green, chance green=0 -> sees Enterprise0 0000
green's scan masks an exploit
    green, shoots HTTPRFI Enterprise1 80 443 22 3389 139 top=1 detected=1, chance green=1 green_host=Enterprise1
    -> sees Enterprise1 1000
in debugged it does not
    debugged green, shoots HTTPRFI Enterprise1 80 443 22 3389 139 top=1 detected=1, chance green=1 green_host=Enterprise1
    -> sees Enterprise1 1101
a scan replaces what red remembers
    remembers User1 22 80, red_will scan User1 -> remembers User1 21 22
in leaderboard it adds to that
    leaderboard, remembers User1 22 80, red_will scan User1 -> remembers User1 21 22 80
debugged charges for any session
    debugged, holds stubborn Enterprise0 -> reward -1
in debugged remove says when it killed nothing
    debugged, blue Remove User2 -> blue 0
in debugged remove says when it killed something
    debugged, holds removable User2, blue Remove User2 -> blue 1
in debugged EternalBlue works on enterprise hosts
    debugged, attack Enterprise1 EternalBlue -> access Enterprise1 privileged
"""
TURNS = dict(re.findall(r"^(\S.*)\n((?: +.*\n)+)", FACTS, re.M))


def played(setup):
    """The turn that follows on this set-up: a variant and green, calls of a story, and what blue does."""
    steps = [step.split() for step in setup.split(",")]
    variants = [word for word in steps[0] if word in ("leaderboard", "debugged")]
    story, action = Story(*variants, green="green" in steps[0]), ()
    for name, *words in (step for step in steps if step and step[0] not in (*variants, "green")):
        plain = [int(word) if word.isdigit() else word for word in words if "=" not in word]
        named = {key: int(value) if value.isdigit() else value for key, value in re.findall(r"(\w+)=(\w+)", " ".join(words))}
        if name == "blue":
            action = plain
        else:
            getattr(story, name)(*plain, **named)
    return story.turn(*action)


def seen(turn, what, host=None):
    """What is to be seen of a turn, in words."""
    if what in ("remembers", "decoys"):
        ports = open_ports(turn.state["remembered" if what == "remembers" else "decoys"][HOST_ID[host]])
        return " ".join(map(str, sorted(ports)))
    values = {
        "scanned": lambda: " ".join(name for name in HOST_NAMES if turn.state["scanned"] >> HOST_ID[name] & 1),
        "reward": lambda: f"{turn.reward:g}",
        "red": lambda: " ".join(str(part) for part in turn.red if part is not None),
        "blue": lambda: str(turn.state["blue_success"]),
        "sees": lambda: turn.sees(host),
        "access": lambda: turn.access(host),
        "malware": lambda: str(turn.holds_malware(host)),
    }
    return values[what]()


@pytest.mark.parametrize("fact", TURNS)
def test_in_one_turn(fact):
    setup, expected = TURNS[fact].split("->")
    turn = played(setup)
    for what, *words in map(str.split, expected.split(",")):
        about = words[:1] if what in ("remembers", "decoys", "sees", "access", "malware") else []
        assert seen(turn, what, *about) == " ".join(words[len(about) :]), what


@pytest.mark.parametrize("host", OUTCOMES)
def test_what_each_exploit_gains_on_each_host(host):
    for exploit, gain in OUTCOMES[host].items():
        turn = Story().attack(host, exploit).turn()
        assert turn.red == ("exploit", int(gain != "none"), exploit) and turn.access(host) == gain


@pytest.mark.parametrize("kind", ["privileged", "removable", "stubborn"])
def test_any_session_on_an_enterprise_host_opens_the_operational_subnet(kind):
    for host in (E0, E1, E2):
        turn = Scene().holds(kind, host).red_will("scan", OP).turn()
        assert seen(turn, "remembers", OP) == "22" and turn.sees(OP) == "1000"


def test_a_stopped_service_stays_so_until_restore_makes_impact_harmless_for_the_rest_of_the_episode():
    scene = Scene().holds("privileged", OP).ot("RUNNING").red_will("impact", OP)
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
    scene = Story()
    assert scene.attack(E1, "HTTPSRFI").turn().sees(E1) == "1101"
    assert scene.red_sleeps().turn("Remove", E1).sees(E1) == "0010"
    scene = Story().malware_on(E1)
    assert scene.turn("Analyse", E1).sees(E1) == "0011" and scene.attack(E1, "HTTPSRFI").turn().sees(E1) == "1101"


def test_analyse_reports_privileged_for_any_file_also_after_remove():
    scene = Scene().malware_on(U2)
    verbs = ("Analyse", "Remove", "Analyse", "Restore", "Analyse")
    assert [scene.turn(verb, U2).sees(U2) for verb in verbs] == ["0011", "0010", "0011", "0000", "0000"]


def test_a_failed_exploit_makes_meander_forget_the_operational_hosts_it_escalated_else_the_enterprise_hosts():
    operational, enterprise = hosts_mask("Op_Host0", OP), hosts_mask(E1)
    for held, forgotten in ((operational | enterprise, operational), (enterprise, enterprise)):
        story = Story().meander()
        for field in ("escalated", "exploited", "breached"):
            story.state[field] = held | hosts_mask("User0")
        story.state["red_verb"], story.state["red_target"], story.state["red_success"] = 3, 0, 0
        left = story.turn().state["escalated"] & held
        assert left & forgotten == 0 and (left or held == forgotten)


POSSIBLE_DECOYS = {
    **dict.fromkeys(("Defender", E0, "Op_Host0", "Op_Host1", "Op_Host2", OP), "Apache HarakaSMPT Tomcat Vsftpd"),
    **dict.fromkeys((E1, E2), "Femitter"),
    **dict.fromkeys(("User0", U1), "Apache Smss Svchost Tomcat"),
    **{U2: "Apache Femitter SSHD Tomcat", "User3": "SSHD Vsftpd", "User4": "Vsftpd"},
}


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
def test_which_decoys_can_be_placed_where(variant):
    names = sorted(decoy.name for decoy in DECOYS)
    for host, possible in POSSIBLE_DECOYS.items():
        placed = [name for name in names if seen(Scene(variant).turn(f"Decoy{name}", host), "blue") == "1"]
        assert " ".join(placed) == possible
    assert POSSIBLE_DECOYS.keys() == {*HOST_NAMES} and len(names) == 8


def test_a_decoy_can_be_placed_once_but_vsftpd_again_and_again_on_port_80_which_it_takes_from_apache():
    scene = Scene()
    verbs = ("DecoyTomcat", "DecoyTomcat", "DecoyVsftpd", "DecoyVsftpd", "DecoyApache")
    turns = [scene.turn(verb, E0) for verb in verbs]
    assert [seen(turn, "blue") for turn in turns] == [*"10110"] and seen(turns[-1], "decoys", E0) == "80 443"


def test_debugged_vsftpd_opens_21_once_and_swallows_ftp_attacks_silently():
    scene = Scene("debugged")
    turns = [scene.turn("DecoyVsftpd", OP) for _ in range(2)]
    assert [seen(turn, "blue") for turn in turns] == ["1", "0"] and seen(turns[0], "decoys", OP) == "21"
    scene.remembers(OP, 21, 22).holds("stubborn", "Enterprise2").chance(other="SSHBruteForce", top=1)
    turn = scene.red_will("exploit", OP).turn()
    assert turn.red == ("exploit", 0, "FTPDirectoryTraversal") and turn.sees(OP) == "0000"


@pytest.mark.parametrize("host", ["User3", "User4"])
def test_leaderboard_restore_makes_smtp_immune(host):
    stories = [Story(variant) for variant in ("leaderboard", "current")]
    for story in stories:
        story.turn("Restore", host)
    immune, other = (story.attack(host, "HarakaRCE").turn() for story in stories)
    assert immune.red == ("exploit", 0, "HarakaRCE") and immune.sees(host) == "1000"
    assert immune.access(host) == "none" and not immune.holds_malware(host) and other.access(host) == "privileged"


def test_action_ids_follow_the_challenge():
    ids = {("Sleep",): 0, ("Monitor",): 1, ("Analyse", "Defender"): 2, ("Remove", "Defender"): 15}
    ids |= {("DecoyApache", "Defender"): 28, ("DecoyVsftpd", "User4"): 131}
    ids |= {("Restore", "Defender"): 132, ("Restore", OP): 139, ("Restore", "User4"): 144}
    assert {action: action_id(*action) for action in ids} == ids
