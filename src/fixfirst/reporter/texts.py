"""All that reports and terminals say in words: numbers, verdicts, how to read each part, what each term means.

Texts in braces are filled in.
"""

from collections.abc import Sequence
from typing import Any

from fixfirst.base import errors
from fixfirst.reporter.analysis import lineage_episodes, shared_precedences
from fixfirst.runs.run import Run
from fixfirst.stats import across_seeds as seeds, pricing
from fixfirst.stats.answer import ENOUGH_REPLICATES, Adaptive, Answer
from fixfirst.stats.ranking import Ranking

MINUS = "\u2212"
QUESTION = "Which kind of machine should the defender fix first?"
TIERS = {1: "as good as the best", 2: "open", 3: "worse"}
MOST_SHARED = 3  # precedences of a rule


# ---------------------------------------------------------------- numbers and names


def num(value: float | None, digits: int = 2) -> str:
    """Write a number, with a dash for none."""
    return "-" if value is None else f"{value:,.{digits}f}".replace("-", MINUS)


def interval(low: float | None, high: float | None) -> str:
    """Write an interval, as "1.00 to 2.00", with a dash for none."""
    return "-" if low is None or high is None else f"{num(low)} to {num(high)}"


def percent(share: float | None) -> str:
    """Write a share in per cent, with a dash for none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def some(count: int, thing: str) -> str:
    """Write a count, as in "1 order" and "2 orders"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def short_order(workflow: str, idle: Sequence[str]) -> str:
    """Leave the unit types out of an order that red never holds."""
    return " > ".join(unit for unit in workflow.split(" > ") if unit not in idle)


def tier_name(order: pricing.PricedOrder, answer: Answer) -> str:
    """Name the tier of an order; before there is an answer, some are excluded already."""
    return "excluded" if order.workflow in answer.excluded else TIERS[order.tier]


def swap_name(swap: pricing.Swap) -> str:
    """Name a swap, as "enterprise before user"."""
    return f"{swap.first} before {swap.second}"


def settled(swap: pricing.Swap, answer: Answer) -> str:
    """Say whether longer training may still lower a price, or whether more trainings are needed to know it."""
    if not swap.falling:
        return "settled"
    few = answer.long_enough and answer.replicates < ENOUGH_REPLICATES
    return "so far: more trainings" if few else "so far: train longer"


def settled_under_attack(swap: pricing.Swap, found: Adaptive) -> str:
    """Say the same of a price against an attacker who adapts."""
    if not found.has_answer:
        return "so far"
    return "at most" if swap.falling else "settled" if found.rounds else "defender as it is"


AFTER_ROUNDS, ATTACKED = "after the rounds", "against the best attacker found"


def adaptive_rows(answer: Answer, found: Adaptive) -> list[tuple[Any, ...]]:
    """Return an order, its return in the search, after the rounds if there were any, and against the best attacker found."""
    known = {order.workflow: order.mean for order in answer.orders}
    beside: list[tuple[float, ...]] = [(mean,) for mean in found.scripted] or [()] * len(found.orders)
    return [(o, known[o.workflow], *more, o.mean) for o, more in zip(found.orders, beside, strict=True)]


def few_seeds(seeds: int) -> str:
    """Warn beside an interval of two seeds."""
    return "; two seeds only: the interval says little" if seeds == 2 else ""


# ---------------------------------------------------------------- verdicts on a ranking


def verdict_in_words(ranking: Ranking) -> str:
    """Say how sure one search is of the winner."""
    best, confidence = ranking.rows[0], f"{100 * ranking.confidence:.0f} %"
    earned = f"return {best.mean:.2f} [{best.low:.2f}, {best.high:.2f}]"
    if len(ranking.rows) == 1:
        return f"Only one order passed the gate: {best.workflow}, return {best.mean:.2f}."
    if ranking.winner is not None:
        return f"Best order ({confidence} confidence): {best.workflow}, {earned}."
    return (
        f"{len(ranking.maybe_best)} of {len(ranking.rows)} orders (marked *) cannot be told from the best at {confidence} "
        f"confidence; highest: {best.workflow}, {earned}."
    )


def verdict_over_seeds(comparison: seeds.Comparison) -> str:
    """Say how sure the seeds together are of the winner."""
    if comparison.ranking is None:
        return "No order was accepted under two seeds: the spread between seeds is unknown, and nothing is claimed."
    freedom = "1 degree" if comparison.freedom == 1 else f"{comparison.freedom} degrees"
    measured = f"spread between seeds {comparison.spread:.2f}, measured with {freedom} of freedom"
    few = ": too few for intervals that say anything" if comparison.freedom < 3 else ""
    return f"Over seeds: {verdict_in_words(comparison.ranking)} ({measured}{few})"


