"""Answers as searches give them, by hand."""

import numpy as np

from fixfirst.stats.answer import Answer
from fixfirst.stats.pricing import OrderResult, Swap


def a_swap(first, second, price, low=None, high=None, **more):
    return Swap(first, second, price, low, high, (price,), falling=low is None, history=(6.0, price), **more)


def an_answer(**changes):
    facts = dict(
        red_agent="b_line", variant="current", memory="none",
        units=("enterprise", "op_server", "user", "op_host", "defender"),
        idle=("op_host", "defender"), replicates=3, episodes=600_000, rounds=(10, 20), possible=6, all_orders=120,
        margin=0.5, spread=0.1,
        swaps=(a_swap("enterprise", "user", 4.3, 4.1, 4.5), a_swap("enterprise", "op_server", 0.02, -0.1, 0.14)),
        orders=tuple(
            OrderResult(name, mean, 0.0, 0.0, 0.0, 1.0, 1.0, (), 0.0, 0.0, (), None, mean, mean, 0.2, 0.9, tier)
            for name, mean, tier in (
                ("enterprise > user > op_server", -14, 1), ("enterprise > op_server > user", -14, 1),
                ("op_server > enterprise > user", -14, 1), ("user > enterprise > op_server", -18.2, 3),
                ("user > op_server > enterprise", -18.4, 3), ("op_server > user > enterprise", -18.8, 3),
            )
        ),
        next_episodes=2_000_000,
    )  # fmt: skip
    return Answer(**facts | changes)


def results(orders, values, costs=None):
    """[R][W] what replicates earned under orders: mean returns [R, W]; costs [R, W, parts], else none."""
    costs = np.zeros((*np.shape(values), 0)) if costs is None else costs
    facts = {"tail": 0.0, "violations": 0.0, "violations_high": 0.0, "compliance": 1.0, "contested": None, "prompts": ()}
    facts |= {"restores": 0.0, "removes": 0.0}
    return [
        [OrderResult(str(order), mean, costs=tuple(parts), **facts) for order, mean, parts in zip(orders, *row, strict=True)]
        for row in zip(np.asarray(values).tolist(), costs.tolist(), strict=True)
    ]
