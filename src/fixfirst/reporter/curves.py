"""The figures of a report that show a course: prices and returns over training, a league over its rounds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fixfirst.base.tables import Table
from fixfirst.orders.order import Workflow
from fixfirst.reporter.figure import (
    ACCENT,
    GROUP_COLOURS,
    INK,
    PALE,
    Drawing,
    FigureData,
    draw_grid,
    draw_legend,
    drawing,
    wrap,
)
from fixfirst.runs import matrix
from fixfirst.runs.run import Run
from fixfirst.stats import pricing

_MOST_LINES, _MOST_POINTS = 60, 200  # that are drawn, the last ones
_CURVE_BINS = 250
_SHAPES = "osD^vP"  # of lines: told apart without colour
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
_Lines = Mapping[str, Sequence[tuple[int, float]]]  # name -> (when, value)


def _marked_lines(drawn: Drawing, axes: Any, lines: _Lines, unit: str) -> None:
    """Draw named lines with a mark at every point."""
    for number, (name, points) in enumerate(list(lines.items())[:_MOST_LINES]):
        points = points[-_MOST_POINTS:]
        colour, shape = GROUP_COLOURS[number % len(GROUP_COLOURS)], _SHAPES[number % len(_SHAPES)]
        axes.plot(*zip(*points, strict=True), shape + "-", color=colour, markersize=3.5, label=name)
        for when, value in points:
            tip = drawn.tip(f"{name}\n{value:.2f} after {unit.format(f'{when:,}')}")
            axes.plot(when, value, shape, color=colour, markersize=3.5, gid=tip)
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    draw_grid(axes)


def _numbers(lines: _Lines, *columns: str) -> Table:
    return Table(columns, tuple((name, when, value) for name, points in lines.items() for when, value in points))


def swap_prices(prices: _Lines, falling: Collection[str], unit: str) -> FigureData:
    """Draw the price of each swap over training episodes, or rounds; those that may still fall say so."""
    lines = {name + (" (so far)" if name in falling else ""): points for name, points in prices.items()}

    def draw() -> Drawing:
        with drawing(2.4) as (drawn, axes):
            _marked_lines(drawn, axes, lines, f"{{}} {unit}")
            axes.axhline(0, color=INK, linewidth=0.7)
            axes.set_xlabel(f"training {unit} with orders, of one training")
            axes.set_ylabel("price so far, points")
            draw_legend(axes)
        return drawn

    alt = "Prices of swaps over the training, which should have stopped falling by the end."
    return FigureData("course", alt, _numbers(prices, "swap", f"training_{unit}", "price"), draw)


def league_course(rounds: Sequence[matrix.Round]) -> FigureData:
    """Draw what scripts, known attackers and fresh ones take from the defender, round by round."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for each in rounds:
        for name, mean in each.scripts.items():
            lines.setdefault(name, []).append((each.round, mean))
        for name, row in (("worst known attacker", each.known), ("best fresh response", each.fresh)):
            if row is not None:
                lines.setdefault(name, []).append((each.round, row.mean))

    def draw() -> Drawing:
        with drawing(2.6) as (drawn, axes):
            _marked_lines(drawn, axes, lines, "round {}")
            axes.set_xlabel("round")
            axes.set_ylabel("return of the defender")
            draw_legend(axes, 2)
        return drawn

    alt = "What scripts, known attackers and fresh ones leave the defender after each round."
    return FigureData("league", alt, _numbers(lines, "attacker", "round", "return"), draw)


# ---------------------------------------------------------------- the trainings of a search with one network


@dataclass(frozen=True)
class TrainingCourse:
    """What one training of a search earned after each round under its best order, and its own price of one swap."""

    number: int
    is_dropped: bool  # before the last round
    episodes: tuple[int, ...]  # with orders, of this training
    best: tuple[float, ...]
    prices: tuple[float, ...]  # NaN where it is not known


def training_courses(run: Run, episodes: Sequence[int], swap: tuple[str, str] | None) -> list[TrainingCourse]:
    """Return the course of every training. episodes: of one training after each round. swap: the one to be priced."""
    known: dict[int, dict[int, dict[str, float]]] = {}
    for row in run.rounds:
        known.setdefault(row.replicate, {}).setdefault(row.round, {})[row.workflow] = row.mean
    last, relevant = max((row.round for row in run.rounds), default=0), range(run.scheme.size)
    courses = []
    for number, rounds in sorted(known.items()):
        prices = []
        for means in rounds.values():
            orders = [Workflow.parse(text, run.scheme) for text in means]
            price = float("nan")
            for each in pricing.price_swaps(orders, np.array([list(means.values())]), relevant) if swap else ():
                if swap in ((each.first, each.second), (each.second, each.first)):
                    price = each.price if swap == (each.first, each.second) else -each.price
            prices.append(price)
        after = tuple(episodes[n - 1] for n in rounds if n <= len(episodes))
        best = tuple(max(means.values()) for means in rounds.values())[: len(after)]
        courses.append(TrainingCourse(number, last not in rounds, after, best, tuple(prices[: len(after)])))
    return [course for course in courses if course.episodes]


