"""Every figure of a report: an answer's, those of searches that train per order, of a training, and of several runs."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.reporter.analysis import (
    GroupCourse,
    PairEffect,
    PositionMeans,
    TimeUse,
    TrainingCourse,
    best_so_far,
    episodes_used,
    thinned,
)
from fixfirst.reporter.figure import (
    ACCENT,
    GROUP_COLOURS,
    INK,
    NAME_WIDTH,
    PALE,
    ROW_NAME,
    SECOND,
    FigureData,
    Mark,
    describe_interval,
    draw_grid,
    draw_legend,
    draw_rows,
    drawing,
    wrap,
)
from fixfirst.reporter.texts import TIERS, few_seeds, settled, short_order, some, swap_name
from fixfirst.runs import matrix, rows
from fixfirst.runs.rows import Trial
from fixfirst.runs.run import Run
from fixfirst.stats import agreement, intervals, pricing
from fixfirst.stats.answer import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MINUS = "\u2212"
_MOST_TRIALS, _MOST_POINTS = 500, 200  # that are drawn one by one, the last ones
_MOST_ROWS, LAST_ROWS = 60, 15  # rows that are drawn; of those, how many from the end: the table has them all
MOST_PAIRS = 40
CURVE_BINS = 250
SHAPES = "osD^vP"  # of lines: told apart without colour
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))


# ---------------------------------------------------------------- an answer


def swaps(answer: Answer, name: str = "swaps") -> FigureData:
    """Draw what it is worth to fix one unit type before its neighbour; ticks are the single trainings."""
    columns = ("first", "second", "price", "low", "high", "still_falling", "by_training")
    numbers = [
        (s.first, s.second, s.price, s.low, s.high, s.falling, " ".join(map(str, s.by_replicate))) for s in answer.swaps
    ]
    marks: list[Mark] = []
    for row, swap in enumerate(answer.swaps):
        for number, value in enumerate(swap.by_replicate):
            tip = f"{swap_name(swap)}\n{value:+.2f} in training {number}"
            marks.append(Mark(row, value, tip, colour=INK, shape="|", size=6))
        each = ", ".join(f"{value:+.2f}" for value in swap.by_replicate)
        sure = "" if swap.low is None or swap.high is None else f" ({describe_interval(swap.low, swap.high)})"
        tip = f"{swap_name(swap)}\n{swap.price:+.2f}{sure}\ntrainings: {each}\n{settled(swap, answer)}"
        marks.append(Mark(row, swap.price, tip, swap.low, swap.high, ACCENT if swap.is_shown else PALE))
    alt = "What each swap of neighbours is worth: " + "; ".join(f"{swap_name(s)} {s.price:+.2f}" for s in answer.swaps) + "."
    names, label = [swap_name(swap) for swap in answer.swaps], "points of return an episode; grey: within the margin"
    return draw_rows(name, alt, names, marks, label, columns, numbers, zero=True, margin=answer.margin)


def parts(swap: pricing.Swap) -> FigureData:
    """Draw what a price consists of."""
    marks, names = [], [part.name for part in swap.parts]
    for row, part in enumerate(swap.parts):
        sure = "so far" if part.low is None or part.high is None else describe_interval(part.low, part.high)
        tip = f"{part.name}\n{part.price:+.2f} ({sure})"
        marks.append(Mark(row, part.price, tip, part.low, part.high, ACCENT if part.is_shown else PALE))
    alt = f"What {swap.second} before {swap.first} costs more: " + ", ".join(f"{p.name} {p.price:+.2f}" for p in swap.parts)
    numbers = [(part.name, part.price, part.low, part.high) for part in swap.parts]
    label = f"points an episode that {swap.second} before {swap.first} costs more"
    return draw_rows("parts", f"{alt}.", names, marks, label, ("part", "price", "low", "high"), numbers, zero=True)


def course(prices: dict[str, list[tuple[int, float]]], falling: Collection[str], unit: str) -> FigureData:
    """Draw the price of each swap over training episodes, or rounds; those that may still fall say so."""
    numbers = [(name, when, value) for name, points in prices.items() for when, value in points]
    with drawing(2.4) as (drawn, axes):
        for number, (name, points) in enumerate(list(prices.items())[:_MOST_ROWS]):
            points = points[-_MOST_POINTS:]
            colour, shape = GROUP_COLOURS[number % len(GROUP_COLOURS)], SHAPES[number % len(SHAPES)]
            label = name + (" (so far)" if name in falling else "")
            axes.plot(*zip(*points, strict=True), shape + "-", color=colour, markersize=3.5, label=label)
            for when, value in points:
                tip = drawn.tip(f"{name}\n{value:+.2f} after {when:,} {unit}")
                axes.plot(when, value, shape, color=colour, markersize=3.5, gid=tip)
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_xlabel(f"training {unit} with orders, of one training")
        axes.set_ylabel("price so far, points")
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        draw_grid(axes)
        draw_legend(axes)
        alt = "Prices of swaps over the training, which should have stopped falling by the end."
        return drawn.finish("course", alt, ("swap", f"training_{unit}", "price"), numbers)


def replicates(found: Sequence[TrainingCourse], swap: str) -> FigureData:
    """Draw what each training of a search earns under its best order, and its own price of a swap, round by round."""
    numbers = [
        (course.number, course.is_dropped, *row)
        for course in found
        for row in zip(course.episodes, course.best, course.prices, strict=True)
    ]
    panels = (("return, best order", "best"), ("price, points", "prices"))[: 2 if swap else 1]
    with drawing(1.7 * len(panels) + 0.4, rows=len(panels), sharex=True, squeeze=False) as (drawn, grid):
        for axes, (label, values) in zip(grid[:, 0], panels, strict=True):
            draw_grid(axes)
            for course in found:
                look = {"color": PALE, "linestyle": LINES[2]} if course.is_dropped else {"color": ACCENT, "alpha": 0.75}
                shown = getattr(course, values)
                axes.plot([e / 1000 for e in course.episodes], shown, linewidth=0.9, **look)
                tip = drawn.tip(f"training {course.number}\n{label} {shown[-1]:.2f} after {course.episodes[-1]:,} episodes")
                axes.plot(course.episodes[-1] / 1000, shown[-1], "o", color=look["color"], markersize=3, gid=tip)
            axes.set_ylabel(label)
        grid[-1, 0].set_xlabel("training episodes with orders, of one training, thousands")
        drawn.figure.align_ylabels()
        alt = f"Learning curves of {some(len(found), 'training')}: return under the best order" + (
            f", price of {swap}." if swap else "."
        )
        return drawn.finish("replicates", alt, ("training", "dropped", "episodes", "best_return", "price"), numbers)


def over_seeds(answers: Sequence[Answer], name: str) -> FigureData:
    """Draw what several seeds say of each swap, in one world: a mark per seed with its interval, and their mean."""
    pairs: dict[tuple[str, str], list[tuple[int, pricing.Swap]]] = {}  # the seed's place, and what it says
    for place, answer in enumerate(answers):
        for s in answer.swaps:
            turned = (s.second, s.first) in pairs
            pairs.setdefault((s.second, s.first) if turned else (s.first, s.second), []).append(
                (place, s.turned() if turned else s)
            )
    names, marks = [f"{first} before {second}" for first, second in pairs], []
    for row, (what, of_seeds) in enumerate(zip(names, pairs.values(), strict=True)):
        for place, s in of_seeds:
            sure = "so far" if s.low is None or s.high is None else describe_interval(s.low, s.high)
            tip = f"{what}\nseed {place + 1} of {len(answers)}: {s.price:+.2f} ({sure})"
            at = row + 0.25 * (place / max(len(answers) - 1, 1) - 0.5)
            marks.append(Mark(at, s.price, tip, s.low, s.high, ACCENT if s.is_shown else PALE, size=3.5))
        mean = sum(s.price for _, s in of_seeds) / len(of_seeds)
        tip = f"{what}\nmean of {len(of_seeds)} seeds {mean:+.2f}"
        marks.append(Mark(row, mean, tip, colour=INK, shape="D", size=6, hollow=True))
    label = "points of return an episode; grey: within the margin; diamond: mean of the seeds"
    alt, columns = (
        f"What {len(answers)} seeds say of {len(pairs)} swaps.",
        ("first", "second", "seed_place", "price", "low", "high"),
    )
    numbers = [(*pair, place, s.price, s.low, s.high) for pair, of_seeds in pairs.items() for place, s in of_seeds]
    height, margin = 0.22 + 0.13 * (len(answers) // 2), answers[0].margin
    return draw_rows(name, alt, names, marks, label, columns, numbers, zero=True, margin=margin, height=height)


def tallies(found: Sequence[agreement.Tally]) -> FigureData:
    """Draw in how many networks each rule is worth something, harmless, wrong and open, against each attacker."""
    looks = {  # colour, how much of it, outline: told apart without colour
        "worth": (ACCENT, 0.5, ACCENT),
        "harmless": (ACCENT, 0.15, ACCENT),
        "wrong": (SECOND, 0.5, INK),
        "open": (PALE, 0.0, PALE),
    }
    several = len({tally.attacker for tally in found}) > 1
    with drawing(0.9 + 0.36 * len(found)) as (drawn, axes):
        for row, tally in enumerate(found):
            left = 0
            for name, (colour, strength, edge) in looks.items():
                count, label = getattr(tally, name), {"worth": "worth something"}.get(name, name)
                tip = drawn.tip(f"{tally.rule}, {tally.attacker}\n{label} in {count}")
                look = {"facecolor": (colour, strength), "edgecolor": edge, "linewidth": 1.1 if name == "wrong" else 0.5}
                axes.barh(row, count, 0.34, left, label=label if row == 0 else None, gid=tip, **look)
                if count:
                    axes.text(left + count / 2, row + 0.01, str(count), ha="center", va="center", fontsize=7)
                left += count
            whom = f", {tally.attacker}" if several else ""
            text = wrap(f"{tally.rule}{whom}: {tally.counted}", NAME_WIDTH + 12, lines=1)
            axes.text(0, row - 0.22, text, fontsize=7.5, va="bottom", transform=axes.get_yaxis_transform(), gid=ROW_NAME)
        axes.set_ylim(len(found) - 0.6, -0.85)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(wrap("networks; behind each name: in how many it holds, of those decided (95 % of the share)"))
        axes.locator_params(axis="x", nbins=6, integer=True)
        draw_legend(axes, columns=4)
        alt = "In how many networks rules hold: " + "; ".join(f"{t.rule}, {t.attacker}: {t.counted}" for t in found) + "."
        columns = ("rule", "attacker", "worth", "harmless", "wrong", "open")
        return drawn.finish(
            "rules", alt, columns, [(t.rule, t.attacker, t.worth, t.harmless, t.wrong, t.open) for t in found]
        )


def splits(found: Sequence[agreement.Split], name: str) -> FigureData:
    """Draw what properties of networks do to what pairs are worth."""
    names = [f"{s.pair[0]} before {s.pair[1]}, {s.attacker}: {s.trait} above {s.above:g}" for s in found]
    marks = []
    for row, split in enumerate(found):
        tip = f"{names[row]}\n{split.difference:+.2f} ({describe_interval(split.low, split.high)})"
        marks.append(Mark(row, split.difference, tip, split.low, split.high, ACCENT if split.is_shown else PALE))
    label, alt = "points an episode that the pair is worth more there than elsewhere", f"What {len(found)} properties do."
    numbers = [(*s.pair, s.attacker, s.trait, s.above, s.more, s.fewer, s.difference, s.low, s.high) for s in found]
    columns = ("first", "second", "attacker", "trait", "above", "networks_above", "networks_elsewhere", "difference")
    return draw_rows(name, alt, names, marks, label, (*columns, "low", "high"), numbers, zero=True)


def orders(answer: Answer) -> FigureData:
    """Draw what the defender earns under each order."""
    columns = ("order", "mean", "low", "high", "tier", "p_best")
    numbers = [(o.workflow, o.mean, o.low, o.high, o.tier, o.p_best) for o in answer.orders]
    shown = answer.orders[:_MOST_ROWS]
    names, marks = [short_order(order.workflow, answer.idle) for order in shown], []
    for row, order in enumerate(shown):
        sure = "so far" if order.low is None or order.high is None else describe_interval(order.low, order.high)
        chance = "" if order.p_best is None else f", P(best) {100 * order.p_best:.0f} %"
        tip = (
            f"{names[row]}\nreturn {order.mean:.2f} ({sure})\n{TIERS[order.tier]}{chance}\n"
            f"{order.violations:.3f} violations an episode, at most {order.violations_high:.3f}"
        )
        colour, shape = {1: (ACCENT, "o"), 2: (PALE, "s"), 3: (SECOND, "X")}[order.tier]
        marks.append(Mark(row, order.mean, tip, order.low, order.high, colour, shape, watch=order.workflow))
    label = "return per episode; circle: as good as the best, square: open, cross: worse"
    alt = f"Return under {len(shown)} orders with intervals, best first."
    return draw_rows("orders", alt, names, marks, label, columns, numbers)


# ---------------------------------------------------------------- a search with a training per order


def ranking(run: Run) -> FigureData:
    """Draw every tried order with its return; those not accepted come last, hollow."""
    trials = {run.workflow_of(trial): trial for trial in _best_last(run.trials)}
    rows = () if run.ranked_trials is None else run.ranked_trials.ranking.rows
    lines = [(r.workflow, r.mean, r.low, r.high, "may be best" if r.maybe_best else "worse") for r in rows]
    for workflow, trial in sorted(trials.items(), key=lambda item: -item[1].earned):
        if not trial.accepted and trial.return_low is not None and trial.return_high is not None:
            lines.append((workflow, trial.earned, trial.return_low, trial.return_high, "not accepted"))
    numbers = [(i, str(w), verdict, mean, low, high) for i, (w, mean, low, high, verdict) in enumerate(lines, start=1)]
    shown = numbers if len(numbers) <= _MOST_ROWS else [*numbers[: _MOST_ROWS - LAST_ROWS], *numbers[-LAST_ROWS:]]
    marks = []
    for row, (place, order, verdict, mean, low, high) in enumerate(shown):
        colour, trial = {"may be best": ACCENT, "not accepted": SECOND}.get(verdict, PALE), trials[lines[place - 1][0]]
        earned = f"return {mean:.2f} ({describe_interval(low, high)})"
        tip = f"{place}. {order}\n{earned}\n{verdict}, trial {trial.id}"
        hollow = verdict == "not accepted"
        marks.append(Mark(row, mean, tip, low, high, colour, size=4, hollow=hollow, watch=f"trial {trial.id}"))
    names = [f"{place}. {order}" for place, order, *_ in shown]
    alt = f"Returns with intervals of {len(lines)} tried orders, best first; the numbers are in the table of orders."
    columns = ("place", "order", "verdict", "return", "low", "high")
    return draw_rows("ranking", alt, names, marks, "return per episode (0 is best)", columns, numbers)


def _best_last(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials with a return in the order in which they count for their order: accepted ones last, by return."""
    known = [trial for trial in trials if trial.return_mean is not None and trial.status != rows.Status.FAILED]
    return sorted(known, key=lambda trial: (trial.accepted, trial.earned))


