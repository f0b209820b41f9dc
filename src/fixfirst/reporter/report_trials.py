"""The reports of a search with a training per order, of one training, of several runs side by side, and of a league."""

from collections.abc import Sequence
from functools import partial

from fixfirst.base import errors
from fixfirst.orders.order import Workflow
from fixfirst.reporter import figures, texts
from fixfirst.reporter.analysis import (
    RunGroup,
    differing_settings,
    final_return,
    group_course,
    group_runs,
    pair_effects,
    position_means,
    time_use,
)
from fixfirst.reporter.document import (
    Cell,
    Document,
    Draw,
    PageTable,
    Section,
    describe_game,
    glossary_sections,
    make_table,
    run_document,
    share,
)
from fixfirst.reporter.texts import interval, num, percent, some
from fixfirst.runs import manifest, matrix, rows
from fixfirst.runs.rows import Trial
from fixfirst.runs.run import Run
from fixfirst.stats import across_seeds, agreement, intervals
from fixfirst.stats.evaluation import Evaluation

MOST_UNKNOWN = 10  # pairs that are listed


def search_report(run: Run, draw: Draw) -> Document:
    """Build the report of a search with a training per order."""
    found, tried = run.ranked_trials, len({trial.workflow for trial in run.trials})
    threshold = rows.number(run.config.get("compliance_threshold"))
    sections = [_ranking_section(run, draw)]
    if found is not None and len(found.ranking.rows) > 1:
        sections.append(_precedence_section(found, draw))
    if run.trials:
        sections += [_progress_section(run, draw), _compliance_section(run, threshold, draw)]
    sections += [*_learning_sections(run, threshold, draw), *_time_sections(run, draw)]
    counts = f"{some(len(run.trials), 'trial')}, {some(tried, 'order')} tried, {run.used_episodes:,} training episodes"
    facts = f"{counts}; {describe_game(run)}."
    lead, answer = "", [texts.NO_ORDER_PASSED]
    headline: tuple[str, ...] = ("No order passed the gate.",)
    merits: tuple[tuple[str, str], ...] = ()
    if found is not None:
        best, ranking = found.ranking.rows[0], found.ranking
        sure = f"{100 * ranking.confidence:.0f} % interval {interval(best.low, best.high)}"
        lead, headline, answer = texts.ranking_lead(ranking), _headline(run, found), texts.ranking_sentences(run, found)
        merits = (
            (num(best.mean), f"return per episode; {sure}"),
            (percent(found.best.compliance), "of judged repairs kept to the order"),
            (f"{len(ranking.maybe_best)} of {len(ranking.rows)}", "accepted orders may be the best"),
        )
    return run_document(
        run,
        question=texts.QUESTION,
        lead=lead,
        headline=headline,
        figures_of_merit=merits,
        answer=(*answer, facts),
        sections=sections,
        glossary=texts.GLOSSARY,
    )


def _headline(run: Run, found: across_seeds.RankedTrials) -> tuple[str, ...]:
    """Return the winner, unit type by unit type; without one, the rule that all orders share which may be the best."""
    rows = found.ranking.rows
    if len(rows) == 1 or found.ranking.winner is not None:
        return tuple(run.scheme.names[unit] for unit in rows[0].workflow.order)
    rule = texts.rule_in_words(found.ranking)
    return ("Nothing: no order is shown to be better than another." if rule is None else f"{rule[0].upper()}{rule[1:]}.",)


def _ranking_section(run: Run, draw: Draw) -> Section:
    found, text = run.ranked_trials, [texts.RANKING]
    if found is not None:
        sure = f"{100 * found.ranking.confidence:.0f} %"
        text.append(texts.RANKING_INTERVALS.format(confidence=sure, spread=num(found.spread)))
    if any(not trial.accepted for trial in run.trials):
        text.append(texts.RANKING_HOLLOW)
    by_order: dict[Workflow, Trial] = {}  # the best accepted trial of each
    for trial in sorted((trial for trial in run.trials if trial.accepted), key=lambda trial: trial.earned):
        by_order[run.workflow_of(trial)] = trial
    lines = []
    for place, row in enumerate(() if found is None else found.ranking.rows, start=1):
        verdict = "may be best" if row.maybe_best else "worse"
        lines.append(_ranking_row(place, by_order[row.workflow], (row.mean, row.low, row.high), verdict))
    for trial in run.trials:
        if run.workflow_of(trial) not in by_order:
            verdict = "failed" if trial.status == rows.Status.FAILED else "not accepted"
            lines.append(_ranking_row("", trial, (trial.return_mean, trial.return_low, trial.return_high), verdict))
    columns = ("", "order", "return", "interval", "compliance", "contested", "verdict", "trial", "episodes")
    drawn = any(trial.return_mean is not None for trial in run.trials)
    return Section(
        "All tried orders",
        tuple(text),
        (draw(lambda: figures.ranking(run)),) if drawn else (),
        (make_table("All tried orders", columns, lines),) if run.trials else (),
    )


