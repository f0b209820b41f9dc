"""What the ranking of a search with a training per order says, in words; how sure it is of that."""

from itertools import combinations

import numpy as np

from fixfirst.base import errors
from fixfirst.base.tables import interval, plain
from fixfirst.stats import across_seeds
from fixfirst.stats.ranking import Ranking

_MOST_SHARED = 3  # precedences of a rule
NOTHING_PASSED = "No order passed the gate: raise --total-episodes or --max-episodes, or lower --compliance-threshold."


def some(count: int, thing: str) -> str:
    """Write a count, as in "1 order" and "2 orders"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def verdict_in_words(ranking: Ranking) -> str:
    """Say how sure one search is of the winner."""
    best, confidence = ranking.rows[0], f"{100 * ranking.confidence:.0f} %"
    what = f"{best.workflow}, return {plain(best.mean)}"
    if len(ranking.rows) == 1:
        return f"Only one order passed the gate: {what}."
    what += f" {interval(best.low, best.high)}"
    if ranking.winner is not None:
        return f"Best order ({confidence} confidence): {what}."
    many = f"{len(ranking.maybe_best)} of {len(ranking.rows)} orders"
    return f"{many} cannot be told from the best at {confidence} confidence; highest: {what}."


def verdict_over_seeds(comparison: across_seeds.Comparison) -> str:
    """Say how sure the seeds together are of the winner."""
    if comparison.ranking is None:
        return "No order was accepted under two seeds: the spread between seeds is unknown, and nothing is claimed."
    measured = f"spread between seeds {comparison.spread:.2f}, measured with {some(comparison.freedom, 'degree')} of freedom"
    few = ": too few for intervals that say anything" if comparison.freedom < 3 else ""
    return f"Over seeds: {verdict_in_words(comparison.ranking)} ({measured}{few})"


def shared_rule(ranking: Ranking) -> str | None:
    """Say what all orders share that may be the best, most often contradicted first; None if they share nothing.

    Only pairs count that were tried both ways.
    """
    signs = np.array([row.workflow.pair_signs() for row in ranking.rows])
    may = np.array([row.maybe_best for row in ranking.rows])
    shared = []
    for column, (a, b) in enumerate(combinations(ranking.rows[0].workflow.scheme.names, 2)):
        of_best = signs[may, column]
        others = int((signs[:, column] != of_best[0]).sum())
        if others and (of_best == of_best[0]).all():
            shared.append((-others, column, f"{a} before {b}" if of_best[0] == 1 else f"{b} before {a}"))
    pairs = [text for *_, text in sorted(shared)[:_MOST_SHARED]]
    return f"fix {errors.list_words(pairs)}" if pairs else None


def ranking_headline(ranking: Ranking) -> tuple[str, tuple[str, ...]]:
    """Return what the headline is, and the headline: the winner, unit type by unit type, or what the best orders share."""
    count, alike = len(ranking.rows), len(ranking.maybe_best)
    if count == 1 or ranking.winner is not None:
        lead = "The only order that passed the gate:" if count == 1 else f"The best of {count} accepted orders:"
        return lead, tuple(str(ranking.rows[0].workflow).split(" > "))
    rule = shared_rule(ranking) or "nothing: no order is shown to be better than another"
    lead = f"No single order wins. What the {alike} of {count} accepted orders that may be the best have in common:"
    return lead, (f"{rule[0].upper()}{rule[1:]}.",)
