"""A policy by its name: loaded, made ready to play, exported; and `ff.rollout`, in which it plays in one compiled call."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from fixfirst.base import checks, errors
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.world import World
from fixfirst.orders.order import Workflow
from fixfirst.play.baselines import BASELINES, make_baseline
from fixfirst.play.rollout import Player, Trajectory, play_steps
from fixfirst.policy.export import SUFFIXES, Target, export_policy
from fixfirst.policy.file import Orders, Policy, load_policy, shipped_policies
from fixfirst.policy.spec import PolicySpec, bits_of

if TYPE_CHECKING:
    from fixfirst.play.envs import VecCage2

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself
Say = Callable[[str], None]  # is given a line that the user should read


def load_named(policy: Named) -> Policy:
    """Return the policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    path = checks.check_path("a policy", policy)
    if not path.exists() and str(path) not in shipped_policies():
        shipped = ", ".join(shipped_policies()) or "there is none"
        known = f"a baseline ({', '.join(BASELINES)}), nor a policy that comes with fixfirst ({shipped})"
        hint = errors.did_you_mean(str(path), (*BASELINES, *shipped_policies()))
        raise errors.ConfigError(f"{str(path)!r} is neither a file or run nor {known}{hint}")
    return load_policy(path)


class Defender(NamedTuple):
    """A policy or a baseline, ready to play."""

    player: Player
    orders: tuple[Workflow, ...]  # that it follows and is judged by: the first one, then those that replace it on the way
    policy: Policy | None  # None: a baseline

    @property
    def spec(self) -> PolicySpec:
        """What it reads and may choose."""
        return PolicySpec() if self.policy is None else self.policy.spec


def make_defender(
    policy: Named,
    workflow: str | None = None,
    greedy: bool = False,
    later: Sequence[str] = (),
    *,
    judged: bool = True,
    say: Say = lambda text: None,
) -> Defender:
    """Load a policy, or make a baseline, that follows an order. later: orders that replace the first one on the way.

    judged: is it judged by the order, too? say: is given a line if the order is not the policy's own.
    """
    greedy = checks.check_bool("greedy", greedy)
    if isinstance(policy, str) and policy in BASELINES:
        if later and workflow is None:
            raise errors.ConfigError(f"{policy} follows no order that could change: give the first one with --workflow")
        orders = tuple(Workflow.parse(text) for text in (workflow, *later) if text is not None)
        return Defender(make_baseline(policy, orders), orders, None)
    loaded = load_named(policy)
    if loaded.scheme is None:  # it cannot follow an order, but can be judged by one
        if later:
            raise errors.ConfigError(f"{policy} follows no order, so that none can change: train one with --workflow all")
        if workflow is None:
            return Defender(loaded.player(greedy=greedy), (), loaded)
        does = "is judged by this one" if judged else "plays as it does without"
        say(f"{policy} knows no order; it {does}")
        return Defender(loaded.player(greedy=greedy), (Workflow.parse(workflow),), loaded)
    first = loaded.orders(workflow)
    if workflow is not None and not loaded.follows_any and first != (loaded.workflow,):
        say(f"{policy} was trained for {loaded.workflow}; it is {'told and judged by' if judged else 'told'} another order")
    orders = first + tuple(Workflow.parse(text, loaded.scheme) for text in later)
    return Defender(loaded.player_of(orders, greedy=greedy), orders, loaded)


# ---------------------------------------------------------------- export


def export(policy: Named, to: Target = "onnx", out: str | Path | None = None, *, workflow: str | None = None) -> Path:
    """Write a policy as one file for ONNX, PyTorch or NumPy, and return its path.

    policy: a run, a policy's folder or file, or a loaded one. out: beside the policy unless given. workflow: the order it
    will always follow; without it, a policy that follows any is given one at every turn. Memory, masks, opening and shield
    are in the file: see `docs/export.md`.

        ff.export("runs/first", "onnx", "policy.onnx")
    """
    if not isinstance(to, str) or to not in get_args(Target):
        raise errors.ConfigError(f"a policy is exported to {', '.join(get_args(Target))}, not {errors.quoted(to)}")
    loaded = load_named(policy)
    path = _default_path(policy, SUFFIXES[to]) if out is None else checks.check_path("out", out)
    if not path.name:
        raise errors.ConfigError(f"out must be a file, got {str(out)!r}")
    try:
        export_policy(loaded, path, to, workflow)
    except OSError as e:
        raise errors.ConfigError(f"{path}: cannot be written ({e.strerror})") from e
    return path


