"""The comparison of several runs: groups of seeds, side by side."""

from collections.abc import Sequence
from functools import partial

from fixfirst.base.errors import printable
from fixfirst.reporter import group_figures as figures, words
from fixfirst.reporter.analysis import RunGroup, differing_settings, final_return, group_course, group_runs, time_use
from fixfirst.reporter.document import (
    MOST_CELL,
    Cell,
    Document,
    Draw,
    Section,
    Table,
    game,
    glossary,
    interval,
    num,
    numeric,
    some,
)
from fixfirst.reporter.read import RunData
from fixfirst.reporter.verdicts import ACROSS_SEEDS, orders_across_seeds, rule_in_words, verdict_over_seeds
from fixfirst.runs.across_seeds import Comparison, MeanInterval, SeedResult, compare, mean_interval
from fixfirst.runs.config_reading import result_settings, setting
from fixfirst.runs.lock import RUNNING, duration


def comparison(runs: Sequence[RunData], skipped: Sequence[str], draw: Draw) -> Document:
    """Runs against the same red agent in the same variant can be compared; others are shown apart."""
    groups, repeated = group_runs(runs)
    worlds: dict[str, list[RunGroup]] = {}
    for group in groups:
        worlds.setdefault(game(group.runs[0]), []).append(group)
    sections, answer = [], []
    for number, (world, comparable) in enumerate(worlds.items(), start=1):
        where = f": {world}" if len(worlds) > 1 else ""
        figure_name = f"-{number}" if len(worlds) > 1 else ""
        judged = _judged(comparable)
        if judged:
            answer += [f"R{where[3:]}:"] if where else []
            answer += [_said(*entry) for entry in judged]
            drawn = draw(partial(figures.groups, judged, f"groups{figure_name}"))
            sections.append(Section(f"Final return{where}", (words.GROUPS, words.GROUPS_READING), (drawn,)))
        sections += _seeds_sections(comparable)
        searches = [group for group in comparable if group.runs[0].is_search]
        if courses := [course for group in searches if (course := group_course(group)) is not None]:
            drawn = draw(partial(figures.courses, courses, f"courses{figure_name}"))
            sections.append(Section(f"Best so far{where}", (words.COURSES,), (drawn,)))
    sections += [_runs_section(groups, runs), *_difference_sections(groups), glossary(several=True)]
    of_run: dict[str, list[str]] = {}
    for run in runs:
        for text in run.missing:
            of_run.setdefault(text, []).append(run.name)
    missing = [*skipped, *repeated, *(f"{', '.join(names)}: {text}" for text, names in of_run.items())]
    apart = "; those against different red agents, or in different variants, cannot be compared" if len(worlds) > 1 else ""
    return Document(
        title=f"fixfirst: {some(len(runs), 'run')} compared",
        question="How do these runs compare?",
        lead=f"{some(len(runs), 'run')} in {some(len(groups), 'group')}{apart}:",
        headline=(_verdict_of(worlds),),
        figures_of_merit=(),
        answer=tuple(answer) or ("None of the runs has a final return yet.",),
        missing=tuple(missing),
        sections=tuple(sections),
        running=any(run.status == RUNNING for run in runs),
    )


Judged = tuple[str, MeanInterval, list[tuple[str, float]]]  # a group's label, its mean return, its runs


def _judged(groups: Sequence[RunGroup]) -> list[Judged]:
    """Groups with a return, the best first."""
    found = [(group.label, values) for group in groups if (values := _final_returns(group))]
    judged = [(label, mean_interval([value for _, value in values]), values) for label, values in found]
    return sorted(judged, key=lambda entry: -entry[1].mean)


def _said(label: str, found: MeanInterval, values: Sequence[tuple[str, float]]) -> str:
    mean, low, high = found
    between = "" if low is None or high is None else f" ({interval(low, high)}{figures.few_seeds(len(values))})"
    return f"{label}: {num(mean)} per episode{between}, {some(len(values), 'run')}."


def _verdict_of(worlds: dict[str, list[RunGroup]]) -> str:
    """What can be said of each world in a line: the rule that its searches share, or what the best group earns."""
    said = []
    for groups in worlds.values():
        red = f"against {setting(groups[0].runs[0].config, 'red_agent', 'unknown')} " if len(worlds) > 1 else ""
        judged = _judged(groups)
        if len(groups) == 1 and len(groups[0].runs) > 1 and groups[0].runs[0].is_search:
            found = _across_seeds(groups[0])
            rule = None if found.ranking is None else rule_in_words(found.ranking)
            said.append(f"{red}{rule or 'no order is shown to be better than another'}")
        elif judged:
            many = f" with {judged[0][0]}" if len(judged) > 1 else ""
            said.append(f"{red}{num(judged[0][1].mean)} per episode{many}")
    text = "; ".join(printable(part) for part in said)
    return f"{text[:1].upper()}{text[1:]}." if text else f"{some(sum(map(len, worlds.values())), 'group')}, no result yet."


def _final_returns(group: RunGroup) -> list[tuple[str, float]]:
    return [(run.name, value) for run in group.runs if (value := final_return(run)) is not None]


def _seeds_sections(groups: Sequence[RunGroup]) -> list[Section]:
    """What the seeds of a search say together, as its terminal said it."""
    several = [group for group in groups if group.runs[0].is_search and len(group.runs) > 1]
    sections: list[Section] = []
    for group in several:
        found = _across_seeds(group)
        means = [order.mean for order in found.orders]
        rows = tuple(
            (*map(Cell, cells[:2]), Cell(cells[2], mean), *map(Cell, cells[3:]))
            for cells, mean in zip(orders_across_seeds(found), means, strict=True)
        )
        named = f": {group.label}"
        table = Table(ACROSS_SEEDS, rows, f"Orders across {len(group.runs)} seeds")
        text = (verdict_over_seeds(found), *(() if sections else (words.ACROSS_SEEDS,)))  # how to read it is said once
        sections.append(Section(f"Across seeds{named}", text, tables=(table,)))
    return sections


def _across_seeds(group: RunGroup) -> Comparison:
    """What the seeds of a search say together."""
    results = [
        SeedResult(str(setting(run.config, "red_agent", "")), run.seed, run.scheme, run.trials, run.ranked_trials)
        for run in group.runs
    ]
    (found,) = compare(results)
    return found


def _runs_section(groups: Sequence[RunGroup], runs: Sequence[RunData]) -> Section:
    label = {run.folder: group.label for group in groups for run in group.runs}
    rows = []
    for run in runs:
        wall = time_use(run).wall_s
        best = (
            run.ranked_trials.ranking.rows[0].workflow
            if run.ranked_trials is not None
            else setting(run.config, "workflow", "-")
        )
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
    settings = [result_settings(group.runs[0].kind, group.runs[0].config) for group in groups]
    keys = differing_settings(settings)
    if not keys:
        return []
    rows = tuple(
        (Cell(printable(key)), *(Cell(printable(group.get(key, "-"))[:MOST_CELL]) for group in settings)) for key in keys
    )
    table = Table(("setting", *(group.label for group in groups)), rows, "Settings that differ")
    return [Section("What differs between the groups", tables=(table,))]
