"""`fixfirst report`: where it writes, what it tells, and how it fails."""

import json

import pytest
from run_folder import write_search

from fixfirst.cli import main


@pytest.fixture
def search(tmp_path):
    return write_search(tmp_path / "run")


@pytest.mark.parametrize("make", [lambda folder: folder.mkdir(), lambda folder: None])
def test_nothing_to_show_is_one_line_and_exit_code_2(tmp_path, capsys, make):
    folder = tmp_path / "run"
    make(folder)
    assert main(["report", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fixfirst: {folder}: ")


def test_a_report_that_cannot_be_written_is_one_line_and_exit_code_2(search, capsys):
    assert main(["report", str(search), "--out", str(search / "trials.csv" / "x.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_writes_beside_the_run_and_tells_where(search, capsys):
    assert main(["report", str(search)]) == 0
    assert capsys.readouterr().out.strip() == str(search / "report.html")
    assert (search / "report.html").read_text().startswith("<!doctype html>")


def test_the_command_tells_a_program_what_the_page_says(search, tmp_path, capsys):
    arguments = ["report", str(search), "--out", str(tmp_path / "x.html"), "--figures", str(tmp_path / "f"), "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["headline"].startswith("Fix op_host before user") and told["report"] == str(tmp_path / "x.html")
    assert told["runs"] == [str(search)] and len(told["figures"]) == 18 and told["missing"] == []
