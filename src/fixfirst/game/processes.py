"""What every process that we start for CybORG does, and how many of them there may be."""

import gc
import ipaddress
import os
import signal
import threading
from functools import lru_cache
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


def settle_for_cyborg() -> None:
    """Make this process, which does nothing else, a fifth faster for CybORG, without touching CybORG.

    It copies large dictionaries all the time: looking for cycles as often as Python does would take a tenth of the time, and
    find next to nothing. And in every step it reads and prints the same few IPv4 addresses some hundred times, an eighth of
    the time; both are pure functions, so they can be remembered.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    base = getattr(ipaddress, "_BaseV4", None)  # Python's own affair: if it is not there, we are only slower
    for name in ("_ip_int_from_string", "_string_from_ip_int"):
        if hasattr(base, name):
            setattr(base, name, staticmethod(lru_cache(maxsize=4096)(getattr(base, name))))


def _end_with_parent() -> None:
    """Even in the middle of something that does not end: a thread of its own waits for it."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
