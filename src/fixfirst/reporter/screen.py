"""Tables and lines that fit the terminal they are printed on."""

import textwrap
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

NARROW = 20  # characters in which an order takes three lines
PLAIN_WIDTH = 240  # of tables that go to a file: room for an order of 13 hosts


class PatientConsole(Console):
    """A console whose reader may go away. Rich would end the program; but work of which progress was shown goes on."""

    def on_broken_pipe(self) -> None:
        if not self.stderr:
            raise BrokenPipeError
        self.quiet = True


def results() -> Console:
    """Return where tables of results go: stdout, as wide as the terminal."""
    console = PatientConsole()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def prose(console: Console, text: str) -> None:
    """Print a text: on a terminal broken between words, elsewhere one line however long."""
    console.print(text, soft_wrap=not console.is_terminal, highlight=False)


def folded(lines: Sequence[str], width: int) -> str:
    """Fold lines to a width, between words."""
    fill = textwrap.TextWrapper(width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False).fill
    return "\n".join(fill(line) if len(line) > width else line for line in lines)


def fitted(lines: Sequence[str]) -> str:
    """Fold lines for stdout to the width of the terminal; elsewhere they stay as long as they are."""
    console = results()
    return folded(lines, console.width) if console.is_terminal else "\n".join(lines)


def fitting_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, cut: str = "order") -> Table:
    """Build a table within `width`.

    Where that does not suffice, the column `cut` takes up to three lines, broken between words; then the last columns are
    left out, and at last that column takes as many lines as it needs. Columns up to it are aligned left, as texts are.
    """
    needs = [2 + max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]  # 2: the space around
    left = columns.index(cut) + 1
    narrow = min(needs[left - 1], 2 + NARROW)
    while sum(needs) - needs[left - 1] + narrow > width and len(needs) > left + 1:
        needs.pop()
    words = max(len(word) for row in (columns, *rows) for word in row[left - 1].split())
    needs[left - 1] = max(2 + words, needs[left - 1] - max(0, sum(needs) - width))
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for place, room in enumerate(needs):
        justify: Literal["left", "right"] = "left" if place < left else "right"
        wraps = place == left - 1
        table.add_column(columns[place], justify=justify, no_wrap=not wraps, overflow="fold", width=room - 2)
    for cells in rows:
        table.add_row(*map(Text, cells[: len(needs)]))
    return table
