"""TensorBoard's event files, an extra: pip install 'fixfirst[tensorboard]'."""

import time
from pathlib import Path
from typing import Any

from fixfirst.runs.rows import UpdateRow


class TensorBoard:
    """TensorBoard's events of a run, from the episode at which it continues; `None` as folder: nobody wants them."""

    def __init__(self, folder: Path | None, first_step: int):
        self._writer: Any = None
        if folder is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # slow to import, and not everybody has it
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter

            self._event, self._summary, self._writer = Event, Summary, EventFileWriter(str(folder))
            # Hides what an interrupted run had written from this step on: it is played again.
            self._write(first_step, session_log=SessionLog(status=SessionLog.START))

    def add(self, row: UpdateRow) -> None:
        """Write one update, at the run's episode count."""
        if self._writer is not None:
            value = self._summary.Value
            plotted = [value(tag=tag, simple_value=number) for tag, number in row.plotted().items()]
            self._write(row.sampled, summary=self._summary(value=plotted))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _write(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))
        self._writer.flush()  # another thread writes: what was added survives a kill
