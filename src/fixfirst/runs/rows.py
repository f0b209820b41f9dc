"""The rows of a run's CSV files, and the logs that grow by them; TensorBoard's event files, too.

A row is a frozen dataclass. A field's type is its cell's: int, float or str; `| None` means that the cell may be empty. A
column is named like its field unless the field says otherwise.
"""

import csv
import dataclasses
import io
import os
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from fixfirst.base import errors, files

LARGEST = 2.0**53  # no number of a run comes near
LARGEST_TABLE, LARGEST_LOG, LARGEST_EPISODE_LOG = 16 * files.MB, 128 * files.MB, 1024 * files.MB
LONGEST_LINE = 2**16  # bytes: orders of 13 hosts have 150


class Row:
    """What all rows can. Numbers have six decimals, here as in the file: whoever goes on from the file knows the same."""

    largest_file: ClassVar[int] = LARGEST_TABLE  # of such rows

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float):
                object.__setattr__(self, name, round(value, 6))

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the columns, but for that of the checksum."""
        return tuple(cell.column for cell in _cells(cls))  # type: ignore[arg-type]

    def values(self) -> dict[str, Any]:
        """Return the values by column, for a JSON document or a line. None becomes an empty cell there."""
        return {cell.column: getattr(self, cell.name) for cell in _cells(type(self))}  # type: ignore[arg-type]

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Build a row from what `values` gave, or from its texts; ValueError if one is not what the column holds."""
        row = object.__new__(cls)
        for cell in _cells(cls):  # type: ignore[arg-type]
            vars(row)[cell.name] = _read_cell(cell, values[cell.column])
        return row


class _Cell(NamedTuple):
    """What a column holds."""

    name: str  # of the field
    column: str
    kind: type
    optional: bool


@cache
def _cells(row: Any) -> tuple[_Cell, ...]:
    hints = typing.get_type_hints(row)
    found = []
    for f in dataclasses.fields(row):
        kinds = typing.get_args(hints[f.name]) if isinstance(hints[f.name], types.UnionType) else (hints[f.name],)
        found.append(_Cell(f.name, f.metadata.get("column", f.name), kinds[0], types.NoneType in kinds))
    return tuple(found)


def _read_cell(cell: _Cell, value: Any) -> Any:
    if cell.optional and value in ("", None):
        return None
    try:
        found = cell.kind(value)
        if cell.kind is str:
            return errors.printable(found)  # it goes to terminals and pages
        if isinstance(found, str) or abs(found) <= LARGEST:  # not of NaN
            return found
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{cell.column} is {str(value)[:60]!r}")


def _as(column: str, plot: str | None = None) -> Any:
    """A field with another column name; `plot` is its name in TensorBoard, as in Stable-Baselines3 where that has it."""
    return field(metadata={"column": column} | ({"plot": plot} if plot else {}))


