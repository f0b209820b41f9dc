"""The kernel, fed with the recorded outcomes of CybORG's chance decisions, does what CybORG did, in all three variants.

Compared after every step: which chances were taken, red's action, target, exploit and success, access and files per host,
the OT service, the observation and the reward. Not compared: process ids, addresses and ephemeral ports.
"""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixfirst.base.errors import ConformanceError
from fixfirst.cyborg.recordings import ReplayReport, check_file, first_difference, read_episodes
from fixfirst.game import rules

FOLDER = Path(__file__).parent.parent / "conformance"
VARIANTS = ("", "_green", "_leaderboard", "_green_leaderboard", "_debugged", "_green_debugged")
NAMES = [f"{red}{variant}" for red in ("b_line", "meander") for variant in VARIANTS] + ["sleep", "sleep_green"]


def replayed(*paths):
    return sum(map(check_file, paths), start=ReplayReport())


@pytest.mark.parametrize("name", NAMES)
def test_recorded_cyborg_episodes_replay_without_a_mismatch(name):
    report = replayed(FOLDER / f"{name}.jsonl.gz")
    assert report.mismatches == [] and report.steps > 0


def test_recorded_episodes_of_learned_attackers_and_of_fourteen_scenarios_replay_without_a_mismatch_and_compile_little():
    """noise, two-fronts and base-attacker against guardian, champion and baselines, in two variants.

    6 to 30 hosts: Misinform, filtered and closed subnets, hosts that blue does not see, Red before Green, odd names.

    One type of records for up to 15 hosts, and one for more: all fourteen scenarios share two machine codes.
    """
    report = replayed(FOLDER / "attackers" / "learned.jsonl.gz")
    assert (report.mismatches, report.episodes, report.steps) == ([], 14, 1_400)
    report = replayed(*sorted((FOLDER / "scenarios").glob("*.jsonl.gz")))
    assert (report.mismatches, report.episodes, report.steps) == ([], 364, 16_464)
    assert len(rules.step_batch.signatures) <= 2 and len(rules.reset_batch.signatures) <= 2


def first_episode(name="b_line", **changes):
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return json.loads(next(lines)) | changes


def with_step(number, position, value):
    episode = first_episode()
    episode["steps"][number - 1][position] = value
    return episode


def write(path, *episodes):
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    return path


BLUE, CHANCE, RED, OBSERVATION, REWARD, ACCESS, MALWARE, OT = range(8)
HARAKA = [["other", "HarakaRCE"], ["top", 1], ["detected", 1]]


@pytest.mark.parametrize(
    ("position", "value", "field", "host", "expected", "got"),
    [
        (OBSERVATION, "00d1000001000", "observation", "Enterprise2", "0001", "0000"),
        (REWARD, -2, "reward10", None, -2, -1),
        (ACCESS, "00p00000pp000", "access", "Enterprise1", "p", "r"),
        (MALWARE, "0010000001001", "malware", "User4", "1", "0"),
        (OT, "stopped", "ot", None, "stopped", "running"),
        (RED, ["exploit", "c", 1, "HTTPRFI"], "red exploit", None, "HTTPRFI", "HTTPSRFI"),
        (CHANCE, HARAKA[:2], "chance decisions", None, ["other", "top"], ["other", "top", "detected"]),
        (CHANCE, HARAKA, "chance outcomes possible", None, True, False),
    ],
)
def test_a_changed_recording_is_caught_at_its_step_field_and_host(tmp_path, position, value, field, host, expected, got):
    """Step 6 of the first recorded episode: red exploits Enterprise1 with HTTPSRFI and is seen."""
    assert first_episode()["steps"][5][RED] == ["exploit", "c", 1, "HTTPSRFI"]
    report = replayed(write(tmp_path / "changed.jsonl", with_step(6, position, value), first_episode("meander")))
    (mismatch,) = report.mismatches
    assert (mismatch.step, mismatch.field, mismatch.host, mismatch.expected, mismatch.got) == (6, field, host, expected, got)
    assert report.episodes == 2


def test_a_wrong_sum_of_rewards_is_a_mismatch(tmp_path):
    (episode,) = read_episodes(write(tmp_path / "sum.jsonl", first_episode(return10=0)))
    assert first_difference(episode).field == "return10"


@pytest.mark.parametrize("variant", ["leaderboard", "debugged"])
def test_recordings_of_one_variant_do_not_fit_another(variant):
    """The recordings tell the variants apart: a simulator of `current` fails on them."""
    episodes = [replace(e, variant="current") for e in read_episodes(FOLDER / f"b_line_{variant}.jsonl.gz")]
    assert sum(first_difference(episode) is not None for episode in episodes) > len(episodes) / 10


@pytest.mark.parametrize(
    ("content", "says"),  # one episode, or all bytes of the file; None: there is none
    [
        (None, "cannot be read after line 0 (No such file or directory)"),
        ((FOLDER / "sleep.jsonl.gz").read_bytes()[:500], "cannot be read after line 1 (Compressed file ended"),
        (b"\x1f\x8bplain text, not zipped", "cannot be read after line 0 (Unknown compression method"),
        (b"", "holds no episodes"),
        (b'{"id": 1', "line 1: not a recorded episode"),
        (b"\xff\xfe", "line 1: not a recorded episode"),
        (first_episode(red="blue"), "red is 'blue', not one of b_line, meander, sleep"),
        (first_episode(variant="next"), "variant is 'next', not one of current, leaderboard, debugged"),
        (first_episode(scenario="../d02_tiny.yaml"), "scenario must be the name of a file beside the recording"),
        (first_episode(scenario=5), "scenario must be the name of a file beside the recording"),
        (first_episode(scenario="nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (first_episode(steps=[[1, 2]]), "line 1: not a recorded episode"),
        (with_step(4, BLUE, 145), "step 4: blue action is 145, not in 0..144"),
        (with_step(4, BLUE, "x"), "step 4: blue action is 'x', not in 0..144"),
        (with_step(4, OBSERVATION, "00"), "observation must be 13 of the letters"),
        (with_step(4, CHANCE, [["dice", 1]]), "chance decisions must come once each, in the order misinform, green"),
        (with_step(4, CHANCE, [["top", 1], ["other", "BlueKeep"]]), "in the order misinform, green"),
        (with_step(4, CHANCE, [["addresses", "aabcdefghijkl"]]), "each of abcdefghijklm once"),
        (with_step(4, CHANCE, [["other", "Nothing"]]), "other is 'Nothing', not one of"),
        (with_step(4, RED, ["fly", None, 1, None]), "red verb is 'fly'"),
        ([1, 2], "expected a JSON object"),
        ({"id": 1}, "no field 'steps'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_read_and_what_is_no_recorded_episode_are_refused_in_one_line(tmp_path, content, says):
    is_zipped = isinstance(content, bytes) and content.startswith(b"\x1f\x8b")
    path = tmp_path / ("bad.jsonl.gz" if is_zipped else "bad.jsonl")
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(ConformanceError) as error:
        replayed(path)
    assert says in str(error.value) and "\n" not in str(error.value)
