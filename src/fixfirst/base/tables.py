"""A result as a table: one shape for files, terminals, notebooks and pages.

Files hold every column with all its digits. People see the columns `shown`: a name stands for its values as they are, a
`Column` says how the values of one row, of one column or of several, are written.
"""

import csv
import html
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.base import errors, files

if TYPE_CHECKING:
    import pandas

NONE = "-"
_MOST_LETTERS = 2_000  # of a cell
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", ">": "$>$", "<": "$<$"}
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
        writer.writerows(["" if value is None else _joined(value) for value in row] for row in table.rows)
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


def plain(value: Any) -> str:
    """Write a value: two digits unless it is whole."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return str(_joined(value))


def signed(value: float | None) -> str:
    """Write a difference with its sign."""
    return NONE if value is None else f"{value:+,.2f}"


def duration(seconds: float) -> str:
    """Write seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def percent(share: float | None) -> str:
    """Write a share in per cent."""
    return NONE if share is None else f"{100 * share:.1f} %"


def interval(low: float | None, high: float | None) -> str:
    """Write an interval."""
    return NONE if low is None or high is None else f"[{low:,.2f}, {high:,.2f}]"


@dataclass(frozen=True)
class Column:
    """What people see: a heading, and the values of one column or of several, written as one text."""

    names: str | tuple[str, ...]
    heading: str
    write: Callable[..., str] = plain


INTERVAL = Column(("low", "high"), "95 % interval", interval)


class Link(str):
    """A text that leads to a page, seen from the page it stands on."""

    address: str

    def __new__(cls, text: str, address: str) -> "Link":
        link = super().__new__(cls, text)
        link.address = address
        return link


@dataclass(frozen=True)
class Table(Tabular):
    """Rows of plain values under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    shown: tuple[str | Column, ...] = ()  # to people; none: all columns
    title: str = ""

    def table(self) -> "Table":
        """Return itself."""
        return self

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @cached_property
    def _columns(self) -> list[Column]:
        shown = self.shown or self.columns
        return [Column(each, each.replace("_", " ")) if isinstance(each, str) else each for each in shown]

    @cached_property
    def values(self) -> list[list[tuple[Any, ...]]]:
        """What is behind each cell that people see, row by row."""
        lists = [(column.names,) if isinstance(column.names, str) else column.names for column in self._columns]
        return [[tuple(row[name] for name in names) for names in lists] for row in self.dicts()]

    def cells(self) -> list[list[str]]:
        """Return what people see: the headings, then the rows."""
        texts = [[c.write(*cell) for c, cell in zip(self._columns, row, strict=True)] for row in self.values]
        lines = [[column.heading for column in self._columns], *texts]
        return [[errors.printable(cell)[:_MOST_LETTERS] for cell in line] for line in lines]

    @cached_property
    def numeric(self) -> list[bool]:
        """Which of the columns that people see read as numbers."""
        columns = [*zip(*self.cells()[1:], strict=True)] or [()] * len(self._columns)
        return [all(cell[:1] in "+-[0123456789" for cell in cells) and {*cells} != {NONE} for cells in columns]

    def latex(self) -> str:
        """Return a tabular; the document needs \\usepackage{booktabs}."""
        head, *rows = [
            " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in line) + r" \\" for line in self.cells()
        ]
        kinds = "".join("r" if number else "l" for number in self.numeric)
        title = [f"% {self.title}"] if self.title else []
        lines = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
        return "\n".join([*title, rf"\begin{{tabular}}{{{kinds}}}", *lines, r"\end{tabular}"])

    def html(self) -> str:
        """Return an HTML table. On our pages cells with `data-value` are sorted by it."""
        head, *texts = self.cells()
        marks = [' class="number"' if number else "" for number in self.numeric]
        heads = "".join(f'<th scope="col"{mark}>{html.escape(cell)}</th>' for cell, mark in zip(head, marks, strict=True))
        lines = [
            "".join(_html_cell(*cell) for cell in zip(row, values, marks, strict=True))
            for row, values in zip(texts, self.values, strict=True)
        ]
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        body = "\n".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>"


def typeset(text: str) -> str:
    """Write negative numbers with a real minus, for people who read a page."""
    return re.sub(r"(?<![\w.-])-(?=[\d.])", "\u2212", text)


def _html_cell(text: str, values: tuple[Any, ...], mark: str) -> str:
    first, text = values[0], html.escape(typeset(text))
    if isinstance(first, Link):
        text = f'<a href="{html.escape(first.address)}">{text}</a>'
    is_number = isinstance(first, int | float) and not isinstance(first, bool)
    return f'<td{mark} data-value="{first}">{text}</td>' if is_number else f"<td{mark}>{text}</td>"


def _joined(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        with errors.writing(path, error=errors.ConfigError):
            files.write_atomically(Path(path), text.encode())
    return text
