"""The report of a search with one network for all orders that has not ended: what its rounds show so far."""

import numpy as np

from fixfirst.orders.order import Workflow
from fixfirst.orders.pricing import price_swaps
from fixfirst.reporter.answer_figures import course_of
from fixfirst.reporter.answer_report import QUESTION
from fixfirst.reporter.document import Cell, Document, Draw, Section, Table, game, num, numeric, some
from fixfirst.reporter.one_run import settings_section
from fixfirst.reporter.read import RunData
from fixfirst.runs.lock import RUNNING

SO_FAR = (
    "After every round all known orders are played on common episodes. Prices fall while the order is still being learned; "
    "what is stated in the end is measured anew, on fresh episodes, with intervals."
)


def running_report(run: RunData, draw: Draw) -> Document:
    """What is known after the last complete round: no answer yet, and it says so."""
    last = max(row.round for row in run.rounds)
    trainings = len({row.replicate for row in run.rounds if row.round == last})
    prices = _prices(run)
    best = sorted(_means(run, last).items(), key=lambda entry: -entry[1])
    said = [f"{name} {num(points[-1][1])}" for name, points in prices.items()]
    answer = [f"After {some(last, 'round')} of {some(trainings, 'training')}; {game(run)}."]
    if said:
        answer.append(f"Prices so far, in points an episode: {', '.join(said)}. They may still fall.")
    rows = tuple((Cell(order), numeric(mean)) for order, mean in best)
    table = Table(("order", "return so far"), rows, f"{some(len(rows), 'order')} known")
    figures = (draw(lambda: course_of(prices, (), "rounds")),) if prices else ()
    return Document(
        title=f"fixfirst: {run.name}",
        question=QUESTION,
        lead="",
        headline=("No answer yet.",),
        figures_of_merit=((str(last), "rounds are complete"), (num(best[0][1]), "return so far under the best order")),
        answer=tuple(answer),
        missing=run.missing,
        sections=(Section("What each swap seems to be worth so far", (SO_FAR,), figures, (table,)), settings_section(run)),
        running=run.status == RUNNING,
    )


def _means(run: RunData, after: int) -> dict[str, float]:
    """What every order earned after a round, over replicates."""
    values: dict[str, list[float]] = {}
    for row in run.rounds:
        if row.round == after:
            values.setdefault(row.workflow, []).append(row.mean)
    return {order: float(np.mean(of_order)) for order, of_order in values.items()}


def _prices(run: RunData) -> dict[str, list[tuple[int, float]]]:
    """The price of each swap after each round in which it was known."""
    found: dict[str, list[tuple[int, float]]] = {}
    for after in range(1, max(row.round for row in run.rounds) + 1):
        means = _means(run, after)
        orders = [Workflow.parse(text, run.scheme) for text in means]
        for swap in price_swaps(orders, np.array([list(means.values())]), range(run.scheme.size)) if orders else ():
            turned = f"{swap.second} before {swap.first}"
            name, price = (turned, -swap.price) if turned in found else (f"{swap.first} before {swap.second}", swap.price)
            found.setdefault(name, []).append((after, price))
    return found
