"""`ff.export` and `ff.rollout`: a policy as one file for others, and playing on in environments of the user's."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fixfirst.api import defenders
from fixfirst.api.defenders import Named, PolicyLike, Say
from fixfirst.base import arguments, errors
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.simulator import World
from fixfirst.policy.spec import bits_of
from fixfirst.policy.trained import Orders, Policy
from fixfirst.policy.turns import Player, play_on
from fixfirst.runs import layout

if TYPE_CHECKING:
    from fixfirst.adapters.envs import VecCage2
    from fixfirst.adapters.export import Target


def export(policy: Named, to: "Target" = "onnx", out: str | Path | None = None, *, workflow: str | None = None) -> Path:
    """Write a policy as one file for ONNX, PyTorch or NumPy, and return its path.

    policy: a run, a policy's folder or file, or a loaded one. out: beside the policy unless given. workflow: the order it
    will always follow; without it, a policy that follows any is given one at every turn. Memory, masks, opening and shield
    are in the file: see `docs/export.md`.

        ff.export("runs/first", "onnx", "policy.onnx")
    """
    from fixfirst.adapters import export as formats  # nobody else waits for it

    if not isinstance(to, str) or to not in formats.SUFFIXES:
        raise errors.ConfigError(f"a policy is exported to {', '.join(formats.SUFFIXES)}, not {to!r}")
    loaded = defenders.load_named(policy)
    path = _default_path(policy, formats.SUFFIXES[to]) if out is None else layout.check_output("out", out, policy)
    _ = loaded.network  # its weights are finite, and those of its spec
    with errors.writing(path, error=errors.ConfigError):
        formats.export_policy(loaded, path, to, workflow)
    return path


def _default_path(policy: Named, suffix: str) -> Path:
    """Return a path in the run's folder, or here under the policy's name."""
    if isinstance(policy, Policy):
        return Path(f"policy{suffix}")
    path = Path(policy)
    if not path.exists():  # one that comes with fixfirst
        return Path(f"{path.name}{suffix}")
    return (path if path.is_dir() else path.parent) / f"policy{suffix}"


class Steps(NamedTuple):
    """T steps of N environments. Row t is before action t; what has T + 1 rows ends with what came after the last one."""

    packed_obs: np.ndarray  # [T + 1, N], or [T + 1, N, W]: uint64, observations, bit i = observation i
    held_sets: np.ndarray  # [T + 1, N] int16 or int64: hosts red truly holds, bit h = host h
    actions: np.ndarray  # [T, N] int16
    rewards: np.ndarray  # [T, N] float64
    truncated: np.ndarray  # [T, N] bool: the episode ended with this step
    scenario: Scenario = CAGE2

    @property
    def observations(self) -> np.ndarray:
        """[T + 1, N, 52] int8, as `envs.step` shows them."""
        bits = self.scenario.observation_bits
        return bits_of(self.packed_obs.reshape(self.held_sets.size, -1), bits).reshape(*self.held_sets.shape, bits)

    @property
    def held(self) -> np.ndarray:
        """[T + 1, N, 13] bool: does red hold the host?"""
        return (self.held_sets[..., None] >> np.arange(self.scenario.num_hosts) & 1).astype(np.bool_)


@arguments.checked()
def rollout(
    envs: "VecCage2",
    policy: PolicyLike,
    steps: int,
    *,
    seed: int = 0,
    greedy: bool = False,
    workflow: Orders | None = None,
    say: Say = errors.note,
) -> Steps:
    """Play on from where the environments stand, and leave them where they are then, as if stepped.

    policy: a loaded one, a run, or a policy's folder or file, all of which play in compiled code; or a baseline or an agent
    of your own, as in `ff.evaluate`, which is asked at every step. One with a memory begins without any, so reset the
    environments first; or make them with its memory and action set: then what they remember goes on, too. seed: of its
    actions; greedy: the most probable action instead of a drawn one. workflow: the order to follow instead of its own, or a
    list with one for each environment. say: is given a line if the policy was made for another variant. Episodes end and
    begin as the environments' autoreset mode says; in the mode `next_step` the action after an end is not played, and earns
    0.

    For example:

        envs = ff.make_vec(1000, red_agent="meander")
        envs.reset(seed=0)
        played = ff.rollout(envs, "champion", steps=100)
        played.rewards.sum(axis=0)  # [1000] returns
        played.observations, played.actions, played.held  # [101, 1000, 52], [100, 1000], [101, 1000, 13]
    """
    from fixfirst.adapters.envs import VecCage2  # here, because evaluating needs no Gymnasium

    if not isinstance(envs, VecCage2) or not isinstance(envs.world, World):
        raise errors.ConfigError(
            f"rollout() plays in compiled code: make the environments with ff.make_vec(...) on the simulator, got {envs!r}"
        )
    count, number = arguments.check_int("steps", steps), arguments.check_seed("seed", seed, bits=63)
    name, scenario, who = defenders.name_of(policy), envs.world.scenario, defenders.resolve(policy)
    if isinstance(who, Policy):
        who = defenders.in_scenario(who, scenario, say, name)
        if who.spec.scenario != scenario:
            raise errors.PolicyError(f"{name}: trained on {who.spec.scenario.label}, not on {scenario.name}")
        if (variant := who.config.get("variant") or envs.world.variant) != envs.world.variant:
            say(f"the policy was made for variant {variant}; the environments play {envs.world.variant}")
        orders, assigned = who.assign(workflow, envs.num_envs)
        player: Player = who.player(*orders, greedy=greedy)
    elif isinstance(workflow, str | None):
        player = defenders.make_defender(policy, workflow, greedy, settings={"scenario": scenario}).player
        assigned = np.zeros(envs.num_envs, np.int64)
    else:
        raise errors.ConfigError(f"{name} takes one order for all environments, got {workflow!r}")
    track = play_on(envs.world, player, assigned, number, count, memories=envs.memories)
    return Steps(track.packed_obs, track.held, track.actions, track.rewards10 / 10, track.ended, envs.world.scenario)
