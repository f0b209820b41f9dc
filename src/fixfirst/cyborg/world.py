"""N environments of real CybORG behind the interface of our own `World`, and learned attackers as red agents in it.

Environments are stepped one after the other. A worker process holds one of these (`game/worker_world.py`). An episode's
chances follow from (seed, environment, episode), so they are the same however the environments are spread over processes.
Only the draws differ from our own simulator's.
"""

import gc
import ipaddress
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors
from fixfirst.cyborg.checkout import find_cyborg, load_cyborg
from fixfirst.cyborg.cyborg_game import open_games
from fixfirst.cyborg.identity import variant_of
from fixfirst.cyborg.learned_red import LearnedRed
from fixfirst.game import rules, state
from fixfirst.game.base_world import BaseWorld, pack
from fixfirst.game.game_config import Game
from fixfirst.policy import reds

_AGENT_STREAM, _GAME_STREAM = range(2)


class CyborgWorld(BaseWorld):
    """CybORG from `folder` (see `find_cyborg`). The game's variant, if it has one, must be what that CybORG is."""

    def __init__(self, game: Game, num_envs: int, *, folder: Path, **options: Any):
        variant = variant_of(load_cyborg(folder))
        if game.variant not in (None, variant):
            raise errors.CyborgError(f"CybORG in {folder} is the variant {variant}, not {game.variant}")
        super().__init__(game.model_copy(update={"variant": variant}), num_envs, **options)
        learned = [reds.load_red(name, self.scenario) for name in game.learned]
        self._learned = [LearnedRed.named(red) for red in learned]
        scripts = self._red_odds[:, : state.LEARNED if learned else None]
        if (scripts[:, state.RedAgent.SLEEP] < scripts[:, -1]).any():
            raise errors.CyborgError("CybORG has neither late red agents nor your own; play them on the simulator")
        self._games = open_games(folder, self.scenario, self.num_envs, green=game.green)
        self._seeds = np.zeros(self.num_envs, np.uint64)
        self._episodes = np.zeros(self.num_envs, np.int64)
        self._steps = np.zeros(self.num_envs, np.int32)  # [N] of this episode
        self._returns10 = np.zeros(self.num_envs, np.int32)
        self._red_agents = np.zeros(self.num_envs, np.uint8)  # [N] RedAgent of this episode
        self._blue_actions = np.zeros(self.num_envs, np.int64)  # [N] of the last step
        settle_for_cyborg()  # this world has its process to itself

    def _begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        if seeds is None:
            self._episodes[mask & self._started] += 1
        else:
            self._seeds[mask] = seeds[mask]
            self._episodes[mask] = episodes[mask]
        for i in np.flatnonzero(mask).tolist():
            self._start_episode(i)

    def _step(self, actions: np.ndarray) -> int:
        bad = (actions < 0) | (actions >= self.scenario.num_actions)
        if bad.any():
            return -1 - int(bad.argmax())
        num_ended = 0
        for i, game in enumerate(self._games):
            if self.ended[i] and self._autoreset == rules.NEXT_STEP:
                self._next_episode(i)
                self.rewards10[i] = 0
                self.ended[i] = False
                continue
            self.observations[i], self.rewards10[i] = game.step(actions[i])
            game.read_access(self.access[i])
            self._blue_actions[i] = actions[i]
            self._steps[i] += 1
            self._returns10[i] += self.rewards10[i]
            self.ended[i] = self._steps[i] == self.game.max_steps
            if self.ended[i]:
                num_ended += 1
                self.final_returns10[i], self.final_lengths[i] = self._returns10[i], self._steps[i]
                if self._autoreset == rules.SAME_STEP:
                    self.final_observations[i], self.final_access[i] = self.observations[i], self.access[i]
                    self._next_episode(i)
        self.packed_obs[:] = pack(self.observations)
        return num_ended

    def _turns(self) -> np.ndarray:
        turns = np.zeros(self.num_envs, state.turn_dtype(self.scenario))
        turns["step"], turns["return10"] = self._steps, self._returns10
        turns["red_agent"], turns["observation"], turns["access"] = self._red_agents, self.packed_obs, self.access
        turns["red_verb"], turns["red_target"], turns["red_exploit"] = state.RedVerb.SLEEP, state.NO_TARGET, -1
        turns["red_success"] = turns["blue_success"] = state.Success.UNKNOWN
        for i in np.flatnonzero(self._steps).tolist():
            game, red = self._games[i], self._games[i].red_action()
            turns["red_verb"][i], turns["red_target"][i], turns["red_exploit"][i] = red.verb, red.target, red.exploit
            turns["red_success"][i] = red.success
            turns["scan_answered"][i] = red.verb == state.RedVerb.SCAN and red.answered
            turns["blue_action"][i], turns["blue_success"][i] = self._blue_actions[i], game.blue_success()
            turns["ot"][i], turns["decoys"][i] = game.ot_service(), game.decoy_ports()
            if isinstance(game.red, LearnedRed):
                turns["red_belief"][i] = game.red.beliefs()
        return turns

    def _next_episode(self, i: int) -> None:
        self._episodes[i] += 1
        self._start_episode(i)

    def _start_episode(self, i: int) -> None:
        # Negative environment numbers are allowed elsewhere; entropy must not be negative.
        entropy = [int(self._seeds[i]), int(self.env_ids[i]) % 2**64, int(self._episodes[i])]
        u = np.random.default_rng([*entropy, _AGENT_STREAM]).random()
        number = int(np.searchsorted(self._red_odds[i], u, side="right"))
        self._red_agents[i] = number
        agent = self._learned[number - state.LEARNED] if number >= state.LEARNED else state.RedAgent(number)
        self._games[i].reset(agent, [*entropy, _GAME_STREAM])
        self._games[i].read_access(self.access[i])
        self.observations[i] = 0
        self.packed_obs[i] = 0
        self._steps[i] = self._returns10[i] = 0


def settle_for_cyborg() -> None:
    """Make this process, which does nothing else, a fifth faster for CybORG, without touching CybORG.

    It copies large dictionaries all the time: looking for cycles as often as Python does would take a tenth of the time, and
    find next to nothing. And in every step it reads and prints the same few IPv4 addresses some hundred times, an eighth of
    the time; both are pure functions, so they can be remembered.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    base = getattr(ipaddress, "_BaseV4", None)  # Python's own affair: if it is not there, we are only slower
    for name in ("_ip_int_from_string", "_string_from_ip_int"):
        if hasattr(base, name):
            setattr(base, name, staticmethod(lru_cache(maxsize=4096)(getattr(base, name))))


def world_maker(game: Game) -> Callable[..., CyborgWorld]:
    """Return what makes worlds of the CybORG that is found; for worker processes, which call it."""
    return partial(CyborgWorld, folder=find_cyborg(game.cyborg))
