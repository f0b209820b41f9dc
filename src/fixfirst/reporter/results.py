"""What commands print in the end: the answer of a search, a ranking, what seeds say together; or the same as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from fixfirst.base import errors
from fixfirst.orders.ranking import Ranking
from fixfirst.play import evaluation
from fixfirst.reporter.screen import fitting_table, folded, prose, results
from fixfirst.reporter.texts import (
    ACROSS_SEEDS_COLUMNS,
    AFTER_ROUNDS,
    ATTACKED,
    adaptive_rows,
    orders_across_seeds,
    percent,
    settled,
    settled_under_attack,
    short_order,
    swap_name,
    tier_name,
    verdict_in_words,
    verdict_over_seeds,
)
from fixfirst.runs import agreement, layout, seeds
from fixfirst.runs.answer import Adaptive, Answer
from fixfirst.runs.rows import Trial

if TYPE_CHECKING:
    from fixfirst.searcher import study
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.searcher.shared import SharedSearch

MOST_ORDERS = 24
_MOST_ANSWERS = 12  # searches of a study whose tables are printed; of more, a line each
MOST_ACROSS_SEEDS = 20
_WIDE = 100  # columns in which everything about an order fits


def print_searches(searches: "Sequence[study.AnySearch]", folder: Path, page: Path | None = None) -> None:
    """Print the final tables, and what to do next. folder: of the search, or of the study; page: the report, if any."""
    console = results()
    shared, separate = _by_kind(searches)
    if shared:
        _print_answers(console, shared)
    elif len(separate) == 1:
        _print_search(console, separate[0])
    else:
        _print_study(console, separate, folder)
    if page is not None:
        print(f"report:      {page}")
    if len(shared) > 1:
        together = _together(shared)
        console.print()
        _print_sentences(console, (f"{together.rule}.", *together.sentences))


def searches_document(searches: "Sequence[study.AnySearch]", folder: Path, page: Path | None = None) -> dict[str, Any]:
    """Return the same for JSON."""
    report = {"report": None if page is None else str(page)}
    shared, separate = _by_kind(searches)
    if shared:
        found = [(s.folder, s.answer) for s in shared if s.answer is not None]
        documents = [{"run": str(run), **answer.document()} for run, answer in found]
        if len(searches) == 1:
            return documents[0] | report
        together = _together(shared)
        words: dict[str, Any] = {"rule": together.rule, "sentences": list(together.sentences)}
        if together.survey is not None:
            words |= {"networks": together.survey.document()}
        return {"study": str(folder), **words, "runs": documents} | report
    if len(searches) > 1:
        comparisons = [
            _comparison_document(comparison) for comparison in seeds.compare_seeds([search.result for search in separate])
        ]
        return {"study": str(folder), "runs": [str(s.folder) for s in separate], "red_agents": comparisons} | report
    search = separate[0]
    standings = search.standings()
    rows = [] if standings is None else [asdict(row) | {"workflow": str(row.workflow)} for row in standings.ranking.rows]
    trials = [asdict(trial) for trial in search.trials]
    return {"run": str(search.folder), "episodes": search.used, "ranking": rows, "trials": trials} | report


def _together(searches: "Sequence[SharedSearch]") -> agreement.Agreement:
    """Say what those that are finished find together."""
    finished = [(search.answer, search.network) for search in searches if search.answer is not None]
    return agreement.Agreement.of([answer for answer, _ in finished], [network for _, network in finished])


def _by_kind(searches: "Sequence[study.AnySearch]") -> "tuple[list[SharedSearch], list[PublishedSearch]]":
    """Part those with one network for all orders from those with a training per order."""
    shared: Any = [search for search in searches if not search.config.separate]
    separate: Any = [search for search in searches if search.config.separate]
    return shared, separate


# ---------------------------------------------------------------- answers


def _print_answers(console: Console, searches: "Sequence[SharedSearch]") -> None:
    """Print the rule, what does not matter, the swaps, the orders, of every search."""
    finished = [(search.folder.name, search.answer) for search in searches if search.answer is not None]
    answers = [answer for _, answer in finished]
    if len(answers) > _MOST_ANSWERS:
        for name, answer in finished:
            prose(console, f"{name}: {answer.sentences[0]}")
        console.print(f"next:        {errors.command('report', searches[0].folder)}", soft_wrap=True)
        return
    worlds = [search.config.training.game.where for search in searches if search.answer is not None]
    for (name, answer), where in zip(finished, worlds, strict=True):
        if len(answers) > 1:
            console.print(f"\n{name}:", highlight=False, soft_wrap=True)
        _print_sentences(console, answer.sentences)
        console.print(_swaps_table(answer, console.width))
        console.print(_orders_table(answer, console.width))
        if answer.adaptive is not None:
            console.print(f"{answer.adaptive.lead}:", highlight=False)
            console.print(_adaptive_swaps(answer.adaptive, console.width))
            console.print(_adaptive_orders(answer, answer.adaptive, console.width))
        facts = f"{answer.episodes:,} training episodes, {where}; {answer.trainings}"
        console.print(facts, soft_wrap=True, highlight=False)
    best, several = searches[0].folder / layout.BEST, len(searches) > 1
    where = f"policies:    {searches[0].folder.parent}/*/{layout.BEST}" if several else f"policy:      {best}"
    follow = "each follows" if several else "follows"
    console.print(f"{where} ({follow} any order)\nnext:        {errors.command('evaluate', best)}", soft_wrap=True)


def _print_sentences(console: Console, sentences: Sequence[str]) -> None:
    """Print what a person should read, the first sentence bold."""
    for number, text in enumerate(sentences):
        # Where nobody watches, lines stay whole: a terminal would break them inside words.
        console.print(text, style="bold" if number == 0 else None, soft_wrap=not console.is_terminal, highlight=False)


def _swaps_table(answer: Answer, width: int) -> Table:
    """Build the table; prices that may still fall have no interval."""
    columns = ("swap of neighbours", "worth", "95 % interval", "over training")
    rows = [
        (swap_name(s), f"{s.price:+.2f}", "-" if s.low is None else f"[{s.low:.2f}, {s.high:.2f}]", settled(s, answer))
        for s in answer.swaps
    ]
    return fitting_table(columns, rows, width, cut=columns[0])


def _orders_table(answer: Answer, width: int) -> Table:
    """Build the table; where there is little room, intervals and violations stay, and the tier goes first."""
    rows, columns = [], ("order", "return", "95 % interval", "tier", "violations", "Restores", "Removes")
    for order in answer.orders[:MOST_ORDERS]:
        name, most = short_order(order.workflow, answer.idle), f"{order.violations_high:.3f}"
        between = "-" if order.low is None else f"[{order.low:.2f}, {order.high:.2f}]"
        earned = name, f"{order.mean:.2f}", between
        repairs = f"{order.restores:.2f}", f"{order.removes:.2f}"
        wide = *earned, tier_name(order, answer), f"{order.violations:.3f}, at most {most}", *repairs
        rows.append(wide if width >= _WIDE else (*earned, f"≤ {most}", *repairs, tier_name(order, answer)))
    return fitting_table(columns if width >= _WIDE else (*columns[:3], *columns[4:], columns[3]), rows, width)


def _adaptive_swaps(found: Adaptive, width: int) -> Table:
    """Build the table of prices against attackers that learn."""
    columns = ("swap of neighbours", "worth", "95 % interval", "over rounds", "after each round")
    rows = [
        (
            swap_name(s),
            f"{s.price:+.1f}",
            "-" if s.low is None else f"[{s.low:.1f}, {s.high:.1f}]",
            settled_under_attack(s, found),
            ", ".join(f"{value:.0f}" for value in s.history),
        )
        for s in found.swaps
    ]
    return fitting_table(columns, rows, width, cut=columns[0])


def _adaptive_orders(answer: Answer, found: Adaptive, width: int) -> Table:
    """Build the table of orders against attackers that learn, beside what they earn otherwise."""
    columns = ("order", f"against {answer.red_agent}", *((AFTER_ROUNDS,) if found.scripted else ()), ATTACKED)
    rows = [
        (short_order(order.workflow, answer.idle), *(f"{value:.2f}" for value in cells))
        for order, *cells in adaptive_rows(answer, found)[:MOST_ORDERS]
    ]
    return fitting_table(columns, rows, width)


# ---------------------------------------------------------------- a search with a training per order


def _print_search(console: Console, search: "PublishedSearch") -> None:
    found, tried = search.standings(), len({trial.workflow for trial in search.trials})
    others = [trial for trial in search.trials if not trial.accepted]
    game = search.config.training.game
    facts = f"{search.used:,} training episodes, red agent {game.red_agent}, {game.where}"
    prose(console, f"{len(search.trials)} trials, {tried} orders tried, {facts}")
    if found is None:
        console.print("No order passed the gate: raise --total-episodes or --max-episodes, or lower --compliance-threshold.")
        return
    console.print(ranking_table(found.ranking, search.trials, console.width))
    if others:
        names = ", ".join(sorted({trial.workflow for trial in others}))
        prose(console, f"{len(others)} trials did not pass the gate: {names}")
    prose(console, verdict_in_words(found.ranking))
    console.print(
        f"Intervals allow for {found.spread:.2f} between two trainings of one order, estimated from neighbouring orders."
    )
    best = search.folder / layout.BEST
    console.print(f"best policy: {best}\nnext:        {errors.command('evaluate', best)}", soft_wrap=True)


def ranking_table(ranking: Ranking, trials: Sequence[Trial], width: int) -> Table:
    """Build a table of orders by return with simultaneous intervals, compliance, and which may be best (*)."""
    by_order: dict[str, Trial] = {}  # the best trial of each
    for trial in sorted((trial for trial in trials if trial.accepted), key=lambda trial: trial.earned):
        by_order[trial.workflow] = trial
    rows = []
    for place, row in enumerate(ranking.rows, start=1):
        trial = by_order[str(row.workflow)]
        earned = f"{row.mean:.2f}", f"[{row.low:.2f}, {row.high:.2f}]"
        compliance = percent(trial.compliance), percent(trial.contested_compliance)
        rows.append((f"{place}{'*' if row.maybe_best else ' '}", str(row.workflow), *earned, *compliance))
    return fitting_table(("", "order", "return", "95 % interval", "compliance", "contested"), rows, width)


def _print_study(console: Console, searches: "Sequence[PublishedSearch]", folder: Path) -> None:
    used, trials = (sum(counts) for counts in zip(*((s.used, len(s.trials)) for s in searches), strict=True))
    variant = searches[0].config.training.game.variant
    prose(console, f"{len(searches)} searches, {trials} trials, {used:,} training episodes, variant {variant}")
    for one in seeds.compare_seeds([search.result for search in searches]):
        console.print(f"\nred agent {one.red_agent}, {len(one.best)} seeds", style="bold")
        for best in one.best:
            found = "no order passed the gate" if best.workflow is None else f"{best.mean:.2f}  {best.workflow}"
            prose(console, f"seed {best.seed}: best {found}")
        rows = orders_across_seeds(one)
        console.print(fitting_table(ACROSS_SEEDS_COLUMNS, rows[:MOST_ACROSS_SEEDS], console.width))
        if (more := len(rows) - MOST_ACROSS_SEEDS) > 0:
            console.print(f"... and {more} more orders; --json lists all")
        prose(console, verdict_over_seeds(one))
    console.print(
        f"policies: {folder}/*/{layout.BEST}\nnext:     {errors.command('evaluate', searches[0].folder)}", soft_wrap=True
    )


def _comparison_document(comparison: seeds.Comparison) -> dict[str, Any]:
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best
    return {
        "red_agent": comparison.red_agent,
        "seeds": [asdict(row) | {"workflow": row.workflow and str(row.workflow)} for row in comparison.best],
        "spread": comparison.spread,
        "freedom": comparison.freedom,
        "verdict": verdict_over_seeds(comparison),
        "orders": [
            asdict(row) | {"workflow": str(row.workflow), "pooled_maybe_best": row.workflow in marked}
            for row in comparison.orders
        ],
    }


# ---------------------------------------------------------------- evaluations


def side_by_side(ours: Sequence[evaluation.Evaluation], theirs: Sequence[evaluation.Evaluation], margin: float) -> str:
    """Write one policy in both worlds, with the difference and the verdict of two one-sided tests."""
    wide = _longest_name(ours)
    head = f"{'red agent':{wide}} {'steps':>5} {'simulator':>16} {'CybORG':>16} {'difference, 95 % interval':>30}"
    lines = [f"{head}  verdict at ±{margin:g}"]
    for a, b in zip(ours, theirs, strict=True):
        gap = evaluation.difference(a, b, margin)
        shown = f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"
        verdict = "equivalent" if gap.equivalent else f"not shown; these episodes would show ±{gap.smallest_margin:.2f}"
        earned = [f"{row.mean:.2f} ± {row.standard_error:.2f}" for row in (a, b)]
        lines.append(f"{a.red_agent:{wide}} {a.steps:5} {earned[0]:>16} {earned[1]:>16} {shown:>30}  {verdict}")
        if a.compliance is not None and b.compliance is not None:
            lines.append(f"{'':10} {'':5} compliance: simulator {a.compliance.compliance}, CybORG {b.compliance.compliance}")
    lines.append(
        f"{theirs[0].episodes:,} episodes of each on CybORG and {ours[0].episodes:,} on the simulator, where they cost "
        f"nothing and make the difference more precise; variant {ours[0].variant}"
    )
    return "\n".join(lines)


def comparison_text(
    rows: evaluation.Comparisons, first: str, second: str, flags: Sequence[str] = (), width: int = 240
) -> str:
    """Write the difference of two policies against each red agent, what it means, and their worst episodes.

    flags: with which `fixfirst watch` plays the same episodes.
    """
    variants = list(dict.fromkeys(row.variant for row in rows))
    names = [row.red_agent if len(variants) == 1 else f"{row.red_agent}, {row.variant}" for row in rows]
    wide = max(10, *map(len, names))
    lines = [f"A: {first}", f"B: {second}"]
    lines.append(f"{'red agent':{wide}} {'steps':>5} {'A':>9} {'B':>9} {'B - A':>9} {'95 % interval':>20}")
    for name, row in zip(names, rows, strict=True):
        interval = f"[{row.low:+.2f}, {row.high:+.2f}]"
        lines.append(f"{name:{wide}} {row.steps:5} {row.first:9.2f} {row.second:9.2f} {row.mean:+9.2f} {interval:>20}")
    lines += [f"{name}: {_verdict(row)}" for name, row in zip(names, rows, strict=True)]
    lines += [f"{name}: {_describe_parts(row)}" for name, row in zip(names, rows, strict=True) if row.parts]
    where = f"variant {variants[0]}" if len(variants) == 1 else f"variants {' and '.join(variants)}"
    lines.append(f"{rows[0].episodes:,} episodes against each, the same for both, {_joined(where, rows.world)}")
    for side, attribute in (("A", "worst_of_first"), ("B", "worst_of_second")):
        for name, row in zip(names, rows, strict=True):
            worst = "; ".join(f"{e.number}: A {e.first:.1f}, B {e.second:.1f}" for e in getattr(row, attribute))
            lines.append(f"worst of {side} against {name}, episode {worst}")
    row, chosen = rows[0], ("--number", str(rows[0].worst_of_first[0].number))
    world = ("--red-agent", row.red_agent, "--variant", row.variant)
    lines.append(f"next: {errors.command('watch', first, '--beside', second, *chosen, *world, *flags)}")
    return folded(lines, width)


def _describe_parts(row: evaluation.Paired) -> str:
    """Write what a difference consists of, and the repairs of both."""
    parts = ", ".join(f"{p.name} {p.price:+.2f} [{p.low:+.2f}, {p.high:+.2f}]" for p in row.parts)
    repairs = [f"{name} {a:.2f} and {b:.2f}" for name, (a, b) in (("Restores", row.restores), ("Removes", row.removes))]
    return f"B - A by what is paid: {parts}; {', '.join(repairs)} an episode"


def _verdict(row: evaluation.Paired) -> str:
    """Say what an interval means, and what common luck was worth."""
    if row.independent_episodes is None:
        return "they earn the same in every episode"
    luck = f"two evaluations would need {row.independent_episodes:,} episodes each to be as sure"
    if row.different:
        return f"{'B' if row.mean > 0 else 'A'} is better by {abs(row.mean):.2f}; {luck}"
    return f"not told apart, the difference is below {max(-row.low, row.high):.2f}; {luck}"


def standing_table(standing: evaluation.LeaderboardScore, name: str, width: int = 240) -> str:
    """Write six columns and their total, beside the published ones; with less room, a line for each of the six."""
    ours = standing.columns
    label = max(len(name), *(len(row.name) for row in evaluation.LEADERBOARD))
    lines = _upright(standing, name) if width < label + 65 else _across(standing, name, label)
    for row in evaluation.LEADERBOARD:
        lead = standing.lead(row)
        lines.append(f"total less that of {row.name}: {lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]")
    repairs = [
        (evaluation.column_name(*column), cell)
        for column, cell in zip(evaluation.LEADERBOARD_COLUMNS, ours, strict=True)
        if cell.restores is not None
    ]
    if repairs:
        each = ", ".join(f"{column} {cell.restores:.2f} and {cell.removes:.2f}" for column, cell in repairs)
        lines.append(f"Restores and Removes an episode: {each}")
    played = f"{ours[0].episodes:,} episodes against each, variant {ours[0].variant}"
    lines.append(f"B: b_line, M: meander, with the steps of an episode; {played}")
    lines.append(f"published: {evaluation.LEADERBOARD_SOURCE}")
    return folded(lines, width)


def _upright(standing: evaluation.LeaderboardScore, name: str) -> list[str]:
    """Write a line per column."""
    lines = [
        f"{'':5} {'return':>8} {'± s.e.':>7} {'95 % interval':>18}"
        + "".join(f"{f'({n})':>8}" for n in range(1, len(evaluation.LEADERBOARD) + 1))
    ]
    names = [*(evaluation.column_name(*column) for column in evaluation.LEADERBOARD_COLUMNS), "total"]
    ours: list[Any] = [*standing.columns, standing.total]
    theirs = [[*row.columns, row.total] for row in evaluation.LEADERBOARD]
    for column, cell, *published in zip(names, ours, *theirs, strict=True):
        interval, beside = f"[{cell.low:.2f}, {cell.high:.2f}]", "".join(f"{value:8.2f}" for value in published)
        lines.append(f"{column:5} {cell.mean:8.2f} {cell.standard_error:7.2f} {interval:>18}{beside}")
    return [name, *lines, *(f"({number}) {row.name}" for number, row in enumerate(evaluation.LEADERBOARD, start=1))]


def _across(standing: evaluation.LeaderboardScore, name: str, label: int) -> list[str]:
    """Write a line per defender."""
    ours, total = standing.columns, standing.total

    def line(first: str, cells: Sequence[float], last: float) -> str:
        return f"{first:{label}} " + "".join(f"{cell:9.2f}" for cell in cells) + f"{last:10.2f}"

    lines = [
        f"{'':{label}} "
        + "".join(f"{evaluation.column_name(*column):>9}" for column in evaluation.LEADERBOARD_COLUMNS)
        + f"{'total':>10}"
    ]
    lines.append(line(name, [cell.mean for cell in ours], total.mean))
    lines.append(line("  standard error", [cell.standard_error for cell in ours], total.standard_error))
    lines.append(line("  95 % interval, from", [cell.low for cell in ours], total.low))
    lines.append(line("  to", [cell.high for cell in ours], total.high))
    return [*lines, *(line(row.name, row.columns, row.total) for row in evaluation.LEADERBOARD)]


def standing_document(standing: evaluation.LeaderboardScore) -> dict[str, Any]:
    """Return the same for JSON."""
    names = [evaluation.column_name(*column) for column in evaluation.LEADERBOARD_COLUMNS]
    return {
        "variant": standing.columns[0].variant,
        "episodes": standing.columns[0].episodes,
        "columns": {name: asdict(cell) for name, cell in zip(names, standing.columns, strict=True)},
        "total": standing.total._asdict(),
        "published": [
            {
                "name": row.name,
                "columns": dict(zip(names, row.columns, strict=True)),
                "total": row.total,
                "margin": row.margin,
                "lead": standing.lead(row)._asdict(),
            }
            for row in evaluation.LEADERBOARD
        ],
        "source": evaluation.LEADERBOARD_SOURCE,
    }


_NARROW = 110  # columns that a line with compliance needs


def _joined(*texts: str) -> str:
    """Join those that say something by commas."""
    return ", ".join(filter(None, texts))


def evaluation_table(rows: Sequence[evaluation.Evaluation], width: int = 240, world: str = "") -> str:
    """Write a line per setting, with less room three, then the sum that the challenge ranks by.

    world: what was played beside the variant, in words.
    """
    wide = _longest_name(rows)
    lines = [f"{'red agent':{wide}} {'steps':>5} {'return':>9} {'± s.e.':>7} {'95 % interval':>20}  compliance"]
    narrow = width < _NARROW
    for row in rows:
        interval = f"[{row.low:.2f}, {row.high:.2f}]"
        compliance = ""
        if row.compliance is not None:
            rates = f"{row.compliance.compliance}", f"contested {row.compliance.contested}"
            compliance = "".join(f"\n{'':18}{rate}" for rate in rates) if narrow else f"  {', '.join(rates)}"
        lines.append(
            f"{row.red_agent:{wide}} {row.steps:5} {row.mean:9.2f} {row.standard_error:7.2f} {interval:>20}{compliance}"
        )
    total, error = sum(row.mean for row in rows), sum(row.standard_error**2 for row in rows) ** 0.5
    facts = f"({_joined(f'{rows[0].episodes:,} episodes each', f'variant {rows[0].variant}', world)})"
    whole = f"{'sum':{wide}} {'':5} {total:9.2f} {error:7.2f}"
    lines += [whole, facts] if narrow else [f"{whole}   {facts}"]
    return "\n".join([*lines, folded([_describe_costs(row) for row in rows if row.restores is not None], width)])


def _longest_name(rows: Sequence[evaluation.Evaluation]) -> int:
    """Return the width of a column of red agents."""
    return max(10, *(len(row.red_agent) for row in rows))


def _describe_costs(row: evaluation.Evaluation) -> str:
    """Write what an episode cost, part by part, and the repairs in it."""
    parts = sorted(((name, cost) for name, cost in row.costs.items() if cost >= 0.005), key=lambda part: -part[1])
    costs = ", ".join(f"{name} {cost:.2f}" for name, cost in parts) or "nothing"
    repairs = f"{row.restores:.2f} Restores and {row.removes:.2f} Removes an episode"
    return f"{row.red_agent}, {row.steps} steps: {repairs}; costs: {costs}"
