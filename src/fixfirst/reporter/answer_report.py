"""The report of searches that answer with a rule: one of them, or a study of several."""

from collections.abc import Callable, Sequence

from fixfirst.reporter import answer_figures as drawn
from fixfirst.reporter.answer_figures import TIERS, short_order
from fixfirst.reporter.document import (
    Cell,
    Document,
    Draw,
    Section,
    Table,
    interval,
    num,
    numeric,
    pairs_table,
    percent,
    replays,
    some,
)
from fixfirst.reporter.one_run import settings_section
from fixfirst.reporter.read import RunData
from fixfirst.runs.answers import Answer

QUESTION = "Which kind of machine should the defender fix first?"
HOW = (
    "One network was trained for all orders, several times over under seeds of its own. The order is a mask: repairing a "
    "unit type is forbidden while one ranked above it is suspected. Under every order each training is told what serves it "
    "best there, chosen on some episodes, and measured on fresh ones; intervals come from the spread of the trainings."
)
GLOSSARY = (
    ("price", "what the defender earns more per episode with the first unit type before the second, all else being equal"),
    (
        "interval",
        "95 %, for all swaps (or orders) of the table at once, from the spread between trainings: wider than what fixfirst "
        "evaluate prints, which is of one policy on its episodes alone",
    ),
    ("at most", "the price was still falling when training ended: a longer training can only lower it"),
    ("tier", "as good as the best: it costs less than the margin with 95 % probability; worse: it costs more; else open"),
    ("P(best)", "probability that no other order earns more"),
    ("violations", "repairs per episode that truly broke the order, whatever blue knew; upper bound of 95 %"),
    ("compliance", "share of judged repairs that kept to the order; contested: of those where two types needed repair"),
    ("disasters", "share of episodes that earn less than -60"),
    ("never held", "unit types on which red has no machine at any time, against any of our defenders or none at all"),
)


def answer_report(run: RunData, answer: Answer, draw: Draw) -> Document:
    """Of one search."""
    return Document(
        title=f"fixfirst: {run.name}",
        question=QUESTION,
        lead=f"Against {answer.red_agent}, variant {answer.variant}, memory {answer.memory}:",
        headline=(f"{answer.rule}.",),
        figures_of_merit=_merits(answer),
        answer=answer.sentences,
        missing=run.missing,
        sections=(*_sections(answer, draw), how([answer]), settings_section(run), answer_glossary()),
        replays=replays(run),
    )


def _merits(answer: Answer) -> tuple[tuple[str, str], ...]:
    best = answer.orders[0]
    merits = []
    if answer.swaps:
        swap = answer.swaps[0]
        words = f"points an episode for {swap.first} before {swap.second}; 95 %: {interval(swap.low, swap.high)}"
        merits.append((("≤ " if swap.falling else "") + num(swap.price), words))
    merits.append((num(best.mean), f"return per episode under the best orders ({interval(best.low, best.high)})"))
    worst = max(order.violations_high for order in answer.orders)
    merits.append((f"{worst:.3f}", "true violations per episode at most, whatever the order"))
    return tuple(merits)


def _sections(answer: Answer, draw: Draw) -> list[Section]:
    sections = []
    if answer.swaps:
        table = Table(
            ("first", "second", "price", "interval", "trainings", "settled?"),
            tuple(
                (
                    Cell(s.first),
                    Cell(s.second),
                    numeric(s.price),
                    Cell(interval(s.low, s.high)),
                    Cell(", ".join(num(value) for value in s.by_replicate)),
                    Cell("still falling: train longer" if s.falling else "yes"),
                )
                for s in answer.swaps
            ),
            "What fixing one unit type before its neighbour is worth",
        )
        figure = draw(lambda: drawn.swaps(answer))
        text = "Orders are compared that differ in two neighbours only; ticks are the single trainings."
        sections.append(Section("What each swap is worth", (text,), (figure,), (table,)))
        text = "A price is that of learning an order before it is that of keeping it: it must have stopped falling."
        sections.append(Section("Did it settle?", (text,), (draw(lambda: drawn.course(answer)),)))
    each = answer.all_orders // answer.possible
    text = f"Each stands for {some(each, 'order')}, which differ in unit types that red never holds." if each > 1 else ""
    figure = draw(lambda: drawn.orders(answer))
    sections.append(Section("All orders", (text,) if text else (), (figure,), (_orders_table(answer),)))
    return sections


def _orders_table(answer: Answer) -> Table:
    columns = (
        "order",
        "return",
        "interval",
        "tier",
        "P(best)",
        "violations",
        "at most",
        "compliance",
        "contested",
        "disasters",
    )
    rows = tuple(
        (
            Cell(short_order(o.workflow, answer.idle)),
            numeric(o.mean),
            Cell(interval(o.low, o.high)),
            Cell(TIERS[o.tier]),
            numeric(o.p_best, percent(o.p_best)),
            numeric(o.violations, f"{o.violations:.3f}"),
            numeric(o.violations_high, f"{o.violations_high:.3f}"),
            numeric(o.compliance, percent(o.compliance)),
            numeric(o.contested, percent(o.contested)),
            numeric(o.tail, percent(o.tail)),
        )
        for o in answer.orders
    )
    return Table(columns, rows, f"{some(len(answer.orders), 'order')} tried, of {answer.possible} that differ")


def how(answers: Sequence[Answer]) -> Section:
    """Of several searches: episodes of all of them, and of what is each one's own the smallest and the largest."""
    facts = (
        ("trainings" if len(answers) == 1 else "trainings of a search", _span([a.replicates for a in answers], str)),
        ("training episodes, of all", f"{sum(a.episodes for a in answers):,}"),
        ("rounds", _span([len(a.rounds) for a in answers], str)),
        ("standard deviation between two trainings", _span([a.spread for a in answers], num)),
        ("margin", _span([a.margin for a in answers], num)),
    )
    return Section("How it was measured", (HOW,), tables=(pairs_table(facts, "In numbers"),))


def _span(values: Sequence[float], shown: Callable[[float], str]) -> str:
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def answer_glossary() -> Section:
    return Section("Glossary", tables=(pairs_table(GLOSSARY, "Every quantity shown", ("term", "meaning")),))
