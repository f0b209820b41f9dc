"""Where the output goes may be full, closed or gone, and Ctrl-C may come at any moment: one line, and no run is lost."""

import signal
import subprocess
import sys

import pytest
from patience import PATIENCE_S
from run_folder import write_search

from fixfirst.cli import main

RUN = ["search", "--no-report", "--workers", "1"]


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


# Presses Ctrl-C when the command begins to import what `main` is in.
AT_THE_FIRST_IMPORT = """
import signal, sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "fixfirst.cli.entry":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize(
    ("statement", "says"), [("import fixfirst.__main__", ""), ("import fixfirst.cli", "KeyboardInterrupt")]
)
def test_only_the_command_itself_ends_without_a_traceback_from_its_first_import_on(statement, says):
    run = subprocess.run([sys.executable, "-c", AT_THE_FIRST_IMPORT + statement], capture_output=True, text=True)
    assert run.stderr.strip().endswith(says) and bool(run.stderr) == bool(says)
    assert run.returncode in (-signal.SIGINT, 130)


# Sends itself a signal once the listing of runs has begun, in a shell's background, where Ctrl-C is ignored.
STOPPED = """
import signal, sys
from fixfirst.cli import entry
signal.signal(signal.SIGINT, signal.SIG_IGN)
entry._run = lambda words: signal.raise_signal(int(words[0]))
sys.exit(entry.main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_kill_and_a_closed_terminal_are_answered_like_ctrl_c(number):
    run = subprocess.run([sys.executable, "-c", STOPPED, str(int(number))], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "fixfirst: interrupted\n")
