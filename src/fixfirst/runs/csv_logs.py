"""CSV files that grow by rows: written so that a crash loses no more than the last line, read back in the memory of one.

A row is a frozen dataclass. A field's type is its cell's: int, float or str; `| None` means that the cell may be empty. A
column is named like its field unless the field says otherwise.
"""

import csv
import dataclasses
import io
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from fixfirst.base import errors, files

_LARGEST = 2.0**53  # no number of a run comes near
_LONGEST_LINE = 2**16  # bytes: orders of 13 hosts have 150


class Row:
    """What all rows can. Numbers have six decimals, here as in the file, so that a resumed run computes with the same."""

    largest_file: ClassVar[int] = 16 * files.MB  # of such rows

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float):
                object.__setattr__(self, name, round(value, 6))

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(_cells(cls))  # type: ignore[arg-type]

    def values(self) -> dict[str, Any]:
        """Return the values by column, for a JSON document or a line. None becomes an empty cell there."""
        return {column: getattr(self, name) for column, (name, _, _) in _cells(type(self)).items()}  # type: ignore[arg-type]

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Build a row from what `values` gave, or from its texts; ValueError if one is not what the column holds."""
        row = object.__new__(cls)
        for column, (name, kind, optional) in _cells(cls).items():  # type: ignore[arg-type]
            empty = optional and values[column] in ("", None)
            vars(row)[name] = None if empty else _read_cell(column, kind, values[column])
        return row


@cache
def _cells(row: Any) -> dict[str, tuple[str, type, bool]]:
    """Return by column: the field's name, its type, and whether the cell may be empty."""
    cells, hints = {}, typing.get_type_hints(row)
    for field in dataclasses.fields(row):
        kinds = typing.get_args(hints[field.name]) or (hints[field.name],)
        cells[field.metadata.get("column", field.name)] = field.name, kinds[0], types.NoneType in kinds
    return cells


def _read_cell(column: str, kind: type, value: Any) -> Any:
    try:
        read = kind(value)
        if kind is str:
            return errors.printable(read)  # it goes to terminals and pages
        if isinstance(read, str) or abs(read) <= _LARGEST:  # not of NaN
            return read
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{column} is {str(value)[:60]!r}")


_R = TypeVar("_R", bound=Row)


class CsvLog(Generic[_R]):
    """A CSV file, open for appending. Truncates a half-written last line, and every row from the first that `keep` rejects:
    those after a checkpoint are played again. keep None rejects all rows.
    """

    def __init__(self, path: Path, kind: type[_R], keep: Callable[[_R], bool] | None = lambda row: True):
        self.last: _R | None = None  # of the rows that stay
        end = 0
        for row, row_end in _scan(path, kind):
            if row is not None and (keep is None or not keep(row)):
                break
            self.last, end = row, row_end
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


def read_rows(path: Path, kind: type[_R]) -> Iterator[_R]:
    """Yield the rows of a log, in the memory of one.

    A half-written last line is left out; a file that is not there has none.
    """
    return (row for row, _ in _scan(path, kind) if row is not None)


def _scan(path: Path, kind: type[_R]) -> Iterator[tuple[_R | None, int]]:
    """Yield each row with the offset at which it ends; first None for the header."""
    try:
        with files.open_regular(path, kind.largest_file) as file:
            header = file.readline(_LONGEST_LINE)
            if header != _header(kind):
                if _header(kind).startswith(header):  # as far as a crash let it be written
                    return
                raise errors.RunDirError(
                    f"{path}: has other columns than this version writes; is it a run of another version?"
                )
            end, number = len(header), 1
            yield None, end
            while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
                end, number = end + len(line), number + 1
                try:
                    cells = next(csv.reader([line[:-1].decode()], strict=True), [])
                    row = kind.from_values(dict(zip(kind.columns(), cells, strict=True)))
                except (ValueError, csv.Error) as e:
                    raise ValueError(f"line {number}: {e}") from None
                yield row, end
    except FileNotFoundError:
        return
    except OSError as e:
        raise errors.RunDirError(f"{path}: cannot be read ({e.strerror})") from e
    except ValueError as e:
        raise errors.RunDirError(f"{path}: damaged ({e})") from e


def _header(kind: type[Row]) -> bytes:
    return ",".join(kind.columns()).encode() + b"\n"
