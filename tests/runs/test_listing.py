"""Which runs a folder holds, what each is in one line, and settings found by name."""

import csv
from pathlib import Path

import pytest
from run_folder import BEST, write_config, write_search, write_training

from fixfirst.cli.runs import advice, runs_table
from fixfirst.reporter.run_list import summarise_run, summarise_runs
from fixfirst.reporter.screen import results
from fixfirst.runs.layout import Kind, find_runs
from fixfirst.runs.manifest import create_run
from fixfirst.runs.sessions import Session, locked


def begin(folder, *, finished, red_agent="b_line"):
    """A search that has hardly begun."""
    create_run(folder, Kind.SEARCH, {"seed": 0, "red_agent": red_agent})
    with Session(folder) as session:
        session.finished = finished
    return folder


def shown(folder, capsys):
    results().print(runs_table(summarise_runs(folder)))
    return capsys.readouterr().out


def test_runs_are_found_by_name_also_in_studies_but_no_deeper(tmp_path):
    for place in ("b", "a", "study/c", "x/y/z"):
        begin(tmp_path / place, finished=True)
    (tmp_path / "notes.txt").touch()
    assert find_runs(tmp_path) == [tmp_path / "a", tmp_path / "b", tmp_path / "study" / "c"]
    assert find_runs(tmp_path, depth=1) == [tmp_path / "a", tmp_path / "b"]
    assert find_runs(tmp_path / "nowhere") == []


def test_a_search_is_summed_up_by_its_best_order_and_a_training_by_its_evaluation(tmp_path):
    search, training = write_search(tmp_path / "s"), write_training(tmp_path / "t", red_agent="meander")
    found = summarise_run(search)
    assert (found.kind, found.status, found.red_agent, found.workflow) == ("search", "finished", "b_line", BEST)
    assert (found.mean, found.seconds) == (-14.0, 10.0)
    found = summarise_run(training)
    assert (found.kind, found.red_agent, found.workflow, found.mean) == ("train", "meander", "none", -15.0)


def test_an_old_run_is_summed_up_all_the_same(tmp_path):
    write_config(write_search(tmp_path), {"red_agent": "sleep", "test_episodes": 1000})
    assert (summarise_run(tmp_path).red_agent, summarise_run(tmp_path).mean) == ("sleep", -14.0)


def test_running_finished_and_interrupted_ones_are_told_apart(tmp_path):
    begin(tmp_path / "a", finished=True)
    begin(tmp_path / "b", finished=False)
    begin(tmp_path / "study" / "c", finished=False)
    create_run(tmp_path / "d", Kind.SEARCH, {"seed": 0})
    with locked(tmp_path / "study" / "c"):
        states = {run.folder.name: run.status for run in summarise_runs(tmp_path)}
    assert states == {"a": "finished", "b": "interrupted", "c": "running", "d": "interrupted"}


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(tmp_path, capsys):
    (begin(tmp_path / "old", finished=True) / "manifest.json").write_text('{"schema": 99}')
    (begin(tmp_path / "torn", finished=True) / "config.toml").write_text("seed =")
    begin(tmp_path / "odd", finished=True, red_agent="[red]<b>[/red]")
    text = shown(tmp_path, capsys)
    assert "another version (schema 99" in text and "cannot be read as TOML" in text and "[red]<b>[/red]" in text


@pytest.mark.parametrize(
    ("name", "garbage"),
    [
        ("manifest.json", "[" * 100_000),
        ("config.toml", "test_episodes = []"),
        ("config.toml", "units = 3"),
        ("trials.csv", "\x00" * (csv.field_size_limit() + 1) + "\n"),
        ("trials.csv", "id\n"),
        ("runtime.csv", "when\nnow\n"),
    ],
)
def test_one_damaged_run_does_not_hide_the_others(tmp_path, name, garbage):
    write_search(tmp_path / "good")
    (write_search(tmp_path / "bad") / name).write_text(garbage)
    found = {run.folder.name: run for run in summarise_runs(tmp_path)}
    assert found["good"].mean == -14.0 and found["bad"].mean is None and found["bad"].status != "finished"


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


def test_a_newcomer_is_told_how_to_begin_and_others_how_to_go_on(tmp_path):
    assert advice([])[0][0] == "fixfirst search --total-episodes 30000"
    begin(tmp_path / "mine", finished=False)
    assert advice(summarise_runs(tmp_path))[0][0] == f"fixfirst resume {tmp_path / 'mine'}"
    commands = [command.split()[1] for command, _ in advice([summarise_run(write_search(tmp_path / "done"))])]
    assert commands == ["report", "watch", "evaluate", "search"]
