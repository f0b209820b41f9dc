"""A policy meets a world: rollouts, evaluations with their intervals, single episodes to look at, simple defenders."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.play.baselines import BASELINES, make_baseline
    from fixfirst.play.episodes import document, notable, tell
    from fixfirst.play.evaluation import (
        MOST_KEPT,
        PROTOCOL_PURPOSE,
        PROTOCOL_REDS,
        PROTOCOL_STEPS,
        SIMULATOR_SHARE,
        Evaluation,
        Played,
        check_enough,
        difference,
        evaluate,
        play,
    )
    from fixfirst.play.leaderboard import (
        COLUMNS,
        LEADERBOARD_REDS,
        PUBLISHED,
        SOURCE,
        Standing,
        column_name,
        standing_of,
    )
    from fixfirst.play.loop import Track, play_steps
    from fixfirst.play.network import (
        HIDDEN,
        INFINITY,
        LAYERS,
        ONE,
        TWO,
        ZERO,
        Network,
        Weights,
        Workspace,
        add_outer,
        add_product,
        exponential,
        fading,
        fill_up,
        forward,
        list_bits,
        log,
        lower_to_largest,
        shapes,
        whole_tiles,
    )
    from fixfirst.play.pairing import Paired, paired
    from fixfirst.play.policy_table import PolicyTable, Probabilities, chance_keys, memories_of, probabilities, uniform
    from fixfirst.play.role import Role, bits_of
    from fixfirst.play.rollout import Change, Player, Rollout, collect
    from fixfirst.play.seeds import derive
    from fixfirst.play.vectors import TILE, add_to_lines, dot
else:
    __getattr__, __dir__ = offers(__name__)
