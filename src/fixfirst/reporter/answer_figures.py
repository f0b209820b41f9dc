"""The figures of an answer: what swaps are worth, how that settled over the training, and what every order earns."""

from collections.abc import Collection, Sequence

from fixfirst.reporter.axes import GROUP_COLOURS, PALE, SECOND, grid_lines, in_words, name_rows, rows_height
from fixfirst.reporter.figure import ACCENT, INK, FigureData, drawing, for_page_and_phone
from fixfirst.runs.answers import Answer, SwapAnswer

MOST_ORDERS = 60
MARKS = "osD^vP"  # of lines: told apart without colour
TIERS = {1: "as good as the best", 2: "open", 3: "worse"}


@for_page_and_phone
def swaps(answer: Answer, name: str = "swaps") -> FigureData:
    """What it is worth to fix one unit type before its neighbour, with simultaneous intervals and every training."""
    columns = ("first", "second", "price", "low", "high", "still_falling", "by_training")
    numbers = [
        (s.first, s.second, s.price, s.low, s.high, s.falling, " ".join(map(str, s.by_replicate))) for s in answer.swaps
    ]
    with drawing(*rows_height(len(answer.swaps), 0.28)) as (drawn, axes):
        axes.axvspan(-answer.margin, answer.margin, color=INK, alpha=0.06, linewidth=0)
        axes.axvline(0, color=INK, linewidth=0.7)
        for y, swap in enumerate(answer.swaps):
            colour = ACCENT if swap.is_shown else PALE
            axes.plot([swap.low, swap.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
            for number, value in enumerate(swap.by_replicate):
                tip = drawn.tip(f"{_name(swap)}\n{value:+.2f} in training {number}")
                axes.plot(value, y, "|", color=INK, markersize=6, alpha=0.5, gid=tip)
            each = ", ".join(f"{value:+.2f}" for value in swap.by_replicate)
            settled = "still falling: at most that" if swap.falling else "settled"
            text = f"{_name(swap)}\n{swap.price:+.2f} ({in_words(swap.low, swap.high)})\ntrainings: {each}\n{settled}"
            axes.plot(swap.price, y, "o", color=colour, markersize=5, gid=drawn.tip(text))
        name_rows(
            drawn, axes, [_name(swap) for swap in answer.swaps], "points of return an episode; grey: within the margin"
        )
        alt = "What each swap of neighbours is worth: " + "; ".join(f"{_name(s)} {s.price:+.2f}" for s in answer.swaps) + "."
        return drawn.finish(name, alt, columns, numbers)


def course(answer: Answer) -> FigureData:
    """The price of each swap after every round of training."""
    falling = {_name(swap) for swap in answer.swaps if swap.falling}
    return course_of({_name(swap): _points(answer, swap) for swap in answer.swaps}, falling, "episodes")


@for_page_and_phone
def course_of(prices: dict[str, list[tuple[int, float]]], falling: Collection[str], unit: str) -> FigureData:
    """The price of each swap over training episodes, or rounds; those still falling say so."""
    columns = ("swap", f"training_{unit}", "price")
    numbers = [(name, episodes, value) for name, points in prices.items() for episodes, value in points]
    with drawing(2.4, 2.6) as (drawn, axes):
        for number, (name, points) in enumerate(prices.items()):
            colour, mark = GROUP_COLOURS[number % len(GROUP_COLOURS)], MARKS[number % len(MARKS)]
            label = name + (" (still falling)" if name in falling else "")
            axes.plot(*zip(*points, strict=True), mark + "-", color=colour, markersize=3.5, label=label)
            for episodes, value in points:
                tip = drawn.tip(f"{name}\n{value:+.2f} after {episodes:,} {unit}")
                axes.plot(episodes, value, mark, color=colour, markersize=3.5, gid=tip)
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_xlabel(f"training {unit} with orders, of one training")
        axes.set_ylabel("price so far, points")
        axes.locator_params(axis="x", nbins=4 if drawn.narrow else 8)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        grid_lines(axes)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=1 if drawn.narrow else 3, fontsize=7)
        alt = "Prices of swaps over the training, which should have stopped falling by the end."
        return drawn.finish("course", alt, columns, numbers)


@for_page_and_phone
def seeds(answers: Sequence[Answer], name: str) -> FigureData:
    """What several seeds say of each swap, in one world: a mark per seed with its interval, and their mean."""
    pairs: dict[tuple[str, str], list[tuple[int, float, float, float]]] = {}  # seed's place, price, low, high
    for place, answer in enumerate(answers):
        for s in answer.swaps:
            if (s.second, s.first) in pairs:  # the other way round
                pairs[s.second, s.first].append((place, -s.price, -s.high, -s.low))
            else:
                pairs.setdefault((s.first, s.second), []).append((place, s.price, s.low, s.high))
    numbers = [(*pair, *seen) for pair, of_seeds in pairs.items() for seen in of_seeds]
    with drawing(*rows_height(len(pairs), 0.2 + 0.09 * len(answers), 1 + len(answers) // 2)) as (drawn, axes):
        axes.axvspan(-answers[0].margin, answers[0].margin, color=INK, alpha=0.06, linewidth=0)
        axes.axvline(0, color=INK, linewidth=0.7)
        for y, ((first, second), of_seeds) in enumerate(pairs.items()):
            what, mean = f"{first} before {second}", sum(price for _, price, _, _ in of_seeds) / len(of_seeds)
            for place, price, low, high in of_seeds:
                at = y + 0.5 * (place / max(len(answers) - 1, 1) - 0.5) * (0.5 if drawn.narrow else 1)
                colour = ACCENT if low > 0 or high < 0 else PALE
                axes.plot([low, high], [at, at], color=colour, linewidth=1, solid_capstyle="butt")
                tip = drawn.tip(f"{what}\nseed {place + 1} of {len(answers)}: {price:+.2f} ({in_words(low, high)})")
                axes.plot(price, at, "o", color=colour, markersize=3.5, gid=tip)
            tip = drawn.tip(f"{what}\nmean of {len(of_seeds)} seeds {mean:+.2f}")
            axes.plot(mean, y, "D", markersize=6, markerfacecolor="none", markeredgecolor=INK, gid=tip)
        names = [f"{first} before {second}" for first, second in pairs]
        name_rows(drawn, axes, names, "points of return an episode; grey: within the margin; diamond: mean of the seeds")
        alt = f"What {len(answers)} seeds say of {len(pairs)} swaps."
        return drawn.finish(name, alt, ("first", "second", "seed_place", "price", "low", "high"), numbers)


@for_page_and_phone
def orders(answer: Answer) -> FigureData:
    """What the defender earns under each order."""
    columns = ("order", "mean", "low", "high", "tier", "p_best")
    numbers = [(o.workflow, o.mean, o.low, o.high, o.tier, o.p_best) for o in answer.orders]
    shown = answer.orders[:MOST_ORDERS]
    with drawing(*rows_height(len(shown), 0.2)) as (drawn, axes):
        for y, order in enumerate(shown):
            colour = {1: ACCENT, 2: PALE, 3: SECOND}[order.tier]
            axes.plot([order.low, order.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
            text = (
                f"{short_order(order.workflow, answer.idle)}\nreturn {order.mean:.2f} ({in_words(order.low, order.high)})\n"
                f"{TIERS[order.tier]}, P(best) {100 * order.p_best:.0f} %\n"
                f"{order.violations:.3f} violations an episode, at most {order.violations_high:.3f}"
            )
            mark = {1: "o", 2: "s", 3: "X"}[order.tier]
            axes.plot(order.mean, y, mark, color=colour, markersize=5, gid=drawn.tip(text, watch=order.workflow))
        names = [short_order(order.workflow, answer.idle) for order in shown]
        label = "return per episode; circle: as good as the best, square: open, cross: worse"
        name_rows(drawn, axes, names, label)
        alt = f"Return under {len(shown)} orders with intervals, best first."
        return drawn.finish("orders", alt, columns, numbers)


def short_order(workflow: str, idle: Sequence[str]) -> str:
    """An order without the unit types that red never holds."""
    return " > ".join(unit for unit in workflow.split(" > ") if unit not in idle)


def _name(swap: SwapAnswer) -> str:
    return f"{swap.first} before {swap.second}"


def _points(answer: Answer, swap: SwapAnswer) -> list[tuple[int, float]]:
    """Training episodes and price; a swap may be known from a later round on."""
    return list(zip(answer.rounds[len(answer.rounds) - len(swap.history) :], swap.history, strict=True))
