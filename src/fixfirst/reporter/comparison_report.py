"""The report of several runs of any kind side by side."""

from collections.abc import Mapping, Sequence

from fixfirst.base import errors
from fixfirst.base.tables import INTERVAL, Column, Table, duration, interval, plain
from fixfirst.reporter import curves, texts
from fixfirst.reporter.document import Document, Section, describe_game, glossary_sections
from fixfirst.reporter.run import Run
from fixfirst.reporter.texts import some
from fixfirst.stats import across_seeds
from fixfirst.stats.agreement import Agreement
from fixfirst.stats.intervals import mean_interval

# Those that name a group of runs first, and those whose values need no name beside them.
_FIRST = ("kind", "red_agent", "strategy", "workflow", "total_episodes", "variant", "preset", "inherit", "round_size")
_SELF_EXPLAINING = ("kind", "red_agent", "strategy")


Groups = dict[str, list[Run]]  # runs that differ only in their seed, by seed; by what tells them from other groups


def group_runs(runs: Sequence[Run]) -> tuple[Groups, list[str]]:
    """Group runs that differ only in their seed, and say what was left out: a seed counts once."""
    by_settings: dict[str, list[Run]] = {}
    repeated = []
    for run in runs:
        group = by_settings.setdefault(repr(sorted(run.result_settings.items())), [])
        twin = next((other for other in group if other.seed == run.seed), None)
        if twin is None:
            group.append(run)
        else:
            repeated.append(f"{run.name} has the configuration and seed of {twin.name}; it is left out of the comparison.")
    groups = [sorted(group, key=lambda run: (str(run.seed), run.name)) for group in by_settings.values()]
    return dict(zip(_labels([group[0].result_settings for group in groups]), groups, strict=True)), repeated


def differing_settings(settings: Sequence[dict[str, str]]) -> list[str]:
    """Return settings that differ between these; one that only some kinds of runs have must differ among those."""
    keys = dict.fromkeys(key for group in settings for key in group)
    differing = [key for key in keys if len({group[key] for group in settings if key in group}) > 1]
    return sorted(differing, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))


def _labels(settings: Sequence[dict[str, str]]) -> list[str]:
    """Name the groups by as few settings as tell them apart."""
    parts: list[tuple[str, ...]] = [()] * len(settings)
    for key in differing_settings(settings):
        named = "" if key in _SELF_EXPLAINING else f"{key} "
        longer = [(*p, f"{named}{group[key]}") if key in group else p for p, group in zip(parts, settings, strict=True)]
        parts = longer if len({*longer}) > len({*parts}) else parts
    labels = [", ".join(p) or group["kind"] for p, group in zip(parts, settings, strict=True)]
    same = [labels[:number].count(label) for number, label in enumerate(labels)]
    return [f"{label} #{count + 1}" if count else label for label, count in zip(labels, same, strict=True)]


