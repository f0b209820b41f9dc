"""Imported by every Python process that finds this folder in PYTHONPATH. After writing a file that the test named, it waits.

The test names files in $FIXFIRST_TEST_HOLDS/points.json (support/held.py): [[end of the path, text in the file], ...].
A process waits until it is killed, its job is interrupted, or the test names other files.
"""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ.get("FIXFIRST_TEST_HOLDS", os.devnull))
move = os.replace


def round_of(path):
    """The number of the test's list of files, if it names this one."""
    try:
        number, points = json.loads((FOLDER / "points.json").read_text())
        named = any(path.endswith(end) and text in Path(path).read_text() for end, text in points)
    except OSError:  # there is no list, or no such file any more
        return None
    return number if named else None


def interrupted():
    """Has the job that writes this file been asked to stop? It learns so from its argument."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_locals.get("interrupt"):
            return True
        frame = frame.f_back
    return False


def replace(source, target, **folders):
    move(source, target, **folders)
    path = os.fspath(target)
    while (number := round_of(path)) is not None and not interrupted():
        (FOLDER / f"{number}-{os.getpid()}.held").touch()
        time.sleep(0.02)


os.replace = replace
