"""Pages that need nothing else: figures, data, style and script are in them."""

import contextlib
import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fixfirst.reporter.document import Document
from fixfirst.runs.files import versions

TEMPLATES = Path(__file__).parent


REFRESH_S = 10  # seconds after which the page of a running run looks for news


def report_page(document: Document, here: Path) -> str:
    """A report for the folder `here`. Everything but the figures, which we drew, is escaped."""
    from markupsafe import Markup

    drawn = {figure.name: Markup(figure.inline()) for figure in document.figures}
    style, script = (Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.css", "report.js"))
    replays = {
        name: {"command": replay.command, "page": None if replay.page is None else _address(replay.page, here)}
        for name, replay in document.replays.items()
    }
    parts = {"style": style, "script": script, "replays": as_data(replays)}
    return fill("page.html", document=document, drawn=drawn, version=versions()["fixfirst"], refresh_s=REFRESH_S, **parts)


def as_data(value: Any) -> Any:
    """JSON to stand in a page, in which no markup can be found."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _address(page: Path, here: Path) -> str:
    """Of a page on this disk, seen from the folder `here`."""
    return quote(Path(os.path.relpath(page.resolve(), here.resolve())).as_posix())


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
