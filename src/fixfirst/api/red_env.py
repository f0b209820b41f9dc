"""`ff.RedEnv`, `ff.VecRedEnv`: the game from red's side as Gymnasium environments; the defender inside stays as it is.

Observation: what red reads, 198 bits in CAGE2 (`game/red_view.py`). Action: one of 44 choices, or of 69 if red names its
exploit. Reward: what blue loses. Episodes end only by their step limit, so `terminated` is always False.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fixfirst.adapters import envs
from fixfirst.api.defenders import PolicyLike, game_of_attackers, make_defender
from fixfirst.base import arguments, errors, seeds
from fixfirst.game import red_view, state
from fixfirst.game.simulator import World
from fixfirst.policy.spec import bits_of
from fixfirst.policy.turns import play_turns


class VecRedEnv(gym.vector.VectorEnv):
    """N games from red's side, as a Gymnasium vector environment. All begin together, and end together.

    against: the defender: a run, a policy, a baseline or your own agent, as in `ff.evaluate`. workflow: its order. greedy
    as in `ff.exploit`. picky: red may name its exploit. settings: scenario, variant (that of the defender's
    training unless given), green, max_steps.
    info["action_mask"] [N, A] int8: 1 where red knows enough for a choice. Another choice is a turn slept.

    For example:

        envs = ff.VecRedEnv("champion", 100)
        obs, info = envs.reset(seed=0)  # obs [100, 198] int8
        obs, reward, terminated, truncated, info = envs.step(info["action_mask"].argmax(axis=1))
    """

    def __init__(
        self,
        against: PolicyLike,
        num_envs: int = 1,
        *,
        workflow: str | None = None,
        greedy: bool | None = None,
        picky: bool = False,
        **settings: Any,
    ):
        self._defender = make_defender(against, workflow, greedy, settings=settings)
        game = game_of_attackers(settings, self._defender)
        self.spec_of_red = red_view.RedSpec(game.scenario, bool(picky))
        self.world = World(game, num_envs, autoreset="disabled")
        self.num_envs = self.world.num_envs
        self._controls = _RedControls(self.spec_of_red, self.num_envs)
        self.world.meet(self._controls, [1.0])
        self.autoreset_mode = AutoresetMode.NEXT_STEP
        self.metadata = {"autoreset_mode": self.autoreset_mode}
        self.single_observation_space = gym.spaces.Box(0, 1, (self.spec_of_red.inputs,), np.int8)
        self.single_action_space = gym.spaces.Discrete(self.spec_of_red.actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._seed: int | None = None
        self._episode = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes everywhere: with a seed its first ones, without one the next."""
        if envs.reset_options(options).get("reset_mask") is not None:
            raise errors.WorldError("games of red begin together: leave out reset_mask")
        if seed is not None:
            self._seed, self._episode = arguments.check_seed("seed", seed), 0
        elif self._seed is None:
            self._seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        else:
            self._episode += 1
        self.world.reset(self._seed, episode=self._episode)
        first_order, policy_seed = np.zeros(self.num_envs, np.int64), seeds.stream_seed(self._seed, "policy")
        self._turns = play_turns(self.world, self._defender.player, first_order, policy_seed, episode=self._episode)
        return self._show()

    def step(
        self, actions: np.ndarray | Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one turn of every game; if they have ended, begin the next ones."""
        world, nobody = self.world, np.zeros(self.num_envs, np.bool_)
        if self._seed is None:
            raise errors.ResetNeeded("step() before reset(): call reset() first")
        if world.ended.any():
            return self.reset()[0], np.zeros(self.num_envs), nobody, nobody.copy(), self._controls.info()
        self._controls.take(actions)
        next(self._turns)
        observations, info = self._show()
        if world.ended.any():
            ended = world.ended.copy()
            info |= {"episode_return": -world.final_returns10 / 10, "_episode_return": ended}
            info |= {"episode_length": world.final_lengths.copy(), "_episode_length": ended}
        return observations, -world.rewards10 / 10, nobody, world.ended.copy(), info

    def _show(self) -> tuple[np.ndarray, dict[str, Any]]:
        return self._controls.look(self.world.get_state()), self._controls.info()


class RedEnv(gym.Env[np.ndarray, np.int64]):
    """One game from red's side. For the arguments see `VecRedEnv`.

    For example:

        env = ff.RedEnv("champion")
        obs, info = env.reset(seed=0)  # obs [198] int8, info["action_mask"] [44]
        obs, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
    """

    metadata = {"render_modes": []}  # noqa: RUF012  gymnasium reads a plain attribute

    def __init__(self, against: PolicyLike = "champion", **options: Any):
        self.envs = VecRedEnv(against, 1, **options)
        self.observation_space, self.action_space = self.envs.single_observation_space, self.envs.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new episode."""
        seed = None if seed is None else arguments.check_seed("seed", seed)
        super().reset(seed=seed)
        observations, info = self.envs.reset(seed=seed, options=options)
        return observations[0], _first(info)

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one turn."""
        if self.envs.world.ended.any():
            raise errors.ResetNeeded("the episode has ended: reset before the next step")
        observations, rewards, _, truncated, info = self.envs.step([action])
        return observations[0], float(rewards[0]), False, bool(truncated[0]), _first(info)


def _first(info: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the only game."""
    return {name: values[0] for name, values in info.items() if not name.startswith("_")}


class _RedControls:
    """Red's choices, made outside: a `RedPlayers` that writes them into the states."""

    def __init__(self, spec: red_view.RedSpec, num_envs: int):
        self._spec, self._view = spec, spec.arrays
        self._rows = np.zeros((num_envs, spec.row_words), np.uint64)
        self._allowed = np.zeros((num_envs, spec.actions), np.bool_)
        self._choices = np.zeros(num_envs, np.int64)
        self._everywhere = np.ones(num_envs, np.bool_)
        self._everywhere.setflags(write=False)
        self._sleep = next(number for number, choice in enumerate(spec.choices) if choice.verb == state.RedVerb.SLEEP)

    def look(self, states: np.ndarray) -> np.ndarray:
        """Return what red reads in states [N], as bits; and learn which choices that leaves."""
        self._spec.read(states, self._rows)
        self._allowed = self._spec.allowed(self._rows)
        return bits_of(self._rows, self._spec.inputs)

    def info(self) -> dict[str, Any]:
        return {"action_mask": self._allowed.astype(np.int8), "_action_mask": self._everywhere}

    def take(self, choices: np.ndarray | Sequence[Any]) -> None:
        """Let these be red's next choices [N]; one that red knows too little for is a turn slept."""
        given = arguments.as_array("actions", choices, errors.ActionError)
        if given.shape != self._choices.shape or given.dtype.kind not in "iu":
            raise errors.ActionError(f"actions must be {len(self._choices)} whole numbers, got {choices!r}")
        wrong = given[(given < 0) | (given >= self._spec.actions)]
        if len(wrong):
            raise errors.ActionError(f"action {wrong[0]} is not in 0..{self._spec.actions - 1}")
        self._choices = np.where(self._allowed[np.arange(len(given)), given], given, self._sleep)

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        """See `RedPlayers`."""
        states["red_verb"] = self._view.verbs[self._choices]
        states["red_target"] = self._view.targets[self._choices]
        states["red_wish"] = self._view.wishes[self._choices]

    def conclude(self, states: np.ndarray) -> None:
        """See `RedPlayers`."""
        self._spec.conclude(states)
