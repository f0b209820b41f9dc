"""Worlds by the name of their backend.

They differ in who plays; interface, seeding and arrays are those of our own `World`.
"""

from functools import partial
from pathlib import Path
from typing import Unpack, get_args

from fixfirst.cyborg.checkout import find_cyborg
from fixfirst.cyborg.workers import DEFAULT_TIMEOUT_S, WorkerWorld
from fixfirst.cyborg.world import CyborgWorld
from fixfirst.game.arguments import one_of
from fixfirst.game.settings import Backend, Game
from fixfirst.game.world import BaseWorld, World, WorldSettings


def make_world(
    num_envs: int,
    *,
    backend: Backend = "simulator",
    cyborg: str | Path | None = None,
    num_workers: int | None = None,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    **settings: Unpack[WorldSettings],
) -> BaseWorld:
    """A world of N environments.

    backend: `simulator` is our own in this process, `workers` the same in worker processes, `cyborg` real CybORG in worker
    processes, from the checkout `cyborg` (see `find_cyborg`). num_workers and timeout_s concern the latter two.
    """
    name = one_of("backend", backend, get_args(Backend))
    if name == "simulator":
        return World(num_envs, **settings)
    if name == "workers":
        return WorkerWorld(World, num_envs, num_workers=num_workers, timeout_s=timeout_s, **settings)
    make = partial(CyborgWorld, folder=find_cyborg(cyborg))
    return WorkerWorld(make, num_envs, num_workers=num_workers, timeout_s=timeout_s, **settings)


def world_for(game: Game, num_envs: int) -> BaseWorld:
    """A world in which a game is played in whole episodes: one that has ended waits for its reset."""
    settings: WorldSettings = {
        "red_agent": game.red_agent,
        "green": game.green,
        "max_steps": game.max_steps,
        "autoreset": "disabled",
    }
    if game.variant is not None:  # else CybORG says what it is
        settings["variant"] = game.variant
    return make_world(num_envs, backend=game.backend, cyborg=game.cyborg, **settings)
