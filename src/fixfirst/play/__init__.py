"""A policy meets a world: rollouts, evaluations with their intervals, single episodes to look at, simple defenders."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.play.baselines import BASELINES, make_baseline
    from fixfirst.play.episodes import document, notable, tell
    from fixfirst.play.evaluation import (
        PROTOCOL_PURPOSE,
        PROTOCOL_REDS,
        PROTOCOL_STEPS,
        SIMULATOR_SHARE,
        Evaluation,
        difference,
        evaluate,
        play,
    )
    from fixfirst.play.network import (
        HIDDEN,
        ONE,
        STRIDE,
        TWO,
        ZERO,
        Layers,
        Network,
        Weights,
        add_product,
        add_scaled,
        arithmetic,
        bits_of,
        dots,
        exponential,
        exponentials,
        forward,
        list_bits,
        log,
        lower_to_largest,
        num_inputs,
        shapes,
        totals,
    )
    from fixfirst.play.policy_table import (
        PolicyTable,
        Probabilities,
        Table,
        chance_keys,
        filled_up,
        find_row,
        order_rows,
        probabilities,
        split_rows,
        uniform,
    )
    from fixfirst.play.rollout import Player, Rollout, collect
    from fixfirst.play.seeds import derive
else:
    __getattr__, __dir__ = offers(__name__)
