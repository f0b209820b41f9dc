"""Our own simulator as a world: N environments stepped by one compiled call, in this process."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fixfirst.base import arguments, compile as machine_code, errors
from fixfirst.game import red_view, rules
from fixfirst.game.attackers import BLINE_LAST_STAGE, own_addresses
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.chance import Decision, chance_dtype
from fixfirst.game.game_config import Game
from fixfirst.game.parts import EXPLOITS, PORTS
from fixfirst.game.red_agents import script_names
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import LEARNED, NO_TARGET, OTService, RedVerb, Success, state_dtype, turn_dtype
from fixfirst.game.tables import MOST_FURTHER_PORTS, size_of, tables_of


class KernelState(NamedTuple):
    """What compiled code needs to step a world's environments itself; see `rules.py`."""

    states: np.ndarray  # [N] of `state_dtype`
    tables: np.ndarray  # [1] of `tables_dtype`
    chances: np.ndarray  # [N] of `chance_dtype`
    red_odds: np.ndarray  # [N, 3 and own ones]
    own: np.ndarray  # [256] addresses of users' own attackers
    green: bool
    max_steps: int  # 0 = no end
    autoreset: int


class RedPlayers(Protocol):
    """Learned attackers, numbered from LEARNED on: they write what they do into the states they play in."""

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        """Write what they do next into those states [N] in which they play."""
        ...

    def conclude(self, states: np.ndarray) -> None:
        """Let them draw their conclusions from the turn that has just been played."""
        ...


class World(BaseWorld):
    """N environments stepped by one compiled call, in this process."""

    def __init__(self, game: Game, num_envs: int, *, reds: RedPlayers | None = None, **options: Any):
        """reds: the learned attackers that the game names, in their order; `play/rollout.py` loads them."""
        super().__init__(game, num_envs, **options)
        size, tables = size_of(self.scenario), tables_of(self.scenario, self.variant)
        self._states = np.zeros(self.num_envs, state_dtype(size))
        self._kernel = KernelState(
            self._states,
            tables,
            np.zeros(self.num_envs, chance_dtype(size)),
            self._red_odds,
            own_addresses(np.flatnonzero(np.diff(self._red_odds, prepend=0).any(axis=0)), size),
            game.green and self.scenario.green_hosts is not None,
            game.max_steps or 0,
            self._autoreset,
        )
        self._kernel.chances["users"] = tables["users"]
        self._words = self.packed_obs.reshape(self.num_envs, -1)
        self.reds, self._num_reds = reds, len(game.learned)
        machine_code.announce_compilation()

    def meet(self, reds: RedPlayers, weights: Sequence[float]) -> None:
        """Let learned attackers play all episodes from the next reset on, drawn with these weights [R]."""
        odds = np.cumsum(np.array(weights, np.float64) / np.sum(weights))
        odds[-1] = 1.0  # rounding must not leave a gap
        self.reds, self._num_reds = reds, len(odds)
        self._red_odds = np.tile(np.concatenate([np.zeros(LEARNED), odds]), (self.num_envs, 1))
        self._kernel = self._kernel._replace(red_odds=self._red_odds)

    def _begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        assert self.reds is not None or not self._num_reds, "somebody must play the learned attackers"
        if seeds is None:
            self._states["episode"][mask & self._started] += 1
        else:
            chances = self._kernel.chances.copy()
            rules.seed_batch(chances, seeds, self.env_ids)
            self._kernel.chances[mask] = chances[mask]
            self._states["episode"][mask] = episodes[mask]
        self._show(mask)

    def _step(self, actions: np.ndarray) -> int:
        if self.reds is not None:
            self.reds.decide(self._states, self._kernel.chances)
        num_ended: int = rules.step_batch(
            *self._kernel[:5],
            actions,
            *self._kernel[5:],
            self.observations,
            self._words,
            self.access,
            self.rewards10,
            self.ended,
            self.final_observations,
            self.final_access,
            self.final_returns10,
            self.final_lengths,
        )
        if self.reds is not None and num_ended >= 0:
            self.reds.conclude(self._states)
        return num_ended

    def inside(self) -> KernelState:
        """For compiled code that steps the environments itself, and has them shown when it is done (`show`)."""
        self._require_reset("inside")
        return self._kernel

    def show(self) -> None:
        """Let the arrays tell how the environments stand, after others have changed their states."""
        self.ended[:] = self._states["ended"]
        self._show(np.zeros(self.num_envs, np.bool_))

    def get_state(self) -> np.ndarray:
        """Return a copy of all states, [N] of `state_dtype`: values without randomness or references."""
        self._require_reset("get_state")
        return self._states.copy()

    def set_state(self, states: np.ndarray) -> None:
        """Put states [N] back, or one state into all environments.

        What happens next is drawn from each environment's own chances at the state's episode and step: the same
        environment repeats its future, and copies in different environments part ways.
        """
        self._require_reset("set_state")
        array, right = arguments.as_array("states", states), self._states.dtype
        if array.dtype != right or array.shape not in ((), (1,), (self.num_envs,)):
            raise errors.WorldError(
                f"states must be 1 or {self.num_envs} records as get_state() returns them, "
                f"got shape {array.shape} of {'another dtype' if array.dtype != right else 'the right dtype'}"
            )
        check_states(array.reshape(-1), self.scenario, self._num_reds)
        own_addresses(np.unique(array["red_agent"]), size_of(self.scenario))
        self._states[:] = array
        self.show()

    def _turns(self) -> np.ndarray:
        turns = np.empty(self.num_envs, turn_dtype(self.scenario))
        for name in turns.dtype.names or ():
            if name in self._states.dtype.names and name not in ("observation", "decoys"):
                turns[name] = self._states[name]
        turns["observation"], turns["access"] = self.packed_obs, self.access
        turns["decoys"] = self._states["decoys"][:, : self.scenario.num_hosts]
        turns["red_belief"] = red_view.beliefs_of(self._states, self.scenario.num_hosts)
        return turns

    def _show(self, mask: np.ndarray) -> None:
        rules.reset_batch(*self._kernel[:4], mask, self.observations, self._words, self.access)


