"""The sentences of reports: how to read each part, what terms mean (texts in braces are filled in), what a ranking says."""

from itertools import combinations

import numpy as np

from fixfirst.base import errors
from fixfirst.base.tables import interval, plain
from fixfirst.stats import across_seeds
from fixfirst.stats.ranking import Ranking

QUESTION = "Which kind of machine should the defender fix first?"
RANKING = "Each line is a tried order: the mean return of its frozen policy on held-out episodes. Nearer 0 is better."
RANKING_INTERVALS = (
    "Intervals hold for all accepted orders at once ({confidence}) and allow for {spread} between two trainings of one "
    "order, estimated from neighbouring ones. Blue orders may be the best, grey ones are worse with that confidence. The "
    "highest of many is too high on average: evaluate it on fresh episodes before quoting it."
)
RANKING_HOLLOW = "Hollow: it did not pass the gate, and its interval is of its evaluation alone."
CHOICES = (
    "What was expected of each chosen order, what it earned, and the highest accepted return so far. The Gaussian process "
    "chooses the largest UCB: the expected return plus beta standard deviations."
)
LEARNING = (
    "Returns of the training episodes, and compliance if there is an order. The line is the mean of a few consecutive "
    "updates, the band goes from the lowest to the highest of them."
)
LEARNING_READING = (
    "These policies explore, so they earn less than the frozen ones. The axis of returns is cut where the worst three per "
    "cent begin."
)
TIME_UNKNOWN = "How long the run took in all was not recorded; these are the seconds that its trainings recorded."
AGAIN = "With the same versions, this command gives the same numbers and the same policies; only measured times differ."
GROUPS = (
    "Runs that differ only in their seed are a group, judged by the return of the best accepted order, or of the trained "
    "policy: mean over seeds with its 95 % t-interval, which is wide for two or three. A best order's return is the highest "
    "of many and so too high on average, a single training's is not: do not compare the two kinds by it alone."
)
ACROSS_SEEDS = (
    "The mean return of each order under the seeds that accepted it, with a 95 % t-interval; under how many seeds it was "
    "tried, passed the gate, and may be the best of its search; and whether it may be the best of all, if seeds differ as "
    "much for one order as for another."
)
HOW = (
    "One network was trained for all orders, several times over, each time under a seed of its own. The order is a mask: "
    "it forbids to repair a unit type while one ranked above it is suspected. Under every order each training is given the "
    "order that serves it best there, chosen on some episodes and measured on fresh ones. Intervals come from the spread of "
    "the trainings."
)
SO_FAR = (
    "After every round all known orders are played on common episodes. Prices fall while the order is still being learned; "
    "what is stated in the end is measured anew, on fresh episodes, with intervals."
)
SWAPS = "Each row compares orders that differ in two neighbours only; ticks are the single trainings."
CURVES = (
    "Each line is one training. Above, what it earns under its best order on held-out episodes after each round; dotted "
    "lines are trainings that were dropped. Returns of every order are in rounds.csv."
)
CURVES_PRICE = "Below, its own price of {name}: how far trainings differ is what the interval is made of."
COSTS = "A turn costs the value of each host that red holds, the stopped service and blue's own Restore; this is their sum."
RULES_HOLD = (
    "A rule holds in a network if it is worth something there, or harmless: shown to cost no more than the margin. It is "
    "wrong where it is shown to cost something: as much as the best order that follows it. Shares are of the decided "
    "networks, with their 95 % interval. That no order matters is wrong where a swap is shown to matter."
)
PAGE_OF_ONE = "Searches of a large study have no pages of their own; one is written by, for example: {command}"
SPLITS = (
    "Networks with more of a property than the median are compared with the others, once for each property. Intervals hold "
    "for all properties of one pair and attacker at once; grey: no more than chance."
)
SETTLED = "While an order is still being learned its price is too high: it must have stopped falling."
WATCH_WHY = "Watch it: two episodes with the same chances, one under each order, at the moment where they part"
WATCH_WHY_LATER = (
    "Two episodes with the same chances, one under each order, are not on a page yet; this writes it and links it here: "
    "{command}"
)
WHY_IT_COSTS = (
    "A turn costs the value of each host that red holds, the stopped service and blue's own Restore, so a price is a sum, "
    "too. Intervals hold for all parts at once, over trainings."
)
ADAPTIVE = (
    "Attackers learned against each defender under each order, from several starts; the best is played on fresh episodes. "
    "What it takes is a lower bound. In every round defenders learn against the attackers found before and others that "
    "answer them meanwhile, all orders in one network; then attackers learn anew. A price that may still fall from round to "
    "round is a price at most, and has no interval. Trainings are replicates of both sides."
)
COURSE_AND_PRICE = (
    "The curve of {name} ends at {last}, and its price is {price}: after a round every training is told the order it has to "
    "keep, on a few common episodes; a price is measured on fresh ones, where each training is told what serves it best."
)
LEAGUE_COURSE = (
    "A league trains one defender against scripts, attackers of the past, and attackers that learn beside it. At the end of "
    "every round some attackers learn against the defender as it is then, playing its most probable actions. What the best "
    "of these fresh responses takes is a lower bound of what can be taken; it joins the others for the next round.",
    "The league has converged when a fresh response takes no more than the worst attacker that is known.",
)
LEAGUE_MATRIX = (
    "The defender's return after each round against each attacker, on the same episodes for all. live: it learned beside "
    "the defender; response: against the defender at the end of its round. Each began from scratch, from an attacker of the "
    "past, or from one that comes with fixfirst. After its own round a row shows whether the defender learned to answer it."
)

