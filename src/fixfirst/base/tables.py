"""A table as a value: columns with names, rows of plain values; written as CSV, LaTeX or HTML, or given to pandas.

Files hold every column with all its digits. People are shown the columns named in `shown`, with two digits, in which
"95 % interval" stands for the columns low and high.
"""

import csv
import html
import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.base import errors, files

if TYPE_CHECKING:
    import pandas

INTERVAL = "95 % interval"
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    ">": "$>$",
    "<": "$<$",
}
_LATEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


class Tabular(ABC):
    """A result that is a table for whoever wants one: `to_pandas()`, `to_csv()`, `to_latex()`, and HTML in notebooks."""

    @abstractmethod
    def table(self) -> "Table":
        """Return it as a table."""

    def to_pandas(self) -> "pandas.DataFrame":
        """Return it as a DataFrame, if pandas is installed."""
        try:
            import pandas
        except ModuleNotFoundError as e:
            raise errors.ConfigError("to_pandas() needs pandas, which is not installed: pip install pandas") from e
        table = self.table()
        return pandas.DataFrame(list(table.rows), columns=list(table.columns))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return it as CSV, and write that to a file if one is named."""
        table, text = self.table(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(["" if value is None else value for value in row] for row in table.rows)
        return _written(text.getvalue(), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """Return it as a LaTeX tabular with booktabs rules, and write that to a file if one is named."""
        return _written("\n\n".join(table.latex() for table in self.tables()) + "\n", path)

    def tables(self) -> "Sequence[Table]":
        """Return all its tables, for people; the main one unless there are more."""
        return [self.table()]

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        return "\n".join(table.html() for table in self.tables())


@dataclass(frozen=True)
class Table(Tabular):
    """Rows of plain values under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    shown: tuple[str, ...] = ()  # to people, of all columns; none: all of them
    title: str = ""

    def table(self) -> "Table":
        """Return itself."""
        return self

    def cells(self) -> list[list[str]]:
        """Return what people see: the names of the columns shown, then the rows."""
        names = self.shown or self.columns
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return [[name.replace("_", " ") for name in names], *([_cell(name, row) for name in names] for row in rows)]

    def latex(self) -> str:
        """Return a tabular; the document needs \\usepackage{booktabs}."""
        head, *rows = [[_escaped(cell) for cell in line] for line in self.cells()]
        kinds = ["l" if _is_text(column) else "r" for column in zip(*self.cells()[1:], strict=True)] or ["l"] * len(head)
        lines = [" & ".join(line) + r" \\" for line in (head, *rows)]
        title = [f"% {self.title}"] if self.title else []
        rules = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        return "\n".join([*title, rf"\begin{{tabular}}{{{''.join(kinds)}}}", *rules, r"\end{tabular}"])

    def html(self) -> str:
        """Return an HTML table."""
        head, *rows = self.cells()
        cells = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
        cells += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{title}{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _cell(name: str, row: dict[str, Any]) -> str:
    if name == INTERVAL and name not in row:
        return "" if row["low"] is None or row["high"] is None else f"[{row['low']:.2f}, {row['high']:.2f}]"
    value = row[name]
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _is_text(cells: Sequence[str]) -> bool:
    return not all(cell == "" or cell[0] in "-+[0123456789" for cell in cells)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        with errors.writing(path, error=errors.ConfigError):
            files.write_atomically(Path(path), text.encode())
    return text