def progress(run: Run) -> FigureData:
    """Draw each choice: what the strategy expected, what it got, the best so far, and the budget."""
    best, used = best_so_far(run.trials), episodes_used(run)
    choices = {choice.iteration: choice for choice in run.choices}
    numbers = []
    with drawing(3.6, rows=2, sharex=True, height_ratios=(4, 1)) as (drawn, (axes, budget)):
        draw_grid(axes)
        draw_grid(budget)
        axes.plot([], [], "o", color=ACCENT, markersize=4, label="earned")
        axes.plot([], [], "o", color=SECOND, markerfacecolor="none", markersize=4, label="not accepted")
        axes.plot([], [], color=ACCENT, alpha=0.7, label="best so far")
        if any(choice.ucb is not None for choice in run.choices):
            axes.plot([], [], color=INK, alpha=0.3, linewidth=3, label="expected ± std")
            axes.plot([], [], "_", color=INK, markersize=6, label="UCB")
        for trial, top, episodes in zip(run.trials, best, used, strict=True):
            x, choice, earned = trial.id, choices.get(trial.id), trial.return_mean
            how, mean, std, ucb = (choice.how, choice.mean, choice.std, choice.ucb) if choice else ("", None, None, None)
            numbers.append((x, trial.workflow, how, mean, std, ucb, earned, trial.status.value, top, episodes))
            if len(numbers) <= len(run.trials) - _MOST_TRIALS:
                continue
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
        draw_legend(axes, 2)
        drawn.figure.align_ylabels()
        alt = f"Expected and earned returns of {len(run.trials)} trials, the best so far, and training episodes used."
        believed = ("how", "expected_mean", "expected_std", "ucb")
        columns = ("trial", "order", *believed, "return", "status", "best_so_far", "episodes_used")
        return drawn.finish("progress", alt, columns, numbers)


