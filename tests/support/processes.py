"""Looking at other processes from outside, through Linux's /proc."""

import time
from pathlib import Path

from patience import PATIENCE_S


def gone(pid):
    """No such process, or only its name is left until someone asks for its exit code."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def eventually(condition):
    """Does it come true?"""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def children(pid):
    """The process ids of its child processes."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
