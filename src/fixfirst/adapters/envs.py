"""CAGE Challenge 2 as Gymnasium environments: `VecCage2` for batches on any backend, `Cage2` for one, `Remember` around one.

Observation: 52 bits, four per host (`docs/model.md`), and after them what a memory scheme adds (`policy/memory.py`).
Action: 0..144 (`game/scenario.py`), or a choice of another action set (`policy/action_sets.py`). Reward: never positive.
Episodes end only by their step limit, so `terminated` is always False and `truncated` marks the end.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fixfirst.base import arguments, errors
from fixfirst.game import base_world
from fixfirst.game.base_world import DEFAULT_TIMEOUT_S, BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2
from fixfirst.play.rollout import make_world
from fixfirst.policy import action_sets
from fixfirst.policy.memories import Memories
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.spec import PolicySpec
from fixfirst.reporter import picture

if TYPE_CHECKING:
    from fixfirst import typed

RENDER_MODES = ("rgb_array", "ansi")
RENDER_FPS = 4


def _bits(count: int) -> gym.spaces.Box:
    return gym.spaces.Box(0, 1, (count,), np.int8)


def single_action(action: np.int64 | int) -> np.ndarray:
    """Return the action of a single environment as that of a batch of one."""
    if np.ndim(arguments.as_array("action", action)) != 0:
        raise errors.ActionError(f"action must be one whole number, got {action!r}")
    return np.array([action])


def render_mode_name(mode: str | None) -> str | None:
    """Return the mode itself, if there is one of this name."""
    if mode is not None and (not isinstance(mode, str) or mode not in RENDER_MODES):
        raise errors.WorldError(f"render_mode {mode!r} is not supported; use {' or '.join(RENDER_MODES)}, or leave it out")
    return mode


def autoreset_name(mode: AutoresetMode | str) -> str:
    """Return next_step, same_step or disabled, from Gymnasium's name or ours."""
    name = mode.name.lower() if isinstance(mode, AutoresetMode) else str(mode).lower()
    names = [each.name.lower() for each in AutoresetMode]
    if name not in names:
        raise errors.WorldError(f"autoreset_mode {mode!r} is not one of {', '.join(names)}")
    return name


def reset_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """Return the options of a reset; none of them need be given."""
    if not isinstance(options, dict | None):
        raise errors.WorldError(f"options must be a dict, or None, got {options!r}")
    return options or {}


def frames(world: BaseWorld, render_mode: str | None) -> tuple[np.ndarray, ...] | tuple[str, ...]:
    """Return how every environment stands: pictures (rgb_array) or text (ansi) of the network. Shows the truth, too."""
    if render_mode not in RENDER_MODES:
        raise errors.WorldError(f"render() needs a render_mode: make the environment with render_mode={RENDER_MODES[0]!r}")
    return picture.frames(world, as_text=render_mode == "ansi")


