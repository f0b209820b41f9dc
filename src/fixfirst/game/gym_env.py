"""CAGE Challenge 2 as Gymnasium environments: `VecCage2` for batches, `Cage2` for one, `VecWorld` for any world.

Observation: 52 bits, four per host (`docs/model.md`). Action: 0..144 (`actions.py`). Reward: at most 0, never positive.
Episodes end only by their step limit, so `terminated` is always False and `truncated` marks the end.
"""

from collections.abc import Sequence
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fixfirst.errors import ActionError, WorldError
from fixfirst.game.actions import NUM_ACTIONS
from fixfirst.game.drawing import as_text, picture
from fixfirst.game.moment import moment_of
from fixfirst.game.network import VariantName
from fixfirst.game.state import OBSERVATION_BITS
from fixfirst.game.world import AUTORESET_MODES, BaseWorld, GameSettings, World

RENDER_MODES = ("rgb_array", "ansi")
RENDER_FPS = 4


def observation_space() -> gym.spaces.Box:
    """52 bits."""
    return gym.spaces.Box(0, 1, (OBSERVATION_BITS,), np.int8)


def action_space() -> gym.spaces.Discrete:
    """145 actions."""
    return gym.spaces.Discrete(NUM_ACTIONS)


def render_mode_name(mode: str | None) -> str | None:
    """The mode itself, if there is one of this name."""
    if mode is not None and mode not in RENDER_MODES:
        raise WorldError(f"render_mode {mode!r} is not supported; use {' or '.join(RENDER_MODES)}, or leave it out")
    return mode


def frames(world: BaseWorld, render_mode: str | None) -> tuple[np.ndarray, ...] | tuple[str, ...]:
    """How every environment stands: as pictures (rgb_array) or text (ansi) of the network. Shows the truth, too."""
    moments = [moment_of(turn, world.variant) for turn in world.turns()]
    if render_mode == "rgb_array":
        return tuple(picture(moment) for moment in moments)
    if render_mode == "ansi":
        return tuple(as_text(moment) for moment in moments)
    raise WorldError(f"render() needs a render_mode: make the environment with render_mode={RENDER_MODES[0]!r}")


class VecWorld(gym.vector.VectorEnv):
    """A world as a Gymnasium vector environment.

    `world` gives the arrays behind the interface without copying: `world.words` [N] uint64 (bit i = observation i),
    `world.access` [N, 13], `world.rewards10` [N] in tenths.
    info: "access" [N, 13] uint8, red's true access (0 none, 1 user, 2 root) before the next action; when episodes end,
    "episode" {"r": return, "l": length} with the mask "_episode", and in SAME_STEP mode "final_obs" and "final_info".
    """

    def __init__(self, world: BaseWorld, render_mode: str | None = None):
        self.render_mode = render_mode_name(render_mode)
        self.world = world
        self.num_envs = world.num_envs
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "render_fps": RENDER_FPS,
            "autoreset_mode": AutoresetMode[world.autoreset.upper()],
        }
        self.single_observation_space, self.single_action_space = observation_space(), action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes, everywhere or where `options["reset_mask"]` says so."""
        self.world.reset(seed, (options or {}).get("reset_mask"))
        return self.world.observations.copy(), self._info()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One turn of every environment."""
        world = self.world
        num_ended = world.step(actions)
        info = self._info()
        if num_ended:
            self._tell_endings(info)
        terminated = np.zeros(self.num_envs, np.bool_)
        return world.observations.copy(), world.rewards10 / 10, terminated, world.ended.copy(), info

    def _info(self) -> dict[str, Any]:
        return {"access": self.world.access.copy(), "_access": self._everywhere}

    def _tell_endings(self, info: dict[str, Any]) -> None:
        world, ended = self.world, self.world.ended.copy()
        info["episode"] = {
            "r": np.where(ended, world.final_returns10 / 10, 0.0),
            "l": np.where(ended, world.final_lengths, 0),
        }
        info["_episode"] = ended
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP:
            info["final_obs"], info["_final_obs"] = world.final_observations.copy(), ended
            info["final_info"], info["_final_info"] = {"access": world.final_access.copy(), "_access": ended}, ended

    def render(self) -> tuple[np.ndarray, ...] | tuple[str, ...]:
        """One frame per environment, see `frames`."""
        return frames(self.world, self.render_mode)

    def get_state(self) -> np.ndarray:
        """All states as values, [N] records: save them, or put them back later, also into other environments."""
        return self.world.get_state()

    def set_state(self, states: np.ndarray) -> np.ndarray:
        """Put back N states, or one into all environments. Returns the observations [N, 52] they show."""
        self.world.set_state(states)
        return self.world.observations.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """End worker processes, if the world has any; called once by `close()`."""
        self.world.close()


class VecCage2(VecWorld):
    """N environments stepped by one compiled call. `settings` are those of `BaseWorld`."""

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **settings: Unpack[GameSettings],
    ):
        super().__init__(World(num_envs, autoreset=autoreset_name(autoreset_mode), **settings), render_mode)


class Cage2(gym.Env[np.ndarray, np.int64]):
    """One environment. `env_id` is its number in the vectorised environment that it equals (see `World`)."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012  gymnasium reads a plain attribute

    def __init__(
        self,
        *,
        red_agent: str = "b_line",
        variant: VariantName = "current",
        green: bool = False,
        max_steps: int | None = 100,
        env_id: int = 0,
        render_mode: str | None = None,
    ):
        self.render_mode = render_mode_name(render_mode)
        self.world = World(
            1, red_agent=red_agent, variant=variant, green=green, max_steps=max_steps, autoreset="disabled", env_ids=[env_id]
        )
        self.observation_space, self.action_space = observation_space(), action_space()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new episode."""
        super().reset(seed=seed)
        self.world.reset(seed)
        return self.world.observations[0].copy(), {"access": self.world.access[0].copy()}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One turn."""
        if np.ndim(action) != 0:
            raise ActionError(f"action must be one whole number, got {action!r}")
        world = self.world
        world.step(np.array([action]))
        info: dict[str, Any] = {"access": world.access[0].copy()}
        ended = bool(world.ended[0])
        if ended:
            info["episode"] = {"r": int(world.final_returns10[0]) / 10, "l": int(world.final_lengths[0])}
        return world.observations[0].copy(), int(world.rewards10[0]) / 10, False, ended, info

    def render(self) -> np.ndarray | str:
        """How things stand, see `frames`."""
        return frames(self.world, self.render_mode)[0]

    def get_state(self) -> np.ndarray:
        """The state as a value, an array of one record."""
        return self.world.get_state()

    def set_state(self, state: np.ndarray) -> np.ndarray:
        """Put a state back. Returns the observation [52] it shows."""
        self.world.set_state(state)
        return np.array(self.world.observations[0])


def autoreset_name(mode: AutoresetMode | str) -> str:
    """next_step, same_step or disabled, from Gymnasium's name or ours."""
    name = mode.name.lower() if isinstance(mode, AutoresetMode) else str(mode).lower()
    if name not in AUTORESET_MODES:
        raise WorldError(f"autoreset_mode {mode!r} is not one of {', '.join(AUTORESET_MODES)}")
    return name
