"""A report as a page that needs nothing else (figures, data, style and script are in it), or as Markdown."""

import contextlib
import json
import os
import re
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fixfirst.reporter.document import Document, PageTable, Section
from fixfirst.runs import manifest

TEMPLATES = Path(__file__).parent
REFRESH_S = 10  # seconds after which the page of a running run looks for news


def report_page(document: Document, here: Path) -> str:
    """Build the page for the folder `here`. Everything but the figures, which we drew, is escaped."""
    from markupsafe import Markup

    drawn = {figure.name: Markup(figure.inline()) for figure in document.figures}
    replays = {
        name: {"command": replay.command, "page": None if replay.page is None else _address(replay.page, here)}
        for name, replay in document.replays.items()
    }
    link = None if document.link is None else (document.link[0], _address(document.link[1], here))
    parts = {"link": link, "style": read_part("report.css"), "script": read_part("report.js"), "replays": as_data(replays)}
    return fill(
        "page.html", document=document, drawn=drawn, version=manifest.versions()["fixfirst"], refresh_s=REFRESH_S, **parts
    )


def read_part(name: str) -> Any:
    """Read a style or script of ours, to stand in a page as it is."""
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def as_data(value: Any) -> Any:
    """Write JSON to stand in a page, in which no markup can be found."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _address(page: Path, here: Path) -> str:
    """Return the address of a page on this disk, seen from the folder `here`."""
    return quote(Path(os.path.relpath(page.resolve(), here.resolve())).as_posix())


def fill(template: str, **parts: Any) -> str:
    """Fill a template of ours with its parts; those that are not `Markup` are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(parts)


def open_page(path: Path) -> None:
    """Show a page in the browser, where there is one to show it and someone to see it."""
    display = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.stdout.isatty() and display:
        with contextlib.suppress(webbrowser.Error, OSError):  # the path is printed anyway
            webbrowser.open(path.resolve().as_uri())


# ---------------------------------------------------------------- Markdown

# What Markdown, or the HTML inside it, would read as more than text.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown(document: Document, pictures: Mapping[str, Path], here: Path) -> str:
    """Build the Markdown for the folder `here`. pictures: files of figures, seen from there; figures without one are left
    out.
    """
    headline = f"**{escaped(' > '.join(document.headline))}**"
    parts = [f"# {escaped(document.title)}", escaped(document.question), f"{escaped(document.lead)} {headline}".strip()]
    if document.missing:
        parts.append("**What is missing**\n\n" + "\n".join(f"- {escaped(text)}" for text in document.missing))
    if document.figures_of_merit:
        parts.append("\n".join(f"- **{escaped(value)}** {escaped(what)}" for value, what in document.figures_of_merit))
    parts += [escaped(text) for text in document.answer]
    if document.link is not None:
        parts.append(f"[{escaped(document.link[0])}](<{_address(document.link[1], here)}>)")
    for section in document.sections:
        parts += _section(section, pictures)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, pictures: Mapping[str, Path]) -> list[str]:
    parts = [f"## {escaped(section.title)}", *map(escaped, section.text)]
    if section.command:
        parts.append(f"    {section.command}")  # indented: whatever is in it stays code
    for figure in section.figures:
        if figure.name in pictures:
            parts.append(f"![{escaped(figure.alt)}](<{pictures[figure.name].as_posix()}>)")
    return parts + [_table(table) for table in section.tables]


def _table(table: PageTable) -> str:
    first = table.rows[0] if table.rows else ()
    rule = ["---" if cell.value is None else "---:" for cell in first] or ["---"] * len(table.columns)
    rows = [map(escaped, table.columns), rule, *([escaped(cell.text) for cell in row] for row in table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it is. A `&` is escaped too, so that `&lt;` stays what it is."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
