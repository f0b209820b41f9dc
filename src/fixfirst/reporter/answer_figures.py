"""The figures of an answer: what swaps are worth, how that settled over the training, and what every order earns."""

from collections.abc import Sequence

from fixfirst.reporter.figure import ACCENT, INK, FigureData, drawing
from fixfirst.reporter.figures import GROUP_COLOURS, PALE, _grid, _interval, _rows
from fixfirst.runs import Answer, SwapAnswer

MOST_ORDERS = 60
TIERS = {1: "as good as the best", 2: "open", 3: "worse"}


def swaps(answer: Answer) -> FigureData:
    """What it is worth to fix one unit type before its neighbour, with simultaneous intervals and every training."""
    columns = ("first", "second", "price", "low", "high", "still_falling", "by_training")
    numbers = [
        (s.first, s.second, s.price, s.low, s.high, s.falling, " ".join(map(str, s.by_replicate))) for s in answer.swaps
    ]
    with drawing(0.7 + 0.26 * len(answer.swaps)) as (drawn, axes):
        for y, swap in enumerate(answer.swaps):
            colour = ACCENT if swap.is_shown else PALE
            axes.plot([swap.low, swap.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
            axes.plot(swap.by_replicate, [y] * len(swap.by_replicate), "|", color=INK, markersize=6, alpha=0.5)
            text = f"{_name(swap)}: {swap.price:+.2f} ({_interval(swap.low, swap.high)})"
            axes.plot(swap.price, y, "o", color=colour, markersize=5, gid=drawn.tip(text))
        axes.axvline(0, color=INK, linewidth=0.7)
        axes.axvspan(-answer.margin, answer.margin, color=INK, alpha=0.06, linewidth=0)
        _rows(axes, [_name(swap) for swap in answer.swaps], "points of return an episode; grey: within the margin")
        alt = "What each swap of neighbours is worth: " + "; ".join(f"{_name(s)} {s.price:+.2f}" for s in answer.swaps) + "."
        return drawn.finish("swaps", alt, columns, numbers)


def course(answer: Answer) -> FigureData:
    """The price of each swap after every round of training."""
    columns = ("first", "second", "training_episodes", "price")
    numbers = [
        (swap.first, swap.second, episodes, value) for swap in answer.swaps for episodes, value in _points(answer, swap)
    ]
    with drawing(2.4) as (drawn, axes):
        for number, swap in enumerate(answer.swaps):
            points = _points(answer, swap)
            colour = GROUP_COLOURS[number % len(GROUP_COLOURS)]
            tip = drawn.tip(f"{_name(swap)}: {points[-1][1]:+.2f} in the end" if points else _name(swap))
            axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=3, label=_name(swap), gid=tip)
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_xlabel("training episodes with orders, of one training")
        axes.set_ylabel("price so far")
        _grid(axes)
        axes.legend(loc="upper right", fontsize=7)
        alt = "Prices of swaps over the training, which should have stopped falling by the end."
        return drawn.finish("course", alt, columns, numbers)


def orders(answer: Answer) -> FigureData:
    """What the defender earns under each order."""
    columns = ("order", "mean", "low", "high", "tier", "p_best")
    numbers = [(o.workflow, o.mean, o.low, o.high, o.tier, o.p_best) for o in answer.orders]
    shown = answer.orders[:MOST_ORDERS]
    with drawing(0.7 + 0.2 * len(shown)) as (drawn, axes):
        for y, order in enumerate(shown):
            colour = {1: ACCENT, 2: PALE, 3: "#D55E00"}[order.tier]
            axes.plot([order.low, order.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
            text = f"{order.workflow}: {order.mean:.2f} ({_interval(order.low, order.high)}), {TIERS[order.tier]}"
            mark = {1: "o", 2: "s", 3: "X"}[order.tier]
            axes.plot(order.mean, y, mark, color=colour, markersize=5, gid=drawn.tip(text))
        names = [short_order(order.workflow, answer.idle) for order in shown]
        _rows(axes, names, "return per episode; circle: as good as the best, square: open, cross: worse")
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
