"""What commands show in a terminal."""

import re
import shutil
from pathlib import Path

import pytest
from run_folder import write_search
from terminal import COLOUR, in_terminal

TRAIN = ["train", "--max-steps", 10, "--n-envs", 4, "--no-tensorboard", "--total-episodes"]
MOVE = re.compile(r"\x1b\[[0-9;?]*[A-HJKhl]")  # of the cursor


def test_a_training_shows_a_bar_and_its_curve_no_line_is_wider_than_the_terminal_and_quiet_is_the_result_alone(tmp_path):
    """The time left is shown in `test_live.py` by a clock of its own: a fast machine is done before it is known."""
    text = in_terminal([*TRAIN, 8_000, "--out", tmp_path / "run"], width=60)
    plain = COLOUR.sub("", text)
    assert re.search(r"━+ [\d,]+/8,000", plain)
    assert re.search(r"[▁▂▃▄▅▆▇█]+ return -\d+\.\d", plain)
    assert "next:   fixfirst evaluate" in plain
    live = text.split("red agent")[0]  # the results below may wrap
    lines = [MOVE.sub("", COLOUR.sub("", line)) for line in re.split(r"[\r\n]+", live) if str(tmp_path) not in line]
    assert any("/8,000" in line for line in lines) and max(map(len, lines)) <= 60
    text = in_terminal([*TRAIN, 40, "--out", tmp_path / "quiet", "--quiet"])
    assert COLOUR.sub("", text).startswith(" red agent") and not MOVE.search(text)


SHORT = ["--episodes", 3, "--steps", 30]
WATCH = ["watch", "react-restore", *SHORT, "--workflow", "reverse"]


@pytest.mark.parametrize(
    "command",
    [
        ["resume", "run", "--no-report"],
        ["evaluate", "run", *SHORT, "--red-agent", "b_line,meander", "--quiet"],
        [*WATCH, "--no-open", "--out", "page.html"],
        [*WATCH, "--text"],
        ["compare", "champion", "champion-current", *SHORT, "--quiet"],
        ["conform", Path(__file__).parents[1] / "conformance/sleep.jsonl.gz"],
        ["doctor"],
        [],
    ],
)
def test_words_are_whole_in_70_columns(command, answered, tmp_path, monkeypatch):
    """A terminal breaks what is too long for a line wherever its edge is."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(answered, "run")
    lines = COLOUR.sub("", in_terminal(command, width=70)).splitlines()
    long = [line for line in lines if len(line) > 70 and len(max(line.split(), key=len)) < 60]  # but for paths
    assert len(lines) > 1 and not long


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(tmp_path, environment):
    write_search(tmp_path / "a")
    assert "\x1b[32mfinished" in in_terminal(["runs", tmp_path])
    plain = in_terminal(["runs", tmp_path], **environment)
    assert "finished" in plain and not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)
