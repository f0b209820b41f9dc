"""A report as Markdown, for a README or the appendix of a paper."""

import re
from collections.abc import Mapping
from pathlib import Path

from fixfirst.reporter.document import Document, Section, Table

# What Markdown, or the HTML inside it, would read as more than text.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown(document: Document, pictures: Mapping[str, Path]) -> str:
    """pictures: the file of each figure, relative to where the text will be; figures without one are left out."""
    headline = f"**{escaped(' > '.join(document.headline))}**"
    parts = [f"# {escaped(document.title)}", escaped(document.question), f"{escaped(document.lead)} {headline}".strip()]
    if document.missing:
        parts.append("**What is missing**\n\n" + "\n".join(f"- {escaped(text)}" for text in document.missing))
    if document.figures_of_merit:
        parts.append("\n".join(f"- **{escaped(value)}** {escaped(what)}" for value, what in document.figures_of_merit))
    parts += [escaped(text) for text in document.answer]
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
    return parts + [table_text(table) for table in section.tables]


def table_text(table: Table) -> str:
    numeric = [bool(table.rows) and cell.value is not None for cell in table.rows[0]] if table.rows else []
    rule = ["---:" if right else "---" for right in numeric] or ["---"] * len(table.columns)
    rows = [
        [escaped(column) for column in table.columns],
        rule,
        *([escaped(cell.text) for cell in row] for row in table.rows),
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def escaped(text: str) -> str:
    """As text, on one line. A `&` is escaped too, so that `&lt;` stays what it is."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
