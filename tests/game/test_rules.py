"""The rules of the game, one fact per test, oddities included. A host's four bits: two of activity, two of belief."""

import numpy as np
import pytest
from cage2 import EXPLOIT_NAMES, HOST_ID, HOST_NAMES, action_id, hosts_mask
from scene import Scene, open_ports

from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import OTService, RedAgent

# ---------------------------------------------------------------- the OT service


def test_impact_stops_the_ot_service_at_ten_points_per_step():
    scene = Scene().holds("privileged", "Op_Server0").ot("RUNNING").red_will("impact", "Op_Server0")
    assert scene.turn().reward == -11.0  # 10 for the service, 1 for the server
    assert scene.turn().reward == -11.0


def test_restore_makes_impact_harmless_for_the_rest_of_the_episode():
    scene = Scene().holds("privileged", "Op_Server0").ot("STOPPED").red_sleeps()
    assert scene.turn("Restore", "Op_Server0").reward == -1.0
    scene.holds("privileged", "Op_Server0").red_will("impact", "Op_Server0")
    again = scene.turn()
    assert again.red == ("impact", 1, None)  # red believes that it worked
    assert OTService(again.state["ot"]) == OTService.RESTORED
    assert again.reward == -1.0  # the server only


def test_impact_needs_any_session_on_the_server_not_root():
    scene = Scene().holds("stubborn", "Op_Server0").ot("RUNNING").red_will("impact", "Op_Server0")
    assert scene.turn().red == ("impact", 1, None)
    scene = Scene().ot("RUNNING").red_will("impact", "Op_Server0")
    assert scene.turn().red == ("impact", 0, None)


def test_a_stopped_service_costs_ten_even_when_red_is_gone():
    assert Scene().ot("STOPPED").turn().reward == -10.0


# ---------------------------------------------------------------- reach


def test_scanning_the_unreachable_server_reports_success_and_teaches_nothing():
    scene = Scene().red_will("scan", "Op_Server0")
    turn = scene.turn()
    assert turn.red == ("scan", 1, None)
    assert turn.state["remembered"][HOST_ID["Op_Server0"]] == 0
    assert turn.sees("Op_Server0") == "0000"


@pytest.mark.parametrize("kind", ["privileged", "removable", "stubborn"])
@pytest.mark.parametrize("host", ["Enterprise0", "Enterprise1", "Enterprise2"])
def test_any_session_on_an_enterprise_host_opens_the_operational_subnet(kind, host):
    turn = Scene().holds(kind, host).red_will("scan", "Op_Server0").turn()
    assert open_ports(turn.state["remembered"][HOST_ID["Op_Server0"]]) == {22}
    assert turn.sees("Op_Server0") == "1000"


def test_blue_closes_the_operational_subnet_before_red_uses_it_in_the_same_turn():
    scene = Scene().holds("stubborn", "Enterprise2").remembers("Op_Server0", 22).red_will("exploit", "Op_Server0")
    assert scene.turn("Restore", "Enterprise2").red == ("exploit", 0, "SSHBruteForce")


def test_b_line_starts_over_when_the_server_did_not_answer_its_scan():
    scene = Scene().red_will("scan", "Op_Server0")
    scene.state["bline_seen_server"] = False
    scene.turn()
    turn = scene.turn()
    assert turn.red[0] == "scan" and turn.state["red_target"] == HOST_ID["User1"]


# ---------------------------------------------------------------- exploits

