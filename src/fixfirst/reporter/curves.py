"""The figures of a report that show a course: prices and returns over training, a league over its rounds."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base.tables import Table
from fixfirst.orders.order import Workflow
from fixfirst.reporter.figure import ACCENT, GROUP_COLOURS, INK, PALE, Drawing, Figure, draw_legend, drawing, wrap
from fixfirst.reporter.run import Run
from fixfirst.stats import pricing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES, _MOST_POINTS = 60, 200  # that are drawn, the last ones
_CURVE_BINS = 250
_SHAPES = "osD^vP"  # of lines: told apart without colour
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))


def course(
    name: str, table: Table, series: Sequence[str], alt: str, *, unit: str, x: str, y: str, zero: bool = False
) -> Figure:
    """Draw columns of a table over its first one, with a mark at every point. unit: such as "round {}", of the first one."""

    def draw() -> Drawing:
        with drawing(2.5, x, y) as (drawn, (axes,)):
            for number, each in enumerate(series[:_MOST_LINES]):
                column = table.columns.index(each)
                points = [(row[0], row[column]) for row in table.rows if row[column] is not None][-_MOST_POINTS:]
                colour, shape = GROUP_COLOURS[number % len(GROUP_COLOURS)], _SHAPES[number % len(_SHAPES)]
                axes.plot(*zip(*points, strict=True), shape + "-", color=colour, markersize=3.5, label=each)
                for when, value in points:
                    tip = drawn.tip(f"{each}\n{value:.2f} after {unit.format(f'{when:,}')}")
                    axes.plot(when, value, shape, color=colour, markersize=3.5, gid=tip)
            axes.locator_params(axis="x", nbins=5, integer=True)
            axes.xaxis.set_major_formatter("{x:,.0f}")
            if zero:
                axes.axhline(0, color=INK, linewidth=0.7)
            draw_legend(axes, 1 if zero else 2)
        return drawn

    return Figure(name, alt, table, draw)


def swap_prices(table: Table, unit: str) -> Figure:
    """Draw the price of each swap, a column each, over training episodes or rounds."""
    alt = "Prices of swaps over the training, which should have stopped falling by the end."
    x = f"training {unit} with orders, of one training"
    return course("course", table, table.columns[1:], alt, unit=f"{{}} {unit}", x=x, y="price so far, points", zero=True)


def returns_by_round(run: Run) -> list[dict[int, list[float]]]:
    """Return, after each round, the mean returns of every training under all orders known by then."""
    rounds: list[dict[int, list[float]]] = []
    for row in run.rounds:
        if row.round > len(rounds):
            rounds.append({})
        rounds[-1].setdefault(row.replicate, []).append(row.mean)
    return rounds


def prices_by_round(run: Run) -> list[dict[tuple[str, str], np.ndarray]]:
    """Return, after each round, the price of every swap in each training."""
    orders = [Workflow.parse(text, run.scheme) for text in dict.fromkeys(row.workflow for row in run.rounds)]
    returns = [np.array(list(after.values())) for after in returns_by_round(run)]
    return pricing.prices_by_round(orders, returns, range(run.scheme.size))


def trainings_table(run: Run, episodes: Sequence[int], swap: tuple[str, str] | None) -> Table:
    """Return what each training earned after each round under its best order, and its own price of one swap.

    episodes: of one training after each round. A training that was dropped has no last round.
    """
    rounds, rows = returns_by_round(run), []
    for after, returns, prices in zip(episodes, rounds, prices_by_round(run), strict=False):
        own = prices[swap].tolist() if swap in prices else [None] * len(returns)
        rows += [(n, n not in rounds[-1], after, max(r), price) for (n, r), price in zip(returns.items(), own, strict=True)]
    return Table(("training", "dropped", "episodes", "best_return", "price"), tuple(sorted(rows)), title="Learning curves")


def trainings(table: Table, swap: str) -> Figure:
    """Draw the rows of `trainings_table`: a line for each training."""
    courses = [list(rows) for _, rows in groupby(table.dicts(), lambda row: row["training"])]
    panels = {"return, best order": "best_return"} | ({"price, points": "price"} if swap else {})

    def draw() -> Drawing:
        x = "thousands of episodes with orders, of one training"
        with drawing(1.7 * len(panels) + 0.4, x, *panels) as (drawn, grid):
            for axes, (label, column) in zip(grid, panels.items(), strict=True):
                for rows in courses:
                    last = rows[-1]
                    look = {"color": PALE, "linestyle": _LINES[2]} if last["dropped"] else {"color": ACCENT, "alpha": 0.75}
                    episodes = np.array([row["episodes"] for row in rows])
                    values = np.array([row[column] for row in rows], np.float64)  # None is NaN
                    _draw_line(drawn, axes, f"training {last['training']}\n{label} ", episodes, values, **look)
        return drawn

    price = f", price of {swap}" if swap else ""
    alt = f"Learning curves, trainings: {len(courses)}; return under the best order{price}."
    return Figure("replicates", alt, table, draw)


def _draw_line(drawn: Drawing, axes: "Axes", tip: str, episodes: np.ndarray, values: np.ndarray, **look: Any) -> None:
    """Draw a line over thousands of episodes, with a mark at its end."""
    axes.plot(episodes / 1000, values, linewidth=0.9, **look)
    end = drawn.tip(f"{tip}{values[-1]:.2f} after {int(episodes[-1]):,} episodes")
    axes.plot(episodes[-1] / 1000, values[-1], "o", color=look["color"], markersize=3, gid=end)


def thinned(episodes: np.ndarray, values: np.ndarray, groups: np.ndarray, most: int) -> np.ndarray:
    """Thin a curve of updates to about `most` bins of consecutive ones; none spans two groups (trials). Leaves NaN out.

    Returns [5, m]: the group, mean episodes, and the mean, lowest and highest value of each bin.
    """
    bins, finite = [], np.isfinite(values)
    size = -(-int(finite.sum()) // most)
    for group in np.unique(groups[finite]):
        own = np.flatnonzero(finite & (groups == group))
        for here in np.split(own, range(size, len(own), size)):
            bins.append((group, episodes[here].mean(), values[here].mean(), values[here].min(), values[here].max()))
    return np.array(bins).reshape(-1, 5).T.round(6)


def learning(runs: Sequence[Run], threshold: float | None = None) -> Figure:
    """Draw return and compliance of the training episodes, update by update, of one run or of several.

    Of one run there is a band, too, from the lowest to the highest of consecutive updates, and a line where another order
    begins.
    """
    most = _CURVE_BINS if len(runs) == 1 else _CURVE_BINS // 2
    panels: dict[str, list[tuple[str, np.ndarray]]] = {}
    for label, name, scale in (("return per episode", "env_reward", 1), ("compliance, %", "compliance", 100)):
        for run in runs:
            curve = thinned(run.updates.sampled, scale * getattr(run.updates, name), run.updates.trial, most)
            if curve.size:
                panels.setdefault(label, []).append((run.name, curve))
    rows = tuple((label, run, *row) for label, curves in panels.items() for run, curve in curves for row in curve.T.tolist())

    def draw() -> Drawing:
        with drawing(1.9 * len(panels) + 0.3, "training episodes, thousands", *panels) as (drawn, grid):
            for axes, (label, curves) in zip(grid, panels.items(), strict=True):
                for number, (run, curve) in enumerate(curves):
                    _draw_curve(drawn, axes, run, curve, number, alone=len(runs) == 1)
                if label.startswith("compliance"):
                    axes.set_ylim(-2, 102)
                    if threshold is not None:
                        axes.axhline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
                else:  # the first updates of a training would flatten all that follows
                    low = min(float(np.quantile(curve[3], 0.03)) for _, curve in curves)
                    high = max(float(curve[4].max()) for _, curve in curves)
                    room = 0.06 * (high - low) or 1.0
                    axes.set_ylim(low - room, high + room)
            if len(runs) > 1:
                draw_legend(grid[0])
        return drawn

    alt = f"Return and compliance over the updates of {', '.join(run.name for run in runs)}."
    columns = ("quantity", "run", "trial", "episodes", "mean", "lowest", "highest")
    return Figure("learning", alt, Table(columns, rows), draw)


def _draw_curve(drawn: Drawing, axes: "Axes", run: str, curve: np.ndarray, number: int, *, alone: bool) -> None:
    """Draw one curve as a broken line: trials are apart."""
    changes = np.flatnonzero(np.diff(curve[0])) + 1
    colour, line = GROUP_COLOURS[number % len(GROUP_COLOURS)], _LINES[number // len(GROUP_COLOURS) % len(_LINES)]
    episodes, mean, low, high = np.insert(curve[1:], changes, np.nan, axis=1)
    if alone:
        begins = curve[1, changes] / 1000
        axes.vlines(begins, 0, 1, color=INK, alpha=0.18, linewidth=0.4, transform=axes.get_xaxis_transform())
        axes.fill_between(episodes / 1000, low, high, color=colour, alpha=0.25, linewidth=0)
    _draw_line(drawn, axes, f"{run}\n", episodes, mean, color=colour, linestyle=line, label=wrap(run))