def replicates(courses: Sequence[TrainingCourse], swap: str) -> FigureData:
    """Draw what each training of a search earns under its best order, and its own price of a swap, round by round."""
    rows = [
        (course.number, course.is_dropped, *row)
        for course in courses
        for row in zip(course.episodes, course.best, course.prices, strict=True)
    ]
    panels = (("return, best order", "best"), ("price, points", "prices"))[: 2 if swap else 1]

    def draw() -> Drawing:
        with drawing(1.7 * len(panels) + 0.4, rows=len(panels), sharex=True, squeeze=False) as (drawn, grid):
            for axes, (label, values) in zip(grid[:, 0], panels, strict=True):
                draw_grid(axes)
                for course in courses:
                    look = {"color": PALE, "linestyle": _LINES[2]} if course.is_dropped else {"color": ACCENT, "alpha": 0.75}
                    shown, ends = getattr(course, values), course.episodes[-1]
                    axes.plot([e / 1000 for e in course.episodes], shown, linewidth=0.9, **look)
                    tip = drawn.tip(f"training {course.number}\n{label} {shown[-1]:.2f} after {ends:,} episodes")
                    axes.plot(ends / 1000, shown[-1], "o", color=look["color"], markersize=3, gid=tip)
                axes.set_ylabel(label)
            grid[-1, 0].set_xlabel("training episodes with orders, of one training, thousands")
            drawn.figure.align_ylabels()
        return drawn

    price = f", price of {swap}" if swap else ""
    alt = f"Learning curves, trainings: {len(courses)}; return under the best order{price}."
    return FigureData(
        "replicates", alt, Table(("training", "dropped", "episodes", "best_return", "price"), tuple(rows)), draw
    )


# ---------------------------------------------------------------- updates of policies


@dataclass(frozen=True)
class Curve:
    """A curve of updates, thinned to bins, all [m]: mean, lowest and highest update of each, and whether it goes on."""

    episodes: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    group: np.ndarray


def thinned(episodes: np.ndarray, values: np.ndarray, groups: np.ndarray, most: int) -> Curve:
    """Thin a curve to about `most` bins of consecutive updates; none spans two groups (trials). NaN values are left out."""
    known = np.isfinite(values)
    episodes, values, groups = episodes[known], values[known], groups[known]
    if not len(values):
        return Curve(*np.empty((5, 0)))
    size = -(-len(values) // most)
    changes = np.flatnonzero(np.diff(groups)) + 1
    ends = zip([0, *changes], [*changes, len(values)], strict=True)
    starts = np.concatenate([np.arange(a, b, size) for a, b in ends]).astype(int)
    counts = np.diff([*starts, len(values)])
    return Curve(
        np.add.reduceat(episodes, starts) / counts,
        np.add.reduceat(values, starts) / counts,
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
        groups[starts],
    )


def learning(runs: Sequence[Run], threshold: float | None = None) -> FigureData:
    """Draw return and compliance of the training episodes, update by update, of one run or of several.

    Of one run there is a band, too, from the lowest to the highest of consecutive updates, and a line where another order
    begins.
    """
    most = _CURVE_BINS if len(runs) == 1 else _CURVE_BINS // 2
    panels: list[tuple[str, list[tuple[str, Curve]]]] = []
    for label, name, scale in (("return per episode", "env_return", 1), ("compliance, %", "compliance", 100)):
        logs = [(run.name, run.updates) for run in runs]
        curves = [(run, thinned(log.sampled, scale * getattr(log, name), log.trial, most)) for run, log in logs]
        if any(len(curve.mean) for _, curve in curves):
            panels.append((label, [(run, curve) for run, curve in curves if len(curve.mean)]))
    rows = tuple(
        (label, run, *(round(float(value), 6) for value in row))
        for label, curves in panels
        for run, c in curves
        for row in zip(c.episodes, c.mean, c.low, c.high, strict=True)
    )

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
                    low = min(float(np.quantile(curve.low, 0.03)) for _, curve in curves)
                    high = max(float(curve.high.max()) for _, curve in curves)
                    room = 0.06 * (high - low) or 1.0
                    axes.set_ylim(low - room, high + room)
            grid[-1, 0].set_xlabel("training episodes, thousands")
            if len(runs) > 1:
                draw_legend(grid[0, 0])
            drawn.figure.align_ylabels()
        return drawn

    alt = f"Return and compliance over the updates of {', '.join(run.name for run in runs)}."
    return FigureData("learning", alt, Table(("quantity", "run", "episodes", "mean", "lowest", "highest"), rows), draw)


def _draw_curve(drawn: Drawing, axes: Any, run: str, curve: Curve, number: int, *, alone: bool) -> None:
    """Draw one curve as a broken line: trials are apart."""
    changes = np.flatnonzero(np.diff(curve.group)) + 1
    colour, line = GROUP_COLOURS[number % len(GROUP_COLOURS)], _LINES[number // len(GROUP_COLOURS) % len(_LINES)]
    x = np.insert(curve.episodes / 1000, changes, np.nan)
    mean, low, high = (np.insert(values, changes, np.nan) for values in (curve.mean, curve.low, curve.high))
    if alone:
        begins = curve.episodes[changes] / 1000
        axes.vlines(begins, 0, 1, color=INK, alpha=0.18, linewidth=0.4, transform=axes.get_xaxis_transform())
        axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=colour, linestyle=line, linewidth=0.9, label=wrap(run))
    tip = drawn.tip(f"{run}\n{curve.mean[-1]:.2f} after {int(curve.episodes[-1]):,} episodes")
    axes.plot(x[-1], curve.mean[-1], "o", color=colour, markersize=3, gid=tip)
