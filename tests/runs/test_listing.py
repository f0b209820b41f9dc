"""Which runs a folder holds, what each is in one line, and what somebody who is new here is told to do."""

import csv
import json
from pathlib import Path

import pytest
from run_folder import BEST, write_config, write_search, write_session, write_training

from fixfirst.cli import main
from fixfirst.cli.runs import RunSummary, summarise_runs
from fixfirst.runs.layout import find_runs
from fixfirst.runs.sessions import locked


def test_runs_are_found_by_name_also_in_studies_but_no_deeper(tmp_path):
    for name in ("b", "a", "study/c", "x/y/z"):
        write_search(tmp_path / name)
    (tmp_path / "notes.txt").touch()
    assert find_runs(tmp_path) == [tmp_path / "a", tmp_path / "b", tmp_path / "study" / "c"]
    assert find_runs(tmp_path, depth=1) == [tmp_path / "a", tmp_path / "b"]
    assert find_runs(tmp_path / "nowhere") == []


def test_a_search_is_summed_up_by_its_best_order_and_a_training_by_its_evaluation(tmp_path, capsys):
    search, training = write_search(tmp_path / "s"), write_training(tmp_path / "t", red_agent="meander")
    write_config(write_search(tmp_path / "old"), {"red_agent": "sleep", "test_episodes": 1000})
    summaries = {run.folder.name: run for run in summarise_runs(tmp_path)}
    begun = "2026-01-02T03:04:05+00:00"
    assert summaries["s"] == RunSummary(search, "search", "finished", begun, "b_line", BEST, -14.0, 10.0)
    assert summaries["t"] == RunSummary(training, "train", "finished", begun, "meander", "none", -15.0, 8.0)
    assert (summaries["old"].red_agent, summaries["old"].mean) == ("sleep", -14.0)
    assert main(["runs", str(tmp_path)]) == 0
    assert "-14.00" in capsys.readouterr().out


def test_running_finished_and_interrupted_ones_are_told_apart(tmp_path, capsys):
    for name in ("a", "b", "study/c"):
        write_search(tmp_path / name)
    for name in ("b", "study/c"):
        write_session(tmp_path / name, 1.0, outcome="interrupted")
    (write_search(tmp_path / "d") / "runtime.csv").unlink()
    with locked(tmp_path / "study" / "c"):
        assert main(["runs", str(tmp_path), "--json"]) == 0
    states = {Path(run["folder"]).name: run["status"] for run in json.loads(capsys.readouterr().out)}
    assert states == {"a": "finished", "b": "interrupted", "c": "running", "d": "interrupted"}


@pytest.mark.parametrize(
    ("name", "garbage", "reason"),
    [
        ("manifest.json", "[" * 100_000, "manifest.json: cannot be read"),
        ("manifest.json", '{"schema": 99}', "another version (schema 99"),
        ("trials.csv", "\x00" * (csv.field_size_limit() + 1) + "\n", "has other columns"),
    ],
)
def test_a_damaged_run_is_listed_with_the_reason_and_does_not_hide_the_others(tmp_path, name, garbage, reason):
    write_search(tmp_path / "good")
    (write_search(tmp_path / "bad") / name).write_text(garbage)
    summaries = {run.folder.name: run for run in summarise_runs(tmp_path)}
    assert summaries["good"].mean == -14.0 and summaries["bad"].mean is None and reason in summaries["bad"].status


def test_one_that_may_not_be_looked_into_does_not_hide_the_others(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        write_search(tmp_path / name)
    is_file = Path.is_file

    def refused(path):
        if path.parent.name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    assert [path.name for path in find_runs(tmp_path)] == ["a", "c"]


def test_a_newcomer_is_told_how_to_begin_and_others_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()

    def printed(*command):
        assert main(list(command)) == 0
        return capsys.readouterr().out

    assert printed("runs") == "no runs in runs; begin with: fixfirst search\n"
    assert "First:\n  fixfirst search --total-episodes 30000" in printed()
    write_session(write_search(Path("runs/mine")), 1.0, outcome="interrupted")
    text = printed()
    assert "1 run here (1 interrupted)" in text and "Next:\n  fixfirst resume runs/mine" in text
    write_session(Path("runs/mine"), 1.0)
    commands = [line.split()[1] for line in printed().splitlines() if line.startswith("  fixfirst")]
    assert commands == ["report", "watch", "evaluate", "search"]
