"""What every world is to its players: N environments as arrays, which every step overwrites: copy to keep."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import combinations

import numpy as np

from fixfirst.base import arguments, errors
from fixfirst.game import parts, rules
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import Scenario

DEFAULT_TIMEOUT_S = 300.0  # for an answer of worlds in other processes
AUTORESET_MODES = {"next_step": rules.NEXT_STEP, "same_step": rules.SAME_STEP, "disabled": rules.DISABLED}


def output_arrays(scenario: Scenario) -> dict[str, tuple[tuple[int, ...], type]]:
    """Return what a world writes of each of its N environments: name -> (shape of one row, dtype)."""
    hosts, bits = (scenario.num_hosts,), (scenario.observation_bits,)
    return {
        "observations": (bits, np.int8),
        "packed_obs": (scenario.words_shape, np.uint64),  # bit i = observations[:, i], 64 to a word
        "access": (hosts, np.uint8),
        "rewards10": ((), np.int32),
        "ended": ((), np.bool_),
        "final_observations": (bits, np.int8),
        "final_access": (hosts, np.uint8),
        "final_returns10": ((), np.int32),
        "final_lengths": ((), np.int32),
    }


class BaseWorld(AbstractContextManager["BaseWorld"]):
    """N environments of one game in one batch, whoever plays them: the compiled kernel, CybORG, other processes.

    autoreset: what follows an ended episode: `next_step`, `same_step` or, until it is reset, `disabled`.
    env_ids: the environments' numbers, which with the seed decide their chances (default 0, 1, 2, ...).
    arrays: where to write, as named by `output_arrays`, each [N, ...]; made here unless given.
    """

    def __init__(
        self,
        game: Game,
        num_envs: int,
        *,
        autoreset: str = "next_step",
        env_ids: Sequence[int] | np.ndarray | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
    ):
        self.num_envs = n = arguments.check_int("num_envs", num_envs)
        self.game, self.scenario = game, game.scenario
        self.variant: parts.VariantName = game.variant or "current"
        self._red_odds = game.red_odds(n)  # [N, 3 and own ones]
        self.autoreset = arguments.check_choice("autoreset", autoreset, tuple(AUTORESET_MODES))
        self._autoreset = AUTORESET_MODES[autoreset]
        self.env_ids = np.arange(n) if env_ids is None else check_env_ids(env_ids, n)

        outputs = output_arrays(self.scenario)
        if arrays is None:
            arrays = {name: np.zeros((n, *shape), dtype) for name, (shape, dtype) in outputs.items()}
        else:
            check_arrays(arrays, n, outputs)
        self.observations = arrays["observations"]
        self.packed_obs = arrays["packed_obs"]  # [N], or [N, W]: the same, packed, bit i = observations[:, i]
        self.access = arrays["access"]  # [N, H] true red access: 0 none, 1 user, 2 root
        self.rewards10 = arrays["rewards10"]  # [N] of the last step, in tenths
        self.ended = arrays["ended"]  # [N] the last step reached max_steps
        # Of the episodes that ended in the last step; other rows are stale. The first two only with same_step.
        self.final_observations = arrays["final_observations"]
        self.final_access = arrays["final_access"]
        self.final_returns10 = arrays["final_returns10"]
        self.final_lengths = arrays["final_lengths"]
        self._started = np.zeros(n, np.bool_)  # was this environment ever reset?
        self._all_started = False

    def reset(self, seed: int | Sequence[int] | None = None, mask: np.ndarray | None = None, *, episode: int = 0) -> None:
        """Begin a new episode in all environments, or in those of `mask` [N] bool.

        With a seed (one for all, or one each) they begin at the given episode of that seed; without, at their next one.
        """
        if mask is None:
            mask = np.ones(self.num_envs, np.bool_)
        elif np.shape(values := arguments.as_array("reset_mask", mask)) != (self.num_envs,) or values.dtype != np.bool_:
            raise errors.WorldError(f"reset_mask must be {self.num_envs} booleans, got {mask!r}")
        if seed is None and not self._started.any():
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        seeds = None if seed is None else check_seeds(seed, self.num_envs)
        self.begin(np.asarray(mask), seeds, np.full(self.num_envs, arguments.check_int("episode", episode, 0)))

    def begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        """`reset` with arguments already checked: mask [N] bool; seeds [N] uint64 or None; episodes [N], used with seeds."""
        self._begin(mask, seeds, episodes)
        self._started |= mask
        self._all_started = bool(self._started.all())
        self.ended[mask] = False

    def step(self, actions: np.ndarray) -> int:
        """One turn of every environment; this object's arrays then hold the outcome. Returns how many episodes ended."""
        self._require_reset("step")
        if self._autoreset == rules.DISABLED and self.ended.any():
            which = np.flatnonzero(self.ended)[:5].tolist()
            raise errors.ResetNeeded(f"the episodes of environments {which} have ended: reset them before the next step")
        num_ended = self._step(actions_array(actions, self.num_envs))
        if num_ended < 0:
            raise out_of_range(actions, -1 - num_ended, self.scenario.num_actions)
        return num_ended

    @abstractmethod
    def _begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        """Begin episodes in the environments of `mask`; called before they count as started."""

    @abstractmethod
    def _step(self, actions: np.ndarray) -> int:
        """Step all environments with actions [N] int64: how many episodes ended, or -1 - i if action i is out of range."""

    def turns(self) -> np.ndarray:
        """Return what happened last in every environment and how things stand, [N] of `turn_dtype`."""
        self._require_reset("turns")
        return self._turns()

    @abstractmethod
    def _turns(self) -> np.ndarray:
        """`turns` of environments that were all reset."""

    def get_state(self) -> np.ndarray:
        """Return a copy of all states, where the environments' states are values."""
        raise errors.WorldError(f"a {type(self).__name__} cannot hand out its states: only the in-process simulator can")

    def set_state(self, states: np.ndarray) -> None:
        """Put states back, where the environments' states are values."""
        raise errors.WorldError(f"a {type(self).__name__} cannot take states: only the in-process simulator can")

    def close(self) -> None:
        """Give back processes and memory held outside this process, if any. The arrays stay readable."""

    def _require_reset(self, what: str) -> None:
        if not self._all_started:
            raise errors.ResetNeeded(f"{what}() before reset(): call reset() first")

    def __exit__(self, *_: object) -> None:
        self.close()


