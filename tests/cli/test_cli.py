"""The command line: what to expect when it is used, and when it is misused."""

import json
import os
import subprocess
import sys

import pytest

from fixfirst import __version__
from fixfirst.base.compile import cache_folder
from fixfirst.cli import bench, main
from fixfirst.runs.layout import unused_folder


def test_python_dash_m_is_the_command():
    run = subprocess.run([sys.executable, "-m", "fixfirst", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == __version__


@pytest.mark.parametrize("command", [[], ["conform"], ["record"], ["doctor"], ["bench"], ["watch"]])
def test_help_is_there(command, capsys):
    assert main([*command, "--help"]) == 0
    assert "Usage: fixfirst" in capsys.readouterr().out


def test_bench_measures_what_it_prints(monkeypatch, capsys):
    """A short run: every speed is positive, and the table shows the numbers of the JSON document.

    The program whose start is timed is the real one, but it finds our machine code: a first and a second use of 2 and 1 s.
    """
    start_time, caches = bench.start_time, []

    def started(cache, scenario):
        assert scenario.name == "tiny"
        caches.append((cache, os.listdir(cache)))
        return 2.0 if len(caches) == 1 else 1.0

    monkeypatch.setattr(bench, "start_time", started)
    monkeypatch.setattr(bench, "BATCHES", (1, 10))
    monkeypatch.setattr(bench, "_rate", lambda work, amount, seconds, rate=bench._rate: rate(work, amount, 0.0))
    assert main(["bench", "--scenario", "tiny", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["steps_per_s"]["b_line"]) == {"make_vec(1)", "make_vec(10)", "gym.make"}
    assert all(speed > 0 for speeds in result["steps_per_s"].values() for speed in speeds.values())
    assert result["workers"]["processes"] >= 1
    assert result["first_use_s"] == {"empty_cache": 2.0, "full_cache": 1.0}
    assert caches[0] == (caches[1][0], []) and start_time(str(cache_folder().parent.parent)) > 0
    assert f"{result['steps_per_s']['meander']['gym.make']:,.0f}" in bench.speed_table(result)


def test_a_run_without_a_name_gets_one_that_is_free(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        names.append(str(unused_folder("train-b_line:0.5,meander:0.5-0")))
        (tmp_path / names[-1]).mkdir(parents=True)
    first = "runs/train-b_line0.5-meander0.5-0"
    assert names == [first, f"{first}-2", f"{first}-3"]
