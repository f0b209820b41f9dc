"""The report of one run: a search, or a single training."""

import shlex
from collections.abc import Sequence

from fixfirst.base.errors import printable
from fixfirst.orders.order import Workflow
from fixfirst.orders.ranking import Ranked
from fixfirst.reporter import figures, words
from fixfirst.reporter.analysis import lineage_episodes, pair_effects, position_means, shared_precedences, time_use
from fixfirst.reporter.document import (
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
    pairs_table,
    percent,
    replays,
    some,
)
from fixfirst.reporter.read import RunData
from fixfirst.reporter.verdicts import rule_in_words
from fixfirst.runs.config_reading import result_settings, setting
from fixfirst.runs.layout import CONFIG, MANIFEST
from fixfirst.runs.ledger import RankedTrials
from fixfirst.runs.lock import RUNNING, duration
from fixfirst.runs.rows import Status, Trial, number


def search_report(run: RunData, draw: Draw) -> Document:
    found, tried = run.ranked_trials, len({trial.workflow for trial in run.trials})
    threshold = number(setting(run.config, "compliance_threshold"))
    sections = [_ranking_section(run, found, draw)]
    if found is not None and len(found.ranking.rows) > 1:
        sections.append(_precedence_section(found, draw))
    if run.trials:
        sections += [_progress_section(run, draw), _compliance_section(run, threshold, draw)]
    if len(run.updates):
        sections.append(_learning_section(run, threshold, draw))
    sections += [*_time_sections(run, draw), settings_section(run), glossary()]
    count = f"{some(len(run.trials), 'trial')}, {some(tried, 'order')} tried, {run.used_episodes:,} training episodes"
    if found is None:
        return Document(
            title=f"fixfirst: {run.name}",
            question="Which kind of machine should the defender fix first?",
            lead="",
            headline=("No order passed the gate.",),
            figures_of_merit=(),
            answer=(words.NO_ORDER_PASSED, f"{count}; {game(run)}."),
            missing=run.missing,
            sections=tuple(sections),
            replays=replays(run),
            running=run.status == RUNNING,
        )
    best = found.ranking.rows[0]
    return Document(
        title=f"fixfirst: {run.name}",
        question="Which kind of machine should the defender fix first?",
        lead=_lead(found),
        headline=_headline(run, found),
        figures_of_merit=(
            (num(best.mean), f"return per episode; {_confidence(found)} interval {interval(best.low, best.high)}"),
            (percent(found.best.compliance), "of judged repairs kept to the order"),
            (f"{len(found.ranking.maybe_best)} of {len(found.ranking.rows)}", "accepted orders may be the best"),
        ),
        answer=(*search_answer(run, found), f"{count}; {game(run)}."),
        missing=run.missing,
        sections=tuple(sections),
        replays=replays(run),
        running=run.status == RUNNING,
    )


def _lead(found: RankedTrials) -> str:
    """What the headline is: an order only if there is a winner."""
    ranked, alike = len(found.ranking.rows), len(found.ranking.maybe_best)
    if ranked == 1:
        return "The only order that passed the gate:"
    if found.ranking.winner is not None:
        return f"The best of {ranked} accepted orders:"
    return f"No single order wins. What the {alike} of {ranked} accepted orders that may be the best have in common:"


def _headline(run: RunData, found: RankedTrials) -> tuple[str, ...]:
    """The winner, unit type by unit type; without one, the rule that all orders share which may be the best."""
    rows = found.ranking.rows
    if len(rows) == 1 or found.ranking.winner is not None:
        return tuple(run.scheme.names[unit] for unit in rows[0].workflow.order)
    rule = rule_in_words(found.ranking)
    return ("Nothing: no order is shown to be better than another." if rule is None else f"{rule[0].upper()}{rule[1:]}.",)


def _confidence(found: RankedTrials) -> str:
    return f"{100 * found.ranking.confidence:.0f} %"


