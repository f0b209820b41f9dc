"""Worlds by the name of their backend, and real CybORG as a Gymnasium vector environment.

The backends differ in who plays; interface, spaces, seeding and arrays are those of our own `World` and `VecCage2`.
"""

from functools import partial
from pathlib import Path
from typing import Unpack, get_args

from gymnasium.vector import AutoresetMode

from fixfirst.cyborg.checkout import find_cyborg
from fixfirst.cyborg.workers import DEFAULT_TIMEOUT_S, WorkerWorld
from fixfirst.cyborg.world import CyborgWorld
from fixfirst.errors import WorldError
from fixfirst.game import (
    Backend,
    BaseWorld,
    Game,
    GameSettings,
    VecWorld,
    World,
    WorldSettings,
    autoreset_name,
    render_mode_name,
)


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
    if backend == "simulator":
        return World(num_envs, **settings)
    if backend == "workers":
        return WorkerWorld(World, num_envs, num_workers=num_workers, timeout_s=timeout_s, **settings)
    if backend == "cyborg":
        make = partial(CyborgWorld, folder=find_cyborg(cyborg))
        return WorkerWorld(make, num_envs, num_workers=num_workers, timeout_s=timeout_s, **settings)
    raise WorldError(f"unknown backend {backend!r}; use {', '.join(get_args(Backend))}")


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


class BackendSettings(GameSettings, total=False):
    """What is played and where, as keyword arguments; see `make_world`."""

    cyborg: str | Path | None
    num_workers: int | None
    timeout_s: float | None


class VecSettings(BackendSettings, total=False):
    """All settings of a vector environment; next_step and no rendering if left out."""

    autoreset_mode: AutoresetMode | str
    render_mode: str | None


def make_vec(
    num_envs: int = 1,
    *,
    backend: Backend = "simulator",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **settings: Unpack[BackendSettings],
) -> VecWorld:
    """N environments as a Gymnasium vector environment. For the settings see `make_world` and `BaseWorld`."""
    return VecWorld(*_open(num_envs, backend, autoreset_mode=autoreset_mode, render_mode=render_mode, **settings))


class CyborgVecEnv(VecWorld):
    """N environments of real CybORG in worker processes, in all else like `VecCage2`. Call `close()` when done.

    `variant` need not be given: `world.variant` says what the CybORG found is. Given, it must be that.
    """

    def __init__(self, num_envs: int = 1, **settings: Unpack[VecSettings]):
        super().__init__(*_open(num_envs, "cyborg", **settings))


def _open(
    num_envs: int,
    backend: Backend,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **settings: Unpack[BackendSettings],
) -> tuple[BaseWorld, str | None]:
    """The arguments of a `VecWorld`; what it cannot do is refused before a process is started."""
    mode, autoreset = render_mode_name(render_mode), autoreset_name(autoreset_mode)
    return make_world(num_envs, backend=backend, autoreset=autoreset, **settings), mode
