"""What the figures of one run show."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.orders.order import Workflow
from fixfirst.orders.ranking import Ranked
from fixfirst.reporter.analysis import PairEffect, PositionMeans, TimeUse, best_so_far, episodes_used, thinned
from fixfirst.reporter.axes import PALE, SECOND, grid_lines, in_words, name_rows, rows_height, value_range
from fixfirst.reporter.figure import ACCENT, INK, WIDTH, Drawing, FigureData, drawing, for_page_and_phone
from fixfirst.reporter.read import RunData
from fixfirst.runs.rows import Status, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MINUS = "\u2212"
# Unit types, by id; the last two only where there are more than five, since they also say what became of an order.
UNIT_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#F0E442", ACCENT, SECOND)
OTHER_UNITS = "#9A9A9A"  # beyond seven unit types
MOST_RANKED, LAST_RANKED = 130, 30  # rows of the ranking that are drawn; of those, how many from its end
MOST_PAIRS = 40
CURVE_BINS = 250


def unit_colour(unit: int) -> str:
    return UNIT_COLOURS[unit] if unit < len(UNIT_COLOURS) else OTHER_UNITS


# ---------------------------------------------------------------- one search


@for_page_and_phone
def ranking(run: RunData) -> FigureData:
    """Every tried order as its sequence of unit types, with its return; those not accepted come last, hollow."""
    ranked = () if run.ranked_trials is None else run.ranked_trials.ranking.rows
    seen = {row.workflow for row in ranked}
    failed: dict[Workflow, Trial] = {}
    for trial in run.trials:
        workflow = run.workflow_of(trial)
        if workflow in seen or trial.status == Status.FAILED:  # a worker that died left no return
            continue
        if workflow not in failed or trial.earned > failed[workflow].earned:
            failed[workflow] = trial
    lines = [(row.workflow, row.mean, row.low, row.high, _verdict(row)) for row in ranked]
    trials = {run.workflow_of(trial): trial.id for trial in _best_last(run.trials)}
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
    on_phone = ["\n".join(textwrap.wrap(f"{place}. {line[0]}", 56)) for place, line in shown]
    lines_each = max(text.count("\n") + 1 for text in on_phone)
    heights = rows_height(count, 0.165, lines_each)
    with drawing(*heights, width=width) as (drawn, axes):
        for y, (place, (workflow, mean, low, high, verdict)) in enumerate(shown):
            colour = {"may be best": ACCENT, "not accepted": SECOND}.get(verdict, PALE)
            tip = drawn.tip(
                f"{place}. {workflow}\nreturn {mean:.2f} ({in_words(low, high)})\n{verdict}, trial {trials[workflow]}",
                watch=f"trial {trials[workflow]}",
            )
            axes.plot([low, high], [y, y], color=colour, linewidth=1.0, solid_capstyle="butt")
            face = "none" if verdict == "not accepted" else colour
            axes.plot(mean, y, "o", markersize=4, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1, gid=tip)
        name_rows(drawn, axes, on_phone if drawn.narrow else [""] * count, "return per episode (0 is best)")
        if not drawn.narrow:
            _unit_chips(axes, run, [workflow for _, (workflow, *_) in shown], column, width)
        _marks_legend(drawn, axes, {verdict for _, (*_, verdict) in shown})
        alt = f"Returns with intervals of {len(lines)} tried orders, best first; the numbers are in the table of orders."
        return drawn.finish("ranking", alt, columns, numbers)


def _unit_chips(axes: "Axes", run: RunData, workflows: Sequence[Workflow], column: float, width: float) -> None:
    """Left of its row every order as coloured squares with names, a column per position."""
    size, box = run.scheme.size, axes.get_position()
    left = size * column / width
    axes.set_position((left, box.y0, box.x1 - left, box.height))
    inch = 1 / (width * (box.x1 - left))  # in axes widths
    beside = axes.get_yaxis_transform()
    for unit, name in enumerate(run.scheme.names):
        places = [(workflow.order.index(unit) - size) * column * inch for workflow in workflows]
        chips, ys = [place + 0.05 * inch for place in places], range(len(workflows))
        axes.plot(chips, ys, "s", color=unit_colour(unit), markersize=4, transform=beside, clip_on=False)
        for y, place in enumerate(places):
            axes.text(place + 0.11 * inch, y, name, fontsize=6.5, va="center", transform=beside)
    for position in range(size):
        x = (position - size) * column * inch + 0.11 * inch
        axes.text(x, -1.15, f"{position + 1}.", fontsize=6.5, va="center", transform=beside)
    axes.set_ylim(len(workflows) - 0.4, -0.8)


def _best_last(trials: Sequence[Trial]) -> list[Trial]:
    """Trials in the order in which they count for their order: those that passed the gate last, by return."""
    known = [trial for trial in trials if trial.return_mean is not None]
    return sorted(known, key=lambda trial: (trial.accepted, trial.earned))


def _verdict(row: Ranked) -> str:
    return "may be best" if row.maybe_best else "worse"


def _marks_legend(drawn: Drawing, axes: "Axes", verdicts: set[str]) -> None:
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
    _legend_above(drawn, axes, handles, room=1.8)


def _legend_above(drawn: Drawing, axes: "Axes", handles: Sequence[Any], room: float = 0.5) -> None:
    """In one line above the axes; on a phone in several."""
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": len(handles), "borderaxespad": room}
    if drawn.narrow:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
    axes.legend(handles=handles, handlelength=1.5, columnspacing=1.2, **place)


@for_page_and_phone
def progress(run: RunData) -> FigureData:
    """Each choice: what the strategy expected, what it got, the best so far, and the budget."""
    best, used = best_so_far(run.trials), episodes_used(run)
    choices = {choice.iteration: choice for choice in run.choices}
    believed, became = ("how", "expected_mean", "expected_std", "ucb"), ("return", "status", "best_so_far", "episodes_used")
    columns = ("trial", "order", *believed, *became)
    numbers = []
    with drawing(3.6, rows=2, sharex=True, height_ratios=(3.2, 1)) as (drawn, (axes, budget)):
        grid_lines(axes)
        grid_lines(budget)
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
                text = f"trial {x}: {trial.workflow}\nreturn {earned:.2f}, {trial.status}{expected}"
                axes.plot(x, earned, "o", **_dot(trial), gid=drawn.tip(text, watch=f"trial {x}"))
        known = [(trial.id, top) for trial, top in zip(run.trials, best, strict=True) if top is not None]
        if known:
            axes.step(*zip(*known, strict=True), where="post", color=ACCENT, linewidth=1.2, alpha=0.7)
        axes.set_ylabel("return per episode")
        budget.step([trial.id for trial in run.trials], [e / 1000 for e in used], where="post", color=INK, linewidth=1)
        budget.set_ylabel("thousand\nepisodes")
        budget.set_ylim(0, None)
        budget.set_xlabel("trial")
        _whole_ticks(budget)
        _progress_legend(drawn, axes, beliefs=any(choice.ucb is not None for choice in run.choices))
        drawn.figure.align_ylabels()
        alt = f"Expected and earned returns of {len(run.trials)} trials, the best so far, and training episodes used."
        return drawn.finish("progress", alt, columns, numbers)


def _dot(trial: Trial) -> dict[str, Any]:
    """How a trial is drawn: hollow unless accepted."""
    colour = ACCENT if trial.accepted else SECOND
    return {"markersize": 4, "markeredgecolor": colour, "markerfacecolor": colour if trial.accepted else "none"}


def _progress_legend(drawn: Drawing, axes: "Axes", beliefs: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=ACCENT, markersize=4, label="earned"),
        Line2D([], [], marker="o", linestyle="", color=SECOND, markerfacecolor="none", markersize=4, label="not accepted"),
        Line2D([], [], color=ACCENT, alpha=0.7, label="best so far"),
    ]
    if beliefs:
        handles.append(Line2D([], [], color=INK, alpha=0.3, linewidth=3, label="expected ± std"))
        handles.append(Line2D([], [], marker="_", linestyle="", color=INK, markersize=6, label="UCB"))
    _legend_above(drawn, axes, handles)


def _whole_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@for_page_and_phone
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
            grid_lines(axes)
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
                axes.set_ylim(*value_range([bottom, float(curve.high.max())]))
        grid[-1, 0].set_xlabel("training episodes, thousands")
        drawn.figure.align_ylabels()
        alt = f"Return and compliance over {len(updates)} updates of the policy."
        return drawn.finish("learning", alt, columns, numbers)


@for_page_and_phone
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
            grid_lines(axes, "both")
            for trial, share in zip(trials, shares, strict=True):
                if share is None:
                    continue
                kept = f"{label[:-3]} {100 * share:.1f} %, return {trial.earned:.2f}"
                text = f"trial {trial.id}: {trial.workflow}\n{kept}\n{trial.status}"
                tip = drawn.tip(text, watch=f"trial {trial.id}")
                axes.plot(100 * share, trial.earned, "o", **_dot(trial), alpha=0.8, gid=tip)
            axes.set_xlabel(label)
            if drawn.narrow:
                axes.set_ylabel("return per episode")
        if threshold is not None:
            grid[0].axvline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
        grid[0].set_ylabel("return per episode")
        drawn.figure.subplots_adjust(**{"hspace": 0.3} if drawn.narrow else {"wspace": 0.08})
        alt = f"Compliance against return of {len(trials)} trials."
        return drawn.finish("compliance", alt, columns, numbers)


@for_page_and_phone
def positions(means: PositionMeans) -> FigureData:
    """Unit type by position: the mean return of the accepted orders that have it there."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    size, names = means.scheme.size, means.scheme.names
    columns = ("unit", "position", "mean_return", "orders")
    known = means.mean[np.isfinite(means.mean)]
    low, high = float(known.min()), float(known.max())
    numbers = []
    with drawing(1.0 + 0.36 * size, phone_height=1.0 + 0.36 * size) as (drawn, axes):
        for unit in range(size):
            for position in range(size):
                value, count = float(means.mean[unit, position]), int(means.orders[unit, position])
                numbers.append((names[unit], position + 1, None if not count else value, count))
                if not count:
                    axes.text(position, unit, "not tried", ha="center", va="center", fontsize=6.5, alpha=0.8)
                    continue
                colour = colormaps["cividis"]((value - low) / ((high - low) or 1.0))
                some = "1 order" if count == 1 else f"{count} orders"
                tip = drawn.tip(f"{names[unit]} at position {position + 1}\nmean return {value:.2f} of {some}")
                patch = Rectangle((position - 0.48, unit - 0.46), 0.96, 0.92, facecolor=colour, linewidth=0, gid=tip)
                axes.add_patch(patch)
                ink = "white" if _luminance(colour) < 0.18 else "black"
                centred = {"ha": "center", "va": "center", "color": ink}
                axes.text(position, unit - 0.12, f"{value:.1f}".replace("-", MINUS), fontsize=8, **centred)
                axes.text(position, unit + 0.25, some, fontsize=5.5, **centred)
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_yticks(range(size), names)
        axes.set_xticks(range(size), [f"{position + 1}." for position in range(size)])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        title = "Mean return of the orders that have a unit type at a position"
        axes.set_title("\n".join(textwrap.wrap(title, 44 if drawn.narrow else 90)), fontsize=8, loc="left", pad=8)
        _colour_scale(drawn, axes, low, high)
        alt = "Mean return of the accepted orders by unit type and position."
        return drawn.finish("positions", alt, columns, numbers)


