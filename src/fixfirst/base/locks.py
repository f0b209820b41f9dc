"""Locks on open files. They go with the process, however it ends.

Linux's own belong to the open file, and can be asked for without being taken.
"""

import fcntl
import os
import struct
from typing import IO, Any

_FLOCK = "hhqqi"  # `struct flock`: kind, whence, start, length, process; all zero but the kind means the whole file
_CAN_ASK = hasattr(fcntl, "F_OFD_GETLK")


def lock(file: int | IO[Any], *, wait: bool = False) -> None:
    """Take the lock of an open file, or raise BlockingIOError if somebody has it and we do not wait."""
    if _CAN_ASK:
        how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(file, how, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_taken(descriptor: int) -> bool:
    """Has somebody taken the lock? On Linux only asked, elsewhere found out by taking it for a moment."""
    if _CAN_ASK:
        wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        in_the_way, *_ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
        return bool(in_the_way != fcntl.F_UNLCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
