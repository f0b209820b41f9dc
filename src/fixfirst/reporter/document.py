"""What a report is: the answer in sentences, then sections with figures, tables and how to read them.

The page, which needs nothing else (figures, data, style and script are in it), and the Markdown show the same `Document`.
All texts in it are plain; whoever writes them out escapes them.
"""

import contextlib
import json
import os
import re
import sys
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fixfirst.base import errors
from fixfirst.game.scenario import CAGE2
from fixfirst.game.scenario_names import scenario_named
from fixfirst.reporter.figure import FigureData
from fixfirst.reporter.texts import AGAIN, num, percent
from fixfirst.runs import layout, manifest
from fixfirst.runs.run import Run

MOST_CELL = 2_000  # characters of a setting that are shown


@dataclass(frozen=True)
class Cell:
    """A cell of a table; with a value it is a number, and the table can be sorted by it."""

    text: str
    value: float | None = None
    link: str | None = None  # of a page beside this one


@dataclass(frozen=True)
class PageTable:
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def has_numbers(self, column: int) -> bool:
        """Does a column hold numbers, at least one?"""
        return column in self._numeric

    @cached_property
    def _numeric(self) -> set[int]:
        return {column for row in self.rows for column, cell in enumerate(row) if cell.value is not None}


@dataclass(frozen=True)
class Section:
    title: str
    text: tuple[str, ...] = ()  # paragraphs
    figures: tuple[FigureData, ...] = ()
    tables: tuple[PageTable, ...] = ()
    command: str | None = None  # to type

    @property
    def anchor(self) -> str:
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True)
class Replay:
    """Where the defender behind a mark can be watched."""

    command: str
    page: Path | None  # if there is one already


@dataclass(frozen=True)
class Document:
    title: str
    question: str
    lead: str  # how the headline answers it
    headline: tuple[str, ...]  # the answer: unit types in their order, or one text
    answer: tuple[str, ...]  # in sentences
    missing: tuple[str, ...]
    sections: tuple[Section, ...]
    figures_of_merit: tuple[tuple[str, str], ...] = ()  # (number, what it is): shown large
    replays: dict[str, Replay] = field(default_factory=dict)  # by the names that marks of figures know them by
    link: tuple[str, Path] | None = None  # below the answer: what is there, and the page
    running: bool = False  # is somebody still working on it?

    @property
    def figures(self) -> tuple[FigureData, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)


Draw = Callable[[Callable[[], FigureData]], FigureData]  # draws a figure, and may tell that it takes a while


# ---------------------------------------------------------------- tables


def make_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> PageTable:
    """Build a table: numbers can be sorted by and have two digits unless whole, None is a dash, texts are texts."""
    return PageTable(caption, tuple(columns), tuple(tuple(map(_cell, row)) for row in rows))


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(errors.printable(value)[:MOST_CELL])
    return Cell("-") if value is None else Cell(f"{value:,}" if isinstance(value, int) else num(value), value)


def share(value: float | None) -> Cell:
    """Build a cell with a share in per cent."""
    return Cell(percent(value), value)


def pairs_table(caption: str, pairs: Iterable[tuple[str, str]], columns: Sequence[str] = ("what", "value")) -> PageTable:
    """Build a table of names and texts."""
    return make_table(caption, columns, pairs)


# ---------------------------------------------------------------- what reports of one run share


def run_document(
    run: Run, *, sections: Sequence[Section], glossary: Sequence[tuple[str, str]] = (), **parts: Any
) -> Document:
    """Build the report of one run: `sections`, its settings, the glossary. parts: the rest of a `Document`."""
    return Document(
        title=f"fixfirst: {run.name}",
        missing=run.missing,
        sections=(*sections, _settings_section(run), *glossary_sections(glossary)),
        replays=_replays(run),
        running=run.status == manifest.RUNNING,
        **parts,
    )


def glossary_sections(entries: Sequence[tuple[str, str]]) -> list[Section]:
    """Build the section that explains every term, if there are any."""
    table = pairs_table("Every quantity shown", entries, ("term", "meaning"))
    return [Section("Glossary", tables=(table,))] if entries else []


def describe_game(run: Run) -> str:
    """Say against whom it was played, in which world."""
    red = errors.printable(str(run.config.get("red_agent", "unknown")))
    return f"red agent {red}, {describe_world(run)}"


def describe_world(run: Run) -> str:
    """Say in which world it was played: the variant, the scenario unless it is CAGE2, and a reward of its own."""
    variant = f"variant {run.config.get('variant', 'unknown')}"
    return errors.printable(scenario_named(run.config.get("scenario", CAGE2)).in_words(variant))


def _replays(run: Run) -> dict[str, Replay]:
    """Find the replays of an answer's orders, by order, or of trials, as "trial 3"."""
    folder, found = errors.printable(str(run.folder)), {}
    for order in () if run.answer is None else run.answer.orders:
        found[order.workflow] = errors.command("watch", folder, "--workflow", order.workflow)
    for trial in run.trials:
        if trial.policy is not None:
            found[f"trial {trial.id}"] = errors.command("watch", f"{folder}/{errors.printable(trial.policy)}")
    pages = {name: run.folder / layout.replay_file(name) for name in found}
    return {name: Replay(command, pages[name] if pages[name].exists() else None) for name, command in found.items()}


def _settings_section(run: Run) -> Section:
    """Say where a run came from, and how to do it again."""
    recorded = {key: value if isinstance(value, dict) else {} for key, value in run.manifest.items()}
    versions, machine, options = (recorded.get(key, {}) for key in ("versions", "machine", "options"))
    origin = [("run", str(run.name)), ("state", run.status), ("created", str(run.manifest.get("created", "-")))]
    origin.append(("seed", str(run.seed)))
    origin += [(f"version of {key}", str(value)) for key, value in versions.items()]
    for key, value in machine.items():
        many = isinstance(value, list) and len(value) > 1  # a CPU has a hundred features
        origin.append((f"machine: {key}", f"{len(value)}, named in {layout.MANIFEST}" if many else str(value)))
    origin.append(("command", str(run.manifest.get("command", "-"))))
    origin += [] if run.policy_sha256 is None else [("policy, sha256", run.policy_sha256)]
    origin += [(f"{name}, sha256", digest) for name, digest in run.hashes]
    command = None
    if run.kind == layout.Kind.LEAGUE:  # no file holds its flags; one that was begun from Python has none
        told = str(run.manifest.get("command", ""))
        command = errors.printable(told) if told.startswith("fixfirst train") else None
    elif run.config:
        config = errors.printable(str(run.folder / layout.CONFIG))
        words = ["--config", config, "--out", "runs/again"]
        if not run.is_search and options.get("from_policy"):  # not part of its configuration
            words += ["--from", errors.printable(str(options["from_policy"]))]
        command = errors.command(run.kind, *words)
    settings = [(key, value) for key, value in manifest.result_settings(run.kind, run.config).items() if key != "kind"]
    return Section(
        "Settings, and how to do it again",
        (AGAIN,) if command else (),
        tables=(pairs_table("Origin", origin), pairs_table("Settings", settings)),
        command=command,
    )


# ---------------------------------------------------------------- as a page, or as Markdown


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
