"""Two policies meet: the same episodes from both sides, for the learner of either."""

from typing import Any, NamedTuple

import numpy as np

from fixfirst.game.world import World
from fixfirst.play import rollout
from fixfirst.play.rollout import Player, Rollout
from fixfirst.policy.reds import Reds


class Duel(NamedTuple):
    """The same B episodes from both sides. Red's choices and rows are in a rollout like blue's, for the same learner."""

    blue: Rollout
    red: Rollout


def collect_duel(world: World, player: Player, reds: Reds, *, first_episode: int, passes: int = 1, **options: Any) -> Duel:
    """Play as `collect` does, where one of these attackers plays in every episode."""
    parts, tracks = [], []
    for number in range(passes):
        reds.begin_track()
        parts.append(rollout.collect(world, player, first_episode=first_episode + number, **options))
        tracks.append(reds.end_track(world))
    blue = rollout.join(parts)
    found, choices = (np.concatenate(columns, axis=1) for columns in zip(*tracks, strict=True))
    return Duel(blue, blue._replace(found=found, choices=choices, rows=reds.rows, turns=None))
