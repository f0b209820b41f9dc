"""An agent named on the command line: its code is run because somebody typed its name, and for no other reason."""

import json
import signal
import subprocess
import sys

import pytest
from processes import eventually

import fixfirst as ff
from fixfirst.cli import main

AGENT = """
import numpy as np

def sleeper(obs):
    return np.zeros(len(obs), int)

class Failing:
    def act(self, obs):
        raise KeyError("nobody")

class Looping:
    def act(self, obs):
        open("looping", "w").close()
        while True:
            pass
"""
SMALL = ["--episodes", "3", "--red-agent", "b_line", "--steps", "5"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_defenders.py").write_text(AGENT)
    yield tmp_path
    sys.modules.pop("my_defenders", None)


@pytest.mark.parametrize("name", ["my_defenders:sleeper", "my_defenders.py:sleeper"])
def test_a_file_or_a_module_names_an_agent(name, capsys):
    assert main(["evaluate", "sleep", *SMALL, "--json"]) == 0
    right = json.loads(capsys.readouterr().out)
    assert main(["evaluate", name, *SMALL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == right
    assert main(["compare", name, "sleep", *SMALL]) == 0
    assert f"first: {name}" in capsys.readouterr().out
    assert main(["watch", name, "--text", "--beside", name, *SMALL]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, said",
    [
        ("my_defenders.py:sleper", "my_defenders.py has no 'sleper'; did you mean 'sleeper'?"),
        ("nowhere.py:x", "nowhere.py: there is no such file"),
        ("nowhere:x", "there is no module 'nowhere' here, nor is one installed"),
        ("my_defenders:np", "a policy must be a path, a loaded policy, or a function"),
        ("my_defenders:Failing", "my_defenders:Failing failed in step 1 (KeyError: 'nobody')"),
        ("broken.py:x", "broken.py does not run (ZeroDivisionError: division by zero)"),
    ],
)
def test_what_is_wrong_is_one_line_after_the_traceback_of_their_code(name, said, folder, capsys):
    (folder / "broken.py").write_text("1 / 0")
    assert main(["evaluate", name, *SMALL]) == 2
    *traceback, line = capsys.readouterr().err.splitlines()
    assert line.startswith("fixfirst: ") and said in line
    assert bool(traceback) == ("Failing" in name or "broken" in name)


def test_no_code_is_run_for_a_name_that_comes_from_elsewhere(folder):
    (folder / "evil.py").write_text("open('ran', 'w')\nagent = len")
    for call in (
        lambda: ff.evaluate("evil.py:agent"),
        lambda: ff.train(from_policy="evil.py:agent", workflow="none", total_episodes=10, out="run", quiet=True),
        lambda: ff.BlueAgent("evil:agent"),
    ):
        with pytest.raises(ff.FixfirstError):
            call()
    assert not (folder / "ran").exists()


def test_an_agent_that_loops_can_be_interrupted(folder):
    words = [sys.executable, "-m", "fixfirst", "evaluate", "my_defenders:Looping", *SMALL]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert eventually(lambda: (folder / "looping").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1].splitlines()[-1] == "fixfirst: interrupted" and process.returncode == 130
