"""The figures of a report that are no course over time: swaps, orders, rules of a survey."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fixfirst.base.tables import Table, interval, signed
from fixfirst.reporter.figure import ACCENT, INK, PALE, SECOND, Drawing, Figure, draw_legend, drawing, wrap
from fixfirst.reporter.row_figure import NAME_WIDTH, Mark, rows_figure, table_marks, write_row_name
from fixfirst.stats import pricing
from fixfirst.stats.answer import Answer

_TIERS = {pricing.GOOD: (ACCENT, "o"), pricing.UNDECIDED: (PALE, "s"), pricing.WORSE: (SECOND, "X")}


def differences(name: str, table: Table, value: str, label: str, margin: float = 0.0) -> Figure:
    """Draw the rows of a table around zero, in colour where their interval does not hold it; ticks are single trainings."""

    def look(row: dict[str, Any]) -> dict[str, Any]:
        is_shown = row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
        return {"colour": ACCENT if is_shown else PALE}

    marks = table_marks(table, value, look)
    ticks = []
    for row, (mark, values) in enumerate(zip(marks, table.dicts(), strict=True)):
        for number, each in enumerate(values.get("trainings", ())):
            tip = f"{mark.tip.splitlines()[0]}\n{signed(each)} in training {number}"
            ticks.append(Mark(row, each, tip, colour=INK, shape="|", size=6))
    return rows_figure(name, table, [*ticks, *marks], label, zero=True, margin=margin)


def swaps(name: str, table: Table, margin: float) -> Figure:
    """Draw what it is worth to fix one unit type before its neighbour."""
    return differences(name, table, "price", "points of return an episode; grey: within the margin", margin)


def orders(table: Table) -> Figure:
    """Draw what the defender earns under each order."""
    label = "return per episode; circle: as good as the best, square: open, cross: worse"

    def look(row: dict[str, Any]) -> dict[str, Any]:
        colour, shape = _TIERS[row["tier"]]
        return {"colour": colour, "shape": shape, "watch": row["order"]}

    return rows_figure("orders", table, table_marks(table, "mean", look), label)


def ranking(table: Table) -> Figure:
    """Draw every tried order with its return; those that did not pass the gate are hollow."""

    def look(row: dict[str, Any]) -> dict[str, Any]:
        colour = {"may be best": ACCENT, "worse": PALE}.get(row["verdict"], SECOND)
        return {"colour": colour, "size": 4, "hollow": colour == SECOND, "watch": f"trial {row['trial']}"}

    return rows_figure("ranking", table, table_marks(table, "mean", look), "return per episode (0 is best)")


def over_seeds(answers: Sequence[Answer], name: str) -> Figure:
    """Draw what several seeds say of each swap, in one world: a mark per seed with its interval, and their mean."""
    pairs: dict[tuple[str, str], list[tuple[int, pricing.Swap]]] = {}  # the seed's number, and what it says
    for seed, answer in enumerate(answers, start=1):
        for s in answer.swaps:
            s = s.turned() if (s.second, s.first) in pairs else s
            pairs.setdefault((s.first, s.second), []).append((seed, s))
    names, marks = [f"{first} before {second}" for first, second in pairs], []
    for row, (what, of_seeds) in enumerate(zip(names, pairs.values(), strict=True)):
        for seed, s in of_seeds:
            tip = f"{what}\nseed {seed} of {len(answers)}: {signed(s.price)} {interval(s.low, s.high)}"
            at = row + 0.25 * ((seed - 1) / max(len(answers) - 1, 1) - 0.5)
            marks.append(Mark(at, s.price, tip, s.low, s.high, ACCENT if s.is_shown else PALE, size=3.5))
        mean = sum(s.price for _, s in of_seeds) / len(of_seeds)
        tip = f"{what}\nmean of {len(of_seeds)} seeds {signed(mean)}"
        marks.append(Mark(row, mean, tip, colour=INK, shape="D", size=6, hollow=True))
    rows = tuple((*pair, seed, s.price, s.low, s.high) for pair, of_seeds in pairs.items() for seed, s in of_seeds)
    table = Table(("first", "second", "seed", "price", "low", "high"), rows, title="What seeds say of each swap")
    label = "points of return an episode; grey: within the margin; diamond: mean of the seeds"
    height, margin = 0.22 + 0.13 * (len(answers) // 2), answers[0].margin
    return rows_figure(name, table, marks, label, names=names, zero=True, margin=margin, height=height)


def splits(table: Table, most: int) -> Figure:
    """Draw what properties of networks do to what pairs are worth; the first of them."""
    label = "points an episode that the pair is worth more there than elsewhere"
    return differences("splits", replace(table, rows=table.rows[:most]), "difference", label)


def rules(table: Table) -> Figure:
    """Draw in how many networks each rule is worth something, harmless, wrong and open, against each attacker."""
    looks = {  # colour, how much of it, outline: told apart without colour
        "worth": (ACCENT, 0.5, ACCENT),
        "harmless": (ACCENT, 0.15, ACCENT),
        "wrong": (SECOND, 0.5, INK),
        "open": (PALE, 0.0, PALE),
    }
    rows = table.dicts()
    several = len({row["attacker"] for row in rows}) > 1

    def draw() -> Drawing:
        with drawing(0.9 + 0.36 * len(rows)) as (drawn, axes):
            for y, row in enumerate(rows):
                left = 0
                for name, (colour, strength, edge) in looks.items():
                    count, label = row[name], {"worth": "worth something"}.get(name, name)
                    tip = drawn.tip(f"{row['rule']}, {row['attacker']}\n{label} in {count}")
                    look = {"facecolor": (colour, strength), "edgecolor": edge, "linewidth": 1.1 if name == "wrong" else 0.5}
                    axes.barh(y, count, 0.34, left, label=label if y == 0 else None, gid=tip, **look)
                    if count:
                        axes.text(left + count / 2, y + 0.01, str(count), ha="center", va="center", fontsize=7)
                    left += count
                name = ", ".join([row["rule"], row["attacker"]] if several else [row["rule"]])
                write_row_name(axes, y, wrap(f"{name}: {row['counted']}", NAME_WIDTH + 12, lines=1))
            axes.set_ylim(len(rows) - 0.6, -0.85)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_xlabel(wrap("networks; behind each name: in how many it holds, of those decided (95 % of the share)"))
            axes.locator_params(axis="x", nbins=6, integer=True)
            draw_legend(axes, columns=4)
        return drawn

    holds = "; ".join(f"{row['rule']}, {row['attacker']}: {row['counted']}" for row in rows)
    return Figure("rules", f"In how many networks rules hold: {holds}.", table, draw)
