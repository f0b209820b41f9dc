"""The reports of trainings: of a search with one per order, of a single one, of a league."""

from collections.abc import Sequence

import numpy as np

from fixfirst.base import errors
from fixfirst.base.tables import Column, Table, duration, interval, percent, plain
from fixfirst.reporter import curves, figures, texts
from fixfirst.reporter.document import Document, Section, describe_game, run_document
from fixfirst.reporter.run import Run
from fixfirst.reporter.texts import some
from fixfirst.runs.rows import LeagueRound, league_rounds
from fixfirst.stats import across_seeds

WORST, FRESH = "worst known attacker", "best fresh response"


def separate_report(run: Run) -> Document:
    """Build the report of a search with a training per order."""
    ranked, tried = run.ranked_trials, len({trial.workflow for trial in run.trials})
    counts = f"{some(len(run.trials), 'trial')}, {some(tried, 'order')} tried, {run.used_episodes:,} training episodes"
    lead, answer = "", [texts.NOTHING_PASSED]
    headline: tuple[str, ...] = ("No order passed the gate.",)
    merits: tuple[tuple[str, str], ...] = ()
    if ranked is not None:
        ranking, best = ranked.ranking, ranked.ranking.rows[0]
        (lead, headline), answer = texts.ranking_headline(ranking), [texts.verdict_in_words(ranking)]
        sure = f"{100 * ranking.confidence:.0f} % interval {interval(best.low, best.high)}"
        merits = (
            (plain(best.mean), f"return per episode; {sure}"),
            (percent(ranked.best.compliance), "of judged repairs kept to the order"),
            (f"{len(ranking.maybe_best)} of {len(ranking.rows)}", "accepted orders may be the best"),
        )
    if run.warmup is not None:
        warmup = run.warmup.evaluation
        between = interval(warmup.low, warmup.high)
        answer.append(f"Without an order, before the first trial, the defender earned {plain(warmup.mean)} {between}.")
    return run_document(
        run,
        question=texts.QUESTION,
        lead=lead,
        headline=headline,
        figures_of_merit=merits,
        answer=(*answer, f"{counts}; {describe_game(run)}."),
        sections=[_ranking_section(run), *_choice_sections(run), *_learning_sections(run), *_time_sections(run)],
        glossary=texts.GLOSSARY,
    )


def _ranking_section(run: Run) -> Section:
    """Show what every tried order earned, and how it was kept to."""
    text = [texts.RANKING]
    if run.ranked_trials is not None:
        sure = f"{100 * run.ranked_trials.ranking.confidence:.0f} %"
        text.append(texts.RANKING_INTERVALS.format(confidence=sure, spread=plain(run.ranked_trials.spread)))
    if any(not trial.accepted for trial in run.trials):
        text.append(texts.RANKING_HOLLOW)
    table = across_seeds.ranking_table(run.ranked_trials, run.trials, all_tried=True)
    drawn = any(trial.return_mean is not None for trial in run.trials)
    figure = (figures.ranking(table),) if drawn else ()
    return Section("All tried orders", tuple(text), figure, (table,) if run.trials else ())


def _choice_sections(run: Run) -> list[Section]:
    """Show which order was chosen when, what was expected of it, and what became of it."""
    choices = {choice.iteration: choice for choice in run.choices}
    lines, best, used = [], None, 0 if run.warmup is None else run.warmup.episodes
    for trial in run.trials:
        choice, used = choices.get(trial.id), used + trial.episodes
        believed = ("", None, None, None) if choice is None else (choice.how, choice.mean, choice.std, choice.ucb)
        if trial.accepted:
            best = trial.mean if best is None else max(best, trial.mean)
        lines.append((trial.id, trial.workflow, *believed, trial.return_mean, trial.status.value, best, used))
    columns = ("trial", "order", "how", "expected", "std", "ucb", "return", "status", "best_so_far", "episodes_used")
    shown = (*columns[:5], Column("ucb", "UCB"), *columns[6:])
    table = Table(columns, tuple(lines), shown, "Which order was chosen when")
    return [Section("How the search went", (texts.CHOICES,), tables=(table,))] if lines else []


def _learning_sections(run: Run) -> list[Section]:
    """Show the returns and the compliance of training episodes."""
    if not len(run.updates):
        return []
    inherited = ", mostly from the weights of an earlier trial" if any(t.parent is not None for t in run.trials) else ""
    marks = f" A thin line marks where another order begins{inherited}." if run.is_search else ""
    figure = curves.learning([run], run.config.get("compliance_threshold"))
    return [Section("Learning", (texts.LEARNING + marks, texts.LEARNING_READING), (figure,))]


