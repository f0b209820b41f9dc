"""What commands print in the end: the answer of a search, a ranking, what seeds say together; or the same as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fixfirst.base import errors
from fixfirst.base.tables import INTERVAL, Table
from fixfirst.play import evaluation
from fixfirst.reporter.screen import fitting_table, prose, results
from fixfirst.reporter.texts import (
    ACROSS_SEEDS_COLUMNS,
    AFTER_ROUNDS,
    ATTACKED,
    adaptive_rows,
    orders_across_seeds,
    settled_under_attack,
    short_order,
    swap_name,
    verdict_in_words,
    verdict_over_seeds,
)
from fixfirst.runs import layout
from fixfirst.stats import across_seeds, agreement
from fixfirst.stats.answer import Adaptive, Answer
from fixfirst.stats.evaluation import Evaluations

if TYPE_CHECKING:
    from fixfirst.searcher import study
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.searcher.shared import SharedSearch
_MOST_ANSWERS = 12  # searches of a study whose tables are printed; of more, a line each
MOST_ACROSS_SEEDS = 20


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
            _comparison_document(comparison)
            for comparison in across_seeds.compare_seeds([search.result for search in separate])
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
        for table in answer.tables():
            print_table(console, table)
        if answer.adaptive is not None:
            console.print(f"{answer.adaptive.lead}:", highlight=False)
            for table in adaptive_tables(answer, answer.adaptive):
                print_table(console, table)
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
    print_table(console, search.table())
    if others:
        names = ", ".join(sorted({trial.workflow for trial in others}))
        prose(console, f"{len(others)} trials did not pass the gate: {names}")
    prose(console, verdict_in_words(found.ranking))
    console.print(
        f"Intervals allow for {found.spread:.2f} between two trainings of one order, estimated from neighbouring orders."
    )
    best = search.folder / layout.BEST
    console.print(f"best policy: {best}\nnext:        {errors.command('evaluate', best)}", soft_wrap=True)


def _print_study(console: Console, searches: "Sequence[PublishedSearch]", folder: Path) -> None:
    used, trials = (sum(counts) for counts in zip(*((s.used, len(s.trials)) for s in searches), strict=True))
    variant = searches[0].config.training.game.variant
    prose(console, f"{len(searches)} searches, {trials} trials, {used:,} training episodes, variant {variant}")
    for one in across_seeds.compare_seeds([search.result for search in searches]):
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


def _comparison_document(comparison: across_seeds.Comparison) -> dict[str, Any]:
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


def print_table(console: Console, table: Table) -> None:
    """Print what people are shown of a table, as wide as the terminal is."""
    columns, *rows = table.cells()
    console.print(fitting_table(columns, rows, console.width, columns[0]))


def adaptive_tables(answer: Answer, found: Adaptive) -> list[Table]:
    """Return what swaps and orders are worth against attackers that learn, beside what orders earn otherwise."""
    swaps = [(swap_name(s), s.price, s.low, s.high, settled_under_attack(s, found), *s.history) for s in found.swaps]
    rounds = tuple(f"after round {number}" for number in range(len(found.swaps[0].history) if found.swaps else 0))
    names = ("swap of neighbours", "worth", "low", "high", "over rounds", *rounds)
    columns = ("order", f"against {answer.red_agent}", *((AFTER_ROUNDS,) if found.scripted else ()), ATTACKED)
    orders = [(short_order(order.workflow, answer.idle), *cells) for order, *cells in adaptive_rows(answer, found)]
    shown = (*names[:2], INTERVAL, *names[4:])
    return [Table(names, tuple(swaps), shown), Table(columns, tuple(orders))]


def print_evaluations(rows: Evaluations) -> None:
    """Print a row per game, the sum that the challenge ranks by, and what an episode cost."""
    console = results()
    print_table(console, rows.table())
    total, error = sum(row.mean for row in rows), sum(row.standard_error**2 for row in rows) ** 0.5
    facts = ", ".join(filter(None, (f"{rows[0].episodes:,} episodes each", f"variant {rows[0].variant}", rows.world)))
    prose(console, f"sum {total:.2f} ± {error:.2f} ({facts})")
    for row in rows:
        costs = sorted(((cost, name) for name, cost in row.costs.items() if cost >= 0.005), reverse=True)
        parts = ", ".join(f"{name} {cost:.2f}" for cost, name in costs) or "nothing"
        prose(console, f"{row.red_agent}, {row.steps} steps, costs: {parts}")


def print_both_worlds(ours: Evaluations, theirs: Evaluations, margin: float) -> None:
    """Print one policy in both worlds, with the difference and the verdict of two one-sided tests."""
    console, rows = results(), []
    for a, b in zip(ours, theirs, strict=True):
        gap = evaluation.difference(a, b, margin)
        verdict = "equivalent" if gap.equivalent else f"not shown; these episodes would show ±{gap.smallest_margin:.2f}"
        rows.append((a.red_agent, a.steps, a.mean, b.mean, gap.mean, gap.low, gap.high, verdict))
    columns = ("red_agent", "steps", "simulator", "CybORG", "difference", "low", "high", f"verdict at ±{margin:g}")
    print_table(console, Table(columns, tuple(rows), (*columns[:5], INTERVAL, columns[-1])))
    prose(
        console, f"{theirs[0].episodes:,} episodes of each on CybORG, {ours[0].episodes:,} here; variant {ours[0].variant}"
    )


def print_comparison(rows: evaluation.Comparisons, first: str, second: str, flags: Sequence[str] = ()) -> None:
    """Print the difference of two policies against each red agent, what it means, and their worst episodes.

    flags: with which `fixfirst watch` plays the same episodes.
    """
    console = results()
    prose(console, f"first: {first}\nsecond: {second}")
    print_table(console, rows.table())
    for row in rows:
        name = f"{row.red_agent}, {row.variant}"
        parts = ", ".join(f"{p.name} {p.price:+.2f} [{p.low:+.2f}, {p.high:+.2f}]" for p in row.parts)
        prose(console, f"{name}: {_verdict(row)}; by what is paid: {parts or 'nothing'}")
        for side, worst in (("first", row.worst_of_first), ("second", row.worst_of_second)):
            told = "; ".join(f"{e.number}: {e.first:.1f}, {e.second:.1f}" for e in worst)
            prose(console, f"{name}: worst of the {side}, episode {told}")
    prose(console, ", ".join(filter(None, (f"{rows[0].episodes:,} episodes against each, the same for both", rows.world))))
    row, chosen = rows[0], ("--number", str(rows[0].worst_of_first[0].number))
    world = ("--red-agent", row.red_agent, "--variant", row.variant)
    prose(console, f"next: {errors.command('watch', first, '--beside', second, *chosen, *world, *flags)}")


def print_leaderboard(standing: evaluation.LeaderboardScore) -> None:
    """Print six columns and their total, beside the published ones."""
    console = results()
    for table in (*standing.tables(), standing.table()):
        print_table(console, table)
    for row in evaluation.LEADERBOARD:
        lead = standing.lead(row)
        prose(console, f"total less that of {row.name}: {lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]")
    prose(console, f"{standing.columns[0].episodes:,} episodes against each; published: {evaluation.LEADERBOARD_SOURCE}")


def _verdict(row: evaluation.Paired) -> str:
    """Say what an interval means, and what common luck was worth."""
    if row.independent_episodes is None:
        return "they earn the same in every episode"
    luck = f"two evaluations would need {row.independent_episodes:,} episodes each to be as sure"
    if row.different:
        return f"the {'second' if row.mean > 0 else 'first'} is better by {abs(row.mean):.2f}; {luck}"
    return f"not told apart, the difference is below {max(-row.low, row.high):.2f}; {luck}"


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
