"""What the figures show.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; meaning never depends on colour alone.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.orders import Ranked, Workflow
from fixfirst.reporter.analysis import GroupCourse, PairEffect, PositionMeans, TimeUse, best_so_far, episodes_used, thinned
from fixfirst.reporter.figure import ACCENT, INK, WIDTH, FigureData, drawing
from fixfirst.reporter.read import RunData
from fixfirst.runs import MeanInterval, Status, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MINUS = "\u2212"
SECOND = "#D55E00"
PALE = "#8A8F94"
# Unit types, by id; the last two only where there are more than five, since they also say what became of an order.
UNIT_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#F0E442", ACCENT, SECOND)
OTHER_UNITS = "#9A9A9A"  # beyond seven unit types
GROUP_COLOURS = (ACCENT, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MOST_RANKED, LAST_RANKED = 130, 30  # rows of the ranking that are drawn; of those, how many from its end
MOST_PAIRS = 40
CURVE_BINS = 250


def _grid(axes: "Axes", axis: Any = "y") -> None:
    axes.grid(axis=axis, color=INK, alpha=0.12, linewidth=0.5)
    axes.set_axisbelow(True)


def _rows(axes: "Axes", names: Sequence[str], label: str) -> None:
    """A row per name, the first on top; `label` is the axis below."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(label)
    _grid(axes, "x")


def _interval(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}"


def unit_colour(unit: int) -> str:
    return UNIT_COLOURS[unit] if unit < len(UNIT_COLOURS) else OTHER_UNITS


def _range(values: Sequence[float], pad: float = 0.06) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = pad * (high - low) or 1.0
    return low - room, high + room


# ---------------------------------------------------------------- one search


def ranking(run: RunData) -> FigureData:
    """Every tried order as its sequence of unit types, with its return; those not accepted come last, hollow."""
    ranked = () if run.standings is None else run.standings.ranking.rows
    seen = {row.workflow for row in ranked}
    failed: dict[Workflow, Trial] = {}
    for trial in run.trials:
        workflow = run.workflow_of(trial)
        if workflow in seen or trial.status == Status.FAILED:  # a worker that died left no return
            continue
        if workflow not in failed or trial.earned > failed[workflow].earned:
            failed[workflow] = trial
    lines = [(row.workflow, row.mean, row.low, row.high, _verdict(row)) for row in ranked]
    for workflow, trial in sorted(failed.items(), key=lambda item: -item[1].earned):
        assert trial.return_low is not None and trial.return_high is not None
        lines.append((workflow, trial.earned, trial.return_low, trial.return_high, "not accepted"))
    columns = ("place", "order", "verdict", "return", "low", "high")
    numbers = [(i, str(w), verdict, mean, low, high) for i, (w, mean, low, high, verdict) in enumerate(lines, start=1)]

    shown = list(enumerate(lines, start=1))
    if len(shown) > MOST_RANKED:
        shown = shown[: MOST_RANKED - LAST_RANKED] + shown[-LAST_RANKED:]
    size, count = run.scheme.size, len(shown)
    column = 0.2 + 0.058 * max(len(name) for name in run.scheme.names)  # inches that a unit type takes
    width = max(WIDTH, size * column + 3.2)
    with drawing(0.55 + 0.165 * count, width=width) as (drawn, axes):
        box = axes.get_position()
        left = size * column / width
        axes.set_position((left, box.y0, box.x1 - left, box.height))
        inch = 1 / (width * (box.x1 - left))  # in axes widths
        beside = axes.get_yaxis_transform()
        for y, (place, (workflow, mean, low, high, verdict)) in enumerate(shown):
            colour = {"may be best": ACCENT, "not accepted": SECOND}.get(verdict, PALE)
            tip = drawn.tip(f"{place}. {workflow}: {mean:.2f} ({_interval(low, high)}), {verdict}")
            axes.plot([low, high], [y, y], color=colour, linewidth=1.0, solid_capstyle="butt")
            face = "none" if verdict == "not accepted" else colour
            axes.plot(mean, y, "o", markersize=4, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1, gid=tip)
        for unit, name in enumerate(run.scheme.names):
            places = [(workflow.order.index(unit) - size) * column * inch for _, (workflow, *_) in shown]
            chips, ys = [place + 0.05 * inch for place in places], range(count)
            axes.plot(chips, ys, "s", color=unit_colour(unit), markersize=4, transform=beside, clip_on=False)
            for y, place in enumerate(places):
                axes.text(place + 0.11 * inch, y, name, fontsize=6.5, va="center", transform=beside)
        for position in range(size):
            x = (position - size) * column * inch + 0.11 * inch
            axes.text(x, -1.15, f"{position + 1}.", fontsize=6.5, va="center", transform=beside)
        axes.set_ylim(count - 0.4, -0.8)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("return per episode (0 is best)")
        _grid(axes, "x")
        _marks_legend(axes, {verdict for _, (*_, verdict) in shown})
        alt = f"Returns with intervals of {len(lines)} tried orders, best first; the numbers are in the table of orders."
        return drawn.finish("ranking", alt, columns, numbers)


