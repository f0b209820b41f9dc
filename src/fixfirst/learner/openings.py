"""Finding an opening: which first two decoys help a policy that was trained without one?

Every decoy macro and every pair of them is tried by simulation, all on the same episodes; the best are compared with no
opening on fresh ones, and one is kept if it is shown to help. What helps now is a beginning: the policy is trained on from
there.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from fixfirst.errors import ConfigError
from fixfirst.game import Game
from fixfirst.orders import CONFIDENCE, t_quantile
from fixfirst.play import Network, PolicyTable, Role, play

FIRST_LOOK, SECOND_LOOK, CONTENDERS = 500, 4_000, 8  # episodes each, and how many are looked at twice


def find_opening(network: Network, role: Role, game: Game, seed: int) -> tuple[int, ...]:
    """The choices that begin every episode: two, one, or none if none is shown to help."""
    macros = range(len(role.action_set.actions), role.actions)
    if not macros:
        raise ConfigError(f"openings are made of decoy macros, and the action set {role.action_set} has none; use macros")
    tried = [(), *((macro,) for macro in macros), *product(macros, repeat=2)]

    def returns(openings: Sequence[tuple[int, ...]], episodes: int, purpose: str) -> np.ndarray:
        """[O, B] of each opening, on the same episodes."""
        players = (PolicyTable(network, role=replace(role, opening=opening)) for opening in openings)
        return np.array([play(player, game, episodes=episodes, seed=seed, purpose=purpose).returns for player in players])

    ranked = np.argsort(-returns(tried, FIRST_LOOK, "opening/first").mean(axis=1), kind="stable")
    contenders = [(), *(tried[number] for number in ranked if number > 0)][: CONTENDERS + 1]
    gains = returns(contenders, SECOND_LOOK, "opening/second")
    gains = gains - gains[0]
    best = int(gains.mean(axis=1).argmax())
    error = gains[best].std(ddof=1) / np.sqrt(SECOND_LOOK)
    confident = t_quantile(SECOND_LOOK - 1, 1 - (1 - CONFIDENCE) / CONTENDERS) * error  # so many could have been the best
    return contenders[best] if gains[best].mean() > confident else ()
