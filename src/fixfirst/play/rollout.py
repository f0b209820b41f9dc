"""Whole episodes of any player in any world, by the name of its backend, kept as arrays: of blue's side, and of both.

A rollout is a pure function of the policy and the seeds: the player's chance, like the world's, is keyed by (seed,
environment, episode, step). N environments, T steps, B episodes of a rollout (N times the number of passes), U unit types.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors
from fixfirst.game.base_world import DEFAULT_TIMEOUT_S, BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.orders.order import Workflow
from fixfirst.policy.reds import Reds
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.turns import Player, play_on


def _make_simulator(game: Game, num_envs: int, **options: Any) -> World:
    """Make a world of our simulator in this process, with the learned attackers that the game names."""
    return World(game, num_envs, reds=Reds.of(game) if game.learned else None, **options)


def make_world(
    game: Game,
    num_envs: int,
    *,
    num_workers: int | None = None,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    **options: Any,
) -> BaseWorld:
    """Make a world of N environments in which a game is played.

    Its backend `simulator` is our own in this process, `workers` the same in worker processes, `cyborg` real CybORG in
    worker processes, from the checkout `game.cyborg` (see `find_cyborg`). num_workers and timeout_s concern the latter two.
    options: those of `BaseWorld`.
    """
    if game.backend == "simulator":
        return _make_simulator(game, num_envs, **options)
    make: Callable[..., BaseWorld] = _make_simulator
    if game.backend == "cyborg":
        from fixfirst.cyborg.world import world_maker  # most never meet CybORG

        make = world_maker(game)
    from fixfirst.game.worker_world import WorkerWorld  # most play in this process

    return WorkerWorld(make, game, num_envs, num_workers=num_workers, timeout_s=timeout_s, **options)


class Change(NamedTuple):
    """From this step of an episode on (1 is the first), another workflow is in force."""

    step: int
    workflow: int  # an index into the rollout's


class Rollout(NamedTuple):
    """B whole episodes of T steps; row t is what the policy saw before action t."""

    packed_obs: np.ndarray  # [T + 1, B], or [T + 1, B, W]: uint64 observations; the last: after the last action
    held: np.ndarray  # [T + 1, B] int16 (or int64) sets of hosts red truly held, likewise
    privileged: np.ndarray  # [T + 1, B] of these, those on which red is root
    actions: np.ndarray  # [T, B] int16 of the world
    rewards10: np.ndarray  # [T, B] int32 the world's reward in tenths
    choices: np.ndarray  # [T, B] int16 of the policy; the same unless it has its own set of actions
    row_ids: np.ndarray  # [T + 1, B] int32 the policy's row at each step, an index into `rows`
    rows: np.ndarray  # [M, row words] uint64; none of a player that is no `PolicyTable`
    assigned: np.ndarray  # [B] index of each episode's workflow in `workflows`
    workflows: tuple[Workflow, ...]  # empty: played without one
    turns: np.ndarray | None = None  # [T + 1, B] of `turn_dtype`, where they were kept

    @classmethod
    def join(cls, rollouts: "Sequence[Rollout]") -> "Rollout":
        """Put rollouts of one length, with the same workflows and player, side by side. The last one's rows are all rows."""
        if len(rollouts) == 1:
            return rollouts[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in rollouts], axis=1) for name in rollouts[0]._by_step
        }
        return rollouts[-1]._replace(assigned=np.concatenate([each.assigned for each in rollouts]), **columns)

    @property
    def returns(self) -> np.ndarray:
        """[B] the world's return of each episode."""
        return np.asarray(self.rewards10.sum(axis=0) / 10)

    @property
    def ranks(self) -> np.ndarray:
        """[B, U] position of each unit type in each episode's workflow."""
        return np.array([w.ranks for w in self.workflows])[self.assigned]

    def first(self, episodes: int) -> "Rollout":
        """Return its first episodes."""
        columns = {name: getattr(self, name)[:, :episodes] for name in self._by_step}
        return self._replace(assigned=self.assigned[:episodes], **columns)

    def until(self, steps: int) -> "Rollout":
        """Return the first steps of each episode."""
        beyond = {name: len(getattr(self, name)) - len(self.actions) for name in self._by_step}  # 1: after the last action
        return self._replace(**{name: getattr(self, name)[: steps + more] for name, more in beyond.items()})

    def after(self, steps: int) -> "Rollout":
        """Return it without the first steps of each episode."""
        return self._replace(**{name: getattr(self, name)[steps:] for name in self._by_step}) if steps else self

    @property
    def _by_step(self) -> tuple[str, ...]:
        return _BY_STEP if self.turns is None else (*_BY_STEP, "turns")


