"""What the ranking of a search with a training per order says, in words; how sure it is of that."""

from itertools import combinations

import numpy as np

from fixfirst.base import errors
from fixfirst.base.tables import interval, percent, plain
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
    earned = f"return {plain(best.mean)} {interval(best.low, best.high)}"
    if len(ranking.rows) == 1:
        return f"Only one order passed the gate: {best.workflow}, return {plain(best.mean)}."
    if ranking.winner is not None:
        return f"Best order ({confidence} confidence): {best.workflow}, {earned}."
    return (
        f"{len(ranking.maybe_best)} of {len(ranking.rows)} orders cannot be told from the best at {confidence} confidence; "
        f"highest: {best.workflow}, {earned}."
    )


def verdict_over_seeds(comparison: across_seeds.Comparison) -> str:
    """Say how sure the seeds together are of the winner."""
    if comparison.ranking is None:
        return "No order was accepted under two seeds: the spread between seeds is unknown, and nothing is claimed."
    freedom = "1 degree" if comparison.freedom == 1 else f"{comparison.freedom} degrees"
    measured = f"spread between seeds {comparison.spread:.2f}, measured with {freedom} of freedom"
    few = ": too few for intervals that say anything" if comparison.freedom < 3 else ""
    return f"Over seeds: {verdict_in_words(comparison.ranking)} ({measured}{few})"


def shared_precedences(ranking: Ranking) -> list[tuple[str, str, int]]:
    """Return the pairs that all orders rank alike which may be best, and how many ranked orders have them the other way.

    Only pairs that were tried both ways: (above, below, orders the other way round).
    """
    rows = ranking.rows
    signs = np.array([row.workflow.pair_signs() for row in rows])
    may = np.array([row.maybe_best for row in rows])
    shared = []
    for column, (a, b) in enumerate(combinations(rows[0].workflow.scheme.names, 2)):
        of_best = set(signs[may, column].tolist())
        others = int((signs[:, column] != signs[may, column][0]).sum())
        if len(of_best) == 1 and others:
            shared.append((a, b, others) if of_best == {1} else (b, a, others))
    return shared


def rule_in_words(ranking: Ranking) -> str | None:
    """Say what all orders share that may be the best, most often contradicted first; None if they share nothing."""
    shared = sorted(shared_precedences(ranking), key=lambda pair: -pair[2])[:_MOST_SHARED]
    return f"fix {errors.list_words([f'{above} before {below}' for above, below, _ in shared])}" if shared else None


def ranking_lead(ranking: Ranking) -> str:
    """Say what the headline is: an order only if there is a winner."""
    ranked, alike = len(ranking.rows), len(ranking.maybe_best)
    if ranked == 1:
        return "The only order that passed the gate:"
    if ranking.winner is not None:
        return f"The best of {ranked} accepted orders:"
    return f"No single order wins. What the {alike} of {ranked} accepted orders that may be the best have in common:"


def ranking_headline(ranking: Ranking) -> tuple[str, ...]:
    """Return the winner, unit type by unit type; without one, the rule that all orders share which may be the best."""
    rows = ranking.rows
    if len(rows) == 1 or ranking.winner is not None:
        return tuple(str(rows[0].workflow).split(" > "))
    rule = rule_in_words(ranking)
    return ("Nothing: no order is shown to be better than another." if rule is None else f"{rule[0].upper()}{rule[1:]}.",)


def ranking_sentences(ranked: across_seeds.RankedTrials) -> list[str]:
    """Say in sentences with numbers what a search found, and what that does not show."""
    rows, trial = ranked.ranking.rows, ranked.best
    best, sure, others = rows[0], f"{100 * ranked.ranking.confidence:.0f} %", len(rows) - 1
    compliance = f"kept to that order in {percent(trial.compliance)} of the judged repairs"
    if trial.contested_compliance is not None:
        compliance += f" ({percent(trial.contested_compliance)} of the contested ones)"
    earned = f"earned {plain(best.mean)} per episode ({sure} interval {interval(best.low, best.high)})"
    sentences = [f"A defender trained for {best.workflow} {earned} and {compliance}."]
    if not others:
        return [*sentences, "It is the only order that passed the gate, so there is nothing to compare it with."]
    if ranked.ranking.winner is not None:
        sentences.append(f"It is better than each of the other {some(others, 'accepted order')}, at {sure} confidence.")
    else:
        alike = len(ranked.ranking.maybe_best)
        cannot = f"It cannot be told from {some(alike - 1, 'other order')} at {sure} confidence"
        sentences.append(f"{cannot}: of {others + 1} accepted orders, {alike} may be the best.")
    worst = rows[-1]
    less = f"{plain(best.mean - worst.mean)} less per episode than the highest"
    between = interval(worst.low, worst.high)
    return [*sentences, f"The worst accepted order, {worst.workflow}, earned {plain(worst.mean)} {between}: {less}."]
