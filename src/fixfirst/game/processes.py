"""What every process that we start does first, and how many of them there may be."""

import os
import signal
import threading
from multiprocessing import parent_process

CORES_VARIABLE = "FIXFIRST_CORES"  # where somebody else hands out cores, and the system does not know it


def available_cores() -> int:
    """How many cores this process may use."""
    if (granted := os.environ.get(CORES_VARIABLE, "")).isdigit():
        return max(1, int(granted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def follow_parent() -> None:
    """Called first in a new process: leave Ctrl-C to the parent, and end when the parent ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Even in the middle of something that does not end: a thread of its own waits for it."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
