"""The kernel, fed with the recorded outcomes of CybORG's chance decisions, does what CybORG did, in all three variants.

Compared after every step: which chances were taken, red's action, target, exploit and success, access and files per host,
the OT service, the observation and the reward. Not compared: process ids, addresses and ephemeral ports.
"""

import gzip
import json
from pathlib import Path

import pytest

from fixfirst.base.errors import ConformanceError
from fixfirst.cyborg.conformance import ReplayReport, check_file, first_difference, read_episodes, replay_episode
from fixfirst.game import rules

FOLDER = Path(__file__).parent.parent / "conformance"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_recorded_cyborg_episodes_replay_without_a_mismatch(path):
    report = ReplayReport()
    check_file(path, report)
    assert report.mismatches == [] and report.steps > 0


def test_recorded_episodes_of_fourteen_scenarios_replay_without_a_mismatch():
    """6 to 30 hosts: Misinform, filtered and closed subnets, hosts that blue does not see, Red before Green, odd names."""
    report = ReplayReport()
    for path in sorted((FOLDER / "scenarios").glob("*.jsonl.gz")):
        check_file(path, report)
    assert (report.mismatches, report.episodes, report.steps) == ([], 364, 16_464)


def test_recorded_episodes_of_learned_attackers_replay_without_a_mismatch():
    """noise, two-fronts and base-attacker on CybORG, against guardian, champion and baselines, in two variants."""
    report = ReplayReport()
    check_file(FOLDER / "attackers" / "learned.jsonl.gz", report)
    assert (report.mismatches, report.episodes, report.steps) == ([], 14, 1_400)


def test_loading_another_scenario_compiles_nothing():
    """One type of records for up to 15 hosts, and one for more: all fourteen scenarios share two machine codes."""
    for path in sorted((FOLDER / "scenarios").glob("*.jsonl.gz")):
        replay_episode(next(read_episodes(path)))
    assert len(rules.step_batch.signatures) <= 2 and len(rules.reset_batch.signatures) <= 2


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ("../d02_tiny.yaml", "name of a file beside the recording"),
        ("nowhere.yaml", "its scenario cannot be loaded"),
        (5, "name of a file beside the recording"),
    ],
)
def test_a_scenario_is_a_file_beside_the_recording(scenario, says, tmp_path):
    with pytest.raises(ConformanceError, match=says):
        list(read_episodes(write(tmp_path / "x.jsonl", first_episode() | {"scenario": scenario})))


def test_all_variants_agents_and_green_are_recorded():
    names = {path.name.removesuffix(".jsonl.gz") for path in FILES}
    variants = {
        f"{red}{green}{v}" for red in ("b_line", "meander") for green in ("", "_green") for v in ("", "_leaderboard")
    }
    assert names == variants | {f"{red}{g}_debugged" for red in ("b_line", "meander") for g in ("", "_green")} | {
        "sleep",
        "sleep_green",
    }


def first_episode(name="b_line"):
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return json.loads(next(lines))


def write(path, *episodes):
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    return path


BLUE, CHANCE, RED, OBSERVATION, REWARD, ACCESS, MALWARE, OT = range(8)


