"""Growing CSV files that survive a crash, and reading them back."""

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Generic, TypeVar

from fixfirst.errors import RunDirError
from fixfirst.reading import read_file
from fixfirst.runs.files import write_atomically
from fixfirst.runs.rows import CHECK, Row

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

    A damaged line raises RunDirError; with `on_damage`, it is told there and left out.
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
    try:
        lines = read_file(path, kind.largest_file).decode("utf-8", errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return
    except ValueError as e:
        raise RunDirError(f"{path}: cannot be read ({e})") from e
    if not lines:
        return
    columns = _columns(path, lines[0], kind)
    for number, line in enumerate(lines[1:], start=2):
        try:
            yield kind.read(dict(zip(columns, _cells(line, len(columns)), strict=True))), line
        except ValueError as e:
            said = f"{path}: line {number} is damaged ({e})"
            if on_damage is None:
                raise RunDirError(said) from None
            on_damage(said)


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


def _cut_half_line(path: Path) -> None:
    data = read_file(path)
    if data and not data.endswith(b"\n"):
        write_atomically(path, data[: data.rfind(b"\n") + 1])


def _check_header(path: Path, kind: type[Row]) -> None:
    header = read_file(path).partition(b"\n")[0].decode("utf-8", errors="replace")
    if _columns(path, header, kind) != kind.columns():
        raise RunDirError(f"{path}: was begun by an earlier version, which can finish it")
