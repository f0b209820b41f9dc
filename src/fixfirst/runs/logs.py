"""Growing CSV files that survive a crash, and reading them back."""

import csv
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Generic, TypeVar

from fixfirst.base.errors import RunDirError
from fixfirst.base.files import read_file
from fixfirst.runs.files import run_hash_of, write_atomically
from fixfirst.runs.rows import CHECK, Row

R = TypeVar("R", bound=Row)
MOST_DAMAGED = 1_000  # lines of one file that are told one by one


class CsvLog(Generic[R]):
    """A CSV file that grows by rows; the header is written once. A half-written last line of a crash is cut off."""

    def __init__(self, path: Path, kind: type[R]):
        self.path = path
        self._run = _run_of(path, kind)
        data = _bytes(path, kind)
        if data and not data.endswith(b"\n"):
            write_atomically(path, data := data[: data.rfind(b"\n") + 1])
        is_new = not data
        if not is_new:
            _check_header(path, data, kind)
        self._file: IO[str] = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115  closed by close()
        self._writer = csv.writer(self._file, lineterminator="\n")
        if is_new:
            self._writer.writerow(kind.columns())

    def write(self, row: R) -> None:
        self._writer.writerow(row.cells(self._run))  # None is written as an empty cell

    def sync(self) -> None:
        """What was written so far survives a crash."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_rows(path: Path, kind: type[R], on_damage: Callable[[str], None] | None = None) -> list[R]:
    """The rows of a log; a half-written last line is left out, a file that is not there has none.

    A damaged line raises RunDirError; with `on_damage`, it is told there and left out; after many of them, all else is.
    """
    return [row for row, _ in _read(path, kind, on_damage)]


def keep_rows(path: Path, kind: type[R], keep: Callable[[R], bool]) -> list[R]:
    """Rewrite a log with only the rows for which keep(row) holds: those after a checkpoint are played again."""
    rows = list(_read(path, kind))
    kept = [(row, line) for row, line in rows if keep(row)]
    if len(kept) < len(rows):
        write_atomically(
            path, "".join(f"{line}\n" for line in (",".join(kind.columns()), *(line for _, line in kept))).encode()
        )
    return [row for row, _ in kept]


def _read(path: Path, kind: type[R], on_damage: Callable[[str], None] | None = None) -> Iterator[tuple[R, str]]:
    """Every row with its line as it stands."""
    lines = (line[:-1].decode("utf-8", errors="replace") for line in io.BytesIO(_bytes(path, kind)) if line.endswith(b"\n"))
    if (header := next(lines, None)) is None:
        return
    columns, run, damaged = _columns(path, header, kind), _run_of(path, kind), 0
    for number, line in enumerate(lines, start=2):
        try:
            yield kind.read(dict(zip(columns, _cells(line, len(columns)), strict=True)), run), line
        except ValueError as e:
            said = f"{path}: line {number} is damaged ({e})"
            if on_damage is None:
                raise RunDirError(said) from None
            on_damage(said)
            damaged += 1
            if damaged == MOST_DAMAGED:
                return on_damage(f"{path}: so many lines are damaged that the rest is left out")


def _run_of(path: Path, kind: type[Row]) -> str:
    """What the checksums of a ledger are made with, beside its rows."""
    return run_hash_of(path.parent) if kind.has_check else ""


def _cells(line: str, count: int) -> list[str]:
    try:
        cells = next(csv.reader([line], strict=True), [])
    except csv.Error as e:
        raise ValueError(str(e)) from None
    if len(cells) != count:
        raise ValueError(f"it has {len(cells)} cells, not {count}")
    return cells


def _columns(path: Path, header: str, kind: type[Row]) -> tuple[str, ...]:
    """The columns of a log of this kind; in a log that an earlier version wrote, rows may lack their checksums."""
    columns = tuple(header.split(","))
    if columns not in (kind.columns(), tuple(name for name in kind.columns() if name != CHECK)):
        raise RunDirError(f"{path}: has other columns than this version writes; is it a run of another version?")
    return columns


def _bytes(path: Path, kind: type[Row]) -> bytes:
    """All of a log; nothing if it is not there."""
    try:
        return read_file(path, kind.largest_file)
    except FileNotFoundError:
        return b""
    except ValueError as e:
        raise RunDirError(f"{path}: cannot be read ({e})") from e


def _check_header(path: Path, data: bytes, kind: type[Row]) -> None:
    header = data.partition(b"\n")[0].decode("utf-8", errors="replace")
    if _columns(path, header, kind) != kind.columns():
        raise RunDirError(f"{path}: was begun by an earlier version, which can finish it")
