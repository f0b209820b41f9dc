"""What figures share: colours, rows with names, grids.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; meaning never depends on colour alone.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fixfirst.reporter.figure import ACCENT, INK, ROW_NAME, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECOND = "#D55E00"
PALE = "#8A8F94"
GROUP_COLOURS = (ACCENT, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def grid_lines(axes: "Axes", axis: Any = "y") -> None:
    axes.grid(axis=axis, color=INK, alpha=0.12, linewidth=0.5)
    axes.set_axisbelow(True)


def rows_height(count: int, wide: float, lines: int = 1) -> tuple[float, float]:
    """The heights of a figure with so many rows, `wide` inches each on a page; on a phone names stand above their rows."""
    return 0.6 + wide * count, 0.75 + (0.22 + 0.13 * lines) * count


def name_rows(drawn: Drawing, axes: "Axes", names: Sequence[str], label: str) -> None:
    """A row per name, the first on top; `label` is the axis below."""
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("\n".join(textwrap.wrap(label, 46)) if drawn.narrow else label)
    grid_lines(axes, "x")
    if drawn.narrow:
        axes.set_yticks([])
        axes.set_ylim(len(names) - 0.5, -0.95)
        axes.locator_params(axis="x", nbins=5)
        for y, name in enumerate(names):
            axes.text(0, y - 0.22, name, fontsize=7.5, va="bottom", transform=axes.get_yaxis_transform(), gid=ROW_NAME)
    else:
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)


def in_words(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}"


def value_range(values: Sequence[float], pad: float = 0.06) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = pad * (high - low) or 1.0
    return low - room, high + room