def pack(observations: np.ndarray) -> np.ndarray:
    """Return observations [N, bits] as words [N] uint64, or [N, W] if it takes several: bit i = observations[:, i]."""
    padded = np.zeros((len(observations), -(-observations.shape[1] // 64) * 8), np.uint8)
    bits = np.packbits(observations.astype(np.bool_), axis=1, bitorder="little")
    padded[:, : bits.shape[1]] = bits
    words = padded.view("<u8")
    return words[:, 0] if words.shape[1] == 1 else words


def check_arrays(arrays: Mapping[str, np.ndarray], num_envs: int, right: Mapping[str, tuple[tuple[int, ...], type]]) -> None:
    """Refuse arrays that the compiled code would write beyond: all of `right` must be there, of its type and [N, ...]."""
    for name, (shape, dtype) in right.items():
        array = arrays.get(name) if isinstance(arrays, Mapping) else None
        if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != ((num_envs, *shape), np.dtype(dtype)):
            came = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            raise errors.WorldError(f"arrays[{name!r}] must be {np.dtype(dtype)} {(num_envs, *shape)}, got {came}")
        if not (array.flags.writeable and array.flags.c_contiguous and array.flags.aligned):
            raise errors.WorldError(f"arrays[{name!r}] must be writable, contiguous and aligned")
    for first, second in combinations(right, 2):
        if np.may_share_memory(arrays[first], arrays[second]):
            raise errors.WorldError(f"arrays[{first!r}] and arrays[{second!r}] share memory")


def check_seeds(seed: int | Sequence[int] | str, num_envs: int) -> np.ndarray:
    """Return seeds [N] uint64 from one seed or one per environment."""
    if isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray) or not np.ndim(arguments.as_array("seed", seed)):
        return np.full(num_envs, arguments.check_seed("a seed", seed), np.uint64)
    seeds = [arguments.check_seed("a seed", each) for each in seed]
    if len(seeds) != num_envs:
        raise errors.WorldError(f"{len(seeds)} seeds given for {num_envs} environments; give one, or one per environment")
    return np.array(seeds, np.uint64)


def check_env_ids(env_ids: Sequence[int] | np.ndarray, num_envs: int) -> np.ndarray:
    """Return the numbers of environments [N] int64."""
    array = arguments.as_array("env_ids", env_ids)
    if array.shape != (num_envs,) or array.dtype.kind not in "iu" or (array > 2**63 - 1).any():
        raise errors.WorldError(f"env_ids must hold {num_envs} numbers, one per environment, got {env_ids!r}")
    return np.array(array, np.int64)


def actions_array(actions: np.ndarray, num_envs: int) -> np.ndarray:
    """Return actions [N] int64 from anything that holds one whole number per environment."""
    array = arguments.as_array("actions", actions, errors.ActionError)
    if array.shape != (num_envs,):
        raise errors.ActionError(f"actions must have shape ({num_envs},), one per environment, got {array.shape}")
    if array.dtype.kind not in "iu":
        raise errors.ActionError(f"actions must be whole numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, np.int64)


def out_of_range(actions: np.ndarray, i: int, count: int) -> errors.ActionError:
    """Return what to raise when the action of environment i is not one of so many."""
    return errors.ActionError(f"action {actions[i]} of environment {i} is not in 0..{count - 1}; nothing was stepped")
