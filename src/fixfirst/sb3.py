"""The environments for Stable-Baselines3 and sb3-contrib (`pip install 'fixfirst[sb3]'`).

from fixfirst import sb3
model = PPO("MlpPolicy", sb3.make(64, red_agent="meander"))
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from fixfirst.adapters import envs
from fixfirst.adapters.envs import VecCage2
from fixfirst.base import errors

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(
        "fixfirst.sb3 needs Stable-Baselines3, which is not installed: pip install 'fixfirst[sb3]'"
    ) from e


def make(num_envs: int = 8, **settings: Any) -> "SB3VecEnv":
    """N environments as Stable-Baselines3 wants them. settings: those of `ff.make_vec`, but for `autoreset_mode`.

    With `action_set="macros"`, MaskablePPO of sb3-contrib finds the masks.
    """
    if "autoreset_mode" in settings:
        raise errors.ConfigError("Stable-Baselines3 decides when episodes begin anew: leave out autoreset_mode")
    return SB3VecEnv(envs.make_vec(num_envs, autoreset_mode="same_step", **settings))


class SB3VecEnv(VecEnv):
    """Vector environments that begin anew in the step in which they end, in the shape of Stable-Baselines3.

    `envs` are the environments themselves; red's true access is `envs.world.access` [N, 13]. `seed(7)` and `reset()` begin
    the episodes of `envs.reset(seed=7)`. infos, where an episode ended: "episode" {"r": return, "l": length},
    "terminal_observation" [inputs], and "TimeLimit.truncated", for nothing else ends an episode.
    """

    def __init__(self, envs: VecCage2):
        self.envs = envs
        self._actions = np.zeros(envs.num_envs, np.int64)
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        """Begin new episodes everywhere; observations [N, inputs]."""
        observations, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of actions [N]."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Play one turn of every environment."""
        observations, rewards, _, ended, info = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            infos[i] = {
                "episode": {"r": float(info["episode_return"][i]), "l": int(info["episode_length"][i])},
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": True,
            }
        return observations, rewards.astype(np.float32), ended, infos

    def action_masks(self) -> np.ndarray:
        """[N, A] bool: may the choice be taken now?"""
        return self.envs.memories.masks()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return one picture per environment."""
        return [frame for frame in self.envs.render() if isinstance(frame, np.ndarray)]

    def close(self) -> None:
        """End worker processes, if there are any."""
        self.envs.close()

    # ---- N environments in one: what is asked of each

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute that all environments share, or one of `env_method`."""
        found = self._methods[attr_name] if attr_name in self._methods else getattr(self.envs, attr_name)
        return [found for _ in self._get_indices(indices)]

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks` or `render` of each environment."""
        if method_name not in self._methods:
            raise AttributeError(f"environments in one batch have {' and '.join(self._methods)}, not {method_name}")
        found = self._methods[method_name]()
        return [found[i] for i in self._get_indices(indices)]

    @property
    def _methods(self) -> dict[str, Callable[[], Any]]:
        return {"action_masks": self.action_masks, "render": self.envs.render}

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: they are one object."""
        raise AttributeError(f"environments in one batch share their settings: {attr_name} is an argument of sb3.make()")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """None is."""
        return [False for _ in self._get_indices(indices)]
