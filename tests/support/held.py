"""Processes that wait where a test wants to kill or interrupt them, however fast the machine is.

holds.at(checkpoint(2))                            whoever has written the checkpoint of its second update waits from now on
process = launch(..., environment=holds.environment)
wait_for(process, lambda: holds.waiting() == 1)
process.kill()
"""

import json
import os
from pathlib import Path

from processes import gone

HOOK = Path(__file__).parent / "holds"  # its sitecustomize.py makes a process wait


class Holds:
    """Points at which processes wait, named in a folder."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self._round = folder, 0

    @property
    def environment(self):
        """Variables of a process that shall wait; its children inherit them."""
        paths = filter(None, [str(HOOK), os.environ.get("PYTHONPATH")])
        return {"FIXFIRST_TEST_HOLDS": str(self.folder), "PYTHONPATH": os.pathsep.join(paths)}

    def at(self, *points):
        """From now on, whoever has written one of these files waits, nobody else: (end of its path, text in it)."""
        self._round += 1
        new = self.folder / "new"
        new.write_text(json.dumps([self._round, points]))
        new.replace(self.folder / "points.json")

    def waiting(self):
        """How many processes wait."""
        pids = [int(path.stem.partition("-")[2]) for path in self.folder.glob(f"{self._round}-*.held")]
        return sum(not gone(pid) for pid in pids)


def checkpoint(update, text=""):
    """The point after a checkpoint of so many updates. text: the order of a training, if it must be that one."""
    return f"checkpoint-{update:08d}.json", text
