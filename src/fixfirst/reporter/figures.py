"""The figures of tables: below the name of each row a mark for its value and a line for its interval; and bars of counts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fixfirst.base.tables import INTERVAL, NONE, Column, Table, plain, signed
from fixfirst.reporter.figure import ACCENT, INK, PALE, ROW_NAME, SECOND, Drawing, Figure, draw_legend, drawing, wrap
from fixfirst.stats import pricing
from fixfirst.stats.answer import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS, _MOST_MARKS = 60, 100  # that are drawn, and of one row: the table has them all
_NAME_WIDTH = 56  # characters of a line of a name
_MOST_FACTS = 5  # of a row that a mark tells
_TIERS = {pricing.Tier.GOOD: (ACCENT, "o"), pricing.Tier.UNDECIDED: (PALE, "s"), pricing.Tier.WORSE: (SECOND, "X")}
Row = dict[str, Any]


def rows_figure(
    name: str,
    table: Table,
    value: str,
    label: str,
    look: Callable[[Row], Row],
    *,
    watch: Callable[[Row], str] = lambda row: "",
    margin: float | None = None,
) -> Figure:
    """Draw the rows of a table: a mark, its interval, and its trainings as ticks. Rows of one name stand below each other.

    value: the column of the mark. label: of the axis. look: what matplotlib is told of a row's mark. watch: what can be
    watched there, see `Drawing.tip`. margin: with a line at 0, and a grey band so far around it.
    """
    (_, *heads), *lines = table.cells()
    rows: dict[str, list[tuple[str, Row]]] = {}  # by what is written above them; with what is shown to whoever points there
    for (title, *cells), row in zip(lines, table.dicts(), strict=True):
        facts = [f"{head} {cell}" for head, cell in zip(heads, cells, strict=True) if cell != NONE]
        rows.setdefault(title, []).append(("\n".join([title, *facts[:_MOST_FACTS]]), row))
    last = ((title, members[-1][1][value]) for title, members in rows.items())
    values = [f"{title} {plain(number)}" for title, number in last if number is not None]
    alt = f"{table.title or label}, {len(rows)} rows: {'; '.join(values[:_MOST_FACTS])}"

    def draw() -> Drawing:
        drawn_rows = [(wrap(title, _NAME_WIDTH), members[:_MOST_MARKS]) for title, members in rows.items()][:_MOST_ROWS]
        lines, most = (max(counts) for counts in zip(*((t.count("\n") + 1, len(m)) for t, m in drawn_rows), strict=True))
        with drawing(0.75 + (0.16 + 0.06 * most + 0.13 * lines) * len(drawn_rows), label) as (drawn, (axes,)):
            if margin is not None:
                axes.axvspan(-margin, margin, color=INK, alpha=0.06, linewidth=0)
                axes.axvline(0, color=INK, linewidth=0.7)
            for number, (title, members) in enumerate(drawn_rows):
                _write_row_name(axes, number, title)
                for member, (tip, row) in enumerate(members):
                    y = number + 0.4 * member / most
                    for training, each in enumerate(row.get("trainings", ())[:_MOST_MARKS]):
                        of_one = drawn.tip(f"{title}\n{signed(each)} in training {training}")
                        axes.plot(each, y, "|", color=INK, markersize=6, gid=of_one)
                    if row[value] is not None:
                        mark: Row = {"marker": "o", "markersize": 5, "linestyle": "none"} | look(row)
                        if row["low"] is not None and row["high"] is not None:
                            ends = [row["low"], row["high"]]
                            axes.plot(ends, [y, y], color=mark["color"], linewidth=1.4, solid_capstyle="butt")
                        axes.plot(row[value], y, gid=drawn.tip(tip, watch(row)), **mark)
            axes.set_ylim(len(drawn_rows) - 0.5, -0.95)
            axes.locator_params(axis="x", nbins=5)
        return drawn

    return Figure(name, alt, table, draw)


def _write_row_name(axes: "Axes", row: int, text: str) -> None:
    """Write a name above its row."""
    at: dict[str, Any] = {"va": "bottom", "transform": axes.get_yaxis_transform()}
    axes.text(0, row - 0.22, text, fontsize=7.5, gid=ROW_NAME, **at)


def differences(name: str, table: Table, value: str, label: str, margin: float = 0.0) -> Figure:
    """Draw the rows of a table around zero, in colour where their interval does not hold it; means as diamonds."""

    def look(row: Row) -> Row:
        if row.get("seed") == "mean":
            return {"marker": "D", "markersize": 6, "color": INK, "markerfacecolor": "none"}
        is_shown = row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
        return {"color": ACCENT if is_shown else PALE}

    return rows_figure(name, table, value, label, look, margin=margin)


def swaps(name: str, table: Table, margin: float) -> Figure:
    """Draw what it is worth to fix one unit type before its neighbour."""
    return differences(name, table, "price", "points of return an episode; grey: within the margin", margin)


def orders(table: Table) -> Figure:
    """Draw what the defender earns under each order."""
    label = "return per episode; circle: as good as the best, square: open, cross: worse"

    def look(row: Row) -> Row:
        return dict(zip(("color", "marker"), _TIERS[row["tier"]], strict=True))

    return rows_figure("orders", table, "mean", label, look, watch=lambda row: row["order"])


def ranking(table: Table) -> Figure:
    """Draw every tried order with its return; those that did not pass the gate are hollow."""

    def look(row: Row) -> Row:
        colour = {"may be best": ACCENT, "worse": PALE}.get(row["verdict"])
        return {"markersize": 4} | ({"color": colour} if colour else {"color": SECOND, "markerfacecolor": "none"})

    label = "return per episode (0 is best)"
    return rows_figure("ranking", table, "mean", label, look, watch=lambda row: f"trial {row['trial']}")


def over_seeds(answers: Sequence[Answer], name: str) -> Figure:
    """Draw what several seeds say of each swap, in one world: a mark per seed with its interval, and their mean."""
    pairs: dict[tuple[str, str], list[pricing.Swap]] = {}
    rows = []
    for seed, answer in enumerate(answers, start=1):
        for swap in answer.swaps:
            swap = swap.turned() if (swap.second, swap.first) in pairs else swap
            pairs.setdefault((swap.first, swap.second), []).append(swap)
            rows.append((swap.first, swap.second, f"{seed}", swap.price, swap.low, swap.high))
    rows += [(*pair, "mean", sum(s.price for s in each) / len(each), None, None) for pair, each in pairs.items()]
    shown = (Column(("first", "second"), "swap", "{} before {}".format), "seed", Column("price", "worth", signed), INTERVAL)
    columns = ("first", "second", "seed", "price", "low", "high")
    table = Table(columns, tuple(rows), shown, "What seeds say of each swap")

    label = "points of return an episode; grey: within the margin; diamond: mean of the seeds"
    return differences(name, table, "price", label, answers[0].margin)


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
    x = "networks; behind each name: in how many it holds, of those decided (95 % of the share)"

    def draw() -> Drawing:
        with drawing(0.9 + 0.36 * len(rows), x) as (drawn, (axes,)):
            for y, row in enumerate(rows):
                left = 0
                for name, (colour, strength, edge) in looks.items():
                    count, label = row[name], {"worth": "worth something"}.get(name, name)
                    tip = drawn.tip(f"{row['rule']}, {row['attacker']}\n{label} in {count}")
                    look: Row = {
                        "facecolor": (colour, strength),
                        "edgecolor": edge,
                        "linewidth": 1.1 if name == "wrong" else 0.5,
                    }
                    axes.barh(y, count, 0.34, left, label=label if y == 0 else None, gid=tip, **look)
                    if count:
                        axes.text(left + count / 2, y + 0.01, str(count), ha="center", va="center", fontsize=7)
                    left += count
                title = f"{row['rule']}, {row['attacker']}" if several else row["rule"]
                _write_row_name(axes, y, wrap(f"{title}: {row['counted']}", _NAME_WIDTH + 12, lines=1))
            axes.set_ylim(len(rows) - 0.6, -0.85)
            axes.locator_params(axis="x", nbins=6, integer=True)
            draw_legend(axes, columns=4)
        return drawn

    holds = "; ".join(f"{row['rule']}, {row['attacker']}: {row['counted']}" for row in rows)
    return Figure("rules", f"In how many networks rules hold: {holds}.", table, draw)
