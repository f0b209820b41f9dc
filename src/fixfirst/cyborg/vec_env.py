"""Any backend as a Gymnasium vector environment, in spaces and all else like `VecCage2`."""

from pathlib import Path
from typing import Unpack

from gymnasium.vector import AutoresetMode

from fixfirst.cyborg.backends import make_world
from fixfirst.game.action_sets import ActionSet
from fixfirst.game.gym_env import VecWorld, autoreset_name, render_mode_name
from fixfirst.game.memory_schemes import MemoryScheme
from fixfirst.game.settings import Backend
from fixfirst.game.world import BaseWorld, GameSettings


class BackendSettings(GameSettings, total=False):
    """What is played and where, as keyword arguments; see `make_world`."""

    cyborg: str | Path | None
    num_workers: int | None
    timeout_s: float | None


class VecSettings(BackendSettings, total=False):
    """All settings of a vector environment; next_step, no rendering, no memory and all actions if left out."""

    autoreset_mode: AutoresetMode | str
    render_mode: str | None
    memory: MemoryScheme | str
    action_set: ActionSet | str


def make_vec(
    num_envs: int = 1,
    *,
    backend: Backend = "simulator",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    memory: MemoryScheme | str = "none",
    action_set: ActionSet | str = "all",
    **settings: Unpack[BackendSettings],
) -> VecWorld:
    """N environments as a Gymnasium vector environment. For the settings see `make_world`, `BaseWorld` and `VecWorld`.

    For example:

        envs = ff.make_vec(1000, red_agent="meander", max_steps=30)
        obs, info = envs.reset(seed=0)  # obs [1000, 52] int8
        obs, reward, terminated, truncated, info = envs.step(np.zeros(1000, int))  # reward [1000] float64
        held = info["access"] > 0  # [1000, 13]: does red hold the host?
    """
    opened = _open(
        num_envs,
        backend,
        autoreset_mode=autoreset_mode,
        render_mode=render_mode,
        memory=memory,
        action_set=action_set,
        **settings,
    )
    return VecWorld(*opened)


class CyborgVecEnv(VecWorld):
    """N environments of real CybORG in worker processes, in all else like `VecCage2`. Call `close()` when done.

    `variant` need not be given: `world.variant` says what the CybORG found is. Given, it must be that.

    For example:

        with ff.CyborgVecEnv(4, cyborg="cage-challenge-2", red_agent="b_line") as envs:
            obs, info = envs.reset(seed=0)  # obs [4, 52] int8
    """

    def __init__(self, num_envs: int = 1, **settings: Unpack[VecSettings]):
        super().__init__(*_open(num_envs, "cyborg", **settings))


def _open(
    num_envs: int,
    backend: Backend,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    memory: MemoryScheme | str = "none",
    action_set: ActionSet | str = "all",
    **settings: Unpack[BackendSettings],
) -> tuple[BaseWorld, str | None, MemoryScheme, ActionSet]:
    """The arguments of a `VecWorld`; what it cannot do is refused before a process is started."""
    mode, autoreset = render_mode_name(render_mode), autoreset_name(autoreset_mode)
    scheme, choices = MemoryScheme.parse(memory), ActionSet.parse(action_set)
    return make_world(num_envs, backend=backend, autoreset=autoreset, **settings), mode, scheme, choices
