"""The report of several searches that answer with a rule: over seeds, attackers and networks."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fixfirst.base import errors
from fixfirst.base.tables import INTERVAL, Column, Link, Table
from fixfirst.reporter import figures, texts
from fixfirst.reporter.answer_report import how_section
from fixfirst.reporter.comparison_report import differing_settings
from fixfirst.reporter.document import PAIR, Document, Section, glossary_sections
from fixfirst.reporter.page import address
from fixfirst.reporter.run import Run
from fixfirst.reporter.texts import some
from fixfirst.runs.layout import RunFiles
from fixfirst.stats.agreement import Agreement
from fixfirst.stats.answer import Answer
from fixfirst.stats.survey import INDIFFERENT, Survey

_MOST_MERITS = 3  # rules whose counts stand at the top of a survey
_MOST_SPLITS = 8  # that are drawn: the surest; the table has them all


def study_report(
    runs: Sequence[tuple[Run, Answer]], skipped: Sequence[str], of: int, page_folder: Path | None = None
) -> Document:
    """Build the report of several searches. Those in one world differ in their seeds and are drawn on one axis.

    of: how many there will be. page_folder: from which the pages of the searches are linked.
    """
    answers = [answer for _, answer in runs]
    networks = [run.network for run, _ in runs if run.network is not None]
    together = Agreement.of(answers, networks if len(networks) == len(runs) else ())
    survey, is_large = together.survey, together.is_large
    sections = [] if survey is None else _rule_sections(survey)
    for number, world in enumerate(() if is_large else together.worlds, start=1):
        of_world = [(run, answer) for run, answer in runs if any(answer is each for each in world.answers)]
        if len(world.answers) > 1:
            figure = figures.over_seeds(world.answers, f"seeds-{number}")
            text = "Every seed is a search of its own, with its own interval; diamonds are means over seeds."
        else:
            figure = figures.swaps(f"swaps-{number}", world.answers[0].swaps_table(), world.answers[0].margin)
            text = "Ticks are single trainings."
        tables = (_searches_table(of_world, page_folder),)
        sections.append(Section(f"Against {world.name}", (*world.sentences, text), (figure,), tables))
    lead = "In this world:" if len(together.worlds) == 1 else "What holds against all of them:"
    if survey is not None:
        sections.append(_networks_section(survey, runs, page_folder))
        where = f"in all of {some(len(survey.networks), 'network')}"
        lead = f"What holds {where}, against {errors.list_words(list(survey.attackers))}:"
    if len(runs) < of:
        lead = f"So far, after {len(runs):,} of {of:,} searches. {lead}"
    return Document(
        title=f"fixfirst: {len(runs)} searches compared",
        question=texts.QUESTION,
        lead=lead,
        headline=(f"{together.rule}.",),
        figures_of_merit=() if survey is None else _survey_merits(survey),
        answer=survey.beside_figures if survey is not None and is_large else together.sentences,
        missing=tuple([*skipped, *(f"{run.name}: {text}" for run, _ in runs for text in run.missing)]),
        sections=(*sections, how_section(answers), _study_settings(runs), *glossary_sections(texts.ANSWER_GLOSSARY)),
    )


def _study_settings(runs: Sequence[tuple[Run, Answer]]) -> Section:
    """Say what the searches have in common, and how to do them again."""
    settings = [run.result_settings for run, _ in runs]
    differing = {*differing_settings(settings), "kind"}
    common = [(key, value) for key, value in settings[0].items() if key not in differing]
    commands = {str(run.manifest.get("command", "")) for run, _ in runs}
    again = next(iter(commands)) if len(commands) == 1 else ""
    command = errors.printable(again) if again.startswith("fixfirst search") else None
    return Section(
        "Settings, and how to do it again",
        (texts.AGAIN,) if command else (),
        tables=(Table(PAIR, tuple(common), title="Settings of all searches"),),
        command=command,
    )


def _survey_merits(survey: Survey) -> tuple[tuple[str, str], ...]:
    """Return in how many of the decided networks each rule holds; of pairs, the one that is worth something most often."""
    rules = [*survey.rules][:_MOST_MERITS]
    merits = []
    for rule in [*rules, INDIFFERENT]:
        if own := [tally for tally in survey.tallies if tally.rule == rule and tally.decided]:
            counts = ", ".join(f"{tally.holds}/{tally.decided}" for tally in own)
            against = errors.list_words([tally.attacker for tally in own])
            merits.append((counts, f"decided networks in which {'it holds: ' if rule in rules else ''}{rule}; {against}"))
    return tuple(merits)


def _rule_sections(survey: Survey) -> list[Section]:
    """Say how often rules hold in several networks, and what decides."""
    holding = survey.table()
    drawn = (figures.rules(holding),) if holding.rows else ()
    sections = [Section("How often rules hold", (texts.RULES_HOLD,), drawn, (holding,))]
    if survey.splits:
        table = survey.splits_table()
        table = replace(table, title=f"All {len(table.rows)} splits, the surest first")
        sections.append(Section("Which property decides", (texts.SPLITS,), (figures.splits(table, _MOST_SPLITS),), (table,)))
    return sections


def _networks_section(survey: Survey, runs: Sequence[tuple[Run, Answer]], page_folder: Path | None) -> Section:
    """Show what each network is, and what was found there."""
    first = runs[0][0].folder
    text = () if RunFiles(first).page.is_file() else (texts.PAGE_OF_ONE.format(command=errors.command("report", first)),)
    rows = []
    for network in survey.networks.values():
        units = (f"{name} {traits.hosts} at {traits.value:g}" for name, traits in network.units.items())
        rows.append((network.name, ", ".join(units), network.gated, network.digest[:12]))
    columns = ("network", "unit types: hosts, value of the dearest", "gate before the target", "digest")
    tables = (Table(columns, tuple(rows), title="One row per network"), _searches_table(runs, page_folder))
    return Section("All networks", text, tables=tables)


def _searches_table(runs: Sequence[tuple[Run, Answer]], page_folder: Path | None) -> Table:
    """Return what each search found, with a link to its page if that is there."""
    rows = []
    for run, answer in runs:
        page = run.files.page
        name = run.name if page_folder is None or not page.is_file() else Link(run.name, address(page, page_folder))
        swap, worst = next(iter(answer.swaps), None), max(order.violations_high for order in answer.orders)
        dearest = (None,) * 4 if swap is None else (swap.name, swap.price, swap.low, swap.high)
        tried = f"{len(answer.orders)} of {answer.possible}"
        rows.append((name, answer.rule, *dearest, answer.orders[0].mean, worst, tried))
    columns = ("run", "rule", "dearest swap", "price", "low", "high", "best return", "violations", "orders tried")
    violations = Column("violations", "violations, at most", "{:.3f}".format)
    shown = (*columns[:4], INTERVAL, "best return", violations, "orders tried")
    return Table(columns, tuple(rows), shown, "One row per search")