def _dot(trial: Trial) -> dict[str, Any]:
    """Say how a trial is drawn: hollow unless accepted."""
    colour = ACCENT if trial.accepted else SECOND
    return {"markersize": 4, "markeredgecolor": colour, "markerfacecolor": colour if trial.accepted else "none"}


def _whole_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def compliance(run: Run, threshold: float | None) -> FigureData:
    """Draw compliance and contested compliance of every trial against its return."""
    trials = [trial for trial in run.trials if trial.return_mean is not None]
    numbers = [(t.id, t.workflow, t.status.value, t.compliance, t.contested_compliance, t.earned) for t in trials]
    panels = (
        ("compliance", [t.compliance for t in trials]),
        ("contested compliance", [t.contested_compliance for t in trials]),
    )
    with drawing(5.0, rows=2) as (drawn, grid):
        for axes, (label, shares) in zip(grid, panels, strict=True):
            draw_grid(axes, "both")
            for trial, share in list(zip(trials, shares, strict=True))[-_MOST_TRIALS:]:
                if share is not None:
                    facts = f"{label} {100 * share:.1f} %, return {trial.earned:.2f}"
                    tip = f"trial {trial.id}: {trial.workflow}\n{facts}\n{trial.status}"
                    gid = drawn.tip(tip, watch=f"trial {trial.id}")
                    axes.plot(100 * share, trial.earned, "o", **_dot(trial), alpha=0.8, gid=gid)
            axes.set_xlabel(f"{label}, %")
            axes.set_ylabel("return per episode")
        if threshold is not None:
            grid[0].axvline(100 * threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
        drawn.figure.subplots_adjust(hspace=0.3)
        alt = f"Compliance against return of {len(trials)} trials."
        columns = ("trial", "order", "status", "compliance", "contested_compliance", "return")
        return drawn.finish("compliance", alt, columns, numbers)


def positions(means: PositionMeans) -> FigureData:
    """Draw a map, unit type by position: the mean return of the accepted orders that have it there."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    size, names = means.scheme.size, means.scheme.names
    known = means.mean[np.isfinite(means.mean)]
    low, high = float(known.min()), float(known.max())
    numbers = []
    with drawing(1.0 + 0.36 * size) as (drawn, axes):
        for unit in range(size):
            for position in range(size):
                value, count = float(means.mean[unit, position]), int(means.orders[unit, position])
                numbers.append((names[unit], position + 1, None if not count else value, count))
                if not count:
                    axes.text(position, unit, "not tried", ha="center", va="center", fontsize=6.5, alpha=0.8)
                    continue
                colour = colormaps["cividis"]((value - low) / ((high - low) or 1.0))
                tip = f"{names[unit]} at position {position + 1}\nmean return {value:.2f} of {some(count, 'order')}"
                box: dict[str, Any] = {"facecolor": colour, "linewidth": 0, "gid": drawn.tip(tip)}
                axes.add_patch(Rectangle((position - 0.48, unit - 0.46), 0.96, 0.92, **box))
                ink = "white" if _luminance(colour) < 0.18 else "black"
                centred: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
                axes.text(position, unit - 0.12, f"{value:.1f}".replace("-", _MINUS), fontsize=8, **centred)
                axes.text(position, unit + 0.25, some(count, "order"), fontsize=5.5, **centred)
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_yticks(range(size), names)
        axes.set_xticks(range(size), [f"{position + 1}." for position in range(size)])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(wrap("Mean return of the orders that have a unit type at a position"), fontsize=8, loc="left", pad=8)
        alt = "Mean return of the accepted orders by unit type and position."
        return drawn.finish("positions", alt, ("unit", "position", "mean_return", "orders"), numbers)


def _luminance(colour: Sequence[float]) -> float:
    """Return the relative luminance (WCAG) of an sRGB colour."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pairs(effects: Sequence[PairEffect]) -> FigureData:
    """Draw what each precedence is worth, with its interval."""
    columns = ("above", "below", "effect", "low", "high", "orders_so", "orders_reversed")
    numbers = [(e.first, e.second, e.effect, e.low, e.high, e.tried, e.reversed) for e in effects]
    names: list[str] = []
    marks: list[Mark] = []
    for e in effects:
        if e.effect is not None and e.low is not None and e.high is not None and len(names) < MOST_PAIRS:
            name, counts = f"{e.first} before {e.second}", f"{e.tried} orders so, {e.reversed} reversed"
            tip = f"{name}\n{e.effect:+.2f} ({describe_interval(e.low, e.high)})\n{counts}"
            marks.append(Mark(len(names), e.effect, tip, e.low, e.high, ACCENT if e.low > 0 else PALE))
            names.append(name)
    alt = f"Effect of {len(names)} pairwise precedences on the return, with intervals."
    return draw_rows("pairs", alt, names, marks, "difference in return per episode", columns, numbers, zero=True)


def learning(run: Run, threshold: float | None) -> FigureData:
    """Draw return and compliance of the training episodes, update by update; a thin line where another order begins."""
    updates = run.updates
    shown = (("return per episode", updates.env_return, 1), ("compliance, %", updates.compliance, 100))
    curves = [(label, thinned(updates.sampled, values, updates.trial, CURVE_BINS), scale) for label, values, scale in shown]
    curves = [(label, curve, scale) for label, curve, scale in curves if len(curve.mean)]
    numbers = [
        (label, *(round(float(v), 6) for v in (e, m * scale, low * scale, high * scale)))
        for label, curve, scale in curves
        for e, m, low, high in zip(curve.episodes, curve.mean, curve.low, curve.high, strict=True)
    ]
    changes = updates.sampled[np.flatnonzero(np.diff(updates.trial)) + 1]
    with drawing(1.9 * len(curves) + 0.3, rows=len(curves), sharex=True, squeeze=False) as (drawn, grid):
        for axes, (label, curve, scale) in zip(grid[:, 0], curves, strict=True):
            draw_grid(axes)
            # One broken line: trials are apart.
            cut = np.flatnonzero(np.diff(np.searchsorted(changes, curve.episodes, side="right"))) + 1
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
                # The first updates of a training would flatten all that follows.
                axes.set_ylim(*_value_range([float(np.quantile(curve.low, 0.03)), float(curve.high.max())], 0.06))
        grid[-1, 0].set_xlabel("training episodes, thousands")
        drawn.figure.align_ylabels()
        alt = f"Return and compliance over {len(updates)} updates of the policy."
        return drawn.finish("learning", alt, ("quantity", "episodes", "mean", "lowest", "highest"), numbers)


def _value_range(values: Sequence[float], pad: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = pad * (high - low) or 1.0
    return low - room, high + room


def time(use: TimeUse) -> FigureData:
    """Draw worker-seconds by what they were spent on, as bars."""
    shares = [f"{part}: {s:,.1f} s, {100 * s / use.total:.0f} %" for part, s in use.parts]
    marks = [
        Mark(row, s, shares[row], 0.0, s, PALE if part == "waiting" else ACCENT, "|", line=6)
        for row, (part, s) in enumerate(use.parts)
    ]
    alt = "Worker-seconds: " + ", ".join(f"{part} {s:.1f}" for part, s in use.parts)
    return draw_rows("time", alt, shares, marks, "worker-seconds", ("part", "worker_seconds"), use.parts)


# ---------------------------------------------------------------- several runs


def groups(
    judged: Sequence[tuple[str, intervals.MeanInterval, Sequence[tuple[str, float]]]], name: str = "groups"
) -> FigureData:
    """Draw the final return per group: a dot per run, the mean and its interval."""
    numbers = [(label, run, value, *found) for label, found, runs in judged for run, value in runs]
    marks = []
    for row, (label, (mean, low, high), runs) in enumerate(judged):
        between = "" if low is None or high is None else f"\n95 %: {describe_interval(low, high)}{few_seeds(len(runs))}"
        tip = f"{label}\nmean {mean:.2f} of {len(runs)} runs{between}"
        marks.append(Mark(row, mean, tip, low, high, shape="|", size=12, line=4))
        marks += [Mark(row, value, f"{run}\nreturn {value:.2f}", colour=INK, size=3) for run, value in runs]
    labels = [f"{label}{few_seeds(len(runs))}" for label, _, runs in judged]
    alt = "Final returns: " + "; ".join(f"{label} {found.mean:.2f}" for label, found, _ in judged)
    columns = ("group", "run", "return", "mean", "low", "high")
    return draw_rows(name, alt, labels, marks, "final return per episode", columns, numbers, height=0.28)


def trainings(runs: Sequence[Run], name: str = "trainings") -> FigureData:
    """Draw the learning curves of several trainings on one axis: returns of the training episodes, thinned."""
    found = [(run.name, run.updates) for run in runs]
    curves = [(label, thinned(u.sampled, u.env_return, u.trial, CURVE_BINS // 2)) for label, u in found]
    numbers = [
        (label, float(e), float(mean)) for label, curve in curves for e, mean in zip(curve.episodes, curve.mean, strict=True)
    ]
    with drawing(2.8) as (drawn, axes):
        draw_grid(axes)
        for i, (label, curve) in enumerate(curves):
            colour, line = GROUP_COLOURS[i % len(GROUP_COLOURS)], LINES[i // len(GROUP_COLOURS) % len(LINES)]
            x = curve.episodes / 1000
            axes.plot(x, curve.mean, color=colour, linestyle=line, linewidth=0.9, label=wrap(label))
            tip = drawn.tip(f"{label}\n{curve.mean[-1]:.2f} after {int(curve.episodes[-1]):,} episodes")
            axes.plot(x[-1], curve.mean[-1], "o", color=colour, markersize=3, gid=tip)
        # The first updates of a training would flatten all that follows.
        lows = [float(np.quantile(curve.mean, 0.03)) for _, curve in curves]
        axes.set_ylim(*_value_range([min(lows), max(float(curve.mean.max()) for _, curve in curves)], 0.06))
        axes.set_xlabel("training episodes, thousands")
        axes.set_ylabel("return per episode")
        draw_legend(axes)
        alt = f"Learning curves of {some(len(curves), 'training')}: returns of their training episodes."
        return drawn.finish(name, alt, ("run", "episodes", "mean_return"), numbers)


def courses(found: Sequence[GroupCourse], name: str = "courses") -> FigureData:
    """Draw the best return so far against training episodes, per group."""
    numbers = [
        (c.label, int(e), float(m), float(low), float(high))
        for c in found
        for e, m, low, high in zip(c.episodes, c.mean, c.low, c.high, strict=True)
    ]
    with drawing(2.8) as (drawn, axes):
        draw_grid(axes)
        for i, c in enumerate(found):
            colour, line, x = (
                GROUP_COLOURS[i % len(GROUP_COLOURS)],
                LINES[i // len(GROUP_COLOURS) % len(LINES)],
                c.episodes / 1000,
            )
            if c.seeds > 1:
                axes.fill_between(x, c.low, c.high, step="post", color=colour, alpha=0.2, linewidth=0)
            label = wrap(f"{c.label} ({some(c.seeds, 'seed')}){few_seeds(c.seeds)}")
            axes.step(x, c.mean, where="post", color=colour, linestyle=line, label=label)
            for place in {0, len(x) // 2, len(x) - 1}:
                tip = drawn.tip(f"{c.label}\n{c.mean[place]:.2f} after {int(c.episodes[place]):,} episodes")
                axes.plot(x[place], c.mean[place], "o", color=colour, markersize=3, gid=tip)
        # Two seeds that disagree have an interval twelve times as wide as their distance: it would flatten the rest.
        axes.set_ylim(*_value_range([end for c in found for end in c.range], 0.5))
        axes.set_xlabel("training episodes, thousands")
        axes.set_ylabel("best return so far")
        draw_legend(axes)
        alt = "Best accepted return so far against training episodes, per group of runs."
        return drawn.finish(name, alt, ("group", "episodes", "mean", "low", "high"), numbers)


# ---------------------------------------------------------------- a league


def league_course(rounds: Sequence[matrix.Round]) -> FigureData:
    """Draw what scripts, known attackers and fresh ones take from the defender, round by round."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for one in rounds:
        for name, mean in one.scripts.items():
            lines.setdefault(name, []).append((one.round, mean))
        for name, row in (("worst known attacker", one.known), ("best fresh response", one.fresh)):
            if row is not None:
                lines.setdefault(name, []).append((one.round, row.mean))
    with drawing(2.6) as (drawn, axes):
        for number, (name, points) in enumerate(lines.items()):
            colour, shape = GROUP_COLOURS[number % len(GROUP_COLOURS)], SHAPES[number % len(SHAPES)]
            axes.plot(*zip(*points, strict=True), shape + "-", color=colour, markersize=3.5, label=name)
            for when, value in points:
                tip = drawn.tip(f"{name}\n{value:.1f} after round {when}")
                axes.plot(when, value, shape, color=colour, markersize=3.5, gid=tip)
        axes.set_xlabel("round")
        axes.set_ylabel("return of the defender")
        axes.xaxis.get_major_locator().set_params(integer=True)
        draw_grid(axes)
        draw_legend(axes, 2)
        alt = "What scripts, known attackers and fresh ones leave the defender after each round."
        numbers = [(name, when, value) for name, points in lines.items() for when, value in points]
        return drawn.finish("league", alt, ("attacker", "round", "return"), numbers)
