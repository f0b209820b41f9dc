"""What a search, or several that ran together, tell in the end: tables on stdout, or one JSON document."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from fixfirst.orders.ranking import Ranking
from fixfirst.reporter.answers import answer_document, print_answers
from fixfirst.reporter.screen import fitting_table, prose, results
from fixfirst.reporter.verdicts import ACROSS_SEEDS, orders_across_seeds, verdict_in_words, verdict_over_seeds
from fixfirst.runs.across_seeds import Comparison, compare
from fixfirst.runs.layout import BEST
from fixfirst.runs.rows import Trial

if TYPE_CHECKING:
    from fixfirst.searcher.loop import Search
    from fixfirst.searcher.shared import SharedSearch

SHOWN_ORDERS = 20


def print_searches(searches: "Sequence[Search | SharedSearch]", folder: Path, page: Path | None = None) -> None:
    """The final tables, and what to do next. folder: of the search, or of the study; page: the report, if there is one."""
    console = results()
    shared, separate = _by_kind(searches)
    if shared:
        print_answers(console, shared, folder)
    elif len(separate) == 1:
        _print_search(console, separate[0])
    else:
        _print_study(console, separate, folder)
    if page is not None:
        print(f"report:      {page}")


def searches_document(searches: "Sequence[Search | SharedSearch]", folder: Path, page: Path | None = None) -> dict[str, Any]:
    """The same as JSON."""
    report = {"report": None if page is None else str(page)}
    shared, separate = _by_kind(searches)
    if shared:
        documents = [{"run": str(s.folder), **answer_document(s.answer)} for s in shared if s.answer is not None]
        return (documents[0] if len(searches) == 1 else {"study": str(folder), "runs": documents}) | report
    if len(searches) > 1:
        comparisons = [_comparison_document(comparison) for comparison in compare([search.result for search in separate])]
        return {"study": str(folder), "runs": [str(s.folder) for s in separate], "red_agents": comparisons} | report
    search = separate[0]
    found = search.standings()
    rows = [] if found is None else [asdict(row) | {"workflow": str(row.workflow)} for row in found.ranking.rows]
    trials = [asdict(trial) for trial in search.trials]
    return {"run": str(search.folder), "episodes": search.used, "ranking": rows, "trials": trials} | report


def _by_kind(searches: "Sequence[Search | SharedSearch]") -> "tuple[list[SharedSearch], list[Search]]":
    """Those with one network for all orders, and those with a training per order. The searcher is not ours to import."""
    shared: Any = [search for search in searches if hasattr(search, "answer")]
    separate: Any = [search for search in searches if not hasattr(search, "answer")]
    return shared, separate


# ---------------------------------------------------------------- one search


def _print_search(console: Console, search: "Search") -> None:
    found, tried = search.standings(), len({trial.workflow for trial in search.trials})
    others = [trial for trial in search.trials if not trial.accepted]
    game = search.config.training.game
    facts = f"{search.used:,} training episodes, red agent {game.red_agent}, variant {game.variant}"
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
    best = search.folder / BEST
    console.print(f"best policy: {best}\nnext:        fixfirst evaluate {best}", soft_wrap=True)


def ranking_table(ranking: Ranking, trials: Sequence[Trial], width: int, limit: int | None = None) -> Table:
    """Orders by return with simultaneous 95 % intervals, compliance, and which cannot be told from the best."""
    by_order: dict[str, Trial] = {}  # the best trial of each
    for trial in sorted((trial for trial in trials if trial.accepted), key=lambda trial: trial.earned):
        by_order[trial.workflow] = trial
    rows = [
        (
            f"{place}{'*' if row.maybe_best else ' '}",
            str(row.workflow),
            f"{row.mean:.2f}",
            f"[{row.low:.2f}, {row.high:.2f}]",
            _percent(by_order[str(row.workflow)].compliance),
            _percent(by_order[str(row.workflow)].contested_compliance),
        )
        for place, row in enumerate(ranking.rows[:limit], start=1)
    ]
    return fitting_table(("", "order", "return", "95 % interval", "compliance", "contested"), rows, width)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


# ---------------------------------------------------------------- several


def _print_study(console: Console, searches: "Sequence[Search]", folder: Path) -> None:
    used, trials = (sum(counts) for counts in zip(*((s.used, len(s.trials)) for s in searches), strict=True))
    variant = searches[0].config.training.game.variant
    facts = f"{trials} trials, {used:,} training episodes, variant {variant}"
    prose(console, f"{len(searches)} searches, {facts}")
    for comparison in compare([search.result for search in searches]):
        _print_comparison(console, comparison)
    console.print(f"policies: {folder}/*/{BEST}\nnext:     fixfirst evaluate {searches[0].folder}", soft_wrap=True)


def _print_comparison(console: Console, comparison: Comparison) -> None:
    console.print(f"\nred agent {comparison.red_agent}, {len(comparison.best)} seeds", style="bold")
    for best in comparison.best:
        found = "no order passed the gate" if best.workflow is None else f"{best.mean:.2f}  {best.workflow}"
        prose(console, f"seed {best.seed}: best {found}")
    console.print(fitting_table(ACROSS_SEEDS, orders_across_seeds(comparison)[:SHOWN_ORDERS], console.width))
    if (more := len(comparison.orders) - SHOWN_ORDERS) > 0:
        console.print(f"... and {more} more orders; --json lists all")
    prose(console, verdict_over_seeds(comparison))


def _comparison_document(comparison: Comparison) -> dict[str, Any]:
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best
    best = [asdict(row) | {"workflow": row.workflow and str(row.workflow)} for row in comparison.best]
    orders = [
        asdict(row) | {"workflow": str(row.workflow), "pooled_maybe_best": row.workflow in marked}
        for row in comparison.orders
    ]
    return {
        "red_agent": comparison.red_agent,
        "seeds": best,
        "spread": comparison.spread,
        "freedom": comparison.freedom,
        "verdict": verdict_over_seeds(comparison),
        "orders": orders,
    }