@pytest.mark.parametrize(
    ("position", "value", "field", "host", "expected", "got"),
    [
        (OBSERVATION, "00d1000001000", "observation", "Enterprise2", "0001", "0000"),
        (REWARD, -2, "reward10", None, -2, -1),
        (ACCESS, "00p00000pp000", "access", "Enterprise1", "p", "r"),
        (MALWARE, "0010000001001", "malware", "User4", "1", "0"),
        (OT, "stopped", "ot", None, "stopped", "running"),
        (RED, ["exploit", "c", 1, "HTTPRFI"], "red exploit", None, "HTTPRFI", "HTTPSRFI"),
        (
            CHANCE,
            [["other", "BlueKeep"], ["top", 1]],
            "chance decisions",
            None,
            ["other", "top"],
            ["other", "top", "detected"],
        ),
        (CHANCE, [["other", "HarakaRCE"], ["top", 1], ["detected", 1]], "chance outcomes possible", None, True, False),
    ],
)
def test_a_changed_recording_is_caught_at_its_step_field_and_host(tmp_path, position, value, field, host, expected, got):
    """Step 6 of the first recorded episode: red exploits Enterprise1 with HTTPSRFI and is seen."""
    episode = first_episode()
    assert episode["steps"][5][RED] == ["exploit", "c", 1, "HTTPSRFI"]
    episode["steps"][5][position] = value
    report = ReplayReport()
    check_file(write(tmp_path / "changed.jsonl", episode, first_episode("meander")), report)
    (mismatch,) = report.mismatches
    assert (mismatch.step, mismatch.field, mismatch.host, mismatch.expected, mismatch.got) == (6, field, host, expected, got)
    assert report.episodes == 2


def test_a_wrong_sum_of_rewards_is_a_mismatch(tmp_path):
    episode = first_episode() | {"return10": 0}
    (decoded,) = read_episodes(write(tmp_path / "sum.jsonl", episode))
    assert first_difference(decoded, replay_episode(decoded)).field == "return10"


@pytest.mark.parametrize("variant", ["leaderboard", "debugged"])
def test_recordings_of_one_variant_do_not_fit_another(variant):
    """The recordings tell the variants apart: a simulator of `current` fails on them."""
    from dataclasses import replace

    episodes = [replace(e, variant="current") for e in read_episodes(FOLDER / f"b_line_{variant}.jsonl.gz")]
    assert sum(first_difference(e, replay_episode(e)) is not None for e in episodes) > len(episodes) / 10


def truncated(path):
    data = (FOLDER / "sleep.jsonl.gz").read_bytes()
    path = path.with_suffix(".jsonl.gz")
    path.write_bytes(data[: len(data) // 2])
    return path


def edited(**changes):
    return lambda path: write(path, first_episode() | changes)


def edited_step(position, value):
    def make(path):
        episode = first_episode()
        episode["steps"][3][position] = value
        return write(path, episode)

    return make


def text(content):
    def make(path):
        path.write_text(content)
        return path

    return make


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path, "no such file"),
        (truncated, "cut off or damaged"),
        (text(""), "holds no episodes"),
        (text("[1, 2]\n"), "expected a JSON object"),
        (text('{"id": 1'), "line 1: not a recorded episode"),
        (text('{"id": 1}\n'), "no field 'steps'"),
        (lambda path: (path.with_suffix(".gz").write_text("plain"), path.with_suffix(".gz"))[1], "cannot be read"),
        (lambda path: (path.write_bytes(b"\xff\xfe"), path)[1], "not a recorded episode"),
        (lambda path: path.parent, "cannot be read"),
        (edited(red="blue"), "red is 'blue', not one of b_line, meander, sleep"),
        (edited(variant="next"), "variant is 'next', not one of current, leaderboard, debugged"),
        (edited(steps=[[1, 2]]), "step 1 must have 8 values"),
        (edited_step(BLUE, 145), "blue action 145 is not in 0..144"),
        (edited_step(BLUE, "x"), "blue action must be a whole number"),
        (edited_step(OBSERVATION, "00"), "observation must be 13 of the letters"),
        (edited_step(CHANCE, [["dice", 1]]), "chance decision is 'dice'"),
        (edited_step(CHANCE, [["top", 1], ["other", "BlueKeep"]]), "in the order"),
        (edited_step(CHANCE, [["addresses", "aabcdefghijkl"]]), "each of abcdefghijklm once"),
        (edited_step(RED, ["fly", None, 1, None]), "red verb is 'fly'"),
        (edited_step(REWARD, 10**20), "not a recorded episode"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_one_line(tmp_path, make, says):
    with pytest.raises(ConformanceError) as error:
        list(read_episodes(make(tmp_path / "bad.jsonl")))
    assert says in str(error.value) and "\n" not in str(error.value)