def _verdict(row: Ranked) -> str:
    return "may be best" if row.maybe_best else "worse"


def _marks_legend(axes: "Axes", verdicts: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="-", color=colour, markerfacecolor=face, markersize=4, label=label)
        for verdict, colour, face, label in (
            ("may be best", ACCENT, ACCENT, "may be best"),
            ("worse", PALE, PALE, "worse than the best"),
            ("not accepted", SECOND, "none", "not accepted"),
        )
        if verdict in verdicts
    ]
    room: dict[str, Any] = {"handlelength": 1.6, "columnspacing": 1.2, "borderaxespad": 1.8}
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, **room)


def progress(run: RunData) -> FigureData:
    """Each choice: what the strategy expected, what it got, the best so far, and the budget."""
    best, used = best_so_far(run.trials), episodes_used(run)
    choices = {choice.iteration: choice for choice in run.choices}
    believed, became = ("how", "expected_mean", "expected_std", "ucb"), ("return", "status", "best_so_far", "episodes_used")
    columns = ("trial", "order", *believed, *became)
    numbers = []
    with drawing(3.6, rows=2, sharex=True, height_ratios=(3.2, 1)) as (drawn, (axes, budget)):
        _grid(axes)
        _grid(budget)
        for trial, top, episodes in zip(run.trials, best, used, strict=True):
            x, choice = trial.id, choices.get(trial.id)
            how, mean, std, ucb = (choice.how, choice.mean, choice.std, choice.ucb) if choice else ("", None, None, None)
            earned = trial.return_mean
            numbers.append((x, trial.workflow, how, mean, std, ucb, earned, trial.status.value, top, episodes))
            if mean is not None and std is not None and ucb is not None:
                axes.plot([x, x], [mean - std, mean + std], color=INK, alpha=0.3, linewidth=3, solid_capstyle="butt")
                axes.plot([x, x], [mean, ucb], color=INK, alpha=0.45, linewidth=0.7)
                axes.plot(x, ucb, "_", color=INK, alpha=0.7, markersize=5, markeredgewidth=0.9)
            if earned is not None:
                expected = f"; expected {mean:.2f} ± {std:.2f}" if mean is not None and std is not None else ""
                text = f"trial {x}: {trial.workflow}, return {earned:.2f}, {trial.status}{expected}"
                axes.plot(x, earned, "o", **_dot(trial), gid=drawn.tip(text))
        known = [(trial.id, top) for trial, top in zip(run.trials, best, strict=True) if top is not None]
        if known:
            axes.step(*zip(*known, strict=True), where="post", color=ACCENT, linewidth=1.2, alpha=0.7)
        axes.set_ylabel("return per episode")
        budget.step([trial.id for trial in run.trials], [e / 1000 for e in used], where="post", color=INK, linewidth=1)
        budget.set_ylabel("thousand\nepisodes")
        budget.set_ylim(0, None)
        budget.set_xlabel("trial")
        _whole_ticks(budget)
        _progress_legend(axes, beliefs=any(choice.ucb is not None for choice in run.choices))
        drawn.figure.align_ylabels()
        alt = f"Expected and earned returns of {len(run.trials)} trials, the best so far, and training episodes used."
        return drawn.finish("progress", alt, columns, numbers)


