"""Texts and tables that fit the terminal they are printed on. Whatever names they hold, a terminal obeys none of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from fixfirst.base import errors
from fixfirst.base.tables import Table

NARROW = 20  # characters in which an order takes three lines
PLAIN_WIDTH = 240  # of tables that go to a file: room for an order of 13 hosts


class PatientConsole(Console):
    """A console whose reader may go away. Rich would end the program; but work of which progress was shown goes on."""

    def on_broken_pipe(self) -> None:
        if not self.stderr:
            raise BrokenPipeError
        self.quiet = True


class Strong(str):
    """A text that stands out."""


class Copied(str):
    """A line that is to be copied: it is never broken."""


def results() -> Console:
    """Return where tables of results go: stdout, as wide as the terminal."""
    console = PatientConsole()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def show(*parts: str | Table, console: Console | None = None, colours: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print texts, on a terminal broken between words and elsewhere a line each, and what people see of tables.

    colours: of cells by their text.
    """
    console = console or results()
    for part in parts:
        if isinstance(part, Table):
            for table in fitting_tables(part, console.width, colours) if part.rows else ():
                console.print(table)
        else:
            text = Text(errors.printable(part), "bold" if isinstance(part, Strong) else "")
            console.print(text, soft_wrap=isinstance(part, Copied) or not console.is_terminal)


def fitting_tables(table: Table, width: int, colours: Mapping[str, str]) -> list[rich_table.Table]:
    """Lay a table out within `width`.

    Where that does not suffice, the first column takes up to three lines, broken between words; then the last columns stand
    in a table of their own, after the first column again. Only a word that leaves them no room, such as a path, is broken.
    """
    lines = table.cells()
    needs = [2 + max(map(len, cells)) for cells in zip(*lines, strict=True)]  # 2: the space around
    words = 2 + max(len(word) for line in lines for word in line[0].split() or [""])
    least = max(words, min(needs[0], 2 + NARROW))
    parts: list[list[int]] = [[]]
    for column in range(1, len(needs)):
        if parts[-1] and least + sum(needs[c] for c in parts[-1]) + needs[column] > width:
            parts.append([])
        parts[-1].append(column)
    tables = []
    for part in parts:
        laid_out = rich_table.Table(box=None, padding=(0, 1), header_style="bold")
        first = min(needs[0], max(2 + NARROW, width - sum(needs[column] for column in part)))
        for column in (0, *part):
            justify: Literal["left", "right"] = "right" if table.numeric[column] else "left"
            room = (needs[column] if column else first) - 2
            laid_out.add_column(Text(lines[0][column]), justify=justify, no_wrap=column > 0, overflow="fold", width=room)
        for cells in lines[1:]:
            laid_out.add_row(*(Text(cells[column], colours.get(cells[column], "")) for column in (0, *part)))
        tables.append(laid_out)
    return tables