def _ranking_row(
    place: int | str, trial: Trial, earned: tuple[float | None, float | None, float | None], verdict: str
) -> tuple[object, ...]:
    mean, low, high = earned
    between = None if low is None or high is None else interval(low, high)
    compliance = share(trial.compliance), share(trial.contested_compliance)
    return place, trial.workflow, mean, between, *compliance, verdict, trial.id, trial.episodes


def _precedence_section(found: across_seeds.RankedTrials, draw: Draw) -> Section:
    workflows, returns = [row.workflow for row in found.ranking.rows], [row.mean for row in found.ranking.rows]
    effects, means = pair_effects(workflows, returns), position_means(workflows, returns)
    unknown = [effect for effect in effects if effect.effect is None]
    text, drawn = [texts.PRECEDENCE], []
    if unknown:
        listed = "; ".join(f"{e.first} / {e.second} ({e.tried} so, {e.reversed} reversed)" for e in unknown[:MOST_UNKNOWN])
        more = f" and {len(unknown) - MOST_UNKNOWN} more" if len(unknown) > MOST_UNKNOWN else ""
        text.append(f"Not told by what was tried: {listed}{more}.")
    tried, orders = len(workflows), workflows[0].scheme.num_orders
    text.append(texts.PRECEDENCE_BASIS.format(tried=tried, orders=f"{orders:,}", untried=f"{orders - tried:,}"))
    if len(unknown) < len(effects):
        drawn.append(draw(lambda: figures.pairs(effects)))
    drawn.append(draw(lambda: figures.positions(means)))
    return Section("Which precedence matters", tuple(text), tuple(drawn))


def _progress_section(run: Run, draw: Draw) -> Section:
    asked = sum(choice.ucb is not None for choice in run.choices)
    text: tuple[str, ...] = (texts.PROGRESS_WITHOUT_BELIEFS,)
    if asked:
        text = (texts.PROGRESS.format(asked=asked, trials=len(run.trials)), texts.PROGRESS_READING)
    return Section("How the search went", text, (draw(lambda: figures.progress(run)),))


def _compliance_section(run: Run, threshold: float | None, draw: Draw) -> Section:
    gate = "" if threshold is None else texts.COMPLIANCE_GATE.format(threshold=percent(threshold))
    judged = any(trial.compliance is not None for trial in run.trials)
    drawn = (draw(lambda: figures.compliance(run, threshold)),) if judged else ()
    return Section("Compliance and return", (texts.COMPLIANCE.format(gate=gate), texts.COMPLIANCE_READING), drawn)


def _learning_sections(run: Run, threshold: float | None, draw: Draw) -> list[Section]:
    if not len(run.updates):
        return []
    inherited = texts.LEARNING_INHERITED if any(trial.parent is not None for trial in run.trials) else ""
    marks = texts.LEARNING_MARKS.format(inherited=inherited) if run.is_search else ""
    text = (texts.LEARNING.format(marks=marks), texts.LEARNING_READING)
    return [Section("Learning", text, (draw(lambda: figures.learning(run, threshold)),))]


def _time_sections(run: Run, draw: Draw) -> list[Section]:
    use = time_use(run)
    if not use.parts:
        return []
    text = texts.TIME_UNKNOWN
    if use.wall_s is not None and use.workers is not None:
        sessions = "" if len(run.sessions) == 1 else f" in {len(run.sessions)} sessions"
        text = texts.TIME.format(wall=manifest.duration(use.wall_s), sessions=sessions, workers=some(use.workers, "worker"))
        text += texts.TIME_WAITING if run.is_search else ""
        if use.total > 1.01 * sum(session.seconds * session.workers for session in run.sessions):
            text += texts.TIME_KILLED
    return [Section("Where the time went", (text,), (draw(lambda: figures.time(use)),))]


