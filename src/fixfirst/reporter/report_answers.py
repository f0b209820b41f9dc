"""The reports of searches that answer with a rule: one that is finished, one that still runs, a study of several."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np

from fixfirst.base import errors
from fixfirst.orders.order import Workflow
from fixfirst.reporter import figures
from fixfirst.reporter.analysis import differing_settings, training_courses
from fixfirst.reporter.document import (
    Cell,
    Document,
    Draw,
    PageTable,
    Section,
    describe_game,
    describe_world,
    glossary_sections,
    make_table,
    pairs_table,
    run_document,
    share,
)
from fixfirst.reporter.texts import (
    ADAPTIVE,
    AFTER_ROUNDS,
    AGAIN_ALL,
    ANSWER_GLOSSARY,
    ATTACKED,
    COURSE_AND_PRICE,
    CURVES,
    CURVES_PRICE,
    HOW,
    PAGE_OF_ONE,
    QUESTION,
    RULES_HOLD,
    SETTLED,
    SO_FAR,
    SPLITS,
    SWAPS,
    WATCH_WHY,
    WATCH_WHY_LATER,
    WHY_IT_COSTS,
    adaptive_rows,
    interval,
    num,
    settled,
    settled_under_attack,
    short_order,
    some,
    swap_name,
    tier_name,
)
from fixfirst.runs import layout, manifest
from fixfirst.runs.run import Run
from fixfirst.stats import agreement, pricing
from fixfirst.stats.agreement import INDIFFERENT, Survey
from fixfirst.stats.answer import Answer

_MOST_MERITS = 3  # rules whose counts stand at the top of a survey
_MOST_SPLITS = 8  # that are drawn: the surest; the table has them all
_SPLITS_HEAD = ("pair", "attacker", "property", "above", "networks", "worth there")
_SPLITS_TAIL = ("networks elsewhere", "worth elsewhere", "difference", "interval")
_Prices = dict[str, list[tuple[int, float]]]  # of each swap: (episodes or rounds, price)


def answer_report(run: Run, answer: Answer, draw: Draw) -> Document:
    """Build the report of one finished search."""
    why = run.folder / layout.replay_file(layout.WHY_PAGE)
    later = []
    if answer.telling_orders is not None and not why.exists():
        later.append(
            WATCH_WHY_LATER.format(command=errors.command("report", errors.printable(str(run.folder)), "--replays"))
        )
    return run_document(
        run,
        question=QUESTION,
        lead=f"Against {answer.red_agent}, {describe_world(run)}, memory {answer.memory}:",
        headline=(f"{answer.rule}.",),
        figures_of_merit=_merits(answer),
        answer=(*answer.sentences, f"{answer.trainings}.", *later),
        link=(WATCH_WHY, why) if why.exists() else None,
        sections=(
            *_swap_sections(answer, draw),
            *_curve_sections(run, answer, draw),
            *_why_sections(answer, draw),
            *_adaptive_sections(answer, draw),
            _orders_section(answer, draw),
            _how_section([answer]),
        ),
        glossary=ANSWER_GLOSSARY,
    )


def _merits(answer: Answer) -> tuple[tuple[str, str], ...]:
    best = answer.orders[0]
    merits = []
    if answer.swaps:
        swap = answer.swaps[0]
        sure = "so far, without an interval" if swap.falling else f"95 %: {interval(swap.low, swap.high)}"
        merits.append((num(swap.price), f"points an episode for {swap_name(swap)}; {sure}"))
    between = "so far" if best.low is None else interval(best.low, best.high)
    merits.append((num(best.mean), f"return per episode under the best orders ({between})"))
    worst = max(order.violations_high for order in answer.orders)
    merits.append((f"{worst:.3f}", "true violations per episode at most, whatever the order"))
    return tuple(merits)


def _swap_sections(answer: Answer, draw: Draw) -> list[Section]:
    if not answer.swaps:
        return []
    table = make_table(
        "What fixing one unit type before its neighbour is worth",
        ("first", "second", "price", "interval", "trainings", "settled?"),
        [
            (
                s.first,
                s.second,
                s.price,
                interval(s.low, s.high),
                ", ".join(num(value) for value in s.by_replicate),
                settled(s, answer),
            )
            for s in answer.swaps
        ],
    )
    # A swap may be known from a later round on.
    prices = {
        swap_name(s): list(zip(answer.rounds[len(answer.rounds) - len(s.history) :], s.history, strict=True))
        for s in answer.swaps
    }
    falling, dear = {swap_name(s) for s in answer.swaps if s.falling}, answer.swaps[0]
    ends = {"name": swap_name(dear), "last": num(dear.history[-1]), "price": num(dear.price)} if dear.history else None
    why = (SETTLED,) if ends is None else (SETTLED, COURSE_AND_PRICE.format(**ends))
    return [
        Section("What each swap is worth", (SWAPS,), (draw(lambda: figures.swaps(answer)),), (table,)),
        Section("Did it settle?", why, (draw(lambda: figures.course(prices, falling, "episodes")),)),
    ]


def _curve_sections(run: Run, answer: Answer, draw: Draw) -> list[Section]:
    """Show every training by itself."""
    swap = answer.swaps[0] if answer.swaps else None
    found = training_courses(run, answer.rounds, None if swap is None else (swap.first, swap.second))
    if not found:
        return []
    text = (CURVES, *(() if swap is None else (CURVES_PRICE.format(name=swap_name(swap)),)))
    name = "" if swap is None else swap_name(swap)
    return [Section("Learning curves", text, (draw(lambda: figures.replicates(found, name)),))]


def _why_sections(answer: Answer, draw: Draw) -> list[Section]:
    """Take the dearest price that matters apart."""
    if not answer.that_matter or not answer.that_matter[0].parts:
        return []
    swap = answer.that_matter[0]
    rows = [(part.name, part.price, interval(part.low, part.high)) for part in swap.parts]
    rows.append(("all together", swap.price, interval(swap.low, swap.high)))
    caption = f"What {swap.second} before {swap.first} costs more, part by part"
    table = make_table(caption, ("part", "points an episode", "interval"), rows)
    return [Section("Why", (WHY_IT_COSTS,), (draw(lambda: figures.parts(swap)),), (table,))]


def _adaptive_sections(answer: Answer, draw: Draw) -> list[Section]:
    """Say what orders are worth against attackers that learn, if that was asked for."""
    found = answer.adaptive
    if found is None:
        return []
    prices = make_table(
        "What fixing one unit type before its neighbour is worth",
        ("first", "second", "price", "interval", "trainings", "after each round", "settled?"),
        [
            (
                s.first,
                s.second,
                s.price,
                interval(s.low, s.high),
                *(", ".join(num(value) for value in values) for values in (s.by_replicate, s.history)),
                settled_under_attack(s, found),
            )
            for s in found.swaps
        ],
    )
    rows = [
        (short_order(order.workflow, answer.idle), *cells, Cell(f"{order.violations:.2f}", order.violations))
        for order, *cells in adaptive_rows(answer, found)
    ]
    columns = ("order", f"against {answer.red_agent}", *((AFTER_ROUNDS,) if found.scripted else ()), ATTACKED, "violations")
    orders = make_table("Returns under each order", columns, rows)
    figure = draw(lambda: figures.swaps(replace(answer, swaps=found.swaps), "swaps-adaptive"))
    return [Section("Against an attacker who adapts", (*found.sentences, ADAPTIVE), (figure,), (prices, orders))]


def _orders_section(answer: Answer, draw: Draw) -> Section:
    numbers = ("violations", "at most", "compliance", "contested", "disasters", "Restores", "Removes")
    table = make_table(
        f"{some(len(answer.orders), 'order')} tried, of {answer.possible} that differ",
        ("order", "return", "interval", "tier", "P(best)", *numbers),
        [
            (
                short_order(o.workflow, answer.idle),
                o.mean,
                interval(o.low, o.high),
                tier_name(o, answer),
                share(o.p_best),
                *(Cell(f"{value:.3f}", value) for value in (o.violations, o.violations_high)),
                *map(share, (o.compliance, o.contested, o.tail)),
                o.restores,
                o.removes,
            )
            for o in answer.orders
        ],
    )
    each = answer.all_orders // answer.possible
    text = (f"Each stands for {some(each, 'order')}, which differ in unit types that red never holds.",) if each > 1 else ()
    return Section("All orders", text, (draw(lambda: figures.orders(answer)),), (table,))


def _how_section(answers: Sequence[Answer]) -> Section:
    """Say how it was measured: of several searches the sum of episodes, else the smallest and the largest number."""
    of_each = "" if len(answers) == 1 else ", of each search"
    facts = (
        ("trainings that began" + of_each, _span([a.num_trainings for a in answers], str)),
        ("trainings that count" + of_each, _span([a.replicates for a in answers], str)),
        *((("why the others were dropped", answers[0].trainings),) if len(answers) == 1 and answers[0].dropped else ()),
        ("training episodes, of all", f"{sum(a.episodes for a in answers):,}"),
        ("rounds", _span([len(a.rounds) for a in answers], str)),
        ("standard deviation between two trainings", _span([a.spread for a in answers], num)),
        ("margin", _span([a.margin for a in answers], num)),
    )
    return Section("How it was measured", (HOW,), tables=(pairs_table("In numbers", facts),))


def _span(values: Sequence[float], write: Callable[[float], str]) -> str:
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


# ---------------------------------------------------------------- while it runs


def running_report(run: Run, draw: Draw) -> Document:
    """Build the report of a search that has not ended: what is known after the last complete round."""
    last = max(row.round for row in run.rounds)
    trainings = len({row.replicate for row in run.rounds if row.round == last})
    prices = _prices_so_far(run, last)
    best = sorted(_means(run, last).items(), key=lambda entry: -entry[1])
    answer = [f"After {some(last, 'round')} of {some(trainings, 'training')}; {describe_game(run)}."]
    if prices:
        said = ", ".join(f"{name} {num(points[-1][1])}" for name, points in prices.items())
        answer.append(f"Prices so far, in points an episode: {said}. They may still fall.")
    table = make_table(f"{some(len(best), 'order')} known", ("order", "return so far"), best)
    drawn = (draw(lambda: figures.course(prices, (), "rounds")),) if prices else ()
    return run_document(
        run,
        question=QUESTION,
        lead="",
        headline=("No answer yet.",),
        figures_of_merit=((str(last), "rounds are complete"), (num(best[0][1]), "return so far under the best order")),
        answer=tuple(answer),
        sections=[Section("What each swap seems to be worth so far", (SO_FAR,), drawn, (table,))],
    )


def _means(run: Run, after: int) -> dict[str, float]:
    """Return what every order earned after a round, over replicates."""
    values: dict[str, list[float]] = {}
    for row in run.rounds:
        if row.round == after:
            values.setdefault(row.workflow, []).append(row.mean)
    return {order: float(np.mean(of_order)) for order, of_order in values.items()}


def _prices_so_far(run: Run, last: int) -> _Prices:
    """Return the price of each swap after each round in which it was known."""
    found: _Prices = {}
    for after in range(1, last + 1):
        means = _means(run, after)
        orders = [Workflow.parse(text, run.scheme) for text in means]
        for swap in pricing.price_swaps(orders, np.array([list(means.values())]), range(run.scheme.size)) if orders else ():
            turned = f"{swap.second} before {swap.first}"
            name, price = (turned, -swap.price) if turned in found else (swap_name(swap), swap.price)
            found.setdefault(name, []).append((after, price))
    return found


# ---------------------------------------------------------------- a study


def study_report(
    runs: Sequence[tuple[Run, Answer]], skipped: Sequence[str], draw: Draw, of: int, place: Path | None = None
) -> Document:
    """Build the report of several searches. Those in one world differ in their seeds and are drawn on one axis.

    of: how many there will be. place: the folder of the page, from which the pages of the searches are linked.
    """
    answers = [answer for _, answer in runs]
    networks = [run.network for run, _ in runs]
    known = [network for network in networks if network is not None]
    together = agreement.Agreement.of(answers, known if len(known) == len(runs) else ())
    survey = together.survey
    first, last = ([], []) if survey is None else _survey_sections(survey, runs, draw, place)
    sections = [*first]
    for number, world in enumerate(together.worlds if len(together.worlds) <= agreement.MOST_WORLDS else (), start=1):
        of_world = [(run, answer) for run, answer in runs if any(answer is one for one in world.answers)]
        if len(world.answers) > 1:
            figure = draw(partial(figures.over_seeds, world.answers, f"seeds-{number}"))
            text = "Every seed is a search of its own, with its own interval; larger marks are means over seeds."
        else:
            figure, text = draw(partial(figures.swaps, world.answers[0], f"swaps-{number}")), "Ticks are single trainings."
        sections.append(
            Section(f"Against {world.name}", (*world.sentences, text), (figure,), (_seeds_table(of_world, place),))
        )
    lead = "In this world:" if len(together.worlds) == 1 else "What holds against all of them:"
    if survey is not None:
        where = f"in all of {some(len(survey.networks), 'network')}"
        lead = f"What holds {where}, against {errors.list_words(list(survey.attackers))}:"
    if len(runs) < of:
        lead = f"So far, after {len(runs):,} of {of:,} searches. {lead}"
    return Document(
        title=f"fixfirst: {len(runs)} searches compared",
        question=QUESTION,
        lead=lead,
        headline=(f"{together.rule}.",),
        figures_of_merit=() if survey is None else _survey_merits(survey),
        answer=together.sentences
        if survey is None or len(together.worlds) <= agreement.MOST_WORLDS
        else survey.beside_figures,
        missing=tuple([*skipped, *(f"{run.name}: {text}" for run, _ in runs for text in run.missing)]),
        sections=(*sections, *last, _how_section(answers), _study_settings(runs), *glossary_sections(ANSWER_GLOSSARY)),
    )


def _study_settings(runs: Sequence[tuple[Run, Answer]]) -> Section:
    """Say what the searches have in common, and how to do them again."""
    settings = [manifest.result_settings(run.kind, run.config) for run, _ in runs]
    differing = {*differing_settings(settings), "kind"}
    common = [(key, value) for key, value in settings[0].items() if key not in differing]
    told = {str(run.manifest.get("command", "")) for run, _ in runs}
    again = next(iter(told)) if len(told) == 1 else ""
    command = errors.printable(again) if again.startswith("fixfirst search") else None
    return Section(
        "Settings, and how to do it again",
        (AGAIN_ALL,) if command else (),
        tables=(pairs_table("Settings of all searches", common),),
        command=command,
    )


def _survey_merits(survey: Survey) -> tuple[tuple[str, str], ...]:
    """Return in how many of the decided networks each rule holds; of pairs, the one that is worth something most often."""
    rules = [rule.name for rule in survey.rules[:_MOST_MERITS]]
    merits = []
    for rule in [*rules, INDIFFERENT]:
        own = [tally for tally in survey.all_tallies if tally.rule == rule and tally.told]
        if own:
            counts = ", ".join(f"{tally.holds}/{tally.told}" for tally in own)
            against = errors.list_words([tally.attacker for tally in own])
            merits.append((counts, f"decided networks in which {'it holds: ' if rule in rules else ''}{rule}; {against}"))
    return tuple(merits)


def _survey_sections(
    survey: Survey, runs: Sequence[tuple[Run, Answer]], draw: Draw, place: Path | None
) -> tuple[list[Section], list[Section]]:
    """Say how often rules hold in several networks and what decides, first; and what each network is, last."""
    tallies = [tally for tally in survey.all_tallies if tally.told or tally.open]
    holding = make_table(
        "How often each rule holds",
        ("rule", "attacker", "holds", "worth", "harmless", "wrong", "open", "cost if wrong", "wrong in"),
        [
            (
                tally.rule,
                tally.attacker,
                tally.counted,
                *(tally.worth, tally.harmless, tally.wrong, tally.open),
                float(np.mean(tally.costs)) if tally.costs else None,
                ", ".join(tally.wrong_in) or "-",
            )
            for tally in tallies
        ],
    )
    figures_of = (draw(partial(figures.tallies, tallies)),) if tallies else ()
    first = [Section("How often rules hold", (RULES_HOLD,), figures_of, (holding,))]
    if survey.splits:
        rows = [
            (
                f"{s.pair[0]} before {s.pair[1]}",
                s.attacker,
                s.trait,
                s.above,
                *(s.more, s.mean_more, s.fewer, s.mean_fewer, s.difference),
                interval(s.low, s.high),
            )
            for s in survey.splits
        ]
        table = make_table(f"All {len(rows)} splits, the surest first", (*_SPLITS_HEAD, *_SPLITS_TAIL), rows)
        drawn = draw(partial(figures.splits, survey.splits[:_MOST_SPLITS], "splits"))
        first.append(Section("Which property decides", (SPLITS,), (drawn,), (table,)))
    where = runs[0][0].folder
    text = (
        () if (where / f"{layout.REPORT}.html").is_file() else (PAGE_OF_ONE.format(command=errors.command("report", where)),)
    )
    return first, [Section("All networks", text, tables=(_networks_table(survey), _seeds_table(runs, place)))]


def _networks_table(survey: Survey) -> PageTable:
    """Return what each network is."""
    columns = ("network", "unit types: hosts, value of the dearest", "gate before the target", "digest")
    rows = [
        (
            network.name,
            ", ".join(f"{name} {traits.hosts} at {traits.value:g}" for name, traits in network.units.items()),
            "yes" if network.gated else "no",
            network.digest[:12],
        )
        for network in survey.networks.values()
    ]
    return make_table("One row per network", columns, rows)


def _seeds_table(runs: Sequence[tuple[Run, Answer]], place: Path | None) -> PageTable:
    columns = ("run", "rule", "dearest swap", "price", "interval", "best return", "violations, at most", "orders tried")
    rows = []
    for run, answer in runs:
        swap, worst = next(iter(answer.swaps), None), max(order.violations_high for order in answer.orders)
        dearest = ("-", None, "-") if swap is None else (swap_name(swap), swap.price, interval(swap.low, swap.high))
        tried = f"{len(answer.orders)} of {answer.possible}"
        rows.append(
            (_name_cell(run, place), answer.rule, *dearest, answer.orders[0].mean, Cell(f"{worst:.3f}", worst), tried)
        )
    return make_table("One row per search", columns, rows)


def _name_cell(run: Run, place: Path | None) -> Cell:
    """Return the name of a search, with a link to its page if that is there."""
    page = run.folder / f"{layout.REPORT}.html"
    if place is None or not page.is_file():
        return Cell(run.name)
    return Cell(run.name, link=quote(os.path.relpath(page, place)))
