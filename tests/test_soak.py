"""A slice of the soak (docs/reliability.md): some kills, crashes, races, damaged files, wrong arguments, states."""

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

SOAK = Path(__file__).parent.parent / "benchmarks" / "soak"


def test_a_few_tries_of_every_kind_find_nothing(tmp_path):
    command = [sys.executable, SOAK, "--slice", "--keep", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S)
    assert run.returncode == 0, run.stdout + run.stderr
    kinds = [line.split()[0] for line in run.stdout.splitlines()]
    assert kinds == ["kills", "interrupts", "crashes", "races", "readers", "damage", "calls", "limits", "states", "memory"]