OUTCOMES = {  # host: exploit: what it gains on a host without decoys
    "Enterprise0": {"SSHBruteForce": "stubborn"},
    "Enterprise1": {"HTTPSRFI": "removable", "HTTPRFI": "removable", "EternalBlue": "none", "BlueKeep": "privileged"}
    | {"SSHBruteForce": "stubborn"},
    "Enterprise2": {"HTTPSRFI": "removable", "HTTPRFI": "removable", "EternalBlue": "none", "BlueKeep": "privileged"}
    | {"SSHBruteForce": "stubborn"},
    "Op_Server0": {"SSHBruteForce": "stubborn"},
    "User1": {"FTPDirectoryTraversal": "privileged", "SSHBruteForce": "stubborn"},
    "User2": {"EternalBlue": "privileged", "BlueKeep": "removable"},
    "User3": {"HarakaRCE": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable", "BlueKeep": "none"},
    "User4": {"HarakaRCE": "privileged", "SQLInjection": "privileged", "HTTPSRFI": "removable", "HTTPRFI": "removable"}
    | {"SSHBruteForce": "stubborn"},
}
HEAVIEST = {
    "Enterprise1": "HTTPSRFI",
    "Enterprise2": "HTTPSRFI",
    "User1": "FTPDirectoryTraversal",
    "User2": "EternalBlue",
} | {
    "User3": "HarakaRCE",
    "User4": "HarakaRCE",
}
EXPLOIT_CASES = [(host, exploit, gain) for host, row in OUTCOMES.items() for exploit, gain in row.items()]


def attack(host, exploit, scene=None, detected=1):
    """Red scans a host, then attacks it with this exploit."""
    scene = scene or Scene()
    via = host if host.startswith("User") else "User3" if host == "Enterprise0" else "User1"
    scene.holds("stubborn", "Enterprise2" if host == "Op_Server0" else host).red_will("scan", host, via).turn()
    scene.state["stubborn"] &= ~hosts_mask(host)
    top = exploit == HEAVIEST.get(host)
    other = next(e for e in OUTCOMES[host] if e != HEAVIEST.get(host)) if top else exploit
    return scene.chance(other=other, top=int(top), detected=detected).red_will("exploit", host, via).turn()


@pytest.mark.parametrize(("host", "exploit", "gain"), EXPLOIT_CASES)
def test_what_each_exploit_gains_on_each_host(host, exploit, gain):
    turn = attack(host, exploit)
    assert turn.red == ("exploit", int(gain != "none"), exploit)
    assert turn.access(host) == gain


@pytest.mark.parametrize(("host", "exploit"), [("Enterprise1", "EternalBlue"), ("User3", "BlueKeep")])
def test_exploits_that_meet_a_deaf_service_fail_unseen(host, exploit):
    assert attack(host, exploit).sees(host) == "0000"


def test_brute_force_is_always_seen_and_leaves_no_file():
    turn = attack("Enterprise0", "SSHBruteForce")
    assert turn.sees("Enterprise0") == "1101" and not turn.holds_malware("Enterprise0")


def test_an_undetected_shell_looks_like_a_scan_and_cannot_be_removed():
    turn = attack("Enterprise1", "HTTPSRFI", detected=0)
    assert turn.sees("Enterprise1") == "1000"
    assert turn.access("Enterprise1") == "stubborn" and turn.holds_malware("Enterprise1")


def test_a_detected_shell_shows_as_exploit_by_a_user():
    assert attack("Enterprise1", "HTTPSRFI", detected=1).sees("Enterprise1") == "1101"


def test_without_a_scan_no_exploit_is_tried():
    assert Scene().red_will("exploit", "User1").turn().red == ("exploit", 0, None)


def test_red_shoots_at_a_decoy_that_is_gone_and_nobody_notices():
    scene = Scene().remembers("User1", 21, 22, 443).chance(other="HTTPSRFI", top=0).red_will("exploit", "User1")
    turn = scene.turn()
    assert turn.red == ("exploit", 0, "HTTPSRFI") and turn.sees("User1") == "0000"


def test_a_decoy_stops_the_exploit_and_shows_it_as_a_scan():
    scene = Scene().decoy_ports("User1", 443).remembers("User1", 21, 22, 443)
    turn = scene.chance(other="HTTPSRFI", top=0).red_will("exploit", "User1").turn()
    assert turn.red == ("exploit", 0, "HTTPSRFI") and turn.sees("User1") == "1000" and turn.access("User1") == "none"


def test_a_brute_forced_ssh_decoy_is_a_false_alarm():
    scene = Scene().decoy_ports("User2", 22).remembers("User2", 22, 139, 3389)
    turn = scene.chance(other="SSHBruteForce", top=0).red_will("exploit", "User2", "User2").turn()
    assert turn.red[1] == 0 and turn.access("User2") == "none" and turn.sees("User2") == "1101"


def test_the_heaviest_exploit_is_taken_three_times_in_four_and_the_others_share_the_rest():
    """Enterprise1: HTTPSRFI 3/4, four others 1/16 each; 40,000 attacks, five standard deviations."""
    n = 40_000
    world = World(Game(max_steps=None), n)
    world.reset(seed=1)
    states = np.repeat(
        Scene().remembers("Enterprise1", 22, 135, 139, 445, 80, 443, 3389).red_will("exploit", "Enterprise1").state, n
    )
    world.set_state(states)
    world.step(np.zeros(n, int))
    counts = np.bincount(world.get_state()["red_exploit"], minlength=len(EXPLOIT_NAMES))
    for exploit in OUTCOMES["Enterprise1"]:
        p = 3 / 4 if exploit == "HTTPSRFI" else 1 / 16
        assert abs(counts[EXPLOIT_NAMES.index(exploit)] - n * p) < 5 * np.sqrt(n * p * (1 - p))
    assert counts.sum() == n
    detected = world.observations[:, 4 * HOST_ID["Enterprise1"] + 1][world.get_state()["malware"] > 0]
    assert abs(detected.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 / len(detected))


# ---------------------------------------------------------------- escalation


def test_escalation_never_fails_on_a_held_host_and_is_unseen():
    turn = Scene().holds("removable", "Enterprise1").red_will("escalate", "Enterprise1").turn()
    assert turn.red == ("escalate", 1, None)
    assert turn.access("Enterprise1") == "privileged" and turn.holds_malware("Enterprise1")
    assert turn.sees("Enterprise1") == "0000" and turn.reward == -1.0


def test_escalation_fails_when_blue_removed_the_session_in_the_same_turn():
    scene = Scene().holds("removable", "Enterprise1").red_will("escalate", "Enterprise1")
    assert scene.turn("Remove", "Enterprise1").red == ("escalate", 0, None)


# ---------------------------------------------------------------- blue


def test_remove_kills_only_sessions_whose_process_blue_knows():
    assert Scene().holds("removable", "User2").turn("Remove", "User2").access("User2") == "none"
    assert Scene().holds("stubborn", "User2").turn("Remove", "User2").access("User2") == "stubborn"
    assert Scene().holds("privileged", "User2").turn("Remove", "User2").access("User2") == "privileged"


def test_remove_turns_a_belief_into_unknown_and_leaves_a_clean_host_alone():
    scene = Scene()
    attacked = attack("Enterprise1", "HTTPSRFI", scene)
    assert attacked.sees("Enterprise1") == "1101"
    assert scene.red_sleeps().turn("Remove", "Enterprise1").sees("Enterprise1") == "0010"
    assert Scene().turn("Remove", "Enterprise1").sees("Enterprise1") == "0000"


def test_analyse_reports_privileged_for_any_file_also_after_remove():
    scene = Scene().malware_on("User2")
    assert scene.turn("Analyse", "User2").sees("User2") == "0011"
    assert scene.turn("Remove", "User2").sees("User2") == "0010"
    assert scene.turn("Analyse", "User2").sees("User2") == "0011"
    assert scene.turn("Restore", "User2").sees("User2") == "0000"
    assert scene.turn("Analyse", "User2").sees("User2") == "0000"


def test_analyse_does_not_see_what_red_does_in_the_same_turn():
    scene = Scene().holds("removable", "Enterprise1").red_will("escalate", "Enterprise1")
    assert scene.turn("Analyse", "Enterprise1").sees("Enterprise1") == "0000"


def test_a_new_exploit_lowers_privileged_to_user():
    scene = Scene().malware_on("Enterprise1")
    scene.turn("Analyse", "Enterprise1")
    assert attack("Enterprise1", "HTTPSRFI", scene).sees("Enterprise1") == "1101"


def test_restore_clears_sessions_files_and_decoys_and_costs_one():
    scene = Scene().holds("privileged", "Enterprise1").malware_on("Enterprise1").decoy_ports("Enterprise1", 21)
    turn = scene.turn("Restore", "Enterprise1")
    assert turn.access("Enterprise1") == "none" and not turn.holds_malware("Enterprise1")
    assert turn.state["decoys"].sum() == 0 and turn.reward == -1.0


def test_restore_does_not_touch_what_red_remembers():
    turn = Scene().remembers("User1", 21, 22, 80).turn("Restore", "User1")
    assert open_ports(turn.state["remembered"][HOST_ID["User1"]]) == {21, 22, 80}


def test_red_cannot_be_driven_off_its_foothold():
    turn = Scene().turn("Restore", "User0")
    assert turn.access("User0") == "privileged" and turn.reward == -1.0


def test_the_foothold_costs_nothing_user_hosts_a_tenth_servers_one():
    assert Scene().turn().reward == 0.0
    assert Scene().holds("privileged", "User1").turn().reward == -0.1
    assert Scene().holds("privileged", "Op_Host1").turn().reward == -0.1
    assert Scene().holds("privileged", "Enterprise0", "Op_Server0", "User3").turn().reward == -2.1
    assert Scene().holds("stubborn", "Enterprise0").turn().reward == 0.0


# ---------------------------------------------------------------- decoys

POSSIBLE_DECOYS = {
    **{
        key: {"Apache", "HarakaSMPT", "Tomcat", "Vsftpd"}
        for key in ("Defender", "Enterprise0", "Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0")
    },
    **{key: {"Femitter"} for key in ("Enterprise1", "Enterprise2")},
    **{key: {"Apache", "Smss", "Svchost", "Tomcat"} for key in ("User0", "User1")},
    "User2": {"Apache", "Femitter", "SSHD", "Tomcat"},
    "User3": {"SSHD", "Vsftpd"},
    "User4": {"Vsftpd"},
}
ALL_DECOYS = ("Apache", "Femitter", "HarakaSMPT", "Smss", "SSHD", "Svchost", "Tomcat", "Vsftpd")


@pytest.mark.parametrize("variant", ["current", "leaderboard", "debugged"])
@pytest.mark.parametrize("host", HOST_NAMES)
def test_which_decoys_can_be_placed_where(host, variant):
    placed = {d for d in ALL_DECOYS if Scene(variant).turn(f"Decoy{d}", host).state["blue_success"] == 1}
    assert placed == POSSIBLE_DECOYS[host]


def test_a_decoy_can_be_placed_once_but_vsftpd_again_and_again():
    scene = Scene()
    assert scene.turn("DecoyTomcat", "Enterprise0").state["blue_success"] == 1
    assert scene.turn("DecoyTomcat", "Enterprise0").state["blue_success"] == 0
    assert [scene.turn("DecoyVsftpd", "Enterprise0").state["blue_success"] for _ in range(3)] == [1, 1, 1]


def test_vsftpd_checks_port_21_but_takes_port_80_from_apache():
    scene = Scene()
    turn = scene.turn("DecoyVsftpd", "Enterprise0")
    assert open_ports(turn.state["decoys"][HOST_ID["Enterprise0"]]) == {80}
    assert scene.turn("DecoyApache", "Enterprise0").state["blue_success"] == 0


def test_a_decoy_placed_in_the_same_turn_hides_a_small_scan():
    """Enterprise0 then listens on two ports: fewer than three are not taken for a scan."""
    scene = Scene().red_will("scan", "Enterprise0", "User3")
    assert scene.turn("DecoyTomcat", "Enterprise0").sees("Enterprise0") == "0000"
    scene = Scene().decoy_ports("Enterprise0", 25).red_will("scan", "Enterprise0", "User3")
    assert scene.turn("DecoyTomcat", "Enterprise0").sees("Enterprise0") == "1000"


def test_a_decoy_placed_in_the_same_turn_hides_an_undetected_shell():
    scene = Scene().remembers("Enterprise1", 80, 443, 22, 3389, 139).chance(other="HTTPRFI", top=1, detected=0)
    turn = scene.red_will("exploit", "Enterprise1").turn("DecoyFemitter", "Enterprise1")
    assert turn.red[1] == 1 and turn.sees("Enterprise1") == "0000"


def test_a_decoy_placed_and_hit_in_the_same_turn_shows_as_an_exploit():
    scene = Scene().remembers("User1", 21, 22, 443).chance(other="HTTPSRFI", top=0).red_will("exploit", "User1")
    assert scene.turn("DecoyTomcat", "User1").sees("User1") == "1101"


# ---------------------------------------------------------------- Meander and green


def meander(**fields):
    scene = Scene()
    scene.state["red_agent"] = RedAgent.MEANDER
    scene.state["known_subnets"] = scene.state["explored_subnets"] = 0b111
    scene.state["known_hosts"] = scene.state["scanned"] = 2**13 - 1
    for name, value in fields.items():
        scene.state[name] = value
    return scene


def test_a_failed_exploit_makes_meander_forget_the_operational_hosts_it_escalated():
    operational, enterprise = hosts_mask("Op_Host0", "Op_Server0"), hosts_mask("Enterprise1")
    believed = operational | enterprise | hosts_mask("User0")
    scene = meander(escalated=believed, exploited=believed, breached=believed, red_verb=3, red_target=0, red_success=0)
    after = scene.turn().state
    assert after["escalated"] & operational == 0 and after["escalated"] & enterprise
    scene = meander(
        escalated=enterprise | 256, exploited=enterprise, breached=enterprise, red_verb=3, red_target=0, red_success=0
    )
    assert scene.turn().state["escalated"] & enterprise == 0


def test_meander_brute_forces_the_defender_in_vain_and_raises_a_false_alarm():
    everyone = (2**13 - 1) & ~hosts_mask("Defender")
    scene = meander(escalated=hosts_mask("User0"), exploited=everyone).remembers("Defender", 22, 53, 68)
    turn = scene.turn()
    assert turn.red == ("exploit", 0, "SSHBruteForce") and turn.sees("Defender") == "1101"


def test_meander_scans_every_address_once_even_when_unreachable():
    scene = meander(known_hosts=hosts_mask("User0", "Op_Host0"), scanned=hosts_mask("User0"))
    turn = scene.turn()
    assert turn.red == ("scan", 1, None) and turn.state["scanned"] & hosts_mask("Op_Host0")
    assert turn.state["remembered"].sum() == 0


def test_green_scans_show_like_reds():
    scene = Scene(green=True).chance(green=1, green_host="Enterprise0")
    assert scene.turn().sees("Enterprise0") == "1000"
    assert Scene(green=True).chance(green=0).turn().observation.sum() == 0


@pytest.mark.parametrize(("variant", "seen"), [("current", "1000"), ("debugged", "1101")])
def test_greens_scan_can_mask_an_exploit_except_in_debugged(variant, seen):
    scene = Scene(variant, green=True).remembers("Enterprise1", 80, 443, 22, 3389, 139)
    scene.chance(green=1, green_host="Enterprise1", other="HTTPRFI", top=1, detected=1)
    assert scene.red_will("exploit", "Enterprise1").turn().sees("Enterprise1") == seen


# ---------------------------------------------------------------- variants


def test_leaderboard_red_never_forgets_a_port():
    for variant, ports in (("current", {21, 22}), ("leaderboard", {21, 22, 80})):
        turn = Scene(variant).remembers("User1", 22, 80).red_will("scan", "User1").turn()
        assert open_ports(turn.state["remembered"][HOST_ID["User1"]]) == ports


@pytest.mark.parametrize("host", ["User3", "User4"])
def test_leaderboard_restore_makes_smtp_immune(host):
    scene = Scene("leaderboard")
    scene.turn("Restore", host)
    turn = attack(host, "HarakaRCE", scene)
    assert turn.red == ("exploit", 0, "HarakaRCE")
    assert turn.sees(host) == "1000" and turn.access(host) == "none" and not turn.holds_malware(host)
    scene = Scene("current")
    scene.turn("Restore", host)
    assert attack(host, "HarakaRCE", scene).access(host) == "privileged"


def test_debugged_charges_for_any_session():
    assert Scene("debugged").holds("stubborn", "Enterprise0").turn().reward == -1.0


def test_remove_always_reports_success_except_in_debugged_when_it_killed_nothing():
    for variant, reported in (("current", 1), ("debugged", 0)):
        assert Scene(variant).turn("Remove", "User2").state["blue_success"] == reported
        assert Scene(variant).holds("removable", "User2").turn("Remove", "User2").state["blue_success"] == 1


def test_ports_that_no_exploit_fits_lead_to_a_silent_failure():
    assert Scene().remembers("User1", 135).red_will("exploit", "User1").turn().red == ("exploit", 0, None)


def test_debugged_eternal_blue_works_on_enterprise_hosts():
    assert attack("Enterprise1", "EternalBlue", Scene("debugged")).access("Enterprise1") == "privileged"


def test_debugged_vsftpd_opens_21_once_and_swallows_ftp_attacks_silently():
    scene = Scene("debugged")
    turn = scene.turn("DecoyVsftpd", "Op_Server0")
    assert open_ports(turn.state["decoys"][HOST_ID["Op_Server0"]]) == {21}
    assert scene.turn("DecoyVsftpd", "Op_Server0").state["blue_success"] == 0
    scene.remembers("Op_Server0", 21, 22).holds("stubborn", "Enterprise2").chance(other="SSHBruteForce", top=1)
    turn = scene.red_will("exploit", "Op_Server0").turn()
    assert turn.red == ("exploit", 0, "FTPDirectoryTraversal") and turn.sees("Op_Server0") == "0000"


# ---------------------------------------------------------------- the action table


def test_action_ids_follow_the_challenge():
    assert action_id("Sleep") == 0 and action_id("Monitor") == 1
    assert action_id("Analyse", "Defender") == 2 and action_id("Remove", "Defender") == 15
    assert action_id("DecoyApache", "Defender") == 28 and action_id("DecoyVsftpd", "User4") == 131
    assert action_id("Restore", "Defender") == 132 and action_id("Restore", "Op_Server0") == 139
    assert action_id("Restore", "User4") == 144
