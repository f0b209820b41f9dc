"""Documents as HTML pages that need nothing else (figures, data, style and script are in them), and as Markdown."""

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

from fixfirst.base.tables import typeset
from fixfirst.reporter.document import Document
from fixfirst.runs import manifest

_TEMPLATES = Path(__file__).parent
_REFRESH_S = 10  # seconds after which the page of a running run looks for news
# What Markdown, or the HTML inside it, would read as more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def report_page(document: Document, here: Path) -> str:
    """Build the page for the folder `here`. Everything but the figures and tables, which we wrote, is escaped."""
    from markupsafe import Markup

    drawn = {figure.name: Markup(figure.inline()) for figure in document.figures}
    replays = {
        name: {"command": replay.command, "page": None if replay.page is None else address(replay.page, here)}
        for name, replay in document.replays.items()
    }
    parts = {"style": read_part("report.css"), "script": read_part("report.js"), "replays": as_data(replays)}
    version = manifest.versions()["fixfirst"]
    link = _link(document, here)
    return fill("page.html", document=document, link=link, drawn=drawn, version=version, refresh_s=_REFRESH_S, **parts)


def markdown(document: Document, pictures: Mapping[str, str], here: Path) -> str:
    """Build the Markdown for the folder `here`. pictures: files of figures, seen from there; others are left out."""
    return fill("page.md", document=document, link=_link(document, here), pictures=pictures)


def read_part(name: str) -> Any:
    """Read a style or script of ours, to stand in a page as it is."""
    from markupsafe import Markup

    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def as_data(value: Any) -> Any:
    """Write JSON to stand in a page, in which no markup can be found."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def address(page: Path, here: Path) -> str:
    """Return the address of a page on this disk, seen from the folder `here`."""
    return quote(Path(os.path.relpath(page.resolve(), here.resolve())).as_posix())


def _link(document: Document, here: Path) -> tuple[str, str] | None:
    return None if document.link is None else (document.link[0], address(document.link[1], here))


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it is. A `&` is escaped too, so that `&lt;` stays what it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(typeset(text).split()).replace("&", "&amp;"))


def fill(template: str, **parts: Any) -> str:
    """Fill a template of ours with its parts; in HTML those that are not `Markup` are escaped."""
    from jinja2 import Environment, StrictUndefined

    is_html = template.endswith(".html")
    environment = Environment(autoescape=is_html, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters |= {"typeset": typeset, "escaped": escaped}
    return environment.from_string(read_part(template)).render(parts)


def open_page(path: Path) -> None:
    """Show a page in the browser, where there is one to show it and someone to see it."""
    display = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.stdout.isatty() and display:
        with contextlib.suppress(webbrowser.Error, OSError):  # the path is printed anyway
            webbrowser.open(path.resolve().as_uri())