def _dot(trial: Trial) -> dict[str, Any]:
    """How a trial is drawn: hollow unless accepted."""
    colour = ACCENT if trial.accepted else SECOND
    return {"markersize": 4, "markeredgecolor": colour, "markerfacecolor": colour if trial.accepted else "none"}


def _progress_legend(axes: "Axes", beliefs: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=ACCENT, markersize=4, label="earned"),
        Line2D([], [], marker="o", linestyle="", color=SECOND, markerfacecolor="none", markersize=4, label="not accepted"),
        Line2D([], [], color=ACCENT, alpha=0.7, label="best so far"),
    ]
    if beliefs:
        handles.append(Line2D([], [], color=INK, alpha=0.3, linewidth=3, label="expected ± std"))
        handles.append(Line2D([], [], marker="_", linestyle="", color=INK, markersize=6, label="UCB"))
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=5, handlelength=1.4, columnspacing=1.2)


def _whole_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def learning(run: RunData, threshold: float | None) -> FigureData:
    """Return and compliance of the training episodes, update by update; a thin line where another order begins."""
    updates = run.updates
    shown = (("return per episode", updates.env_return, 1), ("compliance, %", updates.compliance, 100))
    curves = [(label, thinned(updates.sampled, values, updates.trial, CURVE_BINS), scale) for label, values, scale in shown]
    curves = [(label, curve, scale) for label, curve, scale in curves if len(curve.mean)]
    columns = ("quantity", "episodes", "mean", "lowest", "highest")
    numbers = [
        (label, *(round(float(v), 6) for v in (e, m * scale, low * scale, high * scale)))
        for label, curve, scale in curves
        for e, m, low, high in zip(curve.episodes, curve.mean, curve.low, curve.high, strict=True)
    ]
    changes = updates.sampled[np.flatnonzero(np.diff(updates.trial)) + 1]
    with drawing(1.9 * len(curves) + 0.3, rows=len(curves), sharex=True, squeeze=False) as (drawn, grid):
        for axes, (label, curve, scale) in zip(grid[:, 0], curves, strict=True):
            _grid(axes)
            # One broken line: trials are apart.
            parts = np.searchsorted(changes, curve.episodes, side="right")
            cut = np.flatnonzero(np.diff(parts)) + 1
            x = np.insert(curve.episodes / 1000, cut, np.nan)
            mean, low, high = (np.insert(v * scale, cut, np.nan) for v in (curve.mean, curve.low, curve.high))
            axes.vlines(changes / 1000, 0, 1, color=INK, alpha=0.18, linewidth=0.4, transform=axes.get_xaxis_transform())
            axes.fill_between(x, low, high, color=ACCENT, alpha=0.25, linewidth=0)
            axes.plot(x, mean, color=ACCENT, linewidth=0.9)
            axes.set_ylabel(label)
            if scale == 100:
                axes.set_ylim(-2, 102)
                if threshold is not None:
                    axes.axhline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
            else:
                # The first updates of a beginner would flatten all that follows.
                bottom = float(np.quantile(curve.low, 0.03))
                axes.set_ylim(*_range([bottom, float(curve.high.max())]))
        grid[-1, 0].set_xlabel("training episodes, thousands")
        drawn.figure.align_ylabels()
        alt = f"Return and compliance over {len(updates)} updates of the policy."
        return drawn.finish("learning", alt, columns, numbers)


