"""Pages that need nothing else: figures, data, style and script are in them."""

import contextlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

from fixfirst.reporter.document import Document
from fixfirst.runs import versions

TEMPLATES = Path(__file__).parent


def report_page(document: Document) -> str:
    """A report. Everything but the figures, which we drew, is escaped."""
    from markupsafe import Markup

    drawn = {figure.name: Markup(figure.inline()) for figure in document.figures}
    return fill("page.html", document=document, drawn=drawn, version=versions()["fixfirst"])


def fill(template: str, **parts: Any) -> str:
    """A template of ours with its parts; those that are not `Markup` are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(parts)


def open_page(path: Path) -> None:
    """Show a page in the browser, where there is one to show it and someone to see it."""
    display = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.stdout.isatty() and display:
        with contextlib.suppress(webbrowser.Error, OSError):  # the path is printed anyway
            webbrowser.open(path.resolve().as_uri())
