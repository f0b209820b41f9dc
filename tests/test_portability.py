"""What only Linux has is done without elsewhere: names are taken away, and the main jobs run all the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

from small import SMALL_VARIABLES

import fixfirst as ff

# Runs first in every process of a command. These names are not there on macOS.
MACOS = """
import fcntl, os
for name in ("F_OFD_GETLK", "F_OFD_SETLK", "F_OFD_SETLKW"):
    delattr(fcntl, name)
del os.sched_getaffinity
"""
MAIN = """
import sys
from fixfirst.cli import main
if __name__ == "__main__":  # worker processes import this file again
    for command in sys.argv[1:]:
        assert main(command.split()) == 0
        print("end of", command)
"""


def test_simulator_training_and_search_need_no_linux(tmp_path):
    """Two worker processes, a page, a policy; a run that is finished is told from one that goes on."""
    (tmp_path / "sitecustomize.py").write_text(MACOS)
    path = os.pathsep.join([str(tmp_path), str(Path(ff.__file__).parent.parent)])
    commands = ["search --workers 2 --out found --quiet", "train --workflow none --out trained --quiet", "runs ."]
    ran = subprocess.run(
        [sys.executable, "-c", MAIN, *commands, "evaluate found --episodes 4 --quiet"],
        cwd=tmp_path,
        env=os.environ | SMALL_VARIABLES | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    _, _, runs, evaluated, _ = re.split(r"^end of .*\n", ran.stdout, flags=re.M)
    assert runs.count("finished") == 2 and "running" not in runs and "b_line" in evaluated
