"""The report of several runs of any kind side by side."""

from collections.abc import Mapping, Sequence

from fixfirst.base import errors
from fixfirst.base.tables import INTERVAL, Column, Table, duration, interval, plain
from fixfirst.reporter import curves, texts, verdicts
from fixfirst.reporter.document import Document, Section, describe_game, glossary_sections
from fixfirst.reporter.groups import RunGroup, differing_settings, group_runs
from fixfirst.reporter.run import Run
from fixfirst.reporter.verdicts import some
from fixfirst.stats import across_seeds, agreement
from fixfirst.stats.intervals import mean_interval


def comparison_report(runs: Sequence[Run], skipped: Sequence[str]) -> Document:
    """Build the comparison of several runs: those against the same red agent in the same variant, others apart."""
    groups, repeated = group_runs(runs)
    worlds: dict[str, list[RunGroup]] = {}
    for group in groups:
        worlds.setdefault(describe_game(group.runs[0]), []).append(group)
    sections: list[Section] = []
    answer: list[str] = []
    verdicts_: list[str] = []
    for world, comparable in worlds.items():
        where, members = f": {world}" if len(worlds) > 1 else "", [run for group in comparable for run in group.runs]
        ranking = _ranking(comparable)
        seeds = {
            group.label: _across_seeds(group) for group in comparable if group.runs[0].is_separate and len(group.runs) > 1
        }
        against = f"against {members[0].config.get('red_agent', 'unknown')} " if where else ""
        if verdict := _verdict(members, ranking, seeds if len(comparable) == 1 else {}):
            verdicts_.append(f"{against}{verdict}")
        if ranking.rows:
            answer += [f"R{where[3:]}:"] if where else []
            for name, mean, low, high, count in ranking.rows:
                between = "" if low is None else f" {interval(low, high)}"
                answer.append(f"{name}: {plain(mean)} per episode{between}, {some(count, 'run')}.")
            answer += [f"{run.name}: {run.answer.sentences[0]}" for run in members if run.answer is not None]
            sections.append(Section(f"Final return{where}", (texts.GROUPS,), tables=(ranking,)))
        for label, compared in seeds.items():
            text = (verdicts.verdict_over_seeds(compared), texts.ACROSS_SEEDS)
            sections.append(Section(f"Across seeds: {label}", text, tables=(compared.table(),)))
        if len(logged := [run for run in members if len(run.updates)]) > 1:
            sections.append(Section(f"Learning curves{where}", (texts.LEARNING_READING,), (curves.learning(logged),)))
    sections += [_runs_section(groups, runs), *_difference_sections(groups)]
    of_run: dict[str, list[str]] = {}
    for run in runs:
        for note in run.missing:
            of_run.setdefault(note, []).append(run.name)
    apart = "; those against different red agents, or in different variants, cannot be compared" if len(worlds) > 1 else ""
    headline = "; ".join(map(errors.printable, verdicts_)) or f"{some(len(groups), 'group')}, no result yet"
    return Document(
        title=f"fixfirst: {some(len(runs), 'run')} compared",
        question="How do these runs compare?",
        lead=f"{some(len(runs), 'run')} in {some(len(groups), 'group')}{apart}:",
        headline=(f"{headline[0].upper()}{headline[1:]}.",),
        answer=tuple(answer) or ("None of the runs has a final return yet.",),
        missing=(*skipped, *repeated, *(f"{', '.join(names)}: {text}" for text, names in of_run.items())),
        sections=(*sections, *glossary_sections(texts.GLOSSARY)),
        running=any(run.is_running for run in runs),
    )


def _verdict(runs: Sequence[Run], ranking: Table, seeds: Mapping[str, across_seeds.Comparison]) -> str:
    """Say of one world in a line the rule that its searches share, or what the best group earns."""
    if answers := [run.answer for run in runs if run.answer is not None]:
        rule = agreement.Agreement.of(answers).rule
        return f"{rule[0].lower()}{rule[1:]}"
    for compared in seeds.values():
        shared = None if compared.ranking is None else verdicts.shared_rule(compared.ranking)
        return shared or "no order is shown to be better than another"
    if not ranking.rows:
        return ""
    label, mean, *_ = ranking.rows[0]
    return f"{plain(mean)} per episode{f' with {label}' if len(ranking.rows) > 1 else ''}"


def _ranking(groups: Sequence[RunGroup]) -> Table:
    """Return the groups with a final return, the best first."""
    lines = []
    for group in groups:
        values = [value for run in group.runs if (value := run.final_return) is not None]
        if values:
            lines.append((group.label, *mean_interval(values), len(values)))
    lines.sort(key=lambda line: -line[1])
    shown = ("group", Column("mean", "mean return"), INTERVAL, "runs")
    return Table(("group", "mean", "low", "high", "runs"), tuple(lines), shown, "Final return")


def _across_seeds(group: RunGroup) -> across_seeds.Comparison:
    results = [
        across_seeds.SeedResult(str(run.config.get("red_agent", "")), run.seed, run.scheme, run.trials, run.ranked_trials)
        for run in group.runs
    ]
    (compared,) = across_seeds.compare_seeds(results)
    return compared


def _runs_section(groups: Sequence[RunGroup], runs: Sequence[Run]) -> Section:
    """Show what became of each run."""
    label, rows = {run.folder: group.label for group in groups for run in group.runs}, []
    for run in runs:
        order, best = run.workflow or "-", None if run.answer is None else run.answer.orders[0]
        order += "" if best is None else f" (best: {best.workflow})"
        judged = best or run.result
        repairs = (None, None) if judged is None else (judged.restores, judged.removes)
        names = run.name, label.get(run.folder, "left out"), str(run.seed)
        facts = run.used_episodes, len(run.trials), run.seconds, run.status
        rows.append((*names, run.final_return, order, *repairs, *facts))
    columns = ("run", "group", "seed", "return", "order", "Restores", "Removes", "episodes", "trials", "time", "state")
    time = Column("time", "time", lambda seconds: "-" if seconds is None else duration(seconds))
    table = Table(columns, tuple(rows), (*columns[:-2], time, "state"), "The runs")
    return Section("The runs", ("A report of any one of them: fixfirst report RUN.",), tables=(table,))


def _difference_sections(groups: Sequence[RunGroup]) -> list[Section]:
    """Show the settings in which the groups differ."""
    settings = [group.runs[0].result_settings for group in groups]
    rows = tuple((key, *(group.get(key, "-") for group in settings)) for key in differing_settings(settings))
    columns = ("setting", *(group.label for group in groups))
    table = Table(columns, rows, tuple(Column(name, name) for name in columns), "Settings that differ")
    return [Section("What differs between the groups", tables=(table,))] if rows else []