def search_answer(run: RunData, found: RankedTrials) -> list[str]:
    """The answer in sentences with numbers, careful about what they do not show."""
    rows, best, trial = found.ranking.rows, found.ranking.rows[0], found.best
    kept = f"kept to that order in {percent(trial.compliance)} of the judged repairs"
    if trial.contested_compliance is not None:
        kept += f" ({percent(trial.contested_compliance)} of the contested ones)"
    earned = f"earned {num(best.mean)} per episode ({_confidence(found)} interval {interval(best.low, best.high)})"
    sentences = [f"A defender trained for {best.workflow} {earned} and {kept}."]
    sentences.append(_told_apart(found))
    if len(rows) > 1 and not found.ranking.winner:
        shared = [
            f"{above} before {below} (the other way round in {some(others, 'accepted order')})"
            for above, below, others in shared_precedences(found.ranking)
        ]
        if shared:
            sentences.append(f"What those {len(found.ranking.maybe_best)} have in common: {', '.join(shared)}.")
    if run.warmup is not None:
        sentences.append(_against_no_order(run, best, trial, len(rows)))
    if len(rows) > 1:
        worst = rows[-1]
        sentences.append(
            f"The worst accepted order, {worst.workflow}, earned {num(worst.mean)} ({interval(worst.low, worst.high)}): "
            f"{num(best.mean - worst.mean)} less per episode than the highest."
        )
    return sentences


def _told_apart(found: RankedTrials) -> str:
    others, alike = len(found.ranking.rows) - 1, len(found.ranking.maybe_best)
    sure = f"at {_confidence(found)} confidence"
    if not others:
        return "It is the only order that passed the gate, so there is nothing to compare it with."
    if found.ranking.winner is not None:
        return f"It is better than each of the other {some(others, 'accepted order')}, {sure}."
    tied = f"It cannot be told from {some(alike - 1, 'other order')} {sure}"
    return f"{tied}: of {others + 1} accepted orders, {alike} may be the best."


def _against_no_order(run: RunData, best: Ranked, trial: Trial, ranked: int) -> str:
    """Not a fair comparison, and it says so: the winner had more training, and was selected."""
    warmup = run.warmup
    assert warmup is not None
    gap = best.mean - warmup.mean
    trained = "the warm-up" if warmup.trained_episodes is None else f"{warmup.trained_episodes:,} episodes of training"
    return words.AGAINST_NO_ORDER.format(
        mean=num(warmup.mean),
        interval=interval(warmup.low, warmup.high),
        had=trained,
        gap=f"{num(abs(gap))} {'more' if gap >= 0 else 'less'}",
        seen=f"{lineage_episodes(run, trial):,}",
        ranked=ranked,
    )


def _ranking_section(run: RunData, found: RankedTrials | None, draw: Draw) -> Section:
    ranked = () if found is None else found.ranking.rows
    text = [words.RANKING]
    if found is not None:
        text.append(words.RANKING_INTERVALS.format(confidence=_confidence(found), spread=num(found.spread)))
    if any(not trial.accepted for trial in run.trials):
        text.append(words.RANKING_HOLLOW)
    shown = any(trial.return_mean is not None for trial in run.trials)
    table = Table(
        ("", "order", "return", "interval", "compliance", "contested", "verdict", "trial", "episodes"),
        tuple(_ranking_rows(run, ranked)),
        "All tried orders",
    )
    return Section(
        "All tried orders",
        tuple(text),
        (draw(lambda: figures.ranking(run)),) if shown else (),
        (table,) if run.trials else (),
    )


