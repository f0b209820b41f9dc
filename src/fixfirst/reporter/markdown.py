"""Documents as Markdown."""

import re
from collections.abc import Mapping
from pathlib import Path

from fixfirst.base.tables import Table, typeset
from fixfirst.reporter.document import Document, Section
from fixfirst.reporter.page import address

# What Markdown, or the HTML inside it, would read as more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown(document: Document, pictures: Mapping[str, Path], here: Path) -> str:
    """Build the Markdown for the folder `here`.

    pictures: files of figures, seen from there; figures without one are left out.
    """
    headline = f"**{escaped(' > '.join(document.headline))}**"
    parts = [f"# {escaped(document.title)}", escaped(document.question), f"{escaped(document.lead)} {headline}".strip()]
    if document.missing:
        parts.append("**What is missing**\n\n" + "\n".join(f"- {escaped(text)}" for text in document.missing))
    if document.figures_of_merit:
        parts.append("\n".join(f"- **{escaped(value)}** {escaped(what)}" for value, what in document.figures_of_merit))
    parts += [escaped(text) for text in document.answer]
    if document.link is not None:
        parts.append(f"[{escaped(document.link[0])}](<{address(document.link[1], here)}>)")
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


def _table(table: Table) -> str:
    head, *rows = ([escaped(cell) for cell in line] for line in table.cells())
    rule = ["---:" if number else "---" for number in table.numeric]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it is. A `&` is escaped too, so that `&lt;` stays what it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(typeset(text).split()).replace("&", "&amp;"))
