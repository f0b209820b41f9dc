"""Worlds by the name of their backend: our simulator in this process or in workers, or CybORG."""

from collections.abc import Callable
from typing import Any

from fixfirst.game.base_world import BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.worker_world import DEFAULT_TIMEOUT_S, WorkerWorld
from fixfirst.policy.reds import Reds


def _make_simulator(game: Game, num_envs: int, **options: Any) -> World:
    """Make a world of our simulator in this process, with the learned attackers that the game names."""
    return World(game, num_envs, reds=Reds.of(game) if game.learned else None, **options)


def make_world(
    game: Game,
    num_envs: int,
    *,
    num_workers: int | None = None,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    **options: Any,
) -> BaseWorld:
    """Make a world of N environments in which a game is played.

    Its backend `simulator` is our own in this process, `workers` the same in worker processes, `cyborg` real CybORG in
    worker processes, from the checkout `game.cyborg` (see `find_cyborg`). num_workers and timeout_s concern the latter two.
    options: those of `BaseWorld`.
    """
    if game.backend == "simulator":
        return _make_simulator(game, num_envs, **options)
    make: Callable[..., BaseWorld] = _make_simulator
    if game.backend == "cyborg":
        from fixfirst.cyborg.world import world_maker  # most never meet CybORG

        make = world_maker(game)
    return WorkerWorld(make, game, num_envs, num_workers=num_workers, timeout_s=timeout_s, **options)
