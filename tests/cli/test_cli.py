"""The command line: what to expect when it is used, and when it is misused."""

import json
import subprocess
import sys

import pytest

from fixfirst import __version__
from fixfirst.cli import bench, main
from fixfirst.runs.layout import unused_folder


def test_python_dash_m_is_the_command():
    run = subprocess.run([sys.executable, "-m", "fixfirst", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == __version__


@pytest.mark.parametrize("command", [[], ["conform"], ["record"], ["doctor"], ["bench"], ["watch"]])
def test_help_is_there(command, capsys):
    assert main([*command, "--help"]) == 0
    assert "Usage: fixfirst" in capsys.readouterr().out


def test_bench_prints_what_it_measures(monkeypatch, capsys):
    monkeypatch.setattr(bench, "BATCHES", (1, 10))
    monkeypatch.setattr(bench, "SECONDS", 0.0)
    assert main(["bench", "--scenario", "tiny", "--json"]) == 0
    speeds = json.loads(capsys.readouterr().out)["steps_per_s"]
    assert set(speeds["b_line"]) == set(speeds["meander"]) == {"make_vec(1)", "make_vec(10)", "gym.make"}
    assert all(speed > 0 for rates in speeds.values() for speed in rates.values())
    assert main(["bench", "--scenario", "tiny"]) == 0 and "make_vec(10)" in capsys.readouterr().out


def test_a_run_without_a_name_gets_one_that_is_free(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        names.append(str(unused_folder("train-b_line:0.5,meander:0.5-0")))
        (tmp_path / names[-1]).mkdir(parents=True)
    first = "runs/train-b_line0.5-meander0.5-0"
    assert names == [first, f"{first}-2", f"{first}-3"]