# ---------------------------------------------------------------- one training


def training_report(run: Run, draw: Draw) -> Document:
    """Build the report of one training."""
    threshold = rows.number(run.config.get("compliance_threshold"))
    order = errors.printable(str(run.config.get("workflow", "unknown")))
    whose = {"none": "A defender without an order", "all": "A defender for any order"}.get(order, f"A defender for {order}")
    score = run.result
    answer, merits = [f"{whose}, {run.used_episodes:,} training episodes; {describe_game(run)}."], []
    if score is not None:
        tested = f"{score.episodes:,} held-out episodes"
        earned = f"The trained policy earned {num(score.mean)} per episode ({interval(score.low, score.high)}) on {tested}."
        merits.append((num(score.mean), f"return per episode; 95 % interval {interval(score.low, score.high)}"))
        if score.compliance is not None:
            share = percent(score.compliance.compliance.value)
            earned += f" It kept to the order in {share} of the judged repairs."
            merits.append((share, "of judged repairs kept to the order"))
        if score.restores is not None and score.removes is not None:
            earned += f" It made {num(score.restores)} Restores and {num(score.removes)} Removes an episode."
        answer.insert(0, earned)
    return run_document(
        run,
        question="What does one trained defender earn?",
        lead="",
        headline=(whose,),
        figures_of_merit=tuple(merits),
        answer=tuple(answer),
        sections=[*_cost_sections(score), *_learning_sections(run, threshold, draw), *_time_sections(run, draw)],
        glossary=texts.GLOSSARY,
    )


def _cost_sections(score: Evaluation | None) -> list[Section]:
    """Say what an episode cost, part by part."""
    if score is None or not score.costs:
        return []
    costs = sorted(((name, cost) for name, cost in score.costs.items() if cost), key=lambda part: -part[1])
    rows = [(errors.printable(name), cost) for name, cost in (*costs, ("all together", -score.mean))]
    table = make_table("Points an episode that each part cost", ("part", "points an episode"), rows)
    return [Section("What an episode cost", (texts.COSTS,), tables=(table,))]


# ---------------------------------------------------------------- several runs

Judged = tuple[str, intervals.MeanInterval, list[tuple[str, float]]]  # a group's label, its mean return, its runs


def comparison_report(runs: Sequence[Run], skipped: Sequence[str], draw: Draw) -> Document:
    """Build the comparison of several runs: those against the same red agent in the same variant, others apart."""
    groups, repeated = group_runs(runs)
    worlds: dict[str, list[RunGroup]] = {}
    for group in groups:
        worlds.setdefault(describe_game(group.runs[0]), []).append(group)
    sections, answer = [], []
    for place, (world, comparable) in enumerate(worlds.items(), start=1):
        where, suffix = (f": {world}", f"-{place}") if len(worlds) > 1 else ("", "")
        judged = _judged(comparable)
        if judged:
            answer += [f"R{where[3:]}:"] if where else []
            answer += [_describe_group(*entry) for entry in judged]
            runs_here = [run for group in comparable for run in group.runs]
            answer += [f"{run.name}: {run.answer.sentences[0]}" for run in runs_here if run.answer is not None]
            drawn = draw(partial(figures.groups, judged, f"groups{suffix}"))
            sections.append(Section(f"Final return{where}", (texts.GROUPS, texts.GROUPS_READING), (drawn,)))
        sections += _seeds_sections(comparable)
        trained = [run for group in comparable for run in group.runs if not run.is_search and len(run.updates)]
        if len(trained) > 1:
            drawn = draw(partial(figures.trainings, trained, f"trainings{suffix}"))
            sections.append(Section(f"Learning curves{where}", (texts.TRAININGS,), (drawn,)))
        searches = [group for group in comparable if group.runs[0].is_separate]
        if courses := [course for group in searches if (course := group_course(group)) is not None]:
            drawn = draw(partial(figures.courses, courses, f"courses{suffix}"))
            sections.append(Section(f"Best so far{where}", (texts.COURSES,), (drawn,)))
    sections += [_runs_section(groups, runs), *_difference_sections(groups)]
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
        headline=(_verdict(worlds),),
        answer=tuple(answer) or ("None of the runs has a final return yet.",),
        missing=tuple(missing),
        sections=(*sections, *glossary_sections(texts.GLOSSARY + texts.GLOSSARY_OF_SEVERAL)),
        running=any(run.status == manifest.RUNNING for run in runs),
    )