def _time_sections(run: Run) -> list[Section]:
    """Say what the worker-seconds were spent on."""
    playing, updating = float(np.nansum(run.updates.collection_s)), float(np.nansum(run.updates.update_s))
    parts = [("playing training episodes", playing), ("updating the policy", updating)]
    text = texts.TIME_UNKNOWN
    if run.sessions:
        wall, workers = run.seconds or 0.0, max(s.workers for s in run.sessions)
        rest = sum(s.seconds * s.workers for s in run.sessions) - playing - updating
        parts.append(("choosing, gate, evaluation, files, waiting" if run.is_search else "gate, evaluation, files", rest))
        sessions = "" if len(run.sessions) == 1 else f" in {len(run.sessions)} sessions"
        text = f"{duration(wall)} of wall time{sessions} with {some(workers, 'worker')}."
    whole = sum(seconds for _, seconds in parts if seconds > 0)
    rows = tuple((name, seconds, seconds / whole) for name, seconds in parts if seconds > 0)
    shown = ("part", Column("seconds", "worker-seconds", "{:,.1f}".format), Column("share", "share", percent))
    table = Table(("part", "seconds", "share"), rows, shown, "Worker-seconds")
    return [Section("Where the time went", (text,), tables=(table,))] if rows else []


def training_report(run: Run) -> Document:
    """Build the report of one training."""
    order, evaluation = errors.printable(str(run.config.get("workflow", "unknown"))), run.result and run.result.evaluation
    whose = {"none": "A defender without an order", "all": "A defender for any order"}.get(order, f"A defender for {order}")
    answer, merits, sections = [f"{whose}, {run.used_episodes:,} training episodes; {describe_game(run)}."], [], []
    if evaluation is not None:
        mean, between = plain(evaluation.mean), interval(evaluation.low, evaluation.high)
        sentences = [f"The trained policy earned {mean} per episode {between} on {evaluation.episodes:,} held-out episodes."]
        merits.append((mean, f"return per episode; 95 % interval {between}"))
        if evaluation.compliance is not None:
            share = percent(evaluation.compliance.compliance.value)
            sentences.append(f"It kept to the order in {share} of the judged repairs.")
            merits.append((share, "of judged repairs kept to the order"))
        if evaluation.restores is not None and evaluation.removes is not None:
            repairs = f"{plain(evaluation.restores)} Restores and {plain(evaluation.removes)} Removes"
            sentences.append(f"It made {repairs} an episode.")
        answer.insert(0, " ".join(sentences))
        parts = sorted(((name, cost) for name, cost in evaluation.costs.items() if cost), key=lambda part: -part[1])
        if parts:
            rows = (*parts, ("all together", -evaluation.mean))
            table = Table(("part", "points an episode"), rows, title="Points an episode that each part cost")
            sections.append(Section("What an episode cost", (texts.COSTS,), tables=(table,)))
    return run_document(
        run,
        question="What does one trained defender earn?",
        lead="",
        headline=(whose,),
        figures_of_merit=tuple(merits),
        answer=tuple(answer),
        sections=[*sections, *_learning_sections(run), *_time_sections(run)],
        glossary=texts.GLOSSARY,
    )


def league_report(run: Run) -> Document:
    """Build the report of a league."""
    rounds = league_rounds(run.matrix)
    last, worst = rounds[-1], rounds[-1].worst
    merits = [(plain(mean), f"return against {name}") for name, mean in last.scripts.items()]
    if worst is not None:
        who = "a fresh response" if worst is last.fresh else f"attacker {worst.attacker} of round {worst.born}"
        merits.insert(0, (plain(worst.mean), f"return against the attacker that takes most, {who}: a lower bound"))
    table = _course(rounds)
    figure = curves.course(
        "league",
        table,
        (*last.scripts, WORST, FRESH),
        "What scripts, known attackers and fresh ones leave the defender after each round.",
        unit="round {}",
        x="round",
        y="return of the defender",
    )
    return run_document(
        run,
        question="How much does this defender lose to attackers who learn?",
        lead="",
        headline=(f"A defender of a league, {some(last.round, 'round')}, {some(last.attackers, 'attacker')}",),
        figures_of_merit=tuple(merits),
        answer=(f"After {last.in_words()}.",),
        sections=[
            Section("Round by round", texts.LEAGUE_COURSE, (figure,), (table,)),
            Section("Every defender and every attacker", (texts.LEAGUE_MATRIX,), tables=(_matrix(run),)),
        ],
    )


def _course(rounds: Sequence[LeagueRound]) -> Table:
    """Return a row per round."""
    rows = []
    for each in rounds:
        known, fresh = (None if row is None else row.mean for row in (each.known, each.fresh))
        start = None if each.fresh is None else each.fresh.start or None
        rows.append((each.round, each.updates, *each.scripts.values(), each.attackers, known, fresh, start))
    columns = ("round", "updates", *rounds[0].scripts, "attackers", WORST, FRESH, "which began from")
    return Table(columns, tuple(rows), tuple(Column(name, name) for name in columns), "Round by round")


def _matrix(run: Run) -> Table:
    """Return a row per attacker, with what it leaves the defender after each round."""
    numbers = sorted({row.round for row in run.matrix})
    means = {(row.attacker, row.round): row.mean for row in run.matrix}
    rows = []
    for row in {row.attacker: row for row in run.matrix}.values():
        kind = row.kind if row.born == 0 else f"{row.kind} of round {row.born}, from {row.start}"
        rows.append((row.attacker, kind, *(means.get((row.attacker, number)) for number in numbers)))
    columns = ("attacker", "what it is", *(f"after {number}" for number in numbers))
    return Table(columns, tuple(rows), title="Every defender and every attacker")
