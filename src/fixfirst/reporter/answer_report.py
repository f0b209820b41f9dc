"""The report of searches that answer with a rule: one of them, or a study of several."""

from collections.abc import Sequence

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
    some,
)
from fixfirst.reporter.one_run import settings_section
from fixfirst.reporter.read import RunData
from fixfirst.runs import Answer

QUESTION = "Which kind of machine should the defender fix first?"
HOW = (
    "One network was trained for all orders, several times over under seeds of its own. The order is a mask: repairing a "
    "unit type is forbidden while one ranked above it is suspected. Under every order each training is told what serves it "
    "best there, chosen on some episodes, and measured on fresh ones; intervals come from the spread of the trainings."
)
GLOSSARY = (
    ("price", "what the defender earns more per episode with the first unit type before the second, all else being equal"),
    ("interval", "95 %, for all swaps (or orders) of the table at once"),
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
        sections=(*_sections(answer, draw), _how(answer), settings_section(run), _glossary()),
    )


def answers_report(runs: Sequence[tuple[RunData, Answer]], skipped: Sequence[str], draw: Draw) -> Document:
    """Of several: what they say of each red agent, whether the seeds agree, and what is good against all."""
    by_red: dict[str, list[Answer]] = {}
    for _, answer in runs:
        by_red.setdefault(f"{answer.red_agent}, variant {answer.variant}, memory {answer.memory}", []).append(answer)
    sentences = [text for red, answers in by_red.items() for text in (_agreement(red, answers), *answers[0].sentences[:1])]
    sections = []
    for red, answers in by_red.items():
        rows = tuple(_study_row(run, answer) for run, answer in runs if answer in answers)
        columns = ("run", "rule", "price", "interval", "best return", "violations, at most", "orders tried")
        sections.append(Section(red, (_agreement(red, answers),), tables=(Table(columns, rows, "One row per seed"),)))
    first = [answers[0] for answers in by_red.values()]
    sections += [section for answer in first for section in _sections(answer, draw)[:1]] if len(first) == 1 else []
    return Document(
        title=f"fixfirst: {some(len(runs), 'search')[:-1]}es compared",
        question=QUESTION,
        lead="A rule good against all of them:" if len(first) > 1 else "",
        headline=(f"{together(first)}.",),
        figures_of_merit=(),
        answer=tuple(sentences),
        missing=tuple([*skipped, *(f"{run.name}: {text}" for run, _ in runs for text in run.missing)]),
        sections=(*sections, _how(runs[0][1]), _glossary()),
    )


def together(answers: Sequence[Answer]) -> str:
    """What matters against some red agent, and against none the other way round."""
    shown = {(s.first, s.second) for answer in answers for s in answer.that_matter}
    safe = [f"{a} before {b}" for a, b in sorted(shown) if (b, a) not in shown]
    if not safe:
        return "No order is shown to be better than another"
    return f"Fix {safe[0] if len(safe) == 1 else ', '.join(safe[:-1]) + ' and ' + safe[-1]}"


def _agreement(red: str, answers: Sequence[Answer]) -> str:
    rules = [answer.rule for answer in answers]
    same = rules.count(rules[0])
    if len(rules) == 1:
        return f"{red}: {rules[0]}."
    return f"{red}: {rules[0]}. {same} of {len(rules)} seeds say so."


def _study_row(run: RunData, answer: Answer) -> tuple[Cell, ...]:
    first = answer.swaps[0] if answer.swaps else None
    worst = max((order.violations_high for order in answer.orders), default=None)
    return (
        Cell(run.name),
        Cell(answer.rule),
        numeric(None if first is None else first.price),
        Cell("-" if first is None else interval(first.low, first.high)),
        numeric(answer.orders[0].mean if answer.orders else None),
        numeric(worst, None if worst is None else f"{worst:.3f}"),
        Cell(f"{len(answer.orders)} of {answer.possible}"),
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


def _how(answer: Answer) -> Section:
    facts = (
        ("trainings", str(answer.replicates)),
        ("training episodes, of all", f"{answer.episodes:,}"),
        ("rounds", str(len(answer.rounds))),
        ("standard deviation between two trainings", num(answer.spread)),
        ("margin", num(answer.margin)),
    )
    return Section("How it was measured", (HOW,), tables=(pairs_table(facts, "In numbers"),))


def _glossary() -> Section:
    return Section("Glossary", tables=(pairs_table(GLOSSARY, "Every quantity shown", ("term", "meaning")),))