def _colour_scale(drawn: Drawing, axes: "Axes", low: float, high: float) -> None:
    """What the colours of the map mean: a bar below it."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = ScalarMappable(Normalize(low, high if high > low else low + 1), colormaps["cividis"])
    place: dict[str, Any] = {"orientation": "horizontal", "shrink": 0.6, "aspect": 40, "pad": 0.05}
    scale = drawn.figure.colorbar(colours, ax=axes, **place)
    scale.set_label("mean return per episode (0 is best)", fontsize=7)
    scale.ax.tick_params(labelsize=7, length=2)
    scale.ax.locator_params(nbins=5)
    scale.outline.set_visible(False)


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance (WCAG) of an sRGB colour."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@for_page_and_phone
def pairs(effects: Sequence[PairEffect]) -> FigureData:
    """What each precedence is worth, with its interval."""
    columns = ("above", "below", "effect", "low", "high", "orders_so", "orders_reversed")
    numbers = [(e.first, e.second, e.effect, e.low, e.high, e.tried, e.reversed) for e in effects]
    told = [e for e in effects if e.effect is not None][:MOST_PAIRS]
    with drawing(*rows_height(len(told), 0.2)) as (drawn, axes):
        for y, e in enumerate(told):
            assert e.effect is not None and e.low is not None and e.high is not None
            colour = ACCENT if e.low > 0 else PALE
            axes.plot([e.low, e.high], [y, y], color=colour, linewidth=1.2, solid_capstyle="butt")
            counts = f"{e.tried} orders so, {e.reversed} reversed"
            tip = drawn.tip(f"{e.first} before {e.second}\n{e.effect:+.2f} ({in_words(e.low, e.high)})\n{counts}")
            axes.plot(e.effect, y, "o", color=colour, markersize=4.5, gid=tip)
        axes.axvline(0, color=INK, linewidth=0.7)
        name_rows(drawn, axes, [f"{e.first} before {e.second}" for e in told], "difference in return per episode")
        alt = f"Effect of {len(told)} pairwise precedences on the return, with intervals."
        return drawn.finish("pairs", alt, columns, numbers)


@for_page_and_phone
def time(use: TimeUse) -> FigureData:
    """Worker-seconds by what they were spent on, longest first as bars."""
    parts = use.parts
    with drawing(*rows_height(len(parts), 0.24)) as (drawn, axes):
        seconds = [s for _, s in parts]
        colours = [PALE if name == "waiting" else ACCENT for name, _ in parts]
        axes.barh(range(len(parts)), seconds, color=colours, height=0.3 if drawn.narrow else 0.62)
        for y, (_, s) in enumerate(parts):
            axes.text(s + 0.01 * max(seconds), y, f"{s:,.1f} s  {100 * s / use.total:.0f} %", va="center", fontsize=7)
        name_rows(drawn, axes, [name for name, _ in parts], "worker-seconds")
        axes.set_xlim(0, (1.4 if drawn.narrow else 1.18) * max(seconds))
        alt = "Worker-seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in parts)
        return drawn.finish("time", alt, ("part", "worker_seconds"), parts)
