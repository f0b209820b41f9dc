"""What people see in a terminal: the live view, the list of runs, and what `fixfirst` alone tells a newcomer."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest
from rich.console import Console

from fixfirst.cli.main import main
from fixfirst.orders.workflow import FIVE_TYPES, all_workflows
from fixfirst.reporter.live_search import ranking_table
from fixfirst.reporter.screen import sparkline
from fixfirst.runs.run_dir import Runtime, create_run, locked
from fixfirst.searcher.config import search_config
from fixfirst.searcher.loop import Search
from fixfirst.searcher.strategy import Strategy, StrategyConfig

TINY = ["--max-steps", "10", "--n-envs", "4", "--total-episodes", "4000", "--no-tensorboard"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MOVE = re.compile(r"\x1b\[[0-9;?]*[A-HJKhl]")  # of the cursor


def in_terminal(arguments, width=100, height=30, **environment):
    """What `fixfirst` writes to a terminal of this size."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fixfirst", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=inherited | {"TERM": "xterm-256color"} | environment,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait() == 0, text.decode()
    return text.decode()


# ---------------------------------------------------------------- pieces


def test_a_sparkline_shows_each_value_or_the_mean_of_its_share():
    assert sparkline([]) == ""
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 0, 7, 7, 0, 0, 7, 7], width=4) == "▁█▁█"
    assert sparkline([5.0, 5.0, 5.0]) == "▁▁▁"


def test_a_terrible_start_does_not_flatten_the_rest_of_a_sparkline():
    """Median -20, highest -14: everything below -38 is drawn as -38, so that -26 and -20 are still told apart."""
    assert sparkline([-900, -26, -20, -20, -14]) == "▁▅▆▆█"


def found_orders(number):
    """A search with so many accepted orders; the first is best."""
    config = search_config()
    search = Search(config, Path("unused"), [], Strategy(StrategyConfig(seed=0), FIVE_TYPES))
    for place, workflow in zip(range(number), all_workflows(), strict=False):
        row = {"id": place, "workflow": str(workflow), "status": "accepted", "return_mean": -14.0 - place, "return_se": 0.1}
        search.trials.append(row | {"compliance": 0.98, "contested_compliance": 0.9, "episodes": 10})
    return search


def lines_of_ranking(width):
    search = found_orders(3)
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(ranking_table(search, search.standings().ranking, width))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_narrow_terminal_loses_columns_and_then_letters_but_never_the_return():
    wide, middle, narrow = (lines_of_ranking(width) for width in (120, 80, 40))
    assert wide[0].split() == ["order", "return", "95", "%", "interval", "compliance", "contested"]
    assert middle[0].split() == narrow[0].split() == ["order", "return"]
    assert wide[1].split()[-4:] == ["98.0", "%", "90.0", "%"]
    for lines in (middle, narrow):
        assert [line.split()[-1] for line in lines[1:]] == ["-14.00", "-15.00", "-16.00"]
        assert len(lines) == 4
    assert "…" in narrow[1] and "…" not in middle[1] and max(map(len, narrow)) <= 40


# ---------------------------------------------------------------- in a terminal


def test_a_training_shows_a_bar_its_curve_and_the_time_left(tmp_path):
    shown = COLOUR.sub("", in_terminal(["train", "--out", tmp_path / "run", *TINY]))
    assert re.search(r"━+.* [\d,]+/4,000, \d+ s left", shown)
    assert re.search(r"[▁▂▃▄▅▆▇█]+ return -\d+\.\d", shown)
    assert "next:   fixfirst evaluate" in shown


def test_no_line_is_wider_than_the_terminal(tmp_path):
    shown = in_terminal(["train", "--out", tmp_path / "run", *TINY], width=38)
    live = shown.split("red agent")[0]  # the results below may wrap
    lines = [MOVE.sub("", COLOUR.sub("", line)) for line in re.split(r"[\r\n]+", live)]
    assert any("left" in line or "…" in line for line in lines) and max(map(len, lines)) <= 38


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(tmp_path, environment):
    create(tmp_path / "a", finished=True)
    assert COLOUR.search(in_terminal(["runs", tmp_path]))
    plain = in_terminal(["runs", tmp_path], **environment)
    assert "finished" in plain and not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)


def test_quiet_says_nothing_but_the_result(tmp_path):
    shown = in_terminal(["train", "--out", tmp_path / "run", *TINY, "--quiet"])
    assert shown.startswith("red agent") and "\x1b" not in shown


# ---------------------------------------------------------------- runs, and nothing at all


def create(folder, *, finished, **config):
    """A search that has hardly begun."""
    settings = {"seed": 0, "red_agent": "b_line", "workflow": "all", "test_episodes": 100} | config
    create_run(folder, "search", settings, {})
    with Runtime(folder) as runtime:
        runtime.finished = finished
    return folder


def test_runs_tells_running_finished_and_interrupted_ones_apart(tmp_path, capsys):
    create(tmp_path / "a", finished=True)
    create(tmp_path / "b", finished=False)
    create(tmp_path / "study" / "c", finished=False)
    create_run(tmp_path / "d", "search", {"seed": 0, "test_episodes": 100}, {})
    with locked(tmp_path / "study" / "c"):
        assert main(["runs", str(tmp_path), "--json"]) == 0
    states = {Path(run["folder"]).name: run["status"] for run in json.loads(capsys.readouterr().out)}
    assert states == {"a": "finished", "b": "interrupted", "c": "running", "d": "interrupted"}


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(tmp_path, capsys):
    (create(tmp_path / "old", finished=True) / "manifest.json").write_text('{"schema": 99}')
    (create(tmp_path / "torn", finished=True) / "config.toml").write_text("seed =")
    (create(tmp_path / "odd", finished=True, red_agent="[red]<b>[/red]")).touch()
    assert main(["runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "another version (schema 99" in shown and "cannot be read as TOML" in shown and "[red]<b>[/red]" in shown


def test_no_folder_is_one_line_and_an_empty_one_says_how_to_begin(tmp_path, capsys):
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["runs", str(tmp_path)]) == 0
    assert "begin with: fixfirst search" in capsys.readouterr().out


def test_fixfirst_alone_says_what_to_do_first_and_later_what_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert "First:\n  fixfirst search --total-episodes 30000" in capsys.readouterr().out
    create(tmp_path / "runs" / "mine", finished=False)
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "1 run here (1 interrupted)" in shown and "fixfirst resume runs/mine" in shown