def _judged(groups: Sequence[RunGroup]) -> list[Judged]:
    """Return the groups with a final return, the best first."""
    judged = []
    for group in groups:
        values = [(run.name, value) for run in group.runs if (value := final_return(run)) is not None]
        if values:
            judged.append((group.label, intervals.mean_interval([value for _, value in values]), values))
    return sorted(judged, key=lambda entry: -entry[1].mean)


def _describe_group(label: str, found: intervals.MeanInterval, values: Sequence[tuple[str, float]]) -> str:
    mean, low, high = found
    between = "" if low is None or high is None else f" ({interval(low, high)}{texts.few_seeds(len(values))})"
    return f"{label}: {num(mean)} per episode{between}, {some(len(values), 'run')}."


def _verdict(worlds: dict[str, list[RunGroup]]) -> str:
    """Say of each world in a line the rule that its searches share, or what the best group earns."""
    said = []
    for groups in worlds.values():
        red = f"against {groups[0].runs[0].config.get('red_agent', 'unknown')} " if len(worlds) > 1 else ""
        judged, answers = _judged(groups), [run.answer for group in groups for run in group.runs if run.answer is not None]
        if answers:
            shown = agreement.Agreement.of(answers).rule
            said.append(f"{red}{shown[0].lower()}{shown[1:]}")
        elif len(groups) == 1 and len(groups[0].runs) > 1 and groups[0].runs[0].is_separate:
            found = _across_seeds(groups[0])
            rule = None if found.ranking is None else texts.rule_in_words(found.ranking)
            said.append(f"{red}{rule or 'no order is shown to be better than another'}")
        elif judged:
            many = f" with {judged[0][0]}" if len(judged) > 1 else ""
            said.append(f"{red}{num(judged[0][1].mean)} per episode{many}")
    text = "; ".join(errors.printable(part) for part in said)
    return f"{text[:1].upper()}{text[1:]}." if text else f"{some(sum(map(len, worlds.values())), 'group')}, no result yet."


def _seeds_sections(groups: Sequence[RunGroup]) -> list[Section]:
    """Say what the seeds of a search show together, as its terminal said it."""
    sections: list[Section] = []
    for group in groups:
        if group.runs[0].is_separate and len(group.runs) > 1:
            found = _across_seeds(group)
            rows = [
                (*cells[:2], Cell(cells[2], order.mean), *cells[3:])
                for cells, order in zip(texts.orders_across_seeds(found), found.orders, strict=True)
            ]
            table = make_table(f"Orders across {len(group.runs)} seeds", texts.ACROSS_SEEDS_COLUMNS, rows)
            text = (texts.verdict_over_seeds(found), *(() if sections else (texts.ACROSS_SEEDS,)))  # how to read it: once
            sections.append(Section(f"Across seeds: {group.label}", text, tables=(table,)))
    return sections


def _across_seeds(group: RunGroup) -> across_seeds.Comparison:
    results = [
        across_seeds.SeedResult(str(run.config.get("red_agent", "")), run.seed, run.scheme, run.trials, run.ranked_trials)
        for run in group.runs
    ]
    (found,) = across_seeds.compare_seeds(results)
    return found


def _repairs(run: Run) -> tuple[float | None, float | None]:
    """Return Restores and Removes per episode of what a run is judged by, where they are known."""
    if run.answer is not None:
        return run.answer.orders[0].restores, run.answer.orders[0].removes
    return (None, None) if run.result is None else (run.result.restores, run.result.removes)


