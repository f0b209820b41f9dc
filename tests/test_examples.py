"""Every example runs, or at least compiles where it needs what is not here."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from small import ONE_CORE, with_smaller

import fixfirst as ff

EXAMPLES = Path(__file__).parent.parent / "examples"
CYBORG = os.environ.get("FIXFIRST_CYBORG")
# Compiled, it takes half a minute: `docs/tutorial.md` has one that is.
EXTRAS = {"wandb_log.py": ["wandb"], "optuna_tune.py": ["optuna"]}
NOT_RUN = {"own_red_agent.py", *(() if CYBORG else {"cyborg_loop.py"})}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    code = path.read_text()
    compile(code, path, "exec")
    if path.name in NOT_RUN:
        return
    for name in EXTRAS.get(path.name, ()):
        pytest.importorskip(name)
    arguments = ["80"] if path.name == "first_answer.py" else []
    if path.name == "cyborg_loop.py":
        pytest.importorskip("onnxruntime", reason="needs pip install fixfirst[onnx]")
        ff.export("champion", "onnx", tmp_path / "policy.onnx")
        arguments = [str(Path(CYBORG).resolve()), "policy.onnx"]
    (tmp_path / path.name).write_text(with_smaller(code, episodes=20, total_episodes=80))
    if path.name in EXTRAS:  # which stay in the process
        command = [sys.executable, path.name, *arguments]
        run = subprocess.run(command, cwd=tmp_path, env=os.environ | ONE_CORE, capture_output=True, text=True)
        assert run.returncode == 0 and run.stdout, run.stderr
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [path.name, *arguments])
    for name, value in ONE_CORE.items():
        monkeypatch.setenv(name, value)
    runpy.run_path(path.name, run_name="__main__")
    assert capsys.readouterr().out


def test_the_list_of_examples_is_complete():
    listed = re.findall(r"^\| `(\w+\.py)`", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
