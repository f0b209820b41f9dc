"""Documents as HTML pages that need nothing else (figures, data, style and script are in them), and as Markdown."""

import contextlib
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
    version = manifest.versions()["fixfirst"]
    return fill("page.html", here, document=document, drawn=drawn, version=version, refresh_s=_REFRESH_S)


def markdown(document: Document, pictures: Mapping[str, str], here: Path) -> str:
    """Build the Markdown for the folder `here`. pictures: files of figures, seen from there; others are left out."""
    return fill("page.md", here, document=document, pictures=pictures)


def read_part(name: str) -> Any:
    """Read a template, style or script of ours, to stand in a page as it is."""
    from markupsafe import Markup

    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def address(page: Path, here: Path) -> str:
    """Return the address of a page on this disk, seen from the folder `here`."""
    return quote(Path(os.path.relpath(page.resolve(), here.resolve())).as_posix())


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it is. A `&` is escaped too, so that `&lt;` stays what it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(typeset(text).split()).replace("&", "&amp;"))


def fill(template: str, here: Path = Path(), **parts: Any) -> str:
    """Fill a template of ours with its parts; in HTML they are escaped unless they are `Markup`, or JSON by `tojson`."""
    from jinja2 import Environment, StrictUndefined

    is_html = template.endswith(".html")
    environment = Environment(autoescape=is_html, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters |= {"typeset": typeset, "escaped": escaped, "address": lambda page: address(page, here)}
    return environment.from_string(read_part(template)).render(parts, part=read_part)


def open_page(path: Path) -> None:
    """Show a page in the browser, where there is one to show it and someone to see it."""
    display = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.stdout.isatty() and display:
        with contextlib.suppress(webbrowser.Error, OSError):  # the path is printed anyway
            webbrowser.open(path.resolve().as_uri())
