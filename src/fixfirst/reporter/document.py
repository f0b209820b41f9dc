"""What a report is: the answer in sentences, then sections with figures, tables and how to read them.

The page and the Markdown show the same `Document`. All texts are plain; whoever writes them out escapes them.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fixfirst.base.errors import printable
from fixfirst.reporter import words
from fixfirst.reporter.figure import FigureData
from fixfirst.reporter.read import RunData
from fixfirst.runs.config_reading import setting
from fixfirst.runs.layout import replay_file

MINUS = "\u2212"
MOST_CELL = 2_000  # characters of a setting that are shown


@dataclass(frozen=True)
class Cell:
    """A cell of a table; with a value it is a number, and the table can be sorted by it."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str


@dataclass(frozen=True)
class Section:
    title: str
    text: tuple[str, ...] = ()  # paragraphs
    figures: tuple[FigureData, ...] = ()
    tables: tuple[Table, ...] = ()
    command: str | None = None  # to type

    @property
    def anchor(self) -> str:
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True)
class Replay:
    """Where the defender behind a mark can be watched."""

    command: str
    page: Path | None  # if there is one already


@dataclass(frozen=True)
class Document:
    title: str
    question: str
    lead: str  # how the headline answers it
    headline: tuple[str, ...]  # the answer: unit types in their order, or one text
    figures_of_merit: tuple[tuple[str, str], ...]  # (number, what it is): shown large
    answer: tuple[str, ...]  # in sentences
    missing: tuple[str, ...]
    sections: tuple[Section, ...]
    replays: dict[str, Replay] = field(default_factory=dict)  # by the names that marks of figures know them by
    running: bool = False  # is somebody still working on it?

    @property
    def figures(self) -> tuple[FigureData, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)


Draw = Callable[[Callable[[], FigureData]], FigureData]  # draws a figure, and may tell that it takes a while


# ---------------------------------------------------------------- words and numbers


def num(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}".replace("-", MINUS)


def interval(low: float, high: float) -> str:
    return f"{num(low)} to {num(high)}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def some(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def numeric(value: float | None, text: str | None = None) -> Cell:
    return Cell("-" if value is None else num(value) if text is None else text, value)


def replays(run: RunData) -> dict[str, Replay]:
    """Of the orders of an answer, by order, or of trials, as "trial 3"."""
    folder, found = printable(str(run.folder)), {}
    for order in () if run.answer is None else run.answer.orders:
        command = f'fixfirst watch {shlex.quote(folder)} --workflow "{order.workflow}"'
        found[order.workflow] = Replay(command, _there(run.folder / replay_file(order.workflow)))
    for trial in run.trials:
        if trial.policy is not None:
            command = f"fixfirst watch {shlex.quote(f'{folder}/{printable(trial.policy)}')}"
            found[f"trial {trial.id}"] = Replay(command, _there(run.folder / replay_file(f"trial {trial.id}")))
    return found


def _there(page: Path) -> Path | None:
    return page if page.exists() else None


def game(run: RunData) -> str:
    """Against whom, in which world."""
    red, variant = (printable(str(setting(run.config, key, "unknown"))) for key in ("red_agent", "variant"))
    return f"red agent {red}, variant {variant}"


def pairs_table(pairs: Sequence[tuple[str, str]], caption: str, columns: tuple[str, str] = ("what", "value")) -> Table:
    rows = tuple((Cell(printable(key)), Cell(printable(value)[:MOST_CELL])) for key, value in pairs)
    return Table(columns, rows, caption)


def glossary(several: bool = False) -> Section:
    entries = words.GLOSSARY + words.GLOSSARY_OF_SEVERAL if several else words.GLOSSARY
    return Section("Glossary", tables=(pairs_table(entries, "Every quantity shown", ("term", "meaning")),))
