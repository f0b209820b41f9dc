"""Choose the orders of a round of a search with one network, from what all tried ones earned; log choices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fixfirst.base import seeds
from fixfirst.orders.order import Workflow
from fixfirst.runs.rows import ChoiceRow
from fixfirst.searcher.strategy import Choice, Strategy, StrategyConfig, neighbours
from fixfirst.settings.search import SearchConfig
from fixfirst.stats import pricing

_LEAST_SPREAD = 0.1  # between trainings, that the strategy reckons with at least


def make_strategy(config: SearchConfig, *stream: str | int, resumed: bool = False, idle: tuple[int, ...] = ()) -> Strategy:
    """Return the strategy of a search. stream: of its random numbers; resumed: it will observe earlier rounds."""
    return Strategy(
        StrategyConfig(
            name="exhaustive" if config.strategy == "together" else config.strategy,
            seed=seeds.stream_seed(config.seed, "search", *stream),
            beta=config.gp_beta,
            beta_schedule=config.gp_beta_schedule,
            initial_orders=1 if resumed else config.initial_orders,
        ),
        config.scheme,
        idle,
    )


def choose_round(
    config: SearchConfig, rounds: int, tried: Sequence[Workflow], values: np.ndarray, idle: tuple[int, ...]
) -> list[Choice]:
    """Return the orders of the round after so many. values [R, W]: what each replicate earned under the tried ones.

    idle: unit types that red never holds.
    """
    strategy = make_strategy(config, rounds, resumed=bool(tried), idle=idle)
    if tried:
        ses, _ = pricing.standard_errors(values - values.mean(axis=1, keepdims=True), _LEAST_SPREAD)
        for workflow, mean, error in zip(tried, values.mean(axis=0), ses, strict=True):
            strategy.tell(workflow, float(mean), float(error))
    if config.strategy == "together":
        return [Choice(workflow, "together") for workflow in strategy.all_orders()]
    count = min(config.round_orders, strategy.num_orders)
    if not tried or strategy.num_orders <= config.budget.num_rounds * config.round_orders:
        return strategy.ask(count)
    choices = strategy.ask(count - count // 2)
    return choices + _neighbour_orders(tried, values, [choice.workflow for choice in choices], idle, count // 2)


def _neighbour_orders(
    tried: Sequence[Workflow], values: np.ndarray, chosen: Sequence[Workflow], idle: tuple[int, ...], count: int
) -> list[Choice]:
    """Never tried orders that differ from the best tried ones in two neighbours only, so that swaps get a price.

    Where not all orders can be tried, hardly any two of those that the strategy likes would differ so little.
    """
    scheme = tried[0].scheme
    best = [tried[w].order for w in np.argsort(-values.mean(axis=0), kind="stable").tolist()]
    near = dict.fromkeys(order for of in best for order in neighbours(of, scheme.size - len(idle)))
    chosen_before = {workflow.order for workflow in (*tried, *chosen)}
    new = [order for order in near if order not in chosen_before][:count]
    return [Choice(Workflow(order, scheme), "swap") for order in new]


def turns(chosen: Sequence[Workflow], tried: Sequence[Workflow], values: np.ndarray, margin: float) -> list[Workflow]:
    """Return the orders that take turns in a round's training: the chosen ones, and as often in all those tried before.

    Where all orders are chosen every time, those that cost more than the margin have three turns to two of the others:
    they are the hardest to learn, and until they are learned their prices are too high.
    """
    before = [workflow for workflow in tried if workflow not in chosen]
    if before:
        times, more = max(len(before) // len(chosen), 1), max(len(chosen) // len(before), 1)
        return [*chosen] * times + before * more
    if not tried:
        return [*chosen]
    means = values.mean(axis=0)
    dear = {tried[w] for w in np.flatnonzero(means < means.max() - margin).tolist()}
    return [*chosen] * 2 + [workflow for workflow in chosen if workflow in dear]


def choice_row(number: int, first: int, choice: Choice) -> ChoiceRow:
    """Return a choice with what the strategy believed. number: of the trial; first: of its round."""
    beliefs: dict[str, Any] = {"workflow": str(choice.workflow)}
    for rank, (workflow, belief) in enumerate(choice.top.items(), start=1):
        numbers = {"ucb": choice.ucb(workflow), "mean": float(belief.mean), "std": float(belief.std)}
        beliefs |= numbers if rank == 1 else {}
        beliefs |= {f"top{rank}_{name}": value for name, value in {"workflow": str(workflow), **numbers}.items()}
    return ChoiceRow(iteration=number, round=first, how=choice.how, beta=choice.beta, **beliefs)