_BY_STEP = ("packed_obs", "held", "privileged", "actions", "rewards10", "choices", "row_ids")


def collect(
    world: BaseWorld,
    player: Player,
    *,
    world_seed: int,
    policy_seed: int,
    first_episode: int,
    passes: int = 1,
    workflows: Sequence[Workflow] = (),
    changes: Sequence[Change] = (),
    keep_turns: bool = False,
    on_step: Callable[[int], None] = lambda steps: None,
) -> Rollout:
    """Play `passes` episodes in every environment, from episode number `first_episode` on.

    Several workflows take turns: all that a player knows, or some. With `changes` they follow each other in every episode
    instead, the first one first.
    keep_turns: for whoever looks at single episodes. on_step is told how many steps of a pass are done, where they are
    played one by one.
    """
    n, rollouts = world.num_envs, []
    if isinstance(player, PolicyTable) and workflows and {*workflows} <= {*player.workflows}:
        numbers = np.array([player.number_of(workflow) for workflow in workflows], np.int64)
    else:  # it does not know them all
        numbers = np.arange(max(len(workflows), 1))
    later = {change.step - 1: change.workflow for change in changes}
    if isinstance(player, PolicyTable) and player.spec.scenario != world.scenario:
        raise errors.PolicyError(f"trained on {player.spec.scenario.label}, not on {world.scenario.name}")
    for episode in range(first_episode, first_episode + passes):
        assigned = np.zeros(n, np.int64)
        if len(workflows) > 1 and not changes:
            assigned[:] = (episode + np.arange(n)) % len(workflows)
        turns, followed = list[np.ndarray](), numbers[assigned]
        world.reset(world_seed, episode=episode)

        def before_turn(turn: int, followed: np.ndarray = followed, turns: list[np.ndarray] = turns) -> None:
            if turn in later:
                followed[:] = later[turn]
            if keep_turns:
                turns.append(world.turns())
            if turn:
                on_step(turn)

        track = play_on(
            world,
            player,
            followed,
            policy_seed,
            world.game.steps,
            episode=episode,
            before_turn=before_turn,
            turn_by_turn=bool(changes) or keep_turns,
        )
        rows = player.rows if isinstance(player, PolicyTable) else np.empty((0, 1), np.uint64)
        columns = {name: getattr(track, name) for name in _BY_STEP} | {"turns": np.array(turns) if keep_turns else None}
        rollouts.append(Rollout(**columns, rows=rows, assigned=assigned, workflows=tuple(workflows)))
    return Rollout.join(rollouts)


class Duel(NamedTuple):
    """The same B episodes from both sides. Red's choices and rows are in a rollout like blue's, for the same learner."""

    blue: Rollout
    red: Rollout

    @classmethod
    def join(cls, duels: "Sequence[Duel]") -> "Duel":
        """Put duels of the same length side by side; see `Rollout.join`."""
        return cls(Rollout.join([duel.blue for duel in duels]), Rollout.join([duel.red for duel in duels]))


def collect_duel(world: World, player: Player, reds: Reds, *, first_episode: int, **options: Any) -> Duel:
    """Play one pass as `collect` does, where one of these attackers plays in every episode."""
    reds.start_recording()
    blue = collect(world, player, first_episode=first_episode, **options)
    track = reds.stop_recording(world)
    return Duel(blue, blue._replace(row_ids=track.row_ids, choices=track.choices, rows=reds.rows, turns=None))
