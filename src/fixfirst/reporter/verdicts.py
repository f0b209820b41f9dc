"""How sure we are, in words: the same on the terminal and on a page."""

from fixfirst.orders.ranking import Ranking
from fixfirst.reporter.analysis import shared_precedences
from fixfirst.runs.across_seeds import Comparison, OrderAcrossSeeds

MOST_SHARED = 3  # precedences of a rule
ACROSS_SEEDS = ("", "order", "mean return", "95 % interval", "tried", "accepted", "maybe best")  # columns of a comparison


def verdict_in_words(ranking: Ranking) -> str:
    """How sure one search is of the winner."""
    best, confidence = ranking.rows[0], f"{100 * ranking.confidence:.0f} %"
    earned = f"return {best.mean:.2f} [{best.low:.2f}, {best.high:.2f}]"
    if len(ranking.rows) == 1:
        return f"Only one order passed the gate: {best.workflow}, return {best.mean:.2f}."
    if ranking.winner is not None:
        return f"Best order ({confidence} confidence): {best.workflow}, {earned}."
    alike = len(ranking.maybe_best)
    return (
        f"{alike} of {len(ranking.rows)} orders (marked *) cannot be told from the best at {confidence} confidence; "
        f"highest: {best.workflow}, {earned}."
    )


def verdict_over_seeds(comparison: Comparison) -> str:
    """How sure the seeds together are of the winner."""
    if comparison.ranking is None:
        return "No order was accepted under two seeds: the spread between seeds is unknown, and nothing is claimed."
    freedom = "1 degree" if comparison.freedom == 1 else f"{comparison.freedom} degrees"
    measured = f"spread between seeds {comparison.spread:.2f}, measured with {freedom} of freedom"
    few = ": too few for intervals that say anything" if comparison.freedom < 3 else ""
    return f"Over seeds: {verdict_in_words(comparison.ranking)} ({measured}{few})"


def rule_in_words(ranking: Ranking) -> str | None:
    """What all orders share that may be the best, most often contradicted first; None if they share nothing."""
    shared = shared_precedences(ranking)
    if not shared:
        return None
    pairs = [f"{above} before {below}" for above, below, _ in sorted(shared, key=lambda pair: -pair[2])][:MOST_SHARED]
    return "fix " + (pairs[0] if len(pairs) == 1 else f"{', '.join(pairs[:-1])} and {pairs[-1]}")


def orders_across_seeds(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row of ACROSS_SEEDS per order, best first; those that may be best over seeds are marked *."""
    seeds = len(comparison.best)
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best

    def cells(place: int, row: OrderAcrossSeeds) -> tuple[str, ...]:
        mean = "-" if row.mean is None else f"{row.mean:.2f}"
        interval = "-" if row.low is None else f"[{row.low:.2f}, {row.high:.2f}]"
        counts = (f"{count}/{seeds}" for count in (row.tried, row.accepted, row.maybe_best))
        return f"{place}{'*' if row.workflow in marked else ' '}", str(row.workflow), mean, interval, *counts

    return [cells(place, row) for place, row in enumerate(comparison.orders, start=1)]
