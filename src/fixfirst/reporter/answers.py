"""What searches that answer with a rule tell in the end: the rule first, on stdout, or as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fixfirst.reporter.answer_figures import TIERS, short_order
from fixfirst.reporter.screen import fitting_table
from fixfirst.reporter.study_report import together
from fixfirst.runs.answers import Answer
from fixfirst.runs.layout import BEST

if TYPE_CHECKING:
    from fixfirst.searcher.shared import SharedSearch

SHOWN_ORDERS = 24
WIDE = 100  # columns in which everything about an order fits


def answer_document(answer: Answer) -> dict[str, Any]:
    """As JSON: the words first."""
    return {"rule": answer.rule, "sentences": list(answer.sentences), **asdict(answer)}


def print_answers(console: Console, searches: "Sequence[SharedSearch]", folder: Path) -> None:
    """The rule, what does not matter, the swaps, the orders; of a study, the rule good against all first."""
    answers = [search.answer for search in searches if search.answer is not None]
    if len(answers) > 1:
        console.print(f"{together(answers)}.", style="bold", soft_wrap=not console.is_terminal)
    for answer in answers:
        console.print()
        for number, text in enumerate(answer.sentences):
            whole = not console.is_terminal  # a terminal would break lines inside words
            console.print(text, style="bold" if number == 0 else None, soft_wrap=whole, highlight=False)
        console.print(_swaps_table(answer, console.width))
        console.print(_orders_table(answer, console.width))
    variant = answers[0].variant
    facts = f"{sum(a.episodes for a in answers):,} training episodes, {answers[0].replicates} trainings, variant {variant}"
    console.print(facts, soft_wrap=True)
    best = searches[0].folder / BEST
    console.print(f"policy:      {best} (follows any order)\nnext:        fixfirst evaluate {best}", soft_wrap=True)


def _swaps_table(answer: Answer, width: int) -> Any:
    rows = [
        (
            f"{swap.first} before {swap.second}",
            f"{swap.price:+.2f}",
            f"[{swap.low:.2f}, {swap.high:.2f}]",
            "still falling: train longer" if swap.falling else "settled",
        )
        for swap in answer.swaps
    ]
    columns = ("swap of neighbours", "worth", "95 % interval", "over training")
    return fitting_table(columns, rows, width, cut=columns[0])


def _orders_table(answer: Answer, width: int) -> Any:
    """Where there is little room, intervals and violations stay; the tier goes first."""
    rows, columns = [], ("order", "return", "95 % interval", "tier", "violations")
    for order in answer.orders[:SHOWN_ORDERS]:
        name, most = short_order(order.workflow, answer.idle), f"{order.violations_high:.3f}"
        earned = name, f"{order.mean:.2f}", f"[{order.low:.2f}, {order.high:.2f}]"
        wide = *earned, TIERS[order.tier], f"{order.violations:.3f}, at most {most}"
        rows.append(wide if width >= WIDE else (*earned, f"≤ {most}", TIERS[order.tier]))
    return fitting_table(columns if width >= WIDE else (*columns[:3], columns[4], columns[3]), rows, width)
