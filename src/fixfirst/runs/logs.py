"""Growing CSV files that survive a crash, and reading them back."""

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Generic, TypeVar

from fixfirst.errors import RunDirError
from fixfirst.runs.files import write_atomically
from fixfirst.runs.rows import Row

R = TypeVar("R", bound=Row)


class CsvLog(Generic[R]):
    """A CSV file that grows by rows; the header is written once. A half-written last line of a crash is cut off."""

    def __init__(self, path: Path, kind: type[R]):
        self.path = path
        if path.exists():
            _cut_half_line(path)
        is_new = not path.exists() or path.stat().st_size == 0
        if not is_new:
            _check_header(path, kind)
        self._file: IO[str] = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115  closed by close()
        self._writer = csv.writer(self._file, lineterminator="\n")
        if is_new:
            self._writer.writerow(kind.columns())

    def write(self, row: R) -> None:
        self._writer.writerow(row.cells())  # None is written as an empty cell

    def sync(self) -> None:
        """What was written so far survives a crash."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_rows(path: Path, kind: type[R], on_damage: Callable[[str], None] | None = None) -> list[R]:
    """The rows of a log; a half-written last line is left out, a file that is not there has none.

    A damaged line raises RunDirError; with `on_damage`, one that has all its cells is told there and left out.
    """
    return [row for row, _ in _read(path, kind, on_damage)]


def keep_rows(path: Path, kind: type[R], keep: Callable[[R], bool]) -> None:
    """Rewrite a log with only the rows for which keep(row) holds: those after a checkpoint are played again."""
    rows = list(_read(path, kind))
    kept = [f"{line}\n" for row, line in rows if keep(row)]
    if len(kept) < len(rows):
        write_atomically(path, "".join([",".join(kind.columns()) + "\n", *kept]).encode())


def _read(path: Path, kind: type[R], on_damage: Callable[[str], None] | None = None) -> Iterator[tuple[R, str]]:
    """Every row with its line as it stands."""
    if not path.exists():
        return
    text = path.read_bytes().decode("utf-8", errors="replace")
    lines = text.split("\n")[:-1]
    if not lines:
        return
    columns = kind.columns()
    _check_header(path, kind)
    for number, line in enumerate(lines[1:], start=2):
        cells = next(csv.reader([line]), [])
        if len(cells) != len(columns):
            raise RunDirError(f"{path}: line {number} is damaged; it does not have {len(columns)} cells")
        try:
            row = kind.read(dict(zip(columns, cells, strict=True)))
        except ValueError as e:
            said = f"{path}: line {number} is damaged ({e})"
            if on_damage is None:
                raise RunDirError(said) from None
            on_damage(said)
            continue
        yield row, line


def _cut_half_line(path: Path) -> None:
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        write_atomically(path, data[: data.rfind(b"\n") + 1])


def _check_header(path: Path, kind: type[Row]) -> None:
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        header = next(csv.reader(file), [])
    if tuple(header) != kind.columns():
        raise RunDirError(f"{path}: has other columns than this version writes; is it a run of another version?")
