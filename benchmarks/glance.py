"""The README's figure: the network, the rule and its price, for light and for dark pages.

    fixfirst search --red-agent b_line --out runs/rule-b_line
    python benchmarks/glance.py runs/rule-b_line [--out docs/figures]

Writes glance-light.svg and glance-dark.svg. The network is the run's scenario, the price that of the dearest swap.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyBboxPatch

import fixfirst as ff
from fixfirst.game.scenario import CAGE2

INK = {"light": "#1f2328", "dark": "#e6edf3"}
PALE = {"light": "#d0d7de", "dark": "#3d444d"}
RED, BLUE = "#D55E00", "#3a8fd0"  # told apart by colour-blind readers, on both backgrounds
SUBNETS = (("User", 8, 13), ("Enterprise", 0, 4), ("Operational", 4, 8))
WAY = ("User0", "User1", "Enterprise1", "Enterprise2", "Op_Server0")
STYLE = {"font.family": "DejaVu Sans", "font.size": 9, "svg.hashsalt": "fixfirst", "svg.fonttype": "path"}


def draw_map(axes, theme):
    """Draw all hosts in their subnets, and one way of B_line from its foothold to the server."""
    places = {}
    for row, (subnet, first, last) in enumerate(SUBNETS):
        hosts, y = CAGE2.host_names[first:last], 2 - row
        axes.add_patch(FancyBboxPatch((-0.42, y - 0.38), 4.9, 0.76, boxstyle="round,pad=0.02", fill=False, ec=PALE[theme]))
        axes.text(-0.36, y + 0.22, subnet, color=INK[theme], fontsize=7.5, alpha=0.8)
        for place, host in enumerate(hosts):
            places[host] = (place + (5 - len(hosts)) / 2, y - 0.06)
    for start, end in pairwise(WAY):
        axes.annotate(
            "",
            places[end],
            places[start],
            arrowprops={"arrowstyle": "->", "color": RED, "lw": 1.2, "shrinkA": 7, "shrinkB": 7},
        )
    for host, place in places.items():
        held = host in ("User0", "User1", "Enterprise1")
        axes.add_patch(Circle(place, 0.13, fc=RED if held else "none", ec=RED if held else INK[theme], lw=1))
        axes.text(
            place[0],
            place[1] - 0.16,
            host.replace("Enterprise", "Ent."),
            ha="center",
            va="top",
            fontsize=5.6,
            color=INK[theme],
        )
    axes.set(xlim=(-0.6, 4.7), ylim=(-0.55, 2.6))
    axes.set_title("Red holds machines of two kinds.", color=INK[theme], fontsize=9.5)


def draw_rule(axes, theme, swap):
    """Draw the two kinds of the dearest swap in the order in which they are to be fixed."""
    for place, (kind, number) in enumerate(((swap.first, "1"), (swap.second, "2"))):
        y = 1.75 - 1.15 * place
        colour = BLUE if place == 0 else PALE[theme]
        axes.add_patch(FancyBboxPatch((0.15, y - 0.32), 1.7, 0.64, boxstyle="round,pad=0.04", fill=False, ec=colour, lw=2))
        axes.text(
            0.4, y, number, ha="center", va="center", fontsize=13, weight="bold", color=BLUE if place == 0 else INK[theme]
        )
        axes.text(1.13, y, kind, ha="center", va="center", fontsize=11, color=INK[theme])
    axes.annotate("", (1.0, 0.98), (1.0, 1.36), arrowprops={"arrowstyle": "->", "color": INK[theme], "lw": 1.4})
    axes.set(xlim=(0, 2), ylim=(-0.55, 2.6))
    axes.set_title(f"The rule: fix {swap.first} first.", color=INK[theme], fontsize=9.5)


def draw_price(axes, theme, answer, swap):
    """Draw what the best and the worst order earn, and the price between them."""
    earned = sorted(order.mean for order in answer.orders)
    bars = {f"{swap.first}\nfirst": (earned[-1], BLUE), f"{swap.second}\nfirst": (earned[0], RED)}
    for place, (name, (mean, colour)) in enumerate(bars.items()):
        axes.bar(place, mean, 0.55, color=colour)
        axes.text(
            place, mean - 0.4, f"{mean:.1f}".replace("-", "\u2212"), ha="center", va="top", fontsize=9, color=INK[theme]
        )
        axes.text(place, 0.5, name, ha="center", va="bottom", fontsize=8, color=INK[theme])
    axes.axhline(0, color=INK[theme], lw=0.8)
    axes.set(xlim=(-0.6, 1.6), ylim=(min(earned) * 1.45, 5.6))
    interval = f"[{swap.low:.2f}, {swap.high:.2f}]"
    axes.text(
        0.5,
        min(earned) * 1.28,
        f"{swap.price:.1f} points an episode, 95 % {interval}",
        ha="center",
        va="top",
        fontsize=8,
        color=INK[theme],
    )
    axes.set_title("The price of the other way round.", color=INK[theme], fontsize=9.5)


def draw(answer, theme, path):
    """Draw the three panels into a file."""
    swap = max(answer.swaps, key=lambda each: each.price)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.7), width_ratios=(1.7, 1, 1.25), layout="constrained")
        for each in axes:
            each.axis("off")
        draw_map(axes[0], theme)
        draw_rule(axes[1], theme, swap)
        draw_price(axes[2], theme, answer, swap)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def main():
    """Draw for both themes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a finished search on CAGE2")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    options = parser.parse_args()
    answer = ff.load_run(options.run).answer
    for theme in INK:
        draw(answer, theme, options.out / f"glance-{theme}.svg")
        print(options.out / f"glance-{theme}.svg")


if __name__ == "__main__":
    main()