def check_states(states: np.ndarray, scenario: Scenario, learned: int = 0) -> None:
    """Raise if a field of states [N] is out of range: compiled code takes them as indices and sets without a look.

    learned: the number of learned attackers.
    """
    success, exploit, one_host = (min(Success), max(Success)), (-1, len(EXPLOITS) - 1), (NO_TARGET, scenario.num_hosts - 1)
    ranges = {
        "ot": (0, len(OTService) - 1),
        "red_verb": (0, len(RedVerb) - 1),
        "red_target": one_host,
        "red_success": success,
        "red_exploit": exploit,
        "red_wish": exploit,
        "bline_stage": (0, BLINE_LAST_STAGE),
        "bline_user": one_host,
        "decoys": (0, 2 ** len(PORTS) - 1),
        "remembered": (0, 2 ** (len(PORTS) + MOST_FURTHER_PORTS) - 1),
        "blue_action": (0, scenario.num_actions - 1),
        "blue_success": success,
        "chances": (0, 2 ** (Decision.REFUSED + 1) - 1),
        **dict.fromkeys(("known_subnets", "explored_subnets"), (0, 2 ** len(scenario.subnets) - 1)),
        **dict.fromkeys(_HOST_SETS, (0, 2**scenario.num_hosts - 1)),
    }
    agents = states["red_agent"]
    _check_range("red_agent", agents[(agents < LEARNED) | (agents >= LEARNED + learned)], 0, len(script_names()) - 1)
    for name, (low, high) in ranges.items():
        _check_range(name, states[name], low, high)
    for word, seen in enumerate(np.moveaxis(states["observation"], 1, 0)):
        _check_range("observation", seen, 0, 2 ** min(max(scenario.observation_bits - 64 * word, 0), 64) - 1)


_HOST_SETS: tuple[str, ...] = ("privileged", "removable", "stubborn", "malware", "patched", "known_hosts", "known_names")
_HOST_SETS += ("scanned", "exploited", "escalated", "breached", "lost", "failed", "failed_again", "resisted")


def _check_range(name: str, values: np.ndarray, low: int, high: int) -> None:
    wrong = values[(values < low) | (values > high)]
    if wrong.size:
        raise errors.WorldError(f"state field {name} is {wrong.flat[0]}, not in {low}..{high}")
