"""TensorBoard's event files, written without TensorFlow or PyTorch.

A file is a row of records: length (uint64), its checksum, an `Event` as protocol buffer, its checksum; little-endian. The
checksums are CRC-32C, which Python's library does not have and `tensorboard` computes byte by byte, three times as slowly as
all the rest together.
"""

import itertools
import os
import socket
import struct
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.runs.rows import UpdateRow

POLYNOMIAL = 0x82F63B78  # Castagnoli's, lowest bit first

_numbers = itertools.count()


class TensorBoard:
    """TensorBoard's events of a run, from the episode it goes on from; `None` as folder: nobody wants them."""

    def __init__(self, folder: Path | None, first_step: int):
        self._file = None
        if folder is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # slow to import, and not everybody needs it
            from tensorboard.compat.proto.summary_pb2 import Summary

            self._event, self._summary = Event, Summary
            folder.mkdir(parents=True, exist_ok=True)
            name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
            # Unbuffered: whole records only, and what was added survives a killed process.
            self._file = open(folder / name, "ab", buffering=0)  # noqa: SIM115  closed by close()
            self._write(Event(wall_time=time.time(), step=first_step, file_version="brain.Event:2"))
            # Hides what an interrupted run had written from this step on: it is played again.
            self._write(Event(wall_time=time.time(), step=first_step, session_log=SessionLog(status=SessionLog.START)))

    def add(self, row: UpdateRow) -> None:
        """One update, at the run's episode count."""
        if self._file is not None:
            value = self._summary.Value
            summary = self._summary(value=[value(tag=name, simple_value=number) for name, number in row.plotted()])
            self._write(self._event(wall_time=time.time(), step=row.sampled, summary=summary))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, event: Any) -> None:
        assert self._file is not None
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        self._file.write(b"".join([length, _checksum(length), data, _checksum(data)]))


def _checksum(data: bytes) -> bytes:
    """A CRC-32C as records have it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """CRC-32C of four bytes or more. It is linear: the exclusive or of what each byte contributes at its place."""
    values = np.frombuffer(data, np.uint8).copy()
    values[:4] ^= 0xFF  # a checksum starts with all bits set
    contributions = _contributions(1 << (len(data) - 1).bit_length())
    return int(np.bitwise_xor.reduce(contributions[np.arange(-len(data), 0), values])) ^ 0xFFFFFFFF


@cache
def _contributions(places: int) -> np.ndarray:
    """[places, 256] what each value of a byte contributes, by place before the end."""
    last: np.ndarray = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        last = last >> 1 ^ np.where(last & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    table = np.empty((places, 256), np.uint32)
    table[-1] = last
    for place in range(places - 2, -1, -1):
        table[place] = table[place + 1] >> 8 ^ last[table[place + 1] & 0xFF]
    return table