def _default_path(policy: Named, suffix: str) -> Path:
    """Return a path in the run's folder, or here under the policy's name."""
    if isinstance(policy, Policy):
        return Path(f"policy{suffix}")
    path = Path(policy)
    if not path.exists():  # one that comes with fixfirst
        return Path(f"{path.name}{suffix}")
    return (path if path.is_dir() else path.parent) / f"policy{suffix}"


# ---------------------------------------------------------------- rollout


class Steps(NamedTuple):
    """T steps of N environments. Row t is before action t; what has T + 1 rows ends with what came after the last one."""

    packed_obs: np.ndarray  # [T + 1, N] uint64: observations, bit i = observation i
    held_sets: np.ndarray  # [T + 1, N] int16: hosts red truly holds, bit h = host h
    actions: np.ndarray  # [T, N] int16
    rewards: np.ndarray  # [T, N] float64
    truncated: np.ndarray  # [T, N] bool: the episode ended with this step
    scenario: Scenario = CAGE2

    @property
    def observations(self) -> np.ndarray:
        """[T + 1, N, 52] int8, as `envs.step` shows them."""
        bits = self.scenario.observation_bits
        return bits_of(self.packed_obs.reshape(-1, 1), bits).astype(np.int8).reshape(*self.packed_obs.shape, bits)

    @property
    def held(self) -> np.ndarray:
        """[T + 1, N, 13] bool: does red hold the host?"""
        return (self.held_sets[..., None] >> np.arange(self.scenario.num_hosts) & 1).astype(np.bool_)


def rollout(
    envs: "VecCage2",
    policy: Policy | str | Path,
    steps: int,
    *,
    seed: int = 0,
    greedy: bool = False,
    workflow: Orders | None = None,
) -> Steps:
    """Play on from where the environments stand, and leave them where they are then, as if stepped.

    policy: a loaded one, a run, or a policy's folder or file. One with a memory begins without any, so reset the
    environments first; or make them with its memory and action set: then what they remember goes on, too. seed: of its
    actions; greedy: the most probable action instead of a drawn one. workflow: the order to follow instead of its own, or a
    list with one for each environment. Episodes end and begin as the environments' autoreset mode says; in the mode
    `next_step` the action after an end is not played, and earns 0.

    For example:

        envs = ff.make_vec(1000, red_agent="meander")
        envs.reset(seed=0)
        played = ff.rollout(envs, "champion", steps=100)
        played.rewards.sum(axis=0)  # [1000] returns
        played.observations, played.actions, played.held  # [101, 1000, 52], [100, 1000], [101, 1000, 13]
    """
    from fixfirst.play.envs import VecCage2  # here, because evaluating needs no Gymnasium

    if not isinstance(envs, VecCage2) or not isinstance(envs.world, World):
        raise errors.ConfigError(
            "rollout() plays in compiled code: make the environments with ff.make_vec(...) on the simulator, "
            f"got {errors.quoted(envs)}"
        )
    loaded, count = load_named(policy), checks.check_int("steps", steps)
    records = _shared_memories(envs, loaded)
    orders, assigned = loaded.assign(workflow, envs.num_envs)
    player = loaded.player_of(orders, greedy=checks.check_bool("greedy", greedy))
    track, number = Trajectory.empty(count, envs.num_envs), checks.check_seed("seed", seed, bits=63)
    play_steps(envs.world, player, assigned, number, track, records)
    return Steps(track.packed_obs, track.held, track.actions, track.rewards10 / 10, track.ended, envs.world.scenario)


def _shared_memories(envs: "VecCage2", policy: Policy) -> np.ndarray | None:
    """Return what the environments remember, if they do it for a policy like this one; None if they remember nothing."""
    mine, spec = envs.memories, policy.spec
    if mine.idle:
        return None
    if (mine.spec.memory, mine.spec.action_set) != (spec.memory, spec.action_set):
        raise errors.ConfigError(
            f"the environments have the memory {mine.spec.memory} and the action set {mine.spec.action_set}, the policy has "
            f"{spec.memory} and {spec.action_set}; make them with the policy's, or with neither"
        )
    return mine.records
