"""Every example runs, or at least compiles where it needs what is not here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
CYBORG = os.environ.get("FIXFIRST_CYBORG")
SMALL = {"first_answer.py": ["600"]}
# Compiled, it takes half a minute: `docs/tutorial.md` has one that is.
NOT_RUN = {"own_red_agent.py", *(() if CYBORG else {"cyborg_loop.py"})}
FEWER = {"episodes=500": "episodes=20", "episodes=1_000": "episodes=20"}
TINY = {
    "CORES": "1",
    "WARMUP_EPISODES": "50",
    "MIN_EPISODES": "50",
    "MAX_EPISODES": "50",
    "TEST_EPISODES": "20",
    "GATE_EPISODES": "20",
    "COMPLIANCE_THRESHOLD": "0.01",
    "MIN_JUDGED": "2",
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path):
    code = path.read_text()
    compile(code, path, "exec")
    if path.name in NOT_RUN:
        return
    for long, short in FEWER.items():
        code = code.replace(long, short)
    (tmp_path / path.name).write_text(code)
    arguments = SMALL.get(path.name, [])
    if path.name == "cyborg_loop.py":
        pytest.importorskip("onnxruntime", reason="needs pip install fixfirst[onnx]")
        subprocess.run(
            [sys.executable, "-m", "fixfirst", "export", "champion", "--out", tmp_path / "policy.onnx"], check=True
        )
        arguments = [str(Path(CYBORG).resolve()), "policy.onnx"]
    variables = os.environ | {f"FIXFIRST_{name}": value for name, value in TINY.items()}
    run = subprocess.run(
        [sys.executable, path.name, *arguments], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stdout, run.stderr


def test_the_list_of_examples_is_complete():
    listed = re.findall(r"^\| `(\w+\.py)`", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
