"""What the figures of several runs show: each of runs that can be compared."""

import textwrap
from collections.abc import Sequence

from fixfirst.reporter.analysis import GroupCourse
from fixfirst.reporter.axes import GROUP_COLOURS, grid_lines, in_words, name_rows, rows_height, value_range
from fixfirst.reporter.figure import ACCENT, INK, FigureData, drawing, for_page_and_phone
from fixfirst.runs.across_seeds import MeanInterval


@for_page_and_phone
def groups(judged: Sequence[tuple[str, MeanInterval, Sequence[tuple[str, float]]]], name: str = "groups") -> FigureData:
    """Final return per group: a dot per run, the mean and its interval."""
    columns = ("group", "run", "return", "mean", "low", "high")
    numbers = [(label, name, value, *found) for label, found, runs in judged for name, value in runs]
    with drawing(*rows_height(len(judged), 0.42, 3)) as (drawn, axes):
        for y, (label, (mean, low, high), runs) in enumerate(judged):
            if low is not None and high is not None:
                axes.plot([low, high], [y, y], color=ACCENT, alpha=0.35, linewidth=7, solid_capstyle="butt")
            between = "" if low is None or high is None else f"\n95 %: {in_words(low, high)}{few_seeds(len(runs))}"
            tip = drawn.tip(f"{label}\nmean {mean:.2f} of {len(runs)} runs{between}")
            axes.plot([mean, mean], [y - 0.22, y + 0.22], color=ACCENT, linewidth=1.6, gid=tip)
            for run, value in runs:
                tip = drawn.tip(f"{run}\nreturn {value:.2f}")
                axes.plot(value, y, "o", color=INK, markersize=3.5, alpha=0.6, markeredgewidth=0, gid=tip)
        labels = [_wrapped(f"{label}{few_seeds(len(runs))}") for label, _, runs in judged]
        name_rows(drawn, axes, labels, "final return per episode")
        alt = "Final returns: " + "; ".join(f"{label} {found.mean:.2f}" for label, found, _ in judged)
        return drawn.finish(name, alt, columns, numbers)


@for_page_and_phone
def courses(found: Sequence[GroupCourse], name: str = "courses") -> FigureData:
    """Best return so far against training episodes, per group."""
    columns = ("group", "episodes", "mean", "low", "high")
    numbers = [
        (c.label, int(e), float(m), float(low), float(high))
        for c in found
        for e, m, low, high in zip(c.episodes, c.mean, c.low, c.high, strict=True)
    ]
    styles = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
    with drawing(3.2, phone_height=2.8) as (drawn, axes):
        grid_lines(axes)
        for i, c in enumerate(found):
            colour = GROUP_COLOURS[i % len(GROUP_COLOURS)]
            line = styles[i // len(GROUP_COLOURS) % len(styles)]
            x = c.episodes / 1000
            if c.seeds > 1:
                axes.fill_between(x, c.low, c.high, step="post", color=colour, alpha=0.2, linewidth=0)
            seeds = "1 seed" if c.seeds == 1 else f"{c.seeds} seeds"
            label = "\n".join(textwrap.wrap(f"{c.label} ({seeds}){few_seeds(c.seeds)}", 48 if drawn.narrow else 100)[:4])
            axes.step(x, c.mean, where="post", color=colour, linestyle=line, label=label)
            for place in {0, len(x) // 2, len(x) - 1}:
                tip = drawn.tip(f"{c.label}\n{c.mean[place]:.2f} after {int(c.episodes[place]):,} episodes")
                axes.plot(x[place], c.mean[place], "o", color=colour, markersize=3, gid=tip)
        # Two seeds that disagree have an interval twelve times as wide as their distance: it would flatten the rest.
        axes.set_ylim(*value_range([end for c in found for end in c.range], pad=0.5))
        axes.set_xlabel("training episodes, thousands")
        axes.set_ylabel("best return so far")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=1, handlelength=3)
        alt = "Best accepted return so far against training episodes, per group of runs."
        return drawn.finish(name, alt, columns, numbers)


def few_seeds(seeds: int) -> str:
    """A warning that stands beside an interval of so few."""
    return "; two seeds only: the interval says little" if seeds == 2 else ""


def _wrapped(label: str, width: int = 34) -> str:
    return "\n".join(textwrap.wrap(label, width)[:3]) or "-"