def _ranking_rows(run: RunData, ranked: Sequence[Ranked]) -> list[tuple[Cell, ...]]:
    """One row per accepted order, with its best trial, then the trials of the others."""
    by_order: dict[Workflow, Trial] = {}
    for trial in sorted((trial for trial in run.trials if trial.accepted), key=lambda trial: trial.earned):
        by_order[run.workflow_of(trial)] = trial
    rows = []
    for place, row in enumerate(ranked, start=1):
        verdict = "may be best" if row.maybe_best else "worse"
        rows.append(_ranking_row(place, by_order[row.workflow], row.mean, row.low, row.high, verdict))
    for trial in run.trials:
        if run.workflow_of(trial) not in by_order:
            verdict = "failed" if trial.status == Status.FAILED else "not accepted"
            rows.append(_ranking_row(None, trial, trial.return_mean, trial.return_low, trial.return_high, verdict))
    return rows


def _ranking_row(
    place: int | None, trial: Trial, mean: float | None, low: float | None, high: float | None, verdict: str
) -> tuple[Cell, ...]:
    return (
        Cell("", None) if place is None else Cell(str(place), place),
        Cell(trial.workflow),
        numeric(mean),
        Cell("-" if low is None or high is None else interval(low, high)),
        numeric(trial.compliance, percent(trial.compliance)),
        numeric(trial.contested_compliance, percent(trial.contested_compliance)),
        Cell(verdict),
        Cell(f"{trial.id}", trial.id),
        Cell(f"{trial.episodes:,}", trial.episodes),
    )


def _precedence_section(found: RankedTrials, draw: Draw) -> Section:
    workflows = [row.workflow for row in found.ranking.rows]
    returns = [row.mean for row in found.ranking.rows]
    scheme = workflows[0].scheme
    effects, means = pair_effects(workflows, returns), position_means(workflows, returns)
    told = [effect for effect in effects if effect.effect is not None]
    untold = [effect for effect in effects if effect.effect is None]
    text = [words.PRECEDENCE]
    if untold:
        listed = "; ".join(f"{e.first} / {e.second} ({e.tried} so, {e.reversed} reversed)" for e in untold[:10])
        more = f" and {len(untold) - 10} more" if len(untold) > 10 else ""
        text.append(f"Not told by what was tried: {listed}{more}.")
    tried, orders = len(workflows), scheme.num_orders
    text.append(words.PRECEDENCE_BASIS.format(tried=tried, orders=f"{orders:,}", untried=f"{orders - tried:,}"))
    drawn = [draw(lambda: figures.pairs(effects))] if told else []
    drawn.append(draw(lambda: figures.positions(means)))
    return Section("Which precedence matters", tuple(text), tuple(drawn))


def _progress_section(run: RunData, draw: Draw) -> Section:
    asked = sum(choice.ucb is not None for choice in run.choices)
    if asked:
        how = words.BY_GAUSSIAN_PROCESS.format(asked=asked, trials=len(run.trials))
        text: tuple[str, ...] = (words.PROGRESS.format(how=how), words.PROGRESS_READING)
    else:
        text = (words.PROGRESS_WITHOUT_BELIEFS,)
    return Section("How the search went", text, (draw(lambda: figures.progress(run)),))


def _compliance_section(run: RunData, threshold: float | None, draw: Draw) -> Section:
    gate = "" if threshold is None else words.COMPLIANCE_GATE.format(threshold=percent(threshold))
    shown = any(trial.compliance is not None for trial in run.trials)
    drawn = (draw(lambda: figures.compliance(run, threshold)),) if shown else ()
    return Section("Compliance and return", (words.COMPLIANCE.format(gate=gate), words.COMPLIANCE_READING), drawn)


def _learning_section(run: RunData, threshold: float | None, draw: Draw) -> Section:
    inherited = words.LEARNING_INHERITED if any(trial.parent is not None for trial in run.trials) else ""
    marks = words.LEARNING_MARKS.format(inherited=inherited) if run.is_search else ""
    text = (words.LEARNING.format(marks=marks), words.LEARNING_READING)
    return Section("Learning", text, (draw(lambda: figures.learning(run, threshold)),))


