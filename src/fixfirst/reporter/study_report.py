"""The report of several searches that answer with a rule: what seeds agree on, and what is good against all."""

from collections.abc import Sequence
from functools import partial

from fixfirst.reporter import answer_figures as drawn
from fixfirst.reporter.answer_report import QUESTION, answer_glossary, how
from fixfirst.reporter.document import Cell, Document, Draw, Section, Table, interval, num, numeric
from fixfirst.reporter.read import RunData
from fixfirst.runs.across_seeds import mean_interval
from fixfirst.runs.answers import Answer

Pair = tuple[str, str]
FEW_SEEDS = 3  # fewer give no interval
HEADLINES = {1: "In this world:", 2: "A rule good against both of them:"}


def answers_report(runs: Sequence[tuple[RunData, Answer]], skipped: Sequence[str], draw: Draw) -> Document:
    """Searches in one world differ in their seeds; those in different worlds are not drawn on one axis."""
    worlds: dict[str, list[tuple[RunData, Answer]]] = {}
    for run, answer in runs:
        name = f"{answer.red_agent}, variant {answer.variant}, memory {answer.memory}"
        worlds.setdefault(name, []).append((run, answer))
    answers = [answer for _, answer in runs]
    sections, sentences = [], []
    for number, (world, of_world) in enumerate(worlds.items(), start=1):
        told = [answer for _, answer in of_world]
        sentences.append(f"Against {world}: {agreement(told)}")
        columns = ("run", "rule", "dearest swap", "price", "interval", "best return", "violations, at most", "orders tried")
        table = Table(columns, tuple(_row(run, answer) for run, answer in of_world), "One row per seed")
        if len(told) > 1:
            figure = draw(partial(drawn.seeds, told, f"seeds-{number}"))
            text = "Every seed is a search of its own, with its own interval; larger marks are means over seeds."
        else:
            figure, text = draw(partial(drawn.swaps, told[0], f"swaps-{number}")), "Ticks are the single trainings."
        said = agreement(told)
        sections.append(Section(f"Against {world}", (f"{said[0].upper()}{said[1:]}", text), (figure,), (table,)))
    return Document(
        title=f"fixfirst: {len(runs)} searches compared",
        question=QUESTION,
        lead=HEADLINES.get(len(worlds), "A rule good against all of them:"),
        headline=(f"{together(answers)}.",),
        figures_of_merit=(),
        answer=tuple(sentences),
        missing=tuple([*skipped, *(f"{run.name}: {text}" for run, _ in runs for text in run.missing)]),
        sections=(*sections, how(answers), answer_glossary()),
    )


def shown_pairs(answers: Sequence[Answer]) -> list[Pair]:
    """Precedences that more than half of the seeds show, and none shows the other way round; the dearest first."""
    prices: dict[Pair, list[float]] = {}
    for answer in answers:
        for swap in answer.that_matter:
            prices.setdefault((swap.first, swap.second), []).append(swap.price)
    found = [(a, b) for (a, b), seen in prices.items() if 2 * len(seen) > len(answers) and (b, a) not in prices]
    return sorted(found, key=lambda pair: (-sum(prices[pair]) / len(prices[pair]), pair))


def together(answers: Sequence[Answer]) -> str:
    """What is shown in some world, by most of its seeds, and in no world the other way round."""
    worlds: dict[tuple[str, str, str], list[Answer]] = {}
    for answer in answers:
        worlds.setdefault((answer.red_agent, answer.variant, answer.memory), []).append(answer)
    shown = list(dict.fromkeys(pair for of_world in worlds.values() for pair in shown_pairs(of_world)))
    safe = [f"{a} before {b}" for a, b in shown if (b, a) not in shown]
    if not safe:
        return "No order is shown to be better than another"
    return f"Fix {safe[0] if len(safe) == 1 else ', '.join(safe[:-1]) + ' and ' + safe[-1]}"


def agreement(answers: Sequence[Answer]) -> str:
    """The rule of one world, what it is worth, and how many seeds say so."""
    if len(answers) == 1:
        return f"{answers[0].sentences[0]} One seed only."
    pairs = shown_pairs(answers)
    if not pairs:
        bounds = [max((swap.at_most for swap in answer.swaps), default=0.0) for answer in answers]
        return (
            f"no order is shown to be better than another by more than half of {len(answers)} seeds; each bounds the "
            f"differences, by {', '.join(num(bound) for bound in bounds)}."
        )
    said: list[str] = []
    for a, b in pairs:
        swaps = [swap for answer in answers for swap in answer.swaps if (swap.first, swap.second) == (a, b)]
        count = sum((a, b) in [(swap.first, swap.second) for swap in answer.that_matter] for answer in answers)
        mean, low, high = mean_interval([swap.price for swap in swaps])
        sure = "too few seeds for an interval over seeds"
        if len(swaps) >= FEW_SEEDS and low is not None and high is not None:
            sure = f"95 % over seeds: {interval(low, high)}"
        at_most = "at most " if any(swap.falling for swap in swaps) else ""
        fix = "Fix" if said else "fix"  # the first one follows a colon
        said.append(f"{fix} {a} before {b}, worth {at_most}{num(mean)} ({sure}); {count} of {len(answers)} seeds show it")
    return f"{'. '.join(said)}."


def _row(run: RunData, answer: Answer) -> tuple[Cell, ...]:
    first = answer.swaps[0] if answer.swaps else None
    worst = max((order.violations_high for order in answer.orders), default=None)
    return (
        Cell(run.name),
        Cell(answer.rule),
        Cell("-" if first is None else f"{first.first} before {first.second}"),
        numeric(None if first is None else first.price),
        Cell("-" if first is None else interval(first.low, first.high)),
        numeric(answer.orders[0].mean if answer.orders else None),
        numeric(worst, None if worst is None else f"{worst:.3f}"),
        Cell(f"{len(answer.orders)} of {answer.possible}"),
    )
