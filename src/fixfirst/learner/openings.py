"""Which first two decoys help?

A policy that was never made to begin with a decoy does not know what to do after it, and every opening looks bad. So
one policy learns what to do after each of them: every episode begins with one of the openings that are left, single
decoys at first. Now and then all of these are tried by simulation, on the same episodes, and the worse half is dropped:
the fewer are left, the better each is known. The last two are followed by every decoy, and these pairs are halved in
turn. The best go on by themselves, beside one without an opening.
"""

from collections.abc import Sequence

import numpy as np

from fixfirst.game.game_config import Game
from fixfirst.learner.stages import Opening
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

LENGTH = 2
FOLLOWED = 2  # openings that are made longer
LOOK = 30_000  # episodes in which all that are still thought of are tried


def first_openings(spec: PolicySpec) -> tuple[Opening, ...]:
    """Return all openings of one decoy."""
    return tuple((macro,) for macro in range(len(spec.action_set.actions), spec.actions))


def extend_openings(spec: PolicySpec, openings: Sequence[Opening]) -> tuple[Opening, ...]:
    """Each with every decoy that can follow; of two that place the same decoys, one."""
    longer = [(*opening, *last) for opening in openings for last in first_openings(spec)]
    each_once = {tuple(sorted(opening)): opening for opening in reversed(longer)}.values()
    return tuple(opening for opening in reversed(each_once) if spec.action_set.first_masked(opening) is None)


def evaluate_openings(
    network: Network, spec: PolicySpec, openings: Sequence[Opening], game: Game, seed: int, purpose: str, episodes: int
) -> list[float]:
    """Return what a policy earns with each of these openings, all on the same episodes."""
    games = game.model_copy(update={"backend": "simulator"})  # thousands of episodes
    players = (PolicyTable(network, spec=spec, openings=(opening,)) for opening in openings)
    played = (evaluation.play(player, games, episodes=episodes, seed=seed, purpose=purpose) for player in players)
    return [float(batch.returns.mean()) for batch in played]


def next_openings(
    network: Network, spec: PolicySpec, openings: Sequence[Opening], game: Game, seed: int
) -> tuple[Opening, ...]:
    """Return the better half of these, the best first; if few are left and still short, all that can follow them."""
    means = evaluate_openings(network, spec, openings, game, seed, "opening", LOOK // len(openings))
    ranked = np.argsort(-np.array(means), kind="stable")
    better = tuple(openings[number] for number in ranked[: -(-len(openings) // 2)])
    return extend_openings(spec, better) if len(better) <= FOLLOWED and len(better[0]) < LENGTH else better
