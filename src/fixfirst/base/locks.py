"""Locks on open files, which go with the process however it ends: Linux's own, POSIX's, and those of Windows.

Linux's belong to the open file, not to the process, and unlike others they can be asked for without being taken.
"""

import os
import struct
import sys
import time
from typing import IO, Any

PAUSE_S = 0.05

if sys.platform == "win32":
    import msvcrt

    def lock(file: IO[Any], *, shared: bool = False, wait: bool = False) -> None:
        """Take the lock, or raise BlockingIOError if somebody has it and we do not wait. Windows knows no shared ones."""
        while True:
            try:
                file.seek(0)
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError as e:
                if not wait:
                    raise BlockingIOError(*e.args) from e
                time.sleep(PAUSE_S)

    def take(descriptor: int) -> None:
        """Take the lock of a whole open file, or raise BlockingIOError."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as e:
            raise BlockingIOError(*e.args) from e

    def is_taken(descriptor: int) -> bool:
        """Has somebody taken the lock? Windows can tell only by trying."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        return False

else:
    import fcntl

    # `struct flock`: kind, whence, start, length, process; all zero but the kind means the whole file.
    _FLOCK = "hhqqi"
    _CAN_ASK = hasattr(fcntl, "F_OFD_GETLK")

    def lock(file: IO[Any], *, shared: bool = False, wait: bool = False) -> None:
        """Take the lock, or raise BlockingIOError if somebody has it and we do not wait. shared: together with others."""
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))

    def take(descriptor: int) -> None:
        """Take the lock of a whole open file, or raise BlockingIOError."""
        if _CAN_ASK:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

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
