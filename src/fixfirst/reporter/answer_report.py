"""The reports of a search that answers with a rule: one that is finished, one that still runs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fixfirst.base import errors
from fixfirst.base.tables import INTERVAL, Column, Table, interval, plain
from fixfirst.reporter import curves, figures, texts
from fixfirst.reporter.document import PAIR, Document, Section, describe_game, describe_world, run_document
from fixfirst.reporter.run import Run
from fixfirst.reporter.texts import some
from fixfirst.stats.answer import Answer


def answer_report(run: Run, answer: Answer) -> Document:
    """Build the report of one finished search."""
    why, later = run.files.why, []
    each, table = answer.all_orders // answer.possible, answer.table()
    text = (f"Each stands for {some(each, 'order')}, which differ in unit types that red never holds.",) if each > 1 else ()
    if answer.telling_orders is not None and not why.exists():
        command = errors.command("report", errors.printable(str(run.folder)), "--replays")
        later.append(texts.WATCH_WHY_LATER.format(command=command))
    return run_document(
        run,
        question=texts.QUESTION,
        lead=f"Against {answer.red_agent}, {describe_world(run)}, memory {answer.memory}:",
        headline=(f"{answer.rule}.",),
        figures_of_merit=_merits(answer),
        answer=(*answer.sentences, f"{answer.trainings}.", *later),
        link=(texts.WATCH_WHY, why) if why.exists() else None,
        sections=(
            *_swap_sections(answer),
            *_curve_sections(run, answer),
            *_why_sections(answer),
            *_adaptive_sections(answer),
            Section("All orders", text, (figures.orders(table),), (table,)),
            how_section([answer]),
        ),
        glossary=texts.ANSWER_GLOSSARY,
    )


def _merits(answer: Answer) -> tuple[tuple[str, str], ...]:
    """Return the dearest price, the best return and the most violations."""
    best, merits = answer.orders[0], []
    if answer.swaps:
        swap = answer.swaps[0]
        sure = "so far, without an interval" if swap.falling else f"95 %: {interval(swap.low, swap.high)}"
        merits.append((plain(swap.price), f"points an episode for {swap.name}; {sure}"))
    between = "so far" if best.low is None else interval(best.low, best.high)
    merits.append((plain(best.mean), f"return per episode under the best orders ({between})"))
    worst = max(order.violations_high for order in answer.orders)
    merits.append((f"{worst:.3f}", "true violations per episode at most, whatever the order"))
    return tuple(merits)


def _swap_sections(answer: Answer) -> list[Section]:
    """Show what each swap is worth, and how that went over training."""
    if not answer.swaps:
        return []
    table, dear = answer.swaps_table(), answer.swaps[0]
    why = [texts.SETTLED]
    if dear.history:
        ends = {"name": dear.name, "last": plain(dear.history[-1]), "price": plain(dear.price)}
        why.append(texts.COURSE_AND_PRICE.format(**ends))
    names = [f"{swap.name} (so far)" if swap.falling else swap.name for swap in answer.swaps]
    histories = [(None,) * (len(answer.rounds) - len(s.history)) + s.history for s in answer.swaps]  # known from when on
    prices = Table(("training_episodes", *names), tuple(zip(answer.rounds, *histories, strict=True)))
    return [
        Section("What each swap is worth", (texts.SWAPS,), (figures.swaps("swaps", table, answer.margin),), (table,)),
        Section("Did it settle?", tuple(why), (curves.swap_prices(prices, "episodes"),)),
    ]


def _curve_sections(run: Run, answer: Answer) -> list[Section]:
    """Show every training by itself."""
    swap = answer.swaps[0] if answer.swaps else None
    table = curves.trainings_table(run, answer.rounds, None if swap is None else (swap.first, swap.second))
    if not table.rows:
        return []
    text = (texts.CURVES, *(() if swap is None else (texts.CURVES_PRICE.format(name=swap.name),)))
    return [Section("Learning curves", text, (curves.trainings(table, "" if swap is None else swap.name),))]


def _why_sections(answer: Answer) -> list[Section]:
    """Take the dearest price that matters apart."""
    if not answer.significant_swaps or not answer.significant_swaps[0].parts:
        return []
    swap = answer.significant_swaps[0]
    title = f"What {swap.second} before {swap.first} costs more, part by part"
    rows = tuple((name, *part) for name, part in swap.parts.items())
    parts = Table(("part", "points", "low", "high"), rows, ("part", Column("points", "points an episode"), INTERVAL), title)
    label = f"points an episode that {swap.second} before {swap.first} costs more"
    figure = figures.differences("parts", parts, "points", label)
    whole = replace(parts, rows=(*rows, ("all together", swap.price, swap.low, swap.high)))
    return [Section("Why", (texts.WHY_IT_COSTS,), (figure,), (whole,))]


def _adaptive_sections(answer: Answer) -> list[Section]:
    """Say what orders are worth against attackers that learn, if that was asked for."""
    adaptive = answer.adaptive
    if adaptive is None:
        return []
    prices = adaptive.swaps_table()
    figure = figures.swaps("swaps-adaptive", prices, answer.margin)
    tables = (prices, adaptive.orders_table(answer))
    return [Section("Against an attacker who adapts", (*adaptive.sentences, texts.ADAPTIVE), (figure,), tables)]


def how_section(answers: Sequence[Answer]) -> Section:
    """Say how it was measured: of several searches the sum of episodes, else the smallest and the largest number."""
    of_each = "" if len(answers) == 1 else ", of each search"
    facts = [
        ("trainings that began" + of_each, _span([a.num_trainings for a in answers])),
        ("trainings that count" + of_each, _span([a.replicates for a in answers])),
        ("training episodes, of all", f"{sum(a.episodes for a in answers):,}"),
        ("rounds", _span([len(a.rounds) for a in answers])),
        ("standard deviation between two trainings", _span([a.spread for a in answers])),
        ("margin", _span([a.margin for a in answers])),
    ]
    if not of_each and answers[0].dropped:
        facts.insert(2, ("why the others were dropped", answers[0].trainings))
    return Section("How it was measured", (texts.HOW,), tables=(Table(PAIR, tuple(facts), title="In numbers"),))


def _span(values: Sequence[float]) -> str:
    low, high = plain(min(values)), plain(max(values))
    return low if low == high else f"{low} to {high}"


def running_report(run: Run) -> Document:
    """Build the report of a search that has not ended: what is known after the last complete round."""
    rounds, orders = curves.returns_by_round(run), dict.fromkeys(row.workflow for row in run.rounds)
    returns = np.mean(list(rounds[-1].values()), axis=0).tolist()
    best = sorted(zip(orders, returns, strict=True), key=lambda entry: -entry[1])
    answer = [f"After {some(len(rounds), 'round')} of {some(len(rounds[-1]), 'training')}; {describe_game(run)}."]
    prices = _prices_so_far(run)
    if names := prices.columns[1:]:
        listed = ", ".join(f"{name} {plain(price)}" for name, price in zip(names, prices.rows[-1][1:], strict=True))
        answer.append(f"Prices so far, in points an episode: {listed}. They may still fall.")
    table = Table(("order", "return so far"), tuple(best), title=f"{some(len(best), 'order')} tried")
    drawn = (curves.swap_prices(prices, "rounds"),) if names else ()
    merits = ((str(len(rounds)), "rounds are complete"), (plain(best[0][1]), "return so far under the best order"))
    return run_document(
        run,
        question=texts.QUESTION,
        lead="",
        headline=("No answer yet.",),
        figures_of_merit=merits,
        answer=tuple(answer),
        sections=[Section("What each swap seems to be worth so far", (texts.SO_FAR,), drawn, (table,))],
    )


def _prices_so_far(run: Run) -> Table:
    """Return the price of each swap, a column each, after each round: the dearer way round when it was first priced."""
    rounds, pairs = curves.prices_by_round(run), list[tuple[str, str]]()
    for first, second in (pair for prices in rounds for pair in prices):
        if not {(first, second), (second, first)} & {*pairs}:
            pairs.append((first, second))
    means = ((float(prices[pair].mean()) if pair in prices else None for pair in pairs) for prices in rounds)
    columns = ("round", *(f"{first} before {second}" for first, second in pairs))
    return Table(columns, tuple((number, *row) for number, row in enumerate(means, start=1)))
