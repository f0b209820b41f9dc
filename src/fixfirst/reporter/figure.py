"""One figure: drawn for a page and once more for a phone, as SVG and PNG files, and with the numbers in it.

Ink (text, axes) is drawn in one sentinel colour. In the page it becomes the text's colour, and the accent the page's own, so
that figures follow light and dark mode; in files ink is near black. Nothing depends on the clock or on chance: the same
numbers give the same bytes.
"""

import csv
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.runs.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib takes a second to import: functions that draw import it themselves.

INK = "#010203"  # sentinel, see above
PRINTED_INK = "#222222"
ACCENT = "#0072B2"  # in the page, the page's own
WIDTH = 7.2  # inches: a page of print
PHONE_WIDTH = 3.5
ROW_NAME = "row-name"  # of a text that stands above its row, where lines run behind it
_narrow: ContextVar[bool] = ContextVar("narrow", default=False)  # is it drawn for a phone?
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
    phone: str | None = None  # the same for a narrow screen, as SVG

    def inline(self) -> str:
        """For an HTML page: ink is the page's text colour, ids are its own, nothing but shapes; a narrow one for phones."""
        if self.phone is None:
            return self._inlined(self.svg, "any", self.name)
        return self._inlined(self.svg, "wide", self.name) + self._inlined(self.phone, "phone", f"{self.name}-phone")

    def _inlined(self, svg: str, screen: str, name: str) -> str:
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
        svg = re.sub(r">\s*\n\s*<", "><", svg)  # a page has many of them: no space that is not seen
        svg = re.sub(r' d="[^"]*"', lambda m: re.sub(r"\s*\n\s*", "", m[0]), svg)
        svg = svg.replace(INK, "currentColor").replace(ACCENT.lower(), "var(--accent)")
        used = set(re.findall(r"#([\w.-]+)[\")]", svg))
        svg = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
        svg = re.sub(r'(href="|url\()#([\w.-]+)', rf"\1#{name}-\2", svg)
        head = f'<svg class="{screen}" role="img" aria-label="{escape(self.alt)}"'
        width = re.search(r'width="([\d.]+)pt"', svg)
        assert width is not None
        svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
        return svg.replace("<svg", f'{head} style="--width: {float(width[1]):.0f}pt"', 1)

    def csv_text(self) -> str:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if value is None else value for value in row] for row in self.rows])
        return text.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """SVG, PNG and CSV files."""
        svg = self.svg.replace(INK, PRINTED_INK).encode("utf-8", "replace")
        contents = {"svg": svg, "png": self.png(), "csv": self.csv_text().encode("utf-8", "replace")}
        for suffix, data in contents.items():
            write_atomically(folder / f"{self.name}.{suffix}", data)
        return [folder / f"{self.name}.{suffix}" for suffix in contents]


@dataclass
class Drawing:
    """A figure being drawn. `tips` are texts shown when the reader points at a mark, and what can be watched there."""

    figure: "Figure"
    narrow: bool  # for a phone
    tips: dict[str, tuple[str, str]] = field(default_factory=dict)

    def tip(self, text: str, watch: str = "") -> str:
        """An id for a mark that shows these lines. watch: the name of a replay of the document, see `document.py`."""
        name = f"tip{len(self.tips)}"
        self.tips[name] = text, watch
        return name

    def finish(self, name: str, alt: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> FigureData:
        svg = self._saved("svg").decode()
        for key, (text, watch) in self.tips.items():
            what = f' data-watch="{escape(watch)}"' if watch else ""
            svg = svg.replace(f'<g id="{key}">', f'<g class="mark"{what}><title>{escape(text)}</title>', 1)
        svg = svg.replace(f'<g id="{ROW_NAME}">', f'<g class="{ROW_NAME}">')
        return FigureData(name, alt, svg, self._png, columns, tuple(rows))

    def _png(self) -> bytes:
        with style():
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
def style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a folder's name in another script
        yield


def for_page_and_phone(draw: Callable[..., FigureData]) -> Callable[..., FigureData]:
    """A function that draws a figure, made to draw it for a narrow screen as well."""

    @wraps(draw)
    def both(*arguments: Any) -> FigureData:
        figure = draw(*arguments)
        before = _narrow.set(True)
        try:
            return replace(figure, phone=draw(*arguments).svg)
        finally:
            _narrow.reset(before)

    return both


@contextmanager
def drawing(
    height: float, phone_height: float | None = None, *, columns: int = 1, rows: int = 1, width: float = WIDTH, **grid: Any
) -> Iterator[tuple[Drawing, Any]]:
    """A figure and its axes; sizes in inches. On a phone, columns stand one above the other."""
    narrow = _narrow.get()
    if narrow:
        width, height = PHONE_WIDTH, phone_height or height * columns
        rows, columns = rows * columns, 1
    with style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield Drawing(figure, narrow), figure.subplots(rows, columns, **grid)