def comparison_report(runs: Sequence[Run], skipped: Sequence[str]) -> Document:
    """Build the comparison of several runs: those against the same red agent in the same variant, others apart."""
    groups, repeated = group_runs(runs)
    worlds: dict[str, Groups] = {}
    for label, of_group in groups.items():
        worlds.setdefault(describe_game(of_group[0]), {})[label] = of_group
    sections, answer, headlines = list[Section](), list[str](), list[str]()
    for world, comparable in worlds.items():
        where, members = f": {world}" if len(worlds) > 1 else "", [run for group in comparable.values() for run in group]
        ranking = _ranking(comparable)
        seeds = {label: _across_seeds(g) for label, g in comparable.items() if g[0].is_separate and len(g) > 1}
        if verdict := _verdict(members, ranking, seeds if len(comparable) == 1 else {}):
            headlines.append(f"against {members[0].config.get('red_agent', 'unknown')} {verdict}" if where else verdict)
        if ranking.rows:
            answer += [f"R{where[3:]}:"] if where else []
            for name, mean, low, high, count in ranking.rows:
                between = "" if low is None else f" {interval(low, high)}"
                answer.append(f"{name}: {plain(mean)} per episode{between}, {some(count, 'run')}.")
            answer += [f"{run.name}: {run.answer.sentences[0]}" for run in members if run.answer is not None]
            sections.append(Section(f"Final return{where}", (texts.GROUPS,), tables=(ranking,)))
        for label, compared in seeds.items():
            text = (texts.verdict_over_seeds(compared), texts.ACROSS_SEEDS)
            sections.append(Section(f"Across seeds: {label}", text, tables=(compared.orders,)))
        if len(logged := [run for run in members if len(run.updates)]) > 1:
            sections.append(Section(f"Learning curves{where}", (texts.LEARNING_READING,), (curves.learning(logged),)))
    sections += [_runs_section(groups, runs), *_difference_sections(groups)]
    of_run: dict[str, list[str]] = {}
    for run in runs:
        for note in run.missing:
            of_run.setdefault(note, []).append(run.name)
    apart = "; those against different red agents, or in different variants, cannot be compared" if len(worlds) > 1 else ""
    headline = "; ".join(map(errors.printable, headlines)) or f"{some(len(groups), 'group')}, no result yet"
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
        rule = Agreement.of(answers).rule
        return f"{rule[0].lower()}{rule[1:]}"
    for compared in seeds.values():
        shared = None if compared.ranking is None else texts.shared_rule(compared.ranking)
        return shared or "no order is shown to be better than another"
    if not ranking.rows:
        return ""
    label, mean, *_ = ranking.rows[0]
    return f"{plain(mean)} per episode{f' with {label}' if len(ranking.rows) > 1 else ''}"


def _ranking(groups: Groups) -> Table:
    """Return the groups with a final return, the best first."""
    returns = {label: [run.final_return for run in group if run.final_return is not None] for label, group in groups.items()}
    lines = [(label, *mean_interval(values), len(values)) for label, values in returns.items() if values]
    lines.sort(key=lambda line: -line[1])
    shown = ("group", Column("mean", "mean return"), INTERVAL, "runs")
    return Table(("group", "mean", "low", "high", "runs"), tuple(lines), shown, "Final return")


def _across_seeds(group: Sequence[Run]) -> across_seeds.Comparison:
    results = [
        across_seeds.SeedResult(str(run.config.get("red_agent", "")), run.seed, run.scheme, run.trials, run.ranked_trials)
        for run in group
    ]
    (compared,) = across_seeds.compare_seeds(results)
    return compared


def _runs_section(groups: Groups, runs: Sequence[Run]) -> Section:
    """Show what became of each run."""
    label, rows = {run.folder: label for label, group in groups.items() for run in group}, []
    for run in runs:
        order, best = run.workflow or "-", None if run.answer is None else run.answer.orders[0]
        order += "" if best is None else f" (best: {best.workflow})"
        judged = best or (run.result and run.result.evaluation)
        repairs = (None, None) if judged is None else (judged.restores, judged.removes)
        names = run.name, label.get(run.folder, "left out"), str(run.seed)
        facts = run.used_episodes, len(run.trials), run.seconds, run.status
        rows.append((*names, run.final_return, order, *repairs, *facts))
    columns = ("run", "group", "seed", "return", "order", "Restores", "Removes", "episodes", "trials", "time", "state")
    time = Column("time", "time", lambda seconds: "-" if seconds is None else duration(seconds))
    table = Table(columns, tuple(rows), (*columns[:-2], time, "state"), "The runs")
    return Section("The runs", ("A report of any one of them: fixfirst report RUN.",), tables=(table,))


def _difference_sections(groups: Groups) -> list[Section]:
    """Show the settings in which the groups differ."""
    settings = [group[0].result_settings for group in groups.values()]
    rows = tuple((key, *(group.get(key, "-") for group in settings)) for key in differing_settings(settings))
    columns = ("setting", *groups)
    table = Table(columns, rows, tuple(Column(name, name) for name in columns), "Settings that differ")
    return [Section("What differs between the groups", tables=(table,))] if rows else []
