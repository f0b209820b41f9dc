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
    from fixfirst.play.policy_table import (
        PlainPolicy,
        PolicyTable,
        Probabilities,
        chance_keys,
        inputs_of,
        row_keys,
        workflow_bits,
    )
    from fixfirst.play.rollout import Player, Rollout, collect
    from fixfirst.play.seeds import derive
else:
    __getattr__, __dir__ = offers(__name__)
