"""Finding an opening: which first two decoys help?

A policy that was never made to begin with a decoy does not know what to do after it, and every opening looks bad. So the
policy first learns from episodes that begin with two random decoys; then every decoy macro and every pair of them is tried
by simulation, all on the same episodes, and the best are trained on for a while, each by itself, beside one without an
opening (`stages.py`). What is then shown to help is kept.
"""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from fixfirst.errors import ConfigError
from fixfirst.game import Game
from fixfirst.orders import CONFIDENCE, normal_quantile
from fixfirst.play import RANDOM_MACRO, Network, PolicyTable, Role, play

LENGTH = 2
RANDOM_OPENING = (RANDOM_MACRO,) * LENGTH
FIRST_LOOK = 1_000  # episodes of every opening


def promising_openings(network: Network, role: Role, game: Game, seed: int, count: int) -> tuple[tuple[int, ...], ...]:
    """So many openings: none at all, and those with which the policy earns most as it is."""
    macros = range(len(role.action_set.actions), role.actions)
    if not macros:
        raise ConfigError(f"openings are made of decoy macros, and the action set {role.action_set} has none; use macros")
    pairs = (pair for length in range(1, LENGTH + 1) for pair in combinations_with_replacement(macros, length))
    tried = [pair for pair in pairs if role.action_set.first_masked(pair) is None]
    players = (PolicyTable(network, role=replace(role, opening=opening)) for opening in tried)
    earned = [play(player, game, episodes=FIRST_LOOK, seed=seed, purpose="opening").returns.mean() for player in players]
    ranked = np.argsort(-np.array(earned), kind="stable")
    return ((), *(tried[number] for number in ranked[: count - 1]))


def is_shown_to_help(gain: float, error: float, tried: int) -> bool:
    """Is the best of so many openings better than none, given its gain and the gain's standard error?"""
    return gain > normal_quantile(1 - (1 - CONFIDENCE) / tried) * error
