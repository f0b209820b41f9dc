"""The commands on real CybORG: one clear line where it is missing; else the same work as on our simulator."""

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from held import Holds, checkpoint
from processes import children, eventually, gone
from searches import wait_for

from fixfirst.cli import main
from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE, find_cyborg
from fixfirst.cyborg.identity import identify
from fixfirst.cyborg.recordings import read_episodes

CYBORG = os.environ.get(ENVIRONMENT_VARIABLE)
needs_cyborg = pytest.mark.skipif(not CYBORG, reason=f"{ENVIRONMENT_VARIABLE} names no checkout of CybORG")


def test_a_folder_without_cyborg_is_told_in_one_line_with_the_commands_to_get_it(tmp_path, capsys):
    for command in (["doctor"], ["bench"], ["record", "--out", str(tmp_path / "x.jsonl")]):
        assert main([*command, "--cyborg", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert "holds no package CybORG" in error and "git clone https://github.com/cage-challenge" in error
        assert error.count("\n") == 1


def test_on_an_empty_machine_doctor_still_reports(monkeypatch, capsys):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert findings["cyborg"]["found"] is False and findings["versions"]["numpy"] == np.__version__
    assert findings["kernel"]["compiled"] in (True, False) and findings["threads"]["cores"] >= 1
    assert main(["doctor"]) == 0 and "git clone" in capsys.readouterr().out


@needs_cyborg
def test_doctor_tells_the_variant(capsys):
    assert main(["doctor", "--json"]) == 0
    cyborg = json.loads(capsys.readouterr().out)["cyborg"]
    assert cyborg["found"] and cyborg["variant"] in ("current", "leaderboard", "debugged")


@needs_cyborg
def test_an_episode_of_cyborg_is_watched_like_any_other(tmp_path, capsys):
    options = shlex.split("--backend cyborg --episodes 3 --steps 30 --workflow critical_first --red-agent b_line")
    assert main(["watch", "react-restore", *options, "--out", str(tmp_path), "--no-open"]) == 0
    found = identify(find_cyborg()).variant
    assert f"against b_line on cyborg, variant {found}; 3 episodes of 30 steps" in capsys.readouterr().out
    assert (tmp_path / "replay.html").stat().st_size > 50_000
    assert main(["watch", "champion", *options, "--text"]) == 0
    assert "\n      memory network quiet turns 1; User2 decoys Femitter\n" in capsys.readouterr().out


@needs_cyborg
@pytest.mark.parametrize("scenario", ["cage2", "tiny", "office"])
def test_what_is_recorded_can_be_replayed(scenario, tmp_path, capsys):
    path = tmp_path / "fresh.jsonl.gz"
    options = ["--scenario", scenario, "--out", str(path), "--episodes", "3", "--steps", "20", "--seed", "5", "--green"]
    assert main(["record", *options, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["steps"] == 60 and summary["cyborg"]["variant"] == next(read_episodes(path)).variant
    assert main(["conform", str(path)]) == 0
    assert (tmp_path / "fresh.yaml").exists() == (scenario != "cage2")


@needs_cyborg
def test_what_cyborg_does_not_have_is_not_recorded(tmp_path, capsys):
    shop, mine = tmp_path / "shop.yaml", tmp_path / "mine.yaml"
    assert main(["scenario", "examples/shop.csv", "--out", str(shop)]) == 0
    mine.write_text(f"{shop.read_text()}Reward: {{restore: 2}}\n")
    for file, why in ((shop, "has no image linux-ssh-smtp, which mail1 has"), (mine, "has a reward of its own")):
        assert main(["record", "--scenario", str(file), "--out", str(tmp_path / "x.jsonl")]) == 2
        assert why in capsys.readouterr().err and not (tmp_path / "x.jsonl").exists()


@needs_cyborg
def test_recording_processes_end_with_a_recorder_that_is_killed(tmp_path):
    command = [sys.executable, "-m", "fixfirst", "record", "--out", str(tmp_path / "x.jsonl"), "--episodes", "1000"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as recorder:
        assert eventually(lambda: len(children(recorder.pid)) >= 2)
        processes = children(recorder.pid)
        recorder.kill()
        assert eventually(lambda: all(map(gone, processes)))


# ---------------------------------------------------------------- learning on it

SMALL = ["--backend", "cyborg", "--n-envs", "4", "--max-steps", "8", "--quiet"]
ROLE = ["--memory", "full", "--action-set", "macros"]


@needs_cyborg
def test_a_training_on_cyborg_that_is_killed_goes_on_to_the_same_bytes(tmp_path):
    options = shlex.split("--total-episodes 24 --workflow enterprise_focus --no-tensorboard --checkpoint-every 1")
    options += [*SMALL, *ROLE]
    assert main(["train", *options, "--out", str(tmp_path / "whole")]) == 0
    folder = tmp_path / "killed"
    holds = Holds(tmp_path / "holds")
    holds.at(checkpoint(2))
    command = [sys.executable, "-m", "fixfirst", "train", *options, "--out", str(folder)]
    process = subprocess.Popen(command, env=os.environ | holds.environment)
    wait_for(process, lambda: holds.waiting() == 1)
    process.kill()
    process.wait()
    assert not (folder / "policy.json").exists()
    assert main(["resume", str(folder), "--quiet"]) == 0
    for name in ("policy.safetensors", "result.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@needs_cyborg
def test_a_search_on_cyborg_writes_the_same_files_as_one_on_the_simulator(tmp_path):
    budget = ["--total-episodes", "24", "--warmup-episodes", "8", "--max-episodes", "8", "--min-episodes", "0"]
    options = [*SMALL[:4], *budget, "--test-episodes", "4", "--seed", "1", "--quiet"]
    config = tmp_path / "short.toml"
    config.write_text('separate = true\nmax_steps = 8\ngate_episodes = 4\nmemory = "full"\naction_set = "macros"\n')
    assert main(["search", *options, "--config", str(config), "--out", str(tmp_path / "run")]) == 0
    assert len((tmp_path / "run" / "trials.csv").read_text().splitlines()) == 3  # a header and two trials of 8 episodes


@needs_cyborg
def test_a_policy_is_evaluated_in_both_worlds_with_the_difference(capsys):
    command = shlex.split("evaluate champion --greedy --backend both --red-agent meander --steps 10 --episodes 40")
    assert main([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    gap = row["difference"]
    assert gap["mean"] == pytest.approx(row["cyborg"]["mean"] - row["simulator"]["mean"])
    assert gap["low"] < gap["mean"] < gap["high"] and gap["margin"] == 0.5