# Of trainings, and of searches with a training per order.
GLOSSARY = (
    ("order, workflow", "The unit types in the order in which the defender repairs them when several need it."),
    ("unit type", "A group of machines that are treated alike, such as user or enterprise."),
    ("return", "The sum of rewards over one episode: at most 0, nearer 0 is better."),
    ("held-out episodes", "Episodes that no training saw; the same for all orders."),
    ("interval", "Where the true mean lies with 95 % confidence; of accepted orders, of all at once and of any training."),
    ("judged repair", "A Remove or Restore while some host needed one."),
    ("compliance", "The share of judged repairs that kept to the order, by the rule in the settings."),
    ("contested compliance", "The same, only where two or more unit types needed repair."),
    ("gate", "An order is accepted once the lower bound of its policy's compliance reaches the threshold."),
    ("trial", "One training of one order, with its gate and evaluation."),
    ("may be best", "It is not shown that another order is better."),
    ("warm-up", "Training without an order that the first trials inherit."),
    ("expected, std, UCB", "The Gaussian process's mean and standard deviation for an order, and mean + beta x std."),
    ("worker-seconds", "Seconds of one worker process; two workers for one second are two."),
)
# Of searches with one network for all orders.
ANSWER_GLOSSARY = (
    ("price", "what the defender earns more per episode with the first unit type before the second, all else being equal"),
    (
        "interval",
        "95 %, for all swaps (or orders) of the table at once, from the spread between trainings: wider than what fixfirst "
        "evaluate prints, which is of one policy alone",
    ),
    ("so far", "the price may still fall: a longer training can only lower it, and no interval is given"),
    ("tier", "as good as the best: it costs less than the margin with 95 % probability; worse: it costs more; else open"),
    ("P(best)", "probability that no other order earns more"),
    ("violations", "repairs per episode that truly broke the order, whatever blue knew; upper bound of 95 %"),
    ("compliance", "share of judged repairs that kept to the order; contested: of those where two types needed repair"),
    ("disasters", "share of episodes that earn less than -60"),
    ("never held", "unit types on which red has no machine at any time, against any of our defenders or none at all"),
)
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
