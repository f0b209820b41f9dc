"""One figure: SVG for the page, SVG and PNG files, the numbers in it; and rows with intervals, which most figures are.

Ink (text, axes) is drawn in one sentinel colour. In the page it becomes the text's colour, and the accent the page's own, so
that figures follow light and dark mode; in files ink is near black. Nothing depends on the clock or on chance: the same
numbers give the same bytes. Figures are as wide as a column of print: readable on a phone and beside text. Colours are those
of Okabe and Ito, which colour-blind readers can tell apart; meaning never depends on colour alone.
"""

import csv
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.base import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib takes a second to import: functions that draw import it themselves.

INK = "#010203"  # sentinel, see above
PRINTED_INK = "#222222"
ACCENT = "#0072B2"  # in the page, the page's own
SECOND = "#D55E00"
PALE = "#8A8F94"
GROUP_COLOURS = (ACCENT, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH = 4.4  # inches
MOST_SCALE = 1.45  # on a wide page: text of a figure is then as large as other text
NAME_WIDTH, LABEL_WIDTH = 56, 50  # characters of a line: names of rows, labels of axes
_MOST_ROWS, _MOST_MARKS = 200, 3_000  # of one figure
ROW_NAME = "row-name"  # of a text that stands above its row, where lines run behind it
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fixfirst",
    "pdf.fonttype": 42,
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
    "axes.labelsize": 8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.2,
    "path.simplify": True,
}


@dataclass(frozen=True)
class FigureData:
    """A drawn figure and the numbers in it."""

    name: str  # of its files
    alt: str  # what it shows, for readers who cannot see it
    svg: str  # with INK
    png: Callable[[], bytes]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

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

    def csv_text(self) -> str:
        """Return the numbers as CSV."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if value is None else value for value in row] for row in self.rows])
        return text.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write SVG, PNG and CSV files, and return their paths."""
        svg = self.svg.replace(INK, PRINTED_INK).encode("utf-8", "replace")
        contents = {"svg": svg, "png": self.png(), "csv": self.csv_text().encode("utf-8", "replace")}
        for suffix, data in contents.items():
            files.write_atomically(folder / f"{self.name}.{suffix}", data)
        return [folder / f"{self.name}.{suffix}" for suffix in contents]


@dataclass
class Drawing:
    """A figure being drawn. `tips` are texts shown when the reader points at a mark, and what can be watched there."""

    figure: "Figure"
    tips: dict[str, tuple[str, str]] = field(default_factory=dict)

    def tip(self, text: str, watch: str = "") -> str:
        """Return an id for a mark that shows these lines. watch: the name of a replay of the document, see `document.py`."""
        name = f"tip{len(self.tips)}"
        self.tips[name] = text, watch
        return name

    def finish(self, name: str, alt: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> FigureData:
        """Return the drawn figure with the numbers in it."""
        svg = self._saved("svg").decode()
        svg = re.sub(r'<g id="(tip\d+)">', self._mark, svg)
        svg = svg.replace(f'<g id="{ROW_NAME}">', f'<g class="{ROW_NAME}">')
        return FigureData(name, alt, svg, self._png, columns, tuple(rows))

    def _mark(self, found: "re.Match[str]") -> str:
        text, watch = self.tips[found[1]]
        what = f' data-watch="{escape(watch)}"' if watch else ""
        return f'<g class="mark"{what}><title>{escape(text)}</title>'

    def _png(self) -> bytes:
        with _style():
            return self._saved("png")  # INK is near black

    def _saved(self, kind: str) -> bytes:
        data = BytesIO()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        background = "none" if kind == "svg" else "white"
        self.figure.savefig(
            data, format=kind, dpi=200, metadata=metadata, facecolor=background, bbox_inches="tight", pad_inches=0.06
        )
        return data.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a folder's name in another script
        yield


@contextmanager
def drawing(height: float, *, rows: int = 1, **grid: Any) -> Iterator[tuple[Drawing, Any]]:
    """Begin a figure and its axes, one above the other; height in inches."""
    with _style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        yield Drawing(figure), figure.subplots(rows, **grid)


def draw_grid(axes: "Axes", axis: Any = "y") -> None:
    """Draw pale lines behind all else."""
    axes.grid(axis=axis, color=INK, alpha=0.12, linewidth=0.5)
    axes.set_axisbelow(True)


def draw_legend(axes: "Axes", columns: int = 1) -> None:
    """Draw the legend above the axes."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, handlelength=2, columnspacing=1.2)


def wrap(text: str, width: int = LABEL_WIDTH, lines: int = 4) -> str:
    """Break a text into lines, between words."""
    return "\n".join(textwrap.wrap(text, width)[:lines]) or "-"


def describe_interval(low: float, high: float) -> str:
    """Say an interval in words."""
    return f"{low:.2f} to {high:.2f}"


# ---------------------------------------------------------------- rows with intervals


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
    line: float = 1.4  # width of its interval
    watch: str = ""  # what can be watched there, see `Drawing.tip`


def draw_rows(
    name: str,
    alt: str,
    names: Sequence[str],
    marks: Sequence[Mark],
    label: str,
    columns: tuple[str, ...],
    numbers: Sequence[tuple[Any, ...]],
    *,
    zero: bool = False,
    margin: float = 0.0,
    height: float = 0.22,
) -> FigureData:
    """Draw marks with intervals in rows, each below its name; `label` is the axis below.

    zero: with a line there; margin: with a grey band around it. height: of a row without its name, in inches. More than a
    reader could look at is left out; `numbers` has it all.
    """
    names = [wrap(text, NAME_WIDTH) for text in names[:_MOST_ROWS]]
    marks = [mark for mark in marks if mark.row < _MOST_ROWS][:_MOST_MARKS]
    lines = max((text.count("\n") + 1 for text in names), default=1)
    with drawing(0.75 + (height + 0.13 * lines) * len(names)) as (drawn, axes):
        if margin:
            axes.axvspan(-margin, margin, color=INK, alpha=0.06, linewidth=0)
        if zero:
            axes.axvline(0, color=INK, linewidth=0.7)
        for m in marks:
            if m.low is not None and m.high is not None:
                axes.plot([m.low, m.high], [m.row, m.row], color=m.colour, linewidth=m.line, solid_capstyle="butt")
            face = "none" if m.hollow else m.colour
            edge = {"markeredgecolor": m.colour, "markerfacecolor": face, "markersize": m.size}
            axes.plot(m.value, m.row, m.shape, gid=drawn.tip(m.tip, m.watch), **edge)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(wrap(label))
        draw_grid(axes, "x")
        axes.set_yticks([])
        axes.set_ylim(len(names) - 0.5, -0.95)
        axes.locator_params(axis="x", nbins=5)
        for y, text in enumerate(names):
            axes.text(0, y - 0.22, text, fontsize=7.5, va="bottom", transform=axes.get_yaxis_transform(), gid=ROW_NAME)
        return drawn.finish(name, alt, columns, numbers)