class VecCage2(gym.vector.VectorEnv):
    """N environments as a Gymnasium vector environment, stepped by one compiled call or by other backends.

    game: what is played and where, as `ff.Game` names it: red_agent, variant, green, max_steps, backend, cyborg.
    memory: what is read beside the 52 bits, `none`, `scans`, `full` or groups such as `act1+last+decoy` (`MemoryScheme`).
    action_set: `all` 145 actions, or 40 `macros` (`ActionSet`).
    env_ids: the environments' numbers, which with the seed decide their chances. num_workers, timeout_s: of workers.
    `world` gives the arrays behind the interface without copying: `world.packed_obs` [N] uint64 (bit i = observation i),
    `world.access` [N, 13], `world.rewards10` [N] in tenths.
    info: "access" [N, 13] uint8, red's true access (0 none, 1 user, 2 root) before the next action; "action_mask" [N, A]
    int8, 1 where a choice may be taken; when episodes end, "episode_return" and "episode_length" [N] with their masks (the
    key "episode" is left to Gymnasium's RecordEpisodeStatistics), and in SAME_STEP mode "final_obs" and "final_info".

    For example:

        envs = ff.VecCage2(1000, red_agent="b_line")
        obs, info = envs.reset(seed=0)  # obs [1000, 52] int8
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        memory: MemoryScheme | str = "none",
        action_set: action_sets.ActionSet | str = "all",
        env_ids: Sequence[int] | np.ndarray | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        num_workers: int | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        **game: Unpack["typed.GameSettings"],
    ):
        # What cannot be done is refused before a process is started.
        played, autoreset = Game.of_environment(**game), autoreset_name(autoreset_mode)
        self.render_mode = render_mode_name(render_mode)
        scheme, choices = (
            MemoryScheme.parse(memory, played.scenario),
            action_sets.ActionSet.parse(action_set, played.scenario),
        )
        spec = PolicySpec(scheme, choices)
        options: dict[str, Any] = {"autoreset": autoreset, "env_ids": env_ids, "arrays": arrays}
        self.world = make_world(played, num_envs, num_workers=num_workers, timeout_s=timeout_s, **options)
        self.num_envs = self.world.num_envs
        self.memories = Memories(spec, self.num_envs)
        self.autoreset_mode = AutoresetMode[autoreset.upper()]  # as Gymnasium's own have it; TorchRL asks for it
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "render_fps": RENDER_FPS,
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space, self.single_action_space = _bits(spec.inputs), gym.spaces.Discrete(spec.actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        # of an observation: whoever gave the array may have written into it
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes, everywhere or where `options["reset_mask"]` says so."""
        mask = reset_options(options).get("reset_mask")
        self.world.reset(seed, mask)
        self.memories.forget(mask)
        return self._inputs(self.world.observations), self._info(self.world.access)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one turn of every environment."""
        world = self.world
        num_ended = world.step(actions) if self.memories.idle else self._step_and_remember(actions)
        info = self._endings() if num_ended else {}
        info |= self._info(world.access)
        terminated = np.zeros(self.num_envs, np.bool_)
        return self._inputs(world.observations), world.rewards10 / 10, terminated, world.ended.copy(), info

    def _step_and_remember(self, choices: np.ndarray) -> int:
        """Play one turn of every environment. Returns how many episodes ended."""
        world, memories = self.world, self.memories
        seen, had_ended = world.packed_obs.copy(), world.ended.copy()
        actions = memories.actions_of(choices)
        num_ended = world.step(actions)
        memories.remember(seen, actions)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            memories.forget(had_ended)  # they took no action, but began anew
        return num_ended

    def _inputs(self, observations: np.ndarray) -> np.ndarray:
        """Return observations [N, bits], and after them what is remembered."""
        if not self.memories.spec.memory.groups:
            return observations.copy()
        return np.concatenate((observations, self.memories.bits()), axis=1)

    def _info(self, access: np.ndarray) -> dict[str, Any]:
        mask, everywhere = self.memories.masks().view(np.int8), self._everywhere
        return {"access": access.copy(), "_access": everywhere, "action_mask": mask, "_action_mask": everywhere}

    def _endings(self) -> dict[str, Any]:
        """Return what is said of the episodes that ended in this step. In the mode SAME_STEP, others have begun."""
        world, ended = self.world, self.world.ended.copy()
        said: dict[str, Any] = {
            "episode_return": np.where(ended, world.final_returns10 / 10, 0.0),
            "episode_length": np.where(ended, world.final_lengths, 0),
            "_episode_return": ended,
            "_episode_length": ended,
        }
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            final_info = self._info(world.final_access) | {"_access": ended, "_action_mask": ended}
            said |= {"final_obs": self._inputs(world.final_observations), "_final_obs": ended}
            said |= {"final_info": final_info, "_final_info": ended}
            self.memories.forget(ended)
        return said

    def render(self) -> tuple[np.ndarray, ...] | tuple[str, ...]:
        """Return one frame per environment, see `frames`."""
        return frames(self.world, self.render_mode)

    def get_state(self) -> np.ndarray:
        """Return all states as values, [N] records: save them, or put them back later, also into other environments."""
        return self.world.get_state()

    def set_state(self, states: np.ndarray, memories: np.ndarray | None = None) -> np.ndarray:
        """Put back N states, or one into all environments. Returns the observations they show.

        What was remembered is no part of a state: save `memories.records` with it, or nothing will be remembered.
        """
        records = self.memories.check(memories)
        self.world.set_state(states)
        self.memories.records[:] = records
        return self._inputs(self.world.observations)

    def close_extras(self, **kwargs: Any) -> None:
        """End worker processes, if the world has any; called once by `close()`."""
        self.world.close()


def make_vec(num_envs: int = 1, **settings: Unpack["typed.VecSettings"]) -> VecCage2:
    """Make N environments as a Gymnasium vector environment. For the settings see `VecCage2` and `Game`.

    For example:

        envs = ff.make_vec(1000, red_agent="meander", max_steps=30)
        obs, info = envs.reset(seed=0)  # obs [1000, 52] int8
        obs, reward, terminated, truncated, info = envs.step(np.zeros(1000, int))  # reward [1000] float64
        held = info["access"] > 0  # [1000, 13]: does red hold the host?
    """
    return VecCage2(num_envs, **settings)


class CyborgVecEnv(VecCage2):
    """N environments of real CybORG in worker processes, in all else like `VecCage2`. Call `close()` when done.

    `variant` need not be given: `world.variant` says what the CybORG found is. Given, it must be that.

    For example:

        with ff.CyborgVecEnv(4, cyborg="cage-challenge-2", red_agent="b_line") as envs:
            obs, info = envs.reset(seed=0)  # obs [4, 52] int8
    """

    def __init__(self, num_envs: int = 1, **settings: Any):
        super().__init__(num_envs, **settings, backend="cyborg")


class Cage2(gym.Env[np.ndarray, np.int64]):
    """One environment. `env_id` is its number in the vectorised environment that it equals.

    game: what is played, as `ff.Game` names it: red_agent, variant, green, max_steps.

    For example:

        env = ff.Cage2(red_agent="meander")
        obs, info = env.reset(seed=0)  # obs [52] int8, info["access"] [13]
        obs, reward, terminated, truncated, info = env.step(0)  # an action of 0..144
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012  gymnasium reads a plain attribute
    _spec: EnvSpec | None = None

    def __init__(self, *, env_id: int = 0, render_mode: str | None = None, **game: Unpack["typed.GameSettings"]):
        self.render_mode = render_mode_name(render_mode)
        self.world = make_world(Game.of_environment(**game), 1, autoreset="disabled", env_ids=[env_id])
        scenario = self.world.scenario
        self.observation_space = _bits(scenario.observation_bits)
        self.action_space = gym.spaces.Discrete(scenario.num_actions)

    @property
    def spec(self) -> EnvSpec | None:
        """What Gymnasium was asked for, if it made this environment; `max_episode_steps` is our `max_steps`."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        # Wrappers read here how long an episode is. Registered, the same number would cut longer episodes short.
        self._spec = copy(spec)
        if self._spec is not None:
            self._spec.max_episode_steps = self.world.game.max_steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new episode."""
        reset_options(options)
        seed = None if seed is None else arguments.check_seed("seed", seed)
        super().reset(seed=seed)
        self.world.reset(seed)
        return self.world.observations[0].copy(), {"access": self.world.access[0].copy()}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one turn."""
        world = self.world
        world.step(single_action(action))
        info: dict[str, Any] = {"access": world.access[0].copy()}
        ended = bool(world.ended[0])
        if ended:
            info |= {"episode_return": int(world.final_returns10[0]) / 10, "episode_length": int(world.final_lengths[0])}
        return world.observations[0].copy(), int(world.rewards10[0]) / 10, False, ended, info

    def render(self) -> np.ndarray | str:
        """Return how things stand, see `frames`."""
        return frames(self.world, self.render_mode)[0]

    def get_state(self) -> np.ndarray:
        """Return the state as a value, an array of one record."""
        return self.world.get_state()

    def set_state(self, state: np.ndarray) -> np.ndarray:
        """Put a state back. Returns the observation [52] it shows."""
        self.world.set_state(state)
        return np.array(self.world.observations[0])


class Remember(gym.Wrapper[np.ndarray, np.int64, np.ndarray, np.int64], gym.utils.RecordConstructorArgs):
    """A single environment with a memory and an action set, as `VecCage2` has them: a `Cage2`, or any with its sizes.

    info: "action_mask" [A] int8, 1 where a choice may be taken.

    For example:

        env = ff.Remember(ff.Cage2(red_agent="b_line"), memory="full", action_set="macros")
        obs, info = env.reset(seed=0)  # obs [175] int8, info["action_mask"] [40] int8
    """

    def __init__(
        self,
        env: gym.Env[np.ndarray, np.int64],
        memory: MemoryScheme | str = "full",
        action_set: action_sets.ActionSet | str = "macros",
    ):
        if not isinstance(env, gym.Env):
            raise errors.WorldError(f"Remember needs an environment, got {env!r}")
        scenario = env.unwrapped.world.scenario if isinstance(env.unwrapped, Cage2) else CAGE2
        spec = PolicySpec(MemoryScheme.parse(memory, scenario), action_sets.ActionSet.parse(action_set, scenario))
        self.memories = Memories(spec, 1)  # refused before they are copied
        gym.utils.RecordConstructorArgs.__init__(self, memory=memory, action_set=action_set)
        gym.Wrapper.__init__(self, env)
        bits, actions = scenario.observation_bits, scenario.num_actions
        if env.observation_space.shape != (bits,) or env.action_space != gym.spaces.Discrete(actions):
            raise errors.WorldError(
                f"Remember needs an environment with {bits} observations and {actions} actions, "
                f"got {env.observation_space} and {env.action_space}"
            )
        self.observation_space, self.action_space = _bits(spec.inputs), gym.spaces.Discrete(spec.actions)
        self._seen = np.zeros(1, np.uint64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new episode, with nothing in mind."""
        view, info = self.env.reset(seed=seed, options=options)
        self.memories.forget()
        return self._show(view), info | self._info()

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one turn."""
        taken = self.memories.actions_of(single_action(action))
        view, reward, terminated, truncated, info = self.env.step(taken[0])
        self.memories.remember(self._seen, taken)
        return self._show(view), float(reward), terminated, truncated, info | self._info()

    def action_masks(self) -> np.ndarray:
        """Return where a choice may be taken now, [A] bool. By this name MaskablePPO of sb3-contrib asks for it."""
        return self.memories.masks()[0]

    def _show(self, view: np.ndarray) -> np.ndarray:
        """Return what the environment shows, and after it what is remembered."""
        self._seen = base_world.pack(view[None])
        return np.concatenate((view, self.memories.bits()[0]), dtype=np.int8)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8)}
