"""Figures of tables: a row for each row of the table, with a mark for its value and a line for its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fixfirst.base.tables import NONE, Table, plain
from fixfirst.reporter.figure import ACCENT, INK, ROW_NAME, Drawing, Figure, draw_grid, drawing, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_WIDTH = 56  # characters of a line of a name
_MOST_ROWS, _MOST_MARKS = 60, 3_000  # that are drawn: the table has them all
_MOST_FACTS = 5  # of a row that a mark tells


@dataclass(frozen=True)
class Mark:
    """A value in a row of a figure, with its interval and what is shown to whoever points at it."""

    row: float  # 0 is the highest; a fraction puts it beside other marks of its row
    value: float
    tip: str
    low: float | None = None
    high: float | None = None
    colour: str = ACCENT
    shape: str = "o"
    size: float = 5
    hollow: bool = False
    watch: str = ""  # what can be watched there, see `Drawing.tip`


def table_marks(table: Table, value: str, look: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Mark]:
    """Return a mark per row of a table, which tells what people see of the row. look: colour, shape, what to watch."""
    (_, *heads), *lines = table.cells()
    marks = []
    for number, (row, (name, *cells)) in enumerate(zip(table.dicts(), lines, strict=True)):
        facts = [f"{head} {cell}" for head, cell in zip(heads, cells, strict=True) if cell != NONE][:_MOST_FACTS]
        if row[value] is not None:
            tip = "\n".join([name, *facts])
            marks.append(Mark(number, row[value], tip, row["low"], row["high"], **look(row)))
    return marks


def rows_figure(
    name: str,
    table: Table,
    marks: Sequence[Mark],
    label: str,
    *,
    names: Sequence[str] = (),
    zero: bool = False,
    margin: float = 0.0,
    height: float = 0.22,
) -> Figure:
    """Draw marks with intervals in rows, each below its name; `label` is the axis below.

    names: of the rows, if not the first column that people see of the table. zero: with a line there; margin: with a grey
    band around it. height: of a row without its name, in inches. More than a reader could look at is left out.
    """
    names = list(names) or [line[0] for line in table.cells()[1:]]
    means = "; ".join(f"{names[int(m.row)]} {plain(m.value)}" for m in marks[:_MOST_FACTS] if m.row == int(m.row))
    alt = f"{table.title or label}, {len(names)} rows: {means}"

    def draw() -> Drawing:
        shown = [wrap(text, NAME_WIDTH) for text in names[:_MOST_ROWS]]
        lines = max((text.count("\n") + 1 for text in shown), default=1)
        with drawing(0.75 + (height + 0.13 * lines) * len(shown)) as (drawn, axes):
            if margin:
                axes.axvspan(-margin, margin, color=INK, alpha=0.06, linewidth=0)
            if zero:
                axes.axvline(0, color=INK, linewidth=0.7)
            for m in [mark for mark in marks if mark.row < _MOST_ROWS][:_MOST_MARKS]:
                if m.low is not None and m.high is not None:
                    axes.plot([m.low, m.high], [m.row, m.row], color=m.colour, linewidth=1.4, solid_capstyle="butt")
                face = "none" if m.hollow else m.colour
                edge = {"markeredgecolor": m.colour, "markerfacecolor": face, "markersize": m.size}
                axes.plot(m.value, m.row, m.shape, gid=drawn.tip(m.tip, m.watch), **edge)
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
            axes.set_xlabel(wrap(label))
            draw_grid(axes, "x")
            axes.set_yticks([])
            axes.set_ylim(len(shown) - 0.5, -0.95)
            axes.locator_params(axis="x", nbins=5)
            for y, text in enumerate(shown):
                write_row_name(axes, y, text)
        return drawn

    return Figure(name, alt, table, draw)


def write_row_name(axes: "Axes", row: int, text: str) -> None:
    """Write a name above its row."""
    place: dict[str, Any] = {"va": "bottom", "transform": axes.get_yaxis_transform()}
    axes.text(0, row - 0.22, text, fontsize=7.5, gid=ROW_NAME, **place)