def compliance(run: RunData, threshold: float | None) -> FigureData:
    """Compliance and contested compliance of every trial against its return."""
    columns = ("trial", "order", "status", "compliance", "contested_compliance", "return")
    trials = [trial for trial in run.trials if trial.return_mean is not None]
    numbers = [
        (trial.id, trial.workflow, trial.status.value, trial.compliance, trial.contested_compliance, trial.earned)
        for trial in trials
    ]
    panels = (
        ("compliance, %", [trial.compliance for trial in trials]),
        ("contested compliance, %", [trial.contested_compliance for trial in trials]),
    )
    with drawing(2.7, columns=2, sharey=True) as (drawn, grid):
        for axes, (label, shares) in zip(grid, panels, strict=True):
            _grid(axes, "both")
            for trial, share in zip(trials, shares, strict=True):
                if share is None:
                    continue
                tip = f"{trial.workflow}: {100 * share:.1f} %, return {trial.earned:.2f}, {trial.status}"
                axes.plot(100 * share, trial.earned, "o", **_dot(trial), alpha=0.8, gid=drawn.tip(tip))
            axes.set_xlabel(label)
        if threshold is not None:
            grid[0].axvline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
        grid[0].set_ylabel("return per episode")
        drawn.figure.subplots_adjust(wspace=0.08)
        alt = f"Compliance against return of {len(trials)} trials."
        return drawn.finish("compliance", alt, columns, numbers)