def _time_sections(run: RunData, draw: Draw) -> list[Section]:
    use = time_use(run)
    if not use.parts:
        return []
    text = words.TIME_UNKNOWN
    if use.wall_s is not None and use.workers is not None:
        sessions = "" if len(run.sessions) == 1 else f" in {len(run.sessions)} sessions"
        text = words.TIME.format(wall=duration(use.wall_s), sessions=sessions, workers=some(use.workers, "worker"))
        if use.total > 1.01 * sum(session.seconds * session.workers for session in run.sessions):
            text += words.TIME_KILLED
    return [Section("Where the time went", (text,), (draw(lambda: figures.time(use)),))]


# ---------------------------------------------------------------- one training


def training_report(run: RunData, draw: Draw) -> Document:
    threshold = number(setting(run.config, "compliance_threshold"))
    order = printable(str(setting(run.config, "workflow", "unknown")))
    whose = {"none": "A defender without an order", "all": "A defender for any order"}.get(order, f"A defender for {order}")
    sections = [_learning_section(run, threshold, draw)] if len(run.updates) else []
    sections += [*_time_sections(run, draw), settings_section(run), glossary()]
    score = run.result
    answer, merit = [f"{whose}, {run.used_episodes:,} training episodes; {game(run)}."], []
    if score is not None:
        tested = "held-out episodes" if score.test_episodes is None else f"{score.test_episodes:,} held-out episodes"
        kept = (
            ""
            if score.compliance is None
            else f" It kept to the order in {percent(score.compliance)} of the judged repairs."
        )
        earned = f"The trained policy earned {num(score.mean)} per episode ({interval(score.low, score.high)})"
        answer.insert(0, f"{earned} on {tested}.{kept}")
        merit.append((num(score.mean), f"return per episode; 95 % interval {interval(score.low, score.high)}"))
        if score.compliance is not None:
            merit.append((percent(score.compliance), "of judged repairs kept to the order"))
    return Document(
        title=f"fixfirst: {run.name}",
        question="What does one trained defender earn?",
        lead="",
        headline=(whose,),
        figures_of_merit=tuple(merit),
        answer=tuple(answer),
        missing=run.missing,
        sections=tuple(sections),
        replays=replays(run),
        running=run.status == RUNNING,
    )


# ---------------------------------------------------------------- where it came from


def settings_section(run: RunData) -> Section:
    settings = [(key, value) for key, value in result_settings(run.kind, run.config).items() if key != "kind"]
    versions, machine, options = (run.manifest.get(key) for key in ("versions", "machine", "options"))
    origin = [("run", str(run.name)), ("state", run.status), ("created", str(run.manifest.get("created", "-")))]
    origin.append(("seed", str(run.seed)))
    origin += [(f"version of {key}", str(value)) for key, value in (versions.items() if isinstance(versions, dict) else ())]
    for key, value in machine.items() if isinstance(machine, dict) else ():
        listed = isinstance(value, list) and len(value) > 1  # a CPU has a hundred features
        origin.append((f"machine: {key}", f"{len(value)}, named in {MANIFEST}" if listed else str(value)))
    origin.append(("command", str(run.manifest.get("command", "-"))))
    if run.policy_sha256 is not None:
        origin.append(("policy, sha256", run.policy_sha256))
    origin += [(f"{name}, sha256", digest) for name, digest in run.hashes]
    command = None
    if run.config:
        command = f"fixfirst {run.kind} --config {shlex.quote(printable(str(run.folder / CONFIG)))} --out runs/again"
        if not run.is_search and isinstance(options, dict) and options.get("from_policy"):  # not part of its configuration
            command += f" --from {shlex.quote(printable(str(options['from_policy'])))}"
    return Section(
        "Settings, and how to do it again",
        (words.AGAIN,) if command else (),
        tables=(pairs_table(origin, "Origin"), pairs_table(settings, "Settings")),
        command=command,
    )