def rule_in_words(ranking: Ranking) -> str | None:
    """Say what all orders share that may be the best, most often contradicted first; None if they share nothing."""
    shared = sorted(shared_precedences(ranking), key=lambda pair: -pair[2])[:MOST_SHARED]
    return f"fix {errors.list_words([f'{above} before {below}' for above, below, _ in shared])}" if shared else None


ACROSS_SEEDS_COLUMNS = ("", "order", "mean return", "95 % interval", "tried", "accepted", "maybe best")


def orders_across_seeds(comparison: seeds.Comparison) -> list[tuple[str, ...]]:
    """Return a row of ACROSS_SEEDS_COLUMNS per order, best first; those that may be best over seeds are marked *."""
    count = len(comparison.best)
    marked = () if comparison.ranking is None else comparison.ranking.maybe_best

    def cells(place: int, row: seeds.OrderAcrossSeeds) -> tuple[str, ...]:
        mean = "-" if row.mean is None else f"{row.mean:.2f}"
        between = "-" if row.low is None else f"[{row.low:.2f}, {row.high:.2f}]"
        counts = (f"{of_them}/{count}" for of_them in (row.tried, row.accepted, row.maybe_best))
        return f"{place}{'*' if row.workflow in marked else ' '}", str(row.workflow), mean, between, *counts

    return [cells(place, row) for place, row in enumerate(comparison.orders, start=1)]


# ---------------------------------------------------------------- a search with a training per order


def ranking_lead(ranking: Ranking) -> str:
    """Say what the headline is: an order only if there is a winner."""
    ranked, alike = len(ranking.rows), len(ranking.maybe_best)
    if ranked == 1:
        return "The only order that passed the gate:"
    if ranking.winner is not None:
        return f"The best of {ranked} accepted orders:"
    return f"No single order wins. What the {alike} of {ranked} accepted orders that may be the best have in common:"


def ranking_sentences(run: Run, found: seeds.RankedTrials) -> list[str]:
    """Say in sentences with numbers what a search found, and what that does not show."""
    rows, best, trial, sure = (
        found.ranking.rows,
        found.ranking.rows[0],
        found.best,
        f"{100 * found.ranking.confidence:.0f} %",
    )
    compliance = f"kept to that order in {percent(trial.compliance)} of the judged repairs"
    if trial.contested_compliance is not None:
        compliance += f" ({percent(trial.contested_compliance)} of the contested ones)"
    earned = f"earned {num(best.mean)} per episode ({sure} interval {interval(best.low, best.high)})"
    sentences = [f"A defender trained for {best.workflow} {earned} and {compliance}.", _told_apart(found.ranking, sure)]
    shared = [
        f"{above} before {below} (the other way round in {some(others, 'accepted order')})"
        for above, below, others in shared_precedences(found.ranking)
    ]
    if len(rows) > 1 and shared and not found.ranking.winner:
        sentences.append(f"What those {len(found.ranking.maybe_best)} have in common: {', '.join(shared)}.")
    if (warmup := run.warmup) is not None:
        gap = best.mean - warmup.mean
        text = AGAINST_NO_ORDER.format(
            mean=num(warmup.mean),
            interval=interval(warmup.low, warmup.high),
            had=f"{run.warmup_episodes:,} episodes of training",
            gap=f"{num(abs(gap))} {'more' if gap >= 0 else 'less'}",
            seen=f"{lineage_episodes(run, trial):,}",
            ranked=len(rows),
        )
        sentences.append(text)
    if len(rows) > 1:
        worst = rows[-1]
        sentences.append(
            f"The worst accepted order, {worst.workflow}, earned {num(worst.mean)} ({interval(worst.low, worst.high)}): "
            f"{num(best.mean - worst.mean)} less per episode than the highest."
        )
    return sentences


def _told_apart(ranking: Ranking, sure: str) -> str:
    others, alike = len(ranking.rows) - 1, len(ranking.maybe_best)
    if not others:
        return "It is the only order that passed the gate, so there is nothing to compare it with."
    if ranking.winner is not None:
        return f"It is better than each of the other {some(others, 'accepted order')}, at {sure} confidence."
    tied = f"It cannot be told from {some(alike - 1, 'other order')} at {sure} confidence"
    return f"{tied}: of {others + 1} accepted orders, {alike} may be the best."


# ---------------------------------------------------------------- how to read each part