def positions(means: PositionMeans) -> FigureData:
    """Unit type by position: the mean return of the accepted orders that have it there."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    size, names = means.scheme.size, means.scheme.names
    columns = ("unit", "position", "mean_return", "orders")
    known = means.mean[np.isfinite(means.mean)]
    low, high = float(known.min()), float(known.max())
    numbers = []
    with drawing(0.7 + 0.36 * size) as (drawn, axes):
        for unit in range(size):
            for position in range(size):
                value, count = float(means.mean[unit, position]), int(means.orders[unit, position])
                numbers.append((names[unit], position + 1, None if not count else value, count))
                if not count:
                    axes.text(position, unit, "not tried", ha="center", va="center", fontsize=6.5, alpha=0.8)
                    continue
                colour = colormaps["cividis"]((value - low) / ((high - low) or 1.0))
                axes.add_patch(Rectangle((position - 0.48, unit - 0.46), 0.96, 0.92, facecolor=colour, linewidth=0))
                ink = "white" if _luminance(colour) < 0.18 else "black"
                centred = {"ha": "center", "va": "center", "color": ink}
                axes.text(position, unit - 0.12, f"{value:.1f}".replace("-", MINUS), fontsize=8, **centred)
                axes.text(position, unit + 0.25, "1 order" if count == 1 else f"{count} orders", fontsize=5.5, **centred)
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_yticks(range(size), names)
        axes.set_xticks(range(size), [f"{position + 1}." for position in range(size)])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        alt = "Mean return of the accepted orders by unit type and position."
        return drawn.finish("positions", alt, columns, numbers)


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance (WCAG) of an sRGB colour."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pairs(effects: Sequence[PairEffect]) -> FigureData:
    """What each precedence is worth, with its interval."""
    columns = ("above", "below", "effect", "low", "high", "orders_so", "orders_reversed")
    numbers = [(e.first, e.second, e.effect, e.low, e.high, e.tried, e.reversed) for e in effects]
    told = [e for e in effects if e.effect is not None][:MOST_PAIRS]
    with drawing(0.6 + 0.2 * len(told)) as (drawn, axes):
        for y, e in enumerate(told):
            assert e.effect is not None and e.low is not None and e.high is not None
            colour = ACCENT if e.low > 0 else PALE
            axes.plot([e.low, e.high], [y, y], color=colour, linewidth=1.2, solid_capstyle="butt")
            counts = f"{e.tried} orders so, {e.reversed} reversed"
            tip = drawn.tip(f"{e.first} before {e.second}: {e.effect:+.2f} ({_interval(e.low, e.high)}); {counts}")
            axes.plot(e.effect, y, "o", color=colour, markersize=4.5, gid=tip)
        axes.axvline(0, color=INK, linewidth=0.7)
        _rows(axes, [f"{e.first} before {e.second}" for e in told], "difference in return per episode")
        alt = f"Effect of {len(told)} pairwise precedences on the return, with intervals."
        return drawn.finish("pairs", alt, columns, numbers)


def time(use: TimeUse) -> FigureData:
    """Worker-seconds by what they were spent on, longest first as bars."""
    parts = use.parts
    with drawing(0.5 + 0.24 * len(parts)) as (drawn, axes):
        seconds = [s for _, s in parts]
        colours = [PALE if name == "waiting" else ACCENT for name, _ in parts]
        axes.barh(range(len(parts)), seconds, color=colours, height=0.62)
        for y, (_, s) in enumerate(parts):
            axes.text(s + 0.01 * max(seconds), y, f"{s:,.1f} s  {100 * s / use.total:.0f} %", va="center", fontsize=7)
        _rows(axes, [name for name, _ in parts], "worker-seconds")
        axes.set_xlim(0, 1.18 * max(seconds))
        alt = "Worker-seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in parts)
        return drawn.finish("time", alt, ("part", "worker_seconds"), parts)


# ---------------------------------------------------------------- several runs


def groups(judged: Sequence[tuple[str, MeanInterval, Sequence[tuple[str, float]]]]) -> FigureData:
    """Final return per group: a dot per run, the mean and its interval."""
    columns = ("group", "run", "return", "mean", "low", "high")
    numbers = [(label, name, value, *found) for label, found, runs in judged for name, value in runs]
    with drawing(0.6 + 0.42 * len(judged)) as (drawn, axes):
        for y, (label, (mean, low, high), runs) in enumerate(judged):
            if low is not None and high is not None:
                axes.plot([low, high], [y, y], color=ACCENT, alpha=0.35, linewidth=7, solid_capstyle="butt")
            tip = drawn.tip(f"{label}: {mean:.2f}")
            axes.plot([mean, mean], [y - 0.22, y + 0.22], color=ACCENT, linewidth=1.6, gid=tip)
            for name, value in runs:
                tip = drawn.tip(f"{name}: {value:.2f}")
                axes.plot(value, y, "o", color=INK, markersize=3.5, alpha=0.6, markeredgewidth=0, gid=tip)
        _rows(axes, [_wrapped(label) for label, *_ in judged], "final return per episode")
        alt = "Final returns: " + "; ".join(f"{label} {found.mean:.2f}" for label, found, _ in judged)
        return drawn.finish("groups", alt, columns, numbers)


def courses(found: Sequence[GroupCourse]) -> FigureData:
    """Best return so far against training episodes, per group."""
    columns = ("group", "episodes", "mean", "low", "high")
    numbers = [
        (c.label, int(e), float(m), float(low), float(high))
        for c in found
        for e, m, low, high in zip(c.episodes, c.mean, c.low, c.high, strict=True)
    ]
    styles = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
    with drawing(3.2) as (drawn, axes):
        _grid(axes)
        for i, c in enumerate(found):
            colour = GROUP_COLOURS[i % len(GROUP_COLOURS)]
            line = styles[i // len(GROUP_COLOURS) % len(styles)]
            x = c.episodes / 1000
            if c.seeds > 1:
                axes.fill_between(x, c.low, c.high, step="post", color=colour, alpha=0.2, linewidth=0)
            label = f"{_wrapped(c.label)} ({c.seeds} seeds)" if c.seeds != 1 else f"{_wrapped(c.label)} (1 seed)"
            axes.step(x, c.mean, where="post", color=colour, linestyle=line, label=label)
        # Two seeds that disagree have an interval twelve times as wide as their distance: it would flatten the rest.
        axes.set_ylim(*_range([end for c in found for end in c.range], pad=0.5))
        axes.set_xlabel("training episodes, thousands")
        axes.set_ylabel("best return so far")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=1)
        alt = "Best accepted return so far against training episodes, per group of runs."
        return drawn.finish("courses", alt, columns, numbers)


def _wrapped(label: str, width: int = 34) -> str:
    return "\n".join(textwrap.wrap(label, width)[:3]) or "-"
