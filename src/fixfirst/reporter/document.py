"""What a report is: the answer in sentences, then sections with figures, tables and how to read them.

The page and the Markdown show the same `Document`. All texts in it are plain; whoever writes them out escapes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.base.tables import Table
from fixfirst.game.game_config import scenario_named
from fixfirst.game.scenario import CAGE2
from fixfirst.reporter.figure import Figure
from fixfirst.reporter.run import Run
from fixfirst.reporter.texts import AGAIN
from fixfirst.runs import layout
from fixfirst.runs.layout import RunFiles

PAIR = ("what", "value")  # columns of a table of facts


@dataclass(frozen=True)
class Section:
    title: str
    text: tuple[str, ...] = ()  # paragraphs
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    command: str | None = None  # to type

    @property
    def anchor(self) -> str:
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


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
    # By the names of marks: how the defender behind it can be watched, and the page of that if there is one.
    replays: dict[str, tuple[str, Path | None]] = field(default_factory=dict)
    link: tuple[str, Path] | None = None  # below the answer: what is there, and the page
    running: bool = False  # is somebody still working on it?

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)


def run_document(
    run: Run, *, sections: Sequence[Section], glossary: Sequence[tuple[str, str]] = (), **parts: Any
) -> Document:
    """Build the report of one run: `sections`, its settings, the glossary. parts: the rest of a `Document`."""
    return Document(
        title=f"fixfirst: {run.name}",
        missing=tuple(run.missing),
        sections=(*sections, _settings_section(run), *glossary_sections(glossary)),
        replays=_replays(run),
        running=run.is_running,
        **parts,
    )


def glossary_sections(entries: Sequence[tuple[str, str]]) -> list[Section]:
    """Build the section that explains every term, if there are any."""
    table = Table(("term", "meaning"), tuple(entries), title="Every quantity shown")
    return [Section("Glossary", tables=(table,))] if entries else []


def describe_game(run: Run) -> str:
    """Say against whom it was played, in which world."""
    red = errors.printable(str(run.config.get("red_agent", "unknown")))
    return f"red agent {red}, {describe_world(run)}"


def describe_world(run: Run) -> str:
    """Say in which world it was played: the variant, the scenario unless it is CAGE2, and a reward of its own."""
    variant = f"variant {run.config.get('variant', 'unknown')}"
    return errors.printable(scenario_named(run.config.get("scenario", CAGE2)).in_words(variant))


def _replays(run: Run) -> dict[str, tuple[str, Path | None]]:
    """Find the replays of an answer's orders, by order, or of trials, as "trial 3"."""
    folder, commands = errors.printable(str(run.folder)), {}
    for order in () if run.answer is None else run.answer.orders:
        commands[order.workflow] = errors.command("watch", folder, "--workflow", order.workflow)
    for trial in run.trials:
        if trial.policy is not None:
            commands[f"trial {trial.id}"] = errors.command("watch", f"{folder}/{errors.printable(trial.policy)}")
    pages = {name: run.files.replay_of(name) for name in commands}
    return {name: (command, pages[name] if pages[name].exists() else None) for name, command in commands.items()}


def _settings_section(run: Run) -> Section:
    """Say where a run came from, and how to do it again."""

    def written(value: Any) -> str:
        many = isinstance(value, list) and len(value) > 1  # a CPU has a hundred features
        return f"{len(value)}, named in {RunFiles.manifest}" if many else str(value)

    origin = [
        ("run", run.name),
        ("state", run.status),
        ("created", str(run.manifest.get("created", "-"))),
        ("seed", str(run.seed)),
        *((f"version of {key}", str(value)) for key, value in run.manifest.get("versions", {}).items()),
        *((f"machine: {key}", written(value)) for key, value in run.manifest.get("machine", {}).items()),
        ("command", str(run.manifest.get("command", "-"))),
        *((f"{name}, sha256", digest) for name, digest in run.hashes),
    ]
    settings = [(key, value) for key, value in run.result_settings.items() if key != "kind"]
    command = _again(run, run.manifest.get("options", {}))
    return Section(
        "Settings, and how to do it again",
        (AGAIN,) if command else (),
        tables=(Table(PAIR, tuple(origin), title="Origin"), Table(PAIR, tuple(settings), title="Settings")),
        command=command,
    )


def _again(run: Run, options: dict[str, Any]) -> str | None:
    """Return the command that does a run again, if there is one."""
    if run.kind == layout.Kind.LEAGUE:  # no file holds its flags; one that was begun from Python has none
        command = str(run.manifest.get("command", ""))
        return errors.printable(command) if command.startswith("fixfirst train") else None
    if not run.config:
        return None
    words = ["--config", errors.printable(str(run.files.config)), "--out", "runs/again"]
    if not run.is_search and options.get("from_policy"):  # not part of its configuration
        words += ["--from", errors.printable(str(options["from_policy"]))]
    return errors.command(run.kind, *words)