RANKING = (
    "Each line is a tried order, first unit type fixed first; the dot is the mean return of its frozen policy on "
    "held-out episodes. Nearer 0 is better."
)
RANKING_INTERVALS = (
    "Intervals hold for all accepted orders at once ({confidence}) and allow for {spread} between two trainings of "
    "one order, estimated from neighbouring orders. Blue orders may be the best; grey ones are worse than the best "
    "with that confidence. The highest of many is too high on average: evaluate it on fresh episodes before quoting "
    "it."
)
RANKING_HOLLOW = (
    "Hollow: did not pass the gate, so its return is not that of a defender that keeps to the order. Its interval is "
    "of its evaluation alone."
)
PRECEDENCE = (
    "What is it worth to rank one unit type above another? Least squares of the accepted orders' returns on their "
    "pair signs: the difference between the two ways round, all other pairs being equal. Each interval is 95 % by "
    "itself and counts as noise all that is not a sum over pairs; blue ones do not contain 0. It is the effect of a "
    "swap only for neighbours in an order: moving a unit type further changes several pairs."
)
PRECEDENCE_BASIS = (
    "{tried} of {orders} orders stand behind these two figures; nothing is known of the other {untried}, and a search "
    "tries promising orders more often than others. The map shows plain means: what else differs between those orders "
    "is not taken out."
)
PROGRESS = (
    "Trial by trial: what was expected of the chosen order, what it earned, and the highest accepted return so far. "
    "{asked} of {trials} orders were chosen by the Gaussian process: the largest UCB, which is the expected return plus "
    "beta standard deviations."
)
PROGRESS_WITHOUT_BELIEFS = (
    "Trial by trial: what each order earned, and the highest accepted return so far. No Gaussian process chose, so nothing "
    "was expected of the orders."
)
PROGRESS_READING = (
    "Good to see: bars that shrink, and dots near their bars. A dot far outside its bar is an order unlike its neighbours."
)
COMPLIANCE = (
    "Does keeping to the order cost return? Left all judged repairs; right only the contested ones, where two or more "
    "unit types needed repair and the order decides.{gate}"
)
COMPLIANCE_GATE = " The dashed line is the gate's threshold ({threshold}), which the lower bound of compliance must reach."
COMPLIANCE_READING = (
    "High compliance with low contested compliance is padding: many needless repairs that break no rule. Look right "
    "before believing that a defender keeps to an order."
)
LEARNING = (
    "Returns of the training episodes by update, and compliance if there is an order. The line is the mean of a few "
    "consecutive updates, the band goes from the lowest to the highest of them.{marks}"
)
LEARNING_MARKS = " A thin line marks where another order begins{inherited}."
LEARNING_INHERITED = ", mostly from the weights of an earlier trial"
LEARNING_READING = (
    "These policies explore, so they earn less than the frozen ones. The axis of returns is cut below where the worst "
    "three per cent begin."
)
TIME_UNKNOWN = "How long the run took in all was not recorded; these are the seconds that its trainings recorded."
TIME = "{wall} of wall time{sessions} with {workers}. Bars are worker-seconds."
TIME_WAITING = (
    " Choosing counts once per worker, since all wait for it. Waiting is what is left of wall time times workers. A worker "
    "whose trial is done waits for the others of its round. All but one wait during the warm-up, and all wait while "
    "processes start. Larger rounds (--round-size) or fewer workers leave less of it."
)
TIME_KILLED = " More was recorded than these sessions hold: one that was killed leaves no record of its time."
NO_ORDER_PASSED = (
    "No order passed the gate, so there is no best one. More training per order (--max-episodes), a larger budget "
    "(--total-episodes) or a lower --compliance-threshold may let some pass."
)
AGAINST_NO_ORDER = (
    "Without an order, the same defender earned {mean} ({interval}) after {had}. The best order's policy earned "
    "{gap}, but its weights have seen {seen} episodes and it is the highest of {ranked}: this difference is not the "
    "order's worth alone. For a fair test, train without an order for as long (fixfirst train) and evaluate both on "
    "new episodes (fixfirst evaluate)."
)
AGAIN = (
    "With the same versions, this command gives the same numbers and the same policies (the sha256 is below); only "
    "measured times differ."
)
AGAIN_ALL = "With the same versions, this command gives the same numbers and the same policies; only measured times differ."
GROUPS = (
    "A dot per run: the return of its best accepted order, or of its trained policy. Runs that differ only in their "
    "seed are a group; what differs between groups names them. Bar: mean over seeds; band: its 95 % t-interval."
)
GROUPS_READING = (
    "Two or three seeds give wide bands; a single seed has none. A best order's return is "
    "the highest of many and so too high on average, a single training's is not: do not compare the two kinds by it "
    "alone. Returns against different red agents, or in different variants, cannot be compared at all."
)
ACROSS_SEEDS = (
    "Per order: the mean of its returns under the seeds that accepted it, with a 95 % t-interval. Then under how many "
    "seeds it was tried, passed the gate, and may be the best of its search. Those marked * may be the best of all, if "
    "seeds differ as much for one order as for another."
)
COURSES = (
    "The highest accepted return against training episodes, warm-up included: the mean over seeds with its 95 % "
    "t-interval. It begins where every seed has an accepted order, and ends where the first seed ends. The highest of a "
    "growing number of noisy returns rises even when nothing improves."
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
TRAININGS = "Returns of the training episodes, thinned. These policies explore, so they earn less than the frozen ones."
RULES_HOLD = (
    "A rule holds in a network if it is worth something there, or harmless: shown to cost no more than the margin. It is "
    "wrong where it is shown to cost something; then the cost is that of the best order that follows it. Shares are of the "
    "decided networks, with their 95 % interval; the others are open. That no order matters is wrong where a swap is shown "
    "to matter."
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
    "A turn costs the value of each host that red holds, the stopped service and blue's own Restore. So a price is a sum, "
    "too: how much of it is paid for hosts of each unit type, for the service and for Restores. Intervals hold for all "
    "parts at once, over trainings."
)
ADAPTIVE = (
    "Attackers learned against each defender under each order, from several starts; the best is played on fresh episodes. "
    "What it takes is a lower bound. In every round defenders learn against the attackers found before and others that "
    "answer them meanwhile, all orders in one network; then attackers learn anew. A price that may still fall from round to "
    "round is a price at most, and has no interval. Trainings are replicates of both sides."
)
COURSE_AND_PRICE = (
    "The curve of {name} ends at {last}, and its price is {price}. After a round every training is told the order it has to "
    "keep, on a few episodes common to all; a price is measured in the end on fresh episodes, where each training is told "
    "what serves it best."
)

# Of trainings, and of searches with a training per order.
GLOSSARY = (
    ("order, workflow", "The unit types in the order in which the defender repairs them when several need it."),
    ("unit type", "A group of machines that are treated alike, such as user or enterprise."),
    (
        "return",
        "The sum of rewards over one episode, CAGE2's unless the page says no: at most 0, nearer 0 is better.",
    ),
    ("held-out episodes", "Episodes that no training saw; the same for all orders."),
    (
        "interval",
        "Where the true mean lies with 95 % confidence. The intervals of accepted orders hold for all of them at once and "
        "allow for another training. So they are wider than what fixfirst evaluate prints for one policy, which orders that "
        "were not accepted have.",
    ),
    ("repair", "Remove or Restore on a host."),
    ("judged repair", "A repair made while some host needed one."),
    ("compliance", "The share of judged repairs that kept to the order, by the rule in the settings."),
    ("contested compliance", "The same, only where two or more unit types needed repair."),
    ("gate", "An order is accepted once the lower bound of its policy's compliance reaches the threshold."),
    ("trial", "One training of one order, with its gate and evaluation."),
    ("may be best", "It is not shown that another order is better."),
    ("warm-up", "Training without an order that the first trials inherit."),
    ("expected, std, UCB", "The Gaussian process's mean and standard deviation for an order, and mean + beta x std."),
    ("precedence", "Which of two unit types comes first; its pair sign is +1 or -1."),
    ("worker-seconds", "Seconds of one worker process; two workers for one second are two."),
    ("sha256", "A fingerprint of a file: equal fingerprints, equal files."),
)
GLOSSARY_OF_SEVERAL = (
    ("seed", "The one number that all chance in a run is derived from."),
    ("t-interval", "Where the mean over all possible seeds lies with 95 % confidence, by how much these ones differ."),
)

# Of searches with one network for all orders.
ANSWER_GLOSSARY = (
    ("price", "what the defender earns more per episode with the first unit type before the second, all else being equal"),
    (
        "interval",
        "95 %, for all swaps (or orders) of the table at once, from the spread between trainings: wider than what fixfirst "
        "evaluate prints, which is of one policy on its episodes alone",
    ),
    ("so far", "the price may still fall: a longer training can only lower it, and no interval is given"),
    ("tier", "as good as the best: it costs less than the margin with 95 % probability; worse: it costs more; else open"),
    ("P(best)", "probability that no other order earns more"),
    ("violations", "repairs per episode that truly broke the order, whatever blue knew; upper bound of 95 %"),
    ("compliance", "share of judged repairs that kept to the order; contested: of those where two types needed repair"),
    ("disasters", "share of episodes that earn less than -60"),
    ("never held", "unit types on which red has no machine at any time, against any of our defenders or none at all"),
)