def _runs_section(groups: Sequence[RunGroup], runs: Sequence[Run]) -> Section:
    label, rows = {run.folder: group.label for group in groups for run in group.runs}, []
    for run in runs:
        wall, found = time_use(run).wall_s, run.ranked_trials
        order = run.config.get("workflow", "-") if found is None else found.ranking.rows[0].workflow
        order = order if run.answer is None else f"{run.answer.rule} (best: {run.answer.orders[0].workflow})"
        names = run.name, label.get(run.folder, "left out"), str(run.seed)
        time = None if wall is None else Cell(manifest.duration(wall), wall)
        facts = run.used_episodes, len(run.trials), time, run.status
        rows.append((*names, final_return(run), str(order), *_repairs(run), *facts))
    columns = ("run", "group", "seed", "return", "order", "Restores", "Removes", "episodes", "trials", "time", "state")
    return Section(
        "The runs", ("A report of any one of them: fixfirst report RUN.",), tables=(make_table("The runs", columns, rows),)
    )


def _difference_sections(groups: Sequence[RunGroup]) -> list[Section]:
    settings = [manifest.result_settings(group.runs[0].kind, group.runs[0].config) for group in groups]
    rows = [(key, *(group.get(key, "-") for group in settings)) for key in differing_settings(settings)]
    table = make_table("Settings that differ", ("setting", *(group.label for group in groups)), rows)
    return [Section("What differs between the groups", tables=(table,))] if rows else []


# ---------------------------------------------------------------- a league


_COURSE_TEXT = (
    "A league trains one defender against scripts, attackers of the past, and attackers that learn beside it. At the end of "
    "every round some attackers learn against the defender as it is then, playing its most probable actions. What the best "
    "of these fresh responses takes is a lower bound of what can be taken; it joins the others for the next round.",
    "The league has converged when a fresh response takes no more than the worst attacker that is known.",
)
_MATRIX_TEXT = (
    "A row is an attacker, a column the defender after a round; a number is the defender's return, on the same episodes for "
    "all. live: it learned beside the defender; response: against the defender at the end of its round. Each began from "
    "scratch, from an attacker of the past, or from one that comes with fixfirst. Below its own round a row shows whether "
    "the defender has learned to answer it."
)


def league_report(run: Run, draw: Draw) -> Document:
    """Build the report of a league."""
    rounds = matrix.rounds_of(run.matrix)
    last, worst = rounds[-1], rounds[-1].worst
    answer = [f"After {last.in_words()}."]
    merits = [(num(mean), f"return against {name}") for name, mean in last.scripts.items()]
    if worst is not None:
        told = "a fresh response" if worst is last.fresh else f"attacker {worst.attacker} of round {worst.born}"
        merits.insert(0, (num(worst.mean), f"return against the attacker that takes most, {told}: a lower bound"))
    return run_document(
        run,
        question="How much does this defender lose to attackers who learn?",
        lead="",
        headline=(f"A defender of a league, {some(last.round, 'round')}, {some(last.attackers, 'attacker')}",),
        figures_of_merit=tuple(merits),
        answer=tuple(answer),
        sections=[
            Section("Round by round", _COURSE_TEXT, (draw(lambda: figures.league_course(rounds)),), (_course(rounds),)),
            Section("Every defender and every attacker", (_MATRIX_TEXT,), tables=(_matrix(run),)),
        ],
    )


def _course(rounds: list[matrix.Round]) -> PageTable:
    scripts = list(rounds[0].scripts)
    columns = ("round", "updates", *scripts, "attackers", "worst known", "fresh response", "which began from")
    lines = []
    for one in rounds:
        known, fresh = (None if row is None else row.mean for row in (one.known, one.fresh))
        start = "-" if one.fresh is None else one.fresh.start or "-"
        lines.append((one.round, one.updates, *one.scripts.values(), one.attackers, known, fresh, start))
    return make_table("Round by round", columns, lines)


def _matrix(run: Run) -> PageTable:
    numbers = sorted({row.round for row in run.matrix})
    cells = {(row.attacker, row.round): row.mean for row in run.matrix}
    lines = []
    for row in {row.attacker: row for row in run.matrix}.values():
        kind = row.kind if row.born == 0 else f"{row.kind} of round {row.born}, from {row.start}"
        lines.append((row.attacker, kind, *(cells.get((row.attacker, number)) for number in numbers)))
    columns = ("attacker", "what it is", *(f"after {number}" for number in numbers))
    return make_table("Every defender and every attacker", columns, lines)
