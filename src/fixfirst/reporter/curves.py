"""The figures of a report that show a course: prices and returns over training, a league over its rounds."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base.tables import Table
from fixfirst.orders.order import Workflow
from fixfirst.reporter.figure import (
    ACCENT,
    GROUP_COLOURS,
    INK,
    PALE,
    Drawing,
    Figure,
    draw_grid,
    draw_legend,
    drawing,
    wrap,
)
from fixfirst.reporter.run import Run
from fixfirst.stats import price_histories

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
        with drawing(2.5) as (drawn, axes):
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
            draw_grid(axes)
            if zero:
                axes.axhline(0, color=INK, linewidth=0.7)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
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


def prices_by_round(run: Run) -> list[price_histories.Prices]:
    """Return, after each round, the price of every swap in each training."""
    orders = [Workflow.parse(text, run.scheme) for text in dict.fromkeys(row.workflow for row in run.rounds)]
    returns = [np.array(list(after.values())) for after in returns_by_round(run)]
    return price_histories.prices_by_round(orders, returns, range(run.scheme.size))


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
    panels = (("return, best order", "best_return"), ("price, points", "price"))[: 2 if swap else 1]

    def draw() -> Drawing:
        with drawing(1.7 * len(panels) + 0.4, rows=len(panels), sharex=True, squeeze=False) as (drawn, grid):
            for axes, (label, column) in zip(grid[:, 0], panels, strict=True):
                draw_grid(axes)
                for rows in courses:
                    last = rows[-1]
                    look = {"color": PALE, "linestyle": _LINES[2]} if last["dropped"] else {"color": ACCENT, "alpha": 0.75}
                    values = [np.nan if row[column] is None else row[column] for row in rows]
                    axes.plot([row["episodes"] / 1000 for row in rows], values, linewidth=0.9, **look)
                    tip = f"training {last['training']}\n{label} {values[-1]:.2f} after {last['episodes']:,} episodes"
                    axes.plot(
                        last["episodes"] / 1000, values[-1], "o", color=look["color"], markersize=3, gid=drawn.tip(tip)
                    )
                axes.set_ylabel(label)
            grid[-1, 0].set_xlabel("training episodes with orders, of one training, thousands")
            drawn.figure.align_ylabels()
        return drawn

    price = f", price of {swap}" if swap else ""
    alt = f"Learning curves, trainings: {len(courses)}; return under the best order{price}."
    return Figure("replicates", alt, table, draw)


def thinned(episodes: np.ndarray, values: np.ndarray, groups: np.ndarray, most: int) -> np.ndarray:
    """Thin a curve of updates to about `most` bins of consecutive ones; none spans two groups (trials). Leaves NaN out.

    Returns [5, m]: the group, mean episodes, and the mean, lowest and highest value of each bin.
    """
    finite = np.isfinite(values)
    episodes, values, groups = episodes[finite], values[finite], groups[finite]
    if not len(values):
        return np.empty((5, 0))
    size = -(-len(values) // most)
    bounds = [0, *np.flatnonzero(np.diff(groups)) + 1, len(values)]
    starts = np.concatenate([np.arange(a, b, size) for a, b in pairwise(bounds)]).astype(int)
    counts = np.diff([*starts, len(values)])
    means = (np.add.reduceat(each, starts) / counts for each in (episodes, values))
    return np.array(
        [groups[starts], *means, np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)]
    ).round(6)


def learning(runs: Sequence[Run], threshold: float | None = None) -> Figure:
    """Draw return and compliance of the training episodes, update by update, of one run or of several.

    Of one run there is a band, too, from the lowest to the highest of consecutive updates, and a line where another order
    begins.
    """
    most = _CURVE_BINS if len(runs) == 1 else _CURVE_BINS // 2
    panels: list[tuple[str, list[tuple[str, np.ndarray]]]] = []
    for label, name, scale in (("return per episode", "env_return", 1), ("compliance, %", "compliance", 100)):
        logs = [(run.name, run.updates) for run in runs]
        curves = [(run, thinned(log.sampled, scale * getattr(log, name), log.trial, most)) for run, log in logs]
        if drawn_curves := [(run, curve) for run, curve in curves if curve.size]:
            panels.append((label, drawn_curves))
    rows = tuple((label, run, *row) for label, curves in panels for run, curve in curves for row in curve.T.tolist())

    def draw() -> Drawing:
        with drawing(1.9 * len(panels) + 0.3, rows=len(panels), sharex=True, squeeze=False) as (drawn, grid):
            for axes, (label, curves) in zip(grid[:, 0], panels, strict=True):
                draw_grid(axes)
                for number, (run, curve) in enumerate(curves):
                    _draw_curve(drawn, axes, run, curve, number, alone=len(runs) == 1)
                axes.set_ylabel(label)
                if label.startswith("compliance"):
                    axes.set_ylim(-2, 102)
                    if threshold is not None:
                        axes.axhline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
                else:  # the first updates of a training would flatten all that follows
                    low = min(float(np.quantile(curve[3], 0.03)) for _, curve in curves)
                    high = max(float(curve[4].max()) for _, curve in curves)
                    room = 0.06 * (high - low) or 1.0
                    axes.set_ylim(low - room, high + room)
            grid[-1, 0].set_xlabel("training episodes, thousands")
            if len(runs) > 1:
                draw_legend(grid[0, 0])
            drawn.figure.align_ylabels()
        return drawn

    alt = f"Return and compliance over the updates of {', '.join(run.name for run in runs)}."
    columns = ("quantity", "run", "trial", "episodes", "mean", "lowest", "highest")
    return Figure("learning", alt, Table(columns, rows), draw)


def _draw_curve(drawn: Drawing, axes: "Axes", run: str, curve: np.ndarray, number: int, *, alone: bool) -> None:
    """Draw one curve as a broken line: trials are apart."""
    changes = np.flatnonzero(np.diff(curve[0])) + 1
    colour, line = GROUP_COLOURS[number % len(GROUP_COLOURS)], _LINES[number // len(GROUP_COLOURS) % len(_LINES)]
    x, mean, low, high = np.insert(curve[1:] / [[1000], [1], [1], [1]], changes, np.nan, axis=1)
    if alone:
        begins = curve[1, changes] / 1000
        axes.vlines(begins, 0, 1, color=INK, alpha=0.18, linewidth=0.4, transform=axes.get_xaxis_transform())
        axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=colour, linestyle=line, linewidth=0.9, label=wrap(run))
    tip = drawn.tip(f"{run}\n{mean[-1]:.2f} after {int(1000 * x[-1]):,} episodes")
    axes.plot(x[-1], mean[-1], "o", color=colour, markersize=3, gid=tip)
