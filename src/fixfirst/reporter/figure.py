"""One figure: SVG for the page, SVG and PNG files, the numbers in it.

Ink (text, axes) is drawn in one sentinel colour. In the page it becomes the text's colour, and the accent the page's own, so
that figures follow light and dark mode; in files ink is near black. Nothing depends on the clock or on chance: the same
numbers give the same bytes. Figures are as wide as a column of print: readable on a phone and beside text. Colours are those
of Okabe and Ito, which colour-blind readers can tell apart; meaning never depends on colour alone.
"""

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.base import files
from fixfirst.base.tables import Table

if TYPE_CHECKING:
    from matplotlib import figure as matplotlib_figure
    from matplotlib.axes import Axes

# matplotlib takes a second to import: functions that draw import it themselves.

INK = "#010203"  # sentinel, see above
PRINTED_INK = "#222222"
ACCENT = "#0072B2"  # in the page, the page's own
SECOND = "#D55E00"
PALE = "#8A8F94"
GROUP_COLOURS = (ACCENT, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH = 4.4  # inches
MOST_SCALE = 1.45  # on a wide page: text of a figure is then as large as other text
LABEL_WIDTH = 50  # characters of a line
ROW_NAME = "row-name"  # of a text that stands above its row, where lines run behind it
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fixfirst",
    "text.parse_math": False,  # names of folders may hold a $
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",  # the page may be dark
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.2,
}


@dataclass
class Drawing:
    """A figure being drawn. `tips` are texts shown when the reader points at a mark, and what can be watched there."""

    figure: "matplotlib_figure.Figure"
    tips: dict[str, tuple[str, str]] = field(default_factory=dict)

    def tip(self, text: str, watch: str = "") -> str:
        """Return an id for a mark that shows these lines. watch: the name of a replay of the document, see `document.py`."""
        name = f"tip{len(self.tips)}"
        self.tips[name] = text, watch
        return name

    def save(self, kind: str) -> bytes:
        """Return the picture: svg or png."""
        data = BytesIO()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        look: dict[str, Any] = {
            "facecolor": "none" if kind == "svg" else "white",
            "bbox_inches": "tight",
            "pad_inches": 0.06,
        }
        with _style():
            self.figure.savefig(data, format=kind, dpi=200, metadata=metadata, **look)
        return data.getvalue()


@dataclass(frozen=True)
class Figure:
    """A table that is drawn when somebody looks."""

    name: str  # of its files
    alt: str  # what it shows, for readers who cannot see it
    table: Table
    draw: Callable[[], Drawing]

    @cached_property
    def _drawing(self) -> Drawing:
        return self.draw()

    @cached_property
    def svg(self) -> str:
        """The picture, with INK."""
        marks = {}
        for name, (text, watch) in self._drawing.tips.items():
            what = f' data-watch="{escape(watch)}"' if watch else ""
            marks[name] = f'<g class="mark"{what}><title>{escape(text)}</title>'
        svg = re.sub(r'<g id="(tip\d+)">', lambda mark: marks[mark[1]], self._drawing.save("svg").decode())
        return svg.replace(f'<g id="{ROW_NAME}">', f'<g class="{ROW_NAME}">')

    def inline(self) -> str:
        """Return the SVG for an HTML page: ink is the page's text colour, ids are its own, nothing but shapes."""
        svg, name = self.svg[self.svg.index("<svg") :], self.name
        svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
        svg = re.sub(r">\s*\n\s*<", "><", svg)  # a page has many of them: no space that is not seen
        svg = re.sub(r' d="[^"]*"', lambda m: re.sub(r"\s*\n\s*", "", m[0]), svg)
        svg = svg.replace(INK, "currentColor").replace(ACCENT.lower(), "var(--accent)")
        used = set(re.findall(r"#([\w.-]+)[\")]", svg))
        svg = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
        svg = re.sub(r'(href="|url\()#([\w.-]+)', rf"\1#{name}-\2", svg)
        width = re.search(r'width="([\d.]+)pt"', svg)
        assert width is not None
        svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
        style = f"max-width: {MOST_SCALE * float(width[1]):.0f}pt"
        return svg.replace("<svg", f'<svg role="img" aria-label="{escape(self.alt)}" style="{style}"', 1)

    def write(self, folder: Path) -> list[Path]:
        """Write SVG, PNG and CSV files, and return their paths."""
        svg = self.svg.replace(INK, PRINTED_INK).encode("utf-8", "replace")
        numbers = self.table.to_csv().encode("utf-8", "replace")
        for suffix, data in {"svg": svg, "png": self._drawing.save("png"), "csv": numbers}.items():
            files.write_atomically(folder / f"{self.name}.{suffix}", data)
        return [folder / f"{self.name}.{suffix}" for suffix in ("svg", "png", "csv")]


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a folder's name in another script
        yield


@contextmanager
def drawing(height: float, x: str, *panels: str) -> Iterator[tuple[Drawing, "list[Axes]"]]:
    """Begin a figure: panels over the axis `x`, one above the other; without panels, rows. Height in inches."""
    with _style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas

        figure = Canvas(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        grid: list[Axes] = figure.subplots(len(panels) or 1, sharex=True, squeeze=False)[:, 0].tolist()
        for axes, label in zip(grid, panels or [""], strict=True):
            axes.set_ylabel(label)
            axes.grid(axis="y" if panels else "x", color=INK, alpha=0.12, linewidth=0.5)
            axes.set_axisbelow(True)
            if not panels:
                axes.spines["left"].set_visible(False)
                axes.set_yticks([])
        grid[-1].set_xlabel(wrap(x))
        figure.align_ylabels()
        yield Drawing(figure), grid


def draw_legend(axes: "Axes", columns: int = 1) -> None:
    """Draw the legend above the axes."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, handlelength=2, columnspacing=1.2)


def wrap(text: str, width: int = LABEL_WIDTH, lines: int = 4) -> str:
    """Break a text into lines, between words."""
    return "\n".join(textwrap.wrap(text, width)[:lines]) or "-"