def number(value: Any) -> float | None:
    """Return a finite number of a believable size, else None."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) <= LARGEST else None


# ---------------------------------------------------------------- trials.csv


class Status(StrEnum):
    """What became of a trial."""

    ACCEPTED = "accepted"  # passed the gate
    NON_COMPLIANT = "non_compliant"
    FAILED = "failed"  # its worker died again and again


@dataclass(frozen=True, kw_only=True)
class Trial(Row):
    """One finished trial of a search. All but `seconds` is the same however often the search was interrupted."""

    largest_file = 4 * files.MB

    id: int
    workflow: str
    status: Status
    return_mean: float | None = None
    return_se: float | None = None
    return_low: float | None = None
    return_high: float | None = None
    compliance: float | None = None
    compliance_low: float | None = None
    compliance_high: float | None = None
    compliance_bound: float | None = None
    judged: int | None = None
    contested_compliance: float | None = None
    contested: int | None = None
    effectiveness: float | None = None
    response: float | None = None
    repairs_per_episode: float | None = None
    episodes: int
    updates: int | None = None
    parent: int | None = None  # the trial whose weights it inherited
    policy: str | None = None  # its folder, below the run's
    policy_sha256: str | None = None
    seconds: float | None = None

    @property
    def accepted(self) -> bool:
        """Did it pass the gate?"""
        return self.status == Status.ACCEPTED

    @property
    def earned(self) -> float:
        """Its mean return, where it has one."""
        assert self.return_mean is not None, f"trial {self.id} has no return"
        return self.return_mean


# ---------------------------------------------------------------- gp_sampling_log.csv


@dataclass(frozen=True, kw_only=True)
class ChoiceRow(Row):
    """One choice of an order, with what the strategy believed of it and of the best three."""

    iteration: int  # the number of its trial
    round: int  # the number of the first trial of its round: what came before is what the strategy knew
    how: str
    beta: float | None = None
    workflow: str
    ucb: float | None = None
    mean: float | None = None
    std: float | None = None
    top1_workflow: str | None = None
    top1_ucb: float | None = None
    top1_mean: float | None = None
    top1_std: float | None = None
    top2_workflow: str | None = None
    top2_ucb: float | None = None
    top2_mean: float | None = None
    top2_std: float | None = None
    top3_workflow: str | None = None
    top3_ucb: float | None = None
    top3_mean: float | None = None
    top3_std: float | None = None


# ---------------------------------------------------------------- rounds.csv


@dataclass(frozen=True, kw_only=True)
class ValueRow(Row):
    """What one replicate earned under one order after one round, on episodes common to all."""

    round: int
    replicate: int
    workflow: str
    mean: float
    standard_error: float
    last: int = 0  # 1: the round's last row; with it the round is complete


# ---------------------------------------------------------------- league.csv


@dataclass(frozen=True, kw_only=True)
class MatrixRow(Row):
    """What the defender of a league earned after one round against one attacker, on episodes common to all rounds."""

    largest_file = 8 * files.MB

    round: int
    updates: int
    attacker: str  # a script, or the folder in attackers/
    kind: str  # script; live: it learned beside the defender; response: against the defender at the end of a round
    start: str | None  # where it began; nothing for a script
    born: int  # the round in which it was frozen; 0 for a script
    mean: float
    standard_error: float


# ---------------------------------------------------------------- training_log.csv


@dataclass(frozen=True, kw_only=True)
class UpdateRow(Row):
    """One update of a training. The first twelve columns are the reference system's, in its spelling and order."""

    largest_file = LARGEST_LOG

    trial: int = _as("Workflow_ID")
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update")
    episodes: int = _as("Episodes")  # of this training so far
    sampled: int = _as("Total_Episodes_Sampled")  # of the whole run so far
    env_reward: float = _as("Env_Reward", "rollout/ep_rew_mean")
    alignment: float = _as("Alignment_Bonus", "rollout/alignment")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance", "rollout/compliance")
    repairs: float | None = _as("Avg_Fixes", "rollout/repairs")
    collection_s: float = _as("Collection_Time", "time/collection_s")
    update_s: float = _as("Update_Time", "time/update_s")
    contested_share: float | None = _as("Contested_Share", "rollout/contested_share")
    multiplier: float = _as("Multiplier", "train/multiplier")
    approx_kl: float = _as("Approx_KL", "train/approx_kl")
    entropy: float = _as("Entropy", "train/entropy")
    policy_loss: float = _as("Policy_Loss", "train/policy_gradient_loss")
    value_loss: float = _as("Value_Loss", "train/value_loss")
    clip_fraction: float = _as("Clip_Fraction", "train/clip_fraction")
    distinct_rows: int = _as("Distinct_Rows", "train/distinct_rows")

    def plotted(self) -> list[tuple[str, float]]:
        """Return what TensorBoard shows of it: name and value."""
        found = ((f.metadata.get("plot"), getattr(self, f.name)) for f in dataclasses.fields(self))
        return [(name, value) for name, value in found if name is not None and value is not None]


