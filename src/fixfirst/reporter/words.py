"""How to read each part of a report, and what it does not say; the glossary. Texts in braces are filled in."""

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
    "Trial by trial: what was expected of the chosen order, what it earned, and the highest accepted return so far. {how}"
)
BY_GAUSSIAN_PROCESS = (
    "{asked} of {trials} orders were chosen by the Gaussian process: the largest UCB, which is the expected return "
    "plus beta standard deviations."
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
    "Returns and compliance of the training episodes themselves, by update: the line is the mean of a few consecutive "
    "updates, the band goes from the lowest to the highest of them.{marks}"
)
LEARNING_MARKS = " A thin line marks where another order begins{inherited}."
LEARNING_INHERITED = ", mostly from the weights of an earlier trial"
LEARNING_READING = (
    "These policies explore, so they earn less than the frozen ones. The axis of returns is cut below where the worst "
    "three per cent begin."
)
TIME_UNKNOWN = "How long the run took in all was not recorded; these are the seconds that its trainings recorded."
TIME = (
    "{wall} of wall time{sessions} with {workers}. Bars are worker-seconds: choosing counts once per worker, since "
    "all wait for it. Waiting is what is left of wall time times workers: a worker whose trial is done waits for the "
    "others of its round, all but one wait during the warm-up, and all of them while processes start. Larger rounds "
    "(--round-size) or fewer workers leave less of it."
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
    "With the same versions, this command gives the same ledger and the same policies, byte for byte (the sha256 is "
    "below); only measured times differ."
)
GROUPS = (
    "A dot per run: the return of its best accepted order, or of its trained policy. Runs that differ only in their "
    "seed are a group; what differs between groups names them. Bar: mean over seeds; band: its 95 % t-interval."
)
GROUPS_READING = (
    "Two or three seeds give wide bands, which is what they know; a single seed has none. A best order's return is "
    "the highest of many and so too high on average, a single training's is not: do not compare the two kinds by it "
    "alone. Returns against different red agents, or in different variants, cannot be compared at all."
)
ACROSS_SEEDS = (
    "Per order: the mean of its returns under the seeds that accepted it, with a 95 % t-interval of its own, and under "
    "how many seeds it was tried, passed the gate, and could not be told from the best of its search. The verdict "
    "takes the spread between seeds to be the same for all orders; those marked * may be best by it."
)
COURSES = (
    "The highest accepted return against training episodes, warm-up included: the mean over seeds with its 95 % "
    "t-interval, cut where it leaves the figure, from where every seed has an accepted order to where the first one "
    "ends. The highest of a growing number of noisy returns rises even when nothing improves."
)

GLOSSARY = (
    ("order, workflow", "The unit types in the order in which the defender repairs them when several need it."),
    ("unit type", "A group of machines that are treated alike, such as user or enterprise."),
    ("return", "The sum of CAGE2's rewards over one episode: at most 0, nearer 0 is better."),
    ("held-out episodes", "Episodes that no training saw; the same for all orders."),
    (
        "interval",
        "Where the true mean lies with 95 % confidence. An accepted order has one on this page, that of the ranking: it "
        "holds for all of them at once and allows for another training, so it is wider than what fixfirst evaluate prints, "
        "which is of this one policy on its episodes alone. Orders that were not accepted have the latter.",
    ),
    ("repair", "Remove or Restore on a host."),
    ("judged repair", "A repair made while some host needed one."),
    ("compliance", "The share of judged repairs that kept to the order, by the rule in the settings."),
    ("contested compliance", "The same, only where two or more unit types needed repair."),
    ("gate", "An order is accepted once the lower bound of its policy's compliance reaches the threshold."),
    ("trial", "One training of one order, with its gate and evaluation."),
    ("may be best", "Cannot be told from the best order: that it is the best is not rejected."),
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
