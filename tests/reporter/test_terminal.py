"""What the commands show in a terminal, what they list, and what `fixfirst` alone tells a newcomer."""

import json
import re
from pathlib import Path

import pytest
from run_folder import write_search, write_session
from terminal import COLOUR, in_terminal

from fixfirst.cli import main
from fixfirst.runs.layout import Kind
from fixfirst.runs.manifest import create_run
from fixfirst.runs.sessions import locked

TINY = ["--max-steps", "10", "--n-envs", "4", "--total-episodes", "400", "--no-tensorboard"]
MOVE = re.compile(r"\x1b\[[0-9;?]*[A-HJKhl]")  # of the cursor


# ---------------------------------------------------------------- in a terminal


def test_a_training_shows_a_bar_and_its_curve_and_no_line_is_wider_than_the_terminal(tmp_path):
    """The time left is shown in `test_screen.py` by a clock of its own: a fast machine is done before it is known."""
    longer = [word.replace("400", "8000") for word in TINY]  # so that there is time to show something
    shown = in_terminal(["train", "--out", tmp_path / "run", *longer], width=60)
    plain = COLOUR.sub("", shown)
    assert re.search(r"━+ [\d,]+/8,000", plain)
    assert re.search(r"[▁▂▃▄▅▆▇█]+ return -\d+\.\d", plain)
    assert "next:   fixfirst evaluate" in plain
    live = shown.split("red agent")[0]  # the results below may wrap
    lines = [MOVE.sub("", COLOUR.sub("", line)) for line in re.split(r"[\r\n]+", live) if str(tmp_path) not in line]
    assert any("/8,000" in line for line in lines) and max(map(len, lines)) <= 60


def test_a_search_and_an_evaluation_fit_into_70_columns_with_intervals_and_violations(tmp_path):
    """Nothing is broken inside a word: what wraps, wraps as in a wide terminal between the same words."""
    sizes = {"replicates": 2, "rounds": 2, "base_episodes": 8, "measure_episodes": 8, "max_steps": 10, "n_envs": 4}
    small = {f"FIXFIRST_{name.upper()}": str(value) for name, value in sizes.items()}
    searching = ["search", "--total-episodes", 80, "--workers", 1, "--no-report", "--no-tensorboard", "--quiet"]
    evaluating = ["evaluate", tmp_path / "70", "--episodes", 4, "--steps", 30, "--red-agent", "b_line,meander", "--quiet"]
    shown = {}
    for width in (70, 200):
        commands = ([*searching, "--out", tmp_path / str(width)], evaluating)
        shown[width] = [COLOUR.sub("", in_terminal(command, width=width, **small)) for command in commands]
    for narrow, wide in zip(shown[70], shown[200], strict=True):
        lines = [line.rstrip() for line in narrow.splitlines() if str(tmp_path) not in line]
        assert max(map(len, lines)) <= 70
        words = set(" ".join(line for line in wide.splitlines() if str(tmp_path) not in line).split())
        assert set(" ".join(lines).split()) == words
    found, evaluated = shown[70]
    assert re.search(r"-\d+\.\d\d +- ", found)  # there is no interval before there is an answer
    assert re.search(r"\d\.\d+, at most \d\.\d+", found)
    assert re.search(r"b_line +30 .*\[-?[\d.,]+, -?[\d.,]+\]", evaluated) and re.search(r"red agent .*contested", evaluated)


WATCH = ["watch", "react-restore", "--episodes", 3, "--steps", 30, "--workflow", "reverse"]


@pytest.mark.parametrize(
    "command",
    [
        [*WATCH, "--no-open", "--out", "page.html"],
        [*WATCH, "--text"],
        ["compare", "champion", "champion-current", "--episodes", 3, "--steps", 30, "--quiet"],
        ["conform", Path(__file__).parents[1] / "conformance/sleep.jsonl.gz"],
        ["doctor"],
        [],
    ],
)
def test_words_are_whole_in_70_columns(command, tmp_path, monkeypatch):
    """A terminal breaks what is too long for a line wherever its edge is."""
    monkeypatch.chdir(tmp_path)
    lines = COLOUR.sub("", in_terminal(command, width=70)).splitlines()
    whole = [line for line in lines if len(line) > 70 and len(max(line.split(), key=len)) < 60]  # but for paths
    assert len(lines) > 1 and not whole


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(tmp_path, environment):
    write_search(tmp_path / "a")
    assert COLOUR.search(in_terminal(["runs", tmp_path]))
    plain = in_terminal(["runs", tmp_path], **environment)
    assert "finished" in plain and not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)


def test_quiet_says_nothing_but_the_result(tmp_path):
    shown = in_terminal(
        ["train", "--out", tmp_path / "run", *TINY[:4], "--total-episodes", "40", "--no-tensorboard", "--quiet"]
    )
    assert COLOUR.sub("", shown).startswith(" red agent") and not MOVE.search(shown)


# ---------------------------------------------------------------- runs, and nothing at all


def test_runs_lists_them_as_a_table_or_as_json(tmp_path, capsys):
    write_search(tmp_path / "a")
    write_search(tmp_path / "study" / "c")
    write_session(tmp_path / "study" / "c", 1.0, outcome="interrupted")
    with locked(tmp_path / "study" / "c"):
        assert main(["runs", str(tmp_path), "--json"]) == 0
    states = {Path(run["folder"]).name: run["status"] for run in json.loads(capsys.readouterr().out)}
    assert states == {"a": "finished", "c": "running"}
    assert main(["runs", str(tmp_path)]) == 0
    assert "-14.00" in capsys.readouterr().out


def test_no_folder_is_one_line_and_an_empty_one_says_how_to_begin(tmp_path, capsys):
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["runs", str(tmp_path)]) == 0
    assert "begin with: fixfirst search" in capsys.readouterr().out


def test_fixfirst_alone_says_what_to_do_first_and_later_what_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert "First:\n  fixfirst search --total-episodes 30000" in capsys.readouterr().out
    create_run(tmp_path / "runs" / "mine", Kind.SEARCH, {"seed": 0})
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "1 run here (1 interrupted)" in shown and "fixfirst resume runs/mine" in shown