# ---------------------------------------------------------------- episodes.csv, runtime.csv


@dataclass(frozen=True, kw_only=True)
class EpisodeRow(Row):
    """One training episode."""

    largest_file = LARGEST_EPISODE_LOG

    trial: int = _as("Workflow_ID")
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update")
    episode: int = _as("Episode")
    env_reward: float = _as("Env_Reward")
    alignment: float = _as("Alignment_Bonus")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance")
    repairs: int = _as("Repairs")


class Outcome(StrEnum):
    """How a time at work ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class SessionRow(Row):
    """One time a run was worked on."""

    started: str
    outcome: Outcome
    seconds: float
    workers: int
    choosing_seconds: float


# ---------------------------------------------------------------- logs

_R = TypeVar("_R", bound=Row)


class CsvLog(Generic[_R]):
    """A CSV file that grows by rows. Opening it cuts off what a crash left of a line, and all rows from the first one that
    is not to be kept: those after a checkpoint are played again. keep None: no row is kept, so none has to be whole.
    """

    def __init__(self, path: Path, kind: type[_R], keep: Callable[[_R], bool] | None = lambda row: True):
        self.last: _R | None = None  # of the rows that were there and are kept
        end = 0
        for row, place in _scan(path, kind):
            if row is not None and (keep is None or not keep(row)):
                break
            self.last, end = row, place
        self._file = open(path, "r+b" if path.exists() else "x+b")  # noqa: SIM115
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._file.write(_header(kind))

    def write(self, row: _R) -> None:
        """Add a row."""
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row.values().values())
        self._file.write(line.getvalue().encode())

    def sync(self) -> None:
        """Return when what was written so far survives a crash."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._file.close()


def read_rows(path: Path, kind: type[_R]) -> list[_R]:
    """Return the rows of a log; a half-written last line is left out, a file that is not there has none."""
    return list(iterate_rows(path, kind))


def iterate_rows(path: Path, kind: type[_R]) -> Iterator[_R]:
    """Yield the rows of a log, in the memory of one."""
    return (row for row, _ in _scan(path, kind) if row is not None)


def _scan(path: Path, kind: type[_R]) -> Iterator[tuple[_R | None, int]]:
    """Yield each row with the place in the file where it ends; first None for the header."""
    try:
        with files.open_regular(path, kind.largest_file) as file:
            header = file.readline(LONGEST_LINE)
            if header != _header(kind) and _header(kind).startswith(header):  # as far as a crash let it be written
                return
            if header != _header(kind):
                raise errors.RunDirError(
                    f"{path}: has other columns than this version writes; is it a run of another version?"
                )
            place, number = len(header), 1
            yield None, place
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                place, number = place + len(line), number + 1
                yield _read_line(kind, line[:-1], number), place
    except FileNotFoundError:
        return
    except OSError as e:
        raise errors.RunDirError(f"{path}: cannot be read ({e.strerror})") from e
    except ValueError as e:
        raise errors.RunDirError(f"{path}: damaged ({e})") from e


def _read_line(kind: type[_R], text: bytes, line_number: int) -> _R:
    try:
        cells = next(csv.reader([text.decode()], strict=True), [])
        return kind.from_values(dict(zip(kind.columns(), cells, strict=True)))
    except (ValueError, csv.Error) as e:
        raise ValueError(f"line {line_number}: {e}") from None


def _header(kind: type[Row]) -> bytes:
    return ",".join(kind.columns()).encode() + b"\n"


# ---------------------------------------------------------------- TensorBoard, an extra: pip install 'fixfirst[tensorboard]'


class TensorBoard:
    """TensorBoard's events of a run, from the episode it goes on from; `None` as folder: nobody wants them."""

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
            self._write(row.sampled, summary=self._summary(value=[value(tag=n, simple_value=v) for n, v in row.plotted()]))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _write(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))
        self._writer.flush()  # what was added survives a killed process
