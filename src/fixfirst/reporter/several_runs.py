"""The comparison of several runs: groups of seeds, side by side."""

from collections.abc import Sequence

from fixfirst.errors import printable
from fixfirst.reporter import figures, words
from fixfirst.reporter.analysis import RunGroup, differing_settings, final_return, group_course, group_runs, time_use
from fixfirst.reporter.document import (
    MOST_CELL,
    Cell,
    Document,
    Draw,
    Section,
    Table,
    glossary,
    interval,
    num,
    numeric,
    some,
)
from fixfirst.reporter.read import RunData
from fixfirst.reporter.verdicts import ACROSS_SEEDS, orders_across_seeds, verdict_over_seeds
from fixfirst.runs import SeedResult, compare, deciding_settings, duration, mean_interval, setting


def comparison(runs: Sequence[RunData], skipped: Sequence[str], draw: Draw) -> Document:
    groups, repeated = group_runs(runs)
    judged = [
        (group.label, mean_interval([value for _, value in values]), values)
        for group in groups
        if (values := _final_returns(group))
    ]
    judged.sort(key=lambda entry: -entry[1].mean)
    courses = [course for group in groups if group.runs[0].is_search and (course := group_course(group)) is not None]
    sections = []
    if judged:
        drawn = draw(lambda: figures.groups(judged))
        sections.append(Section("Final return", (words.GROUPS, words.GROUPS_READING), (drawn,)))
    sections += _seeds_sections(groups)
    if courses:
        sections.append(Section("Best so far", (words.COURSES,), (draw(lambda: figures.courses(courses)),)))
    sections += [_runs_section(groups, runs), *_difference_sections(groups), glossary(several=True)]
    answer = [
        f"{label}: {num(mean)} per episode"
        + ("" if low is None or high is None else f" ({interval(low, high)})")
        + f", {some(len(values), 'run')}."
        for label, (mean, low, high), values in judged
    ]
    of_run: dict[str, list[str]] = {}
    for run in runs:
        for text in run.missing:
            of_run.setdefault(text, []).append(run.name)
    missing = [*skipped, *repeated, *(f"{', '.join(names)}: {text}" for text, names in of_run.items())]
    return Document(
        title=f"fixfirst: {some(len(runs), 'run')} compared",
        question="How do these runs compare?",
        lead="",
        headline=(f"{some(len(runs), 'run')} in {some(len(groups), 'group')}",),
        figures_of_merit=(),
        answer=tuple(answer) or ("None of the runs has a final return yet.",),
        missing=tuple(missing),
        sections=tuple(sections),
    )


def _final_returns(group: RunGroup) -> list[tuple[str, float]]:
    return [(run.name, value) for run in group.runs if (value := final_return(run)) is not None]


def _seeds_sections(groups: Sequence[RunGroup]) -> list[Section]:
    """What the seeds of a search say together, as its terminal said it."""
    several = [group for group in groups if group.runs[0].is_search and len(group.runs) > 1]
    sections: list[Section] = []
    for group in several:
        results = [
            SeedResult(str(setting(run.config, "red_agent", "")), run.seed, run.scheme, run.trials, run.standings)
            for run in group.runs
        ]
        (found,) = compare(results)
        means = [order.mean for order in found.orders]
        rows = tuple(
            (*map(Cell, cells[:2]), Cell(cells[2], mean), *map(Cell, cells[3:]))
            for cells, mean in zip(orders_across_seeds(found), means, strict=True)
        )
        named = f": {group.label}" if len(several) > 1 else ""
        table = Table(ACROSS_SEEDS, rows, f"Orders across {len(results)} seeds")
        text = (verdict_over_seeds(found), *(() if sections else (words.ACROSS_SEEDS,)))  # how to read it is said once
        sections.append(Section(f"Across seeds{named}", text, tables=(table,)))
    return sections


def _runs_section(groups: Sequence[RunGroup], runs: Sequence[RunData]) -> Section:
    label = {run.folder: group.label for group in groups for run in group.runs}
    rows = []
    for run in runs:
        wall = time_use(run).wall_s
        best = run.standings.ranking.rows[0].workflow if run.standings is not None else setting(run.config, "workflow", "-")
        rows.append(
            (
                Cell(run.name),
                Cell(label.get(run.folder, "left out")),
                Cell(printable(str(run.seed))),
                numeric(final_return(run)),
                Cell(printable(str(best))),
                Cell(f"{run.used_episodes:,}", run.used_episodes),
                Cell(f"{len(run.trials)}", len(run.trials)),
                Cell("-") if wall is None else Cell(duration(wall), wall),
                Cell(run.status),
            )
        )
    columns = ("run", "group", "seed", "return", "order", "episodes", "trials", "time", "state")
    text = ("A report of any one of them: fixfirst report RUN.",)
    return Section("The runs", text, tables=(Table(columns, tuple(rows), "The runs"),))


def _difference_sections(groups: Sequence[RunGroup]) -> list[Section]:
    settings = [deciding_settings(group.runs[0].kind, group.runs[0].config) for group in groups]
    keys = differing_settings(settings)
    if not keys:
        return []
    rows = tuple(
        (Cell(printable(key)), *(Cell(printable(group.get(key, "-"))[:MOST_CELL]) for group in settings)) for key in keys
    )
    table = Table(("setting", *(group.label for group in groups)), rows, "Settings that differ")
    return [Section("What differs between the groups", tables=(table,))]
