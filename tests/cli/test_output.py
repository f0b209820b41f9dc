"""Where the output goes may be full, closed or gone; what is written never replaces what is read, nor a file of a run."""

import shlex
import shutil
import subprocess
import sys
from hashlib import sha256

import pytest
from patience import PATIENCE_S
from run_folder import write_search
from searches import one_line

from fixfirst.cli import main
from fixfirst.game.attacker_files import SHIPPED
from fixfirst.game.scenario import CAGE2


def shell(script, *arguments, folder):
    """A script of the shell, in which "$@" is the command."""
    words = ["bash", "-c", script, "bash", sys.executable, "-m", "fixfirst", *map(str, arguments)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)


def test_a_full_stdout_is_one_line(tmp_path):
    write_search(tmp_path / "runs" / "one")
    run = shell('"$@" > /dev/full', "runs", folder=tmp_path)
    assert (run.returncode, run.stderr) == (2, "fixfirst: output: No space left on device\n")


@pytest.mark.parametrize("command", ["--help", "watch sleep --episodes 3 --text"])
def test_what_nobody_reads_to_its_end_is_no_error(tmp_path, command):
    run = shell('set -o pipefail; "$@" | head -c 1', *command.split(), folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_terminal_that_knows_few_characters(tmp_path):
    run = shell('PYTHONIOENCODING=ascii:strict "$@"', "runs", "café", folder=tmp_path)
    assert run.returncode == 2 and run.stderr.startswith("fixfirst: caf?: no such folder")


def test_terminal_escapes_of_a_run_do_not_reach_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = write_search(tmp_path / "runs" / "one", red_agent="\x1b[2J[red]b_line[/red]")
    (folder / "trials.csv").write_text("\x1b[2J\n")
    write_search(tmp_path / "runs" / "two", red_agent="\x1b[2J[red]b_line[/red]")
    for command in (["resume", "runs/one"], [], ["runs"]):
        main(command)
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
    assert "[red]" in said.out  # and no markup either


# ---------------------------------------------------------------- files where the user says

AGENT = "def play(observations):\n    return [0] * len(observations)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "run").mkdir()
    for name in ("manifest.json", "training_log.csv", "trials.csv"):
        (folder / "run" / name).write_text("{}")
    shutil.copytree(SHIPPED / "champion", folder / "policy")
    (folder / "net.yaml").write_text(CAGE2.to_yaml())
    (folder / "net.csv").write_text("host,subnet\na,b\n")
    (folder / "my.py").write_text(AGENT)
    return folder


READ, RECORD = "which is read here and would be lost; name another file", "a file of a run, which would be lost"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("scenario net.csv --out net.csv", READ),
        ("scenario net.yaml --out ./run/../net.yaml", READ),
        ("scenario cage2 --out run/manifest.json", RECORD),
        ("report run --out run/manifest.json", RECORD),
        ("evaluate run --csv run/training_log.csv", RECORD),
        ("evaluate run --latex run/trials.csv", RECORD),
        ("evaluate my.py:play --csv my.py", READ),
        ("compare sleep my.py:play --csv my.py", READ),
        ("export policy --out policy/policy.json", RECORD),
        ("export policy --out policy", "out must be a file, got the folder 'policy'"),
        ("watch policy --out policy/policy.json", RECORD),
        ("watch my.py:play --out my.py", READ),
        ("search --config net.yaml --csv net.yaml", READ),
    ],
)
def test_an_output_over_an_input_or_a_file_of_a_run_is_refused_before_anything_is_written(
    command, says, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    before = {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}
    assert main(shlex.split(command)) == 2
    one_line(capsys, says)
    assert {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()} == before


def test_a_table_may_be_written_into_a_run_again_and_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in range(2):
        assert main(shlex.split("evaluate sleep --episodes 2 --steps 3 --red-agent sleep -q --csv run/mine.csv")) == 0
