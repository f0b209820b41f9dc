"""A policy meets a world: many steps in one compiled call, and whole episodes of any player in any world, kept as arrays.

A rollout is a pure function of the policy and the seeds: the player's chance, like the world's, is keyed by (seed,
environment, episode, step). N environments, T steps, B episodes of a rollout (N times the number of passes), U unit types.

The compiled loop finds the row, answers it if it is new, draws, and steps the world. Environments are played in groups of
GROUP, step by step: their states stay in the first cache, and what is written about neighbours lies side by side.
No result depends on the groups.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from fixfirst.base import errors
from fixfirst.base.compile import compiled
from fixfirst.game import attackers, chance as dice, red_view, rules, state, tables
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.scenario import Scenario
from fixfirst.game.simulator import World
from fixfirst.orders import repairs
from fixfirst.orders.order import Workflow
from fixfirst.policy import network, reds, remembering, table
from fixfirst.policy.memory import memory_dtype
from fixfirst.policy.reds import Reds
from fixfirst.policy.table import PolicyTable

GROUP = 16


class Trajectory(NamedTuple):
    """What happened in T steps of N environments."""

    packed_obs: np.ndarray  # [T + 1, N], or [T + 1, N, W]: uint64 observations; the last: after the last action
    held: np.ndarray  # [T + 1, N] int16 (or int64) sets of hosts red truly held, likewise
    privileged: np.ndarray  # [T + 1, N] of these, those on which red is root
    found: np.ndarray  # [T + 1, N] int32 numbers of the rows the policy read, likewise
    choices: np.ndarray  # [T, N] int16 what the policy chose
    actions: np.ndarray  # [T, N] int16 the world's action that it was
    rewards10: np.ndarray  # [T, N] int32
    ended: np.ndarray  # [T, N] bool: the episode ended in this step

    @classmethod
    def empty(cls, steps: int, num_envs: int, scenario: Scenario) -> "Trajectory":
        return cls(
            np.empty((steps + 1, num_envs, *scenario.words_shape), np.uint64),
            np.empty((steps + 1, num_envs), tables.size_of(scenario).host_set),
            np.empty((steps + 1, num_envs), tables.size_of(scenario).host_set),
            np.zeros((steps + 1, num_envs), np.int32),
            np.empty((steps, num_envs), np.int16),
            np.empty((steps, num_envs), np.int16),
            np.empty((steps, num_envs), np.int32),
            np.empty((steps, num_envs), np.bool_),
        )


def play_steps(
    world: World,
    player: PolicyTable,
    assigned: np.ndarray,
    policy_seed: int,
    track: Trajectory,
    memories: np.ndarray | None = None,
) -> None:
    """Play on from where the environments stand, as many steps as `track` holds. assigned [N]: each one's workflow.

    memories [N] of `memory_dtype`: what the policy remembers, changed in place; unless given, nothing yet.
    """
    assert player.network is not None, "a function cannot be asked in compiled code"
    first, more = 0, min(GROUP, world.num_envs) * len(track.packed_obs)
    records = np.zeros(world.num_envs, memory_dtype(player.spec.scenario)) if memories is None else memories
    words = track._replace(packed_obs=track.packed_obs.reshape(*track.held.shape, -1))
    reds = cast(Reds | None, world.reds)
    while first < world.num_envs:
        player.make_room(more)
        if reds is not None:
            reds.make_room(more)
        first = play_compiled(
            world.inside(),
            player.network.actor,
            player.scratch,
            player.table,
            player.greedy,
            player.arrays,
            player.orders,
            player.shields,
            assigned,
            records,
            policy_seed,
            first,
            words,
            None if reds is None else reds.side(*track.actions.shape),
        )
    world.show()


@compiled
def play_compiled(
    inside, actor, scratch, row_table, greedy, spec, orders, shields, assigned, memories, seed, first, track, red
):
    """See `play_steps`. Plays from environment `first` on. Returns the next one to play: below N if a table is full.

    red: a `RedSide`; None, if scripts alone attack: the compiler leaves out what is not needed then.
    """
    steps, n = track.actions.shape
    network.load_output_layer(actor, scratch.work)
    keys, read = np.empty(GROUP, np.uint64), np.empty((GROUP, orders.shape[1]), np.uint64)
    filled, rows, table_slots = row_table.filled, row_table.rows, row_table.slots
    cumulative, likely = row_table.cumulative, row_table.likely
    starts, meanings, shifts, slots, openings = spec.starts, spec.meanings, spec.shifts, spec.slots, spec.openings
    suspicion, first_macro, ranked, forbidden = spec.suspicion, spec.first_macro, shields.ranked, shields.forbidden
    keeping = spec.keeping
    effects, host_slots, host_scans, listed = spec.effects, spec.host_slots, spec.host_scans, spec.listed
    states, tables, chances, red_odds = inside.states, inside.tables[0], inside.chances, inside.red_odds
    views, hosts, rooted, found, choices = track.packed_obs, track.held, track.privileged, track.found, track.choices
    remembers = spec.remembers
    actions, rewards10, ends = track.actions, track.rewards10, track.ended
    if red is not None:
        networks, red_table, red_scratch, picky = red.networks, red.table, red.scratch, red.networks.picky
        red_keys, loaded = np.empty(GROUP, np.uint64), -1
        red_read, red_words = np.empty((GROUP, red_table.rows.shape[1]), np.uint64), red.arrays.words
        red_filled, red_rows, red_slots = red_table.filled, red_table.rows, red_table.slots
        red_cumulative, red_likely, red_starts = red_table.cumulative, red_table.likely, red.arrays.starts
        ports, pairs, gates, subnets = red.arrays.ports, red.arrays.pairs, red.arrays.gates, red.arrays.subnets
        verbs, targets, wishes = red.arrays.verbs, red.arrays.targets, red.arrays.wishes
        red_found, red_choices = red.track.found, red.track.choices
        num_hosts, foothold, goal = red.arrays.hosts, red.arrays.foothold, red.arrays.target
    for start in range(first, n, GROUP):
        stop = min(start + GROUP, n)
        more = (stop - start) * (steps + 1)
        if filled[0] + more > len(rows):
            return start
        if red is not None and red_filled[0] + more > len(red_rows):
            return start
        for i in range(start, stop):
            keys[i - start] = dice.environment_key(dice.environment_key(seed, i), states[i].episode)
            if red is not None:
                red_keys[i - start] = reds.red_key(chances[i].key, states[i].episode)
        for t in range(steps + 1):
            for i in range(start, stop):
                env, chance, memory, g = states[i], chances[i], memories[i], i - start
                order, view = assigned[i], env.observation
                for k in range(read.shape[1]):
                    read[g, k] = orders[order, k]
                table.read_row(
                    memory,
                    starts,
                    listed,
                    suspicion,
                    keeping,
                    first_macro,
                    slots,
                    remembers,
                    ranked,
                    forbidden,
                    order,
                    view,
                    read,
                    g,
                )
                known = filled[0]
                number = table.find_row(table_slots, rows, filled, read, g)
                if number == known:
                    table.answer_row(actor, rows, number, spec.words, scratch)
                    table.enter_odds(scratch.work.outputs, cumulative, likely, number, greedy)
                for k in range(views.shape[2]):
                    views[t, i, k] = view[k]
                hosts[t, i] = rules.held(env)
                rooted[t, i] = env.privileged
                found[t, i] = number
                if red is not None:
                    learned, owner = env.red_agent >= state.LEARNED, env.red_agent - state.LEARNED
                    red_number, red_choice = 0, 0
                    if learned:
                        mine = picky[owner]
                        red_view.read_red(
                            env, red_starts, ports, pairs, num_hosts, foothold, goal, red_words, owner, mine, red_read, g
                        )
                        red_known = red_filled[0]
                        red_number = table.find_row(red_slots, red_rows, red_filled, red_read, g)
                        if red_number == red_known:
                            loaded = reds.answer_red(
                                networks, red_rows, red_number, red_words, red_scratch, red_cumulative, red_likely, loaded
                            )
                    red_found[t, i] = red_number
                if t == steps:
                    continue
                choice = table.opening_choice(openings, keys[g], env.step)
                if choice == table.FREE:
                    choice = table.draw_action(cumulative, likely, number, keys[g], env.step)
                action = remembering.resolve_choice(meanings, shifts, choice, memory)
                reward10, ended = 0, False
                if env.ended and inside.autoreset == rules.NEXT_STEP:
                    rules.next_episode(env, tables, chance, red_odds[i])
                    keys[g] = dice.environment_key(dice.environment_key(seed, i), env.episode)
                    if red is not None:
                        red_keys[g] = reds.red_key(chance.key, env.episode)
                    remembering.forget_one(memory)
                else:
                    if remembers:
                        remembering.remember_one(memory, effects, host_slots, host_scans, listed, view, action, keeping)
                    elif suspicion >= 0:
                        remembering.suspect_one(memory, effects, view, action, keeping)
                    if red is not None and learned:
                        red_choice = table.draw_action(red_cumulative, red_likely, red_number, red_keys[g], env.step)
                        env.red_verb = verbs[red_choice]
                        env.red_target = targets[red_choice]
                        env.red_wish = wishes[red_choice]
                    dice.begin_turn(env, chance)
                    verb, target = attackers.decide_red(env, tables, chance, inside.own)
                    reward10 = rules.step_one(env, tables, action, verb, target, chance, inside.green, inside.max_steps)
                    if red is not None and learned:
                        red_view.digest(env, gates, subnets)
                    ended = env.ended
                    if ended and inside.autoreset == rules.SAME_STEP:
                        rules.next_episode(env, tables, chance, red_odds[i])
                        keys[g] = dice.environment_key(dice.environment_key(seed, i), env.episode)
                        if red is not None:
                            red_keys[g] = reds.red_key(chance.key, env.episode)
                        remembering.forget_one(memory)
                choices[t, i] = choice
                actions[t, i] = action
                rewards10[t, i] = reward10
                ends[t, i] = ended
                if red is not None:
                    red_choices[t, i] = red_choice
    return n


# ---------------------------------------------------------------- whole episodes


class Player(Protocol):
    """Whoever chooses blue's actions in a rollout."""

    def act(self, words: np.ndarray, access: np.ndarray, assigned: np.ndarray, keys: np.ndarray, when: int) -> np.ndarray:
        """Return actions [N] for observations `words` [N]; `access` [N, H] is the truth, for players who may see it.

        assigned [N]: each environment's workflow, an index into the rollout's; keys [N]: of chance; when: the step.
        """
        ...


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
    found: np.ndarray  # [T + 1, B] int32 the policy's row at each step, an index into `rows`
    rows: np.ndarray  # [M, row words] uint64; none of a player that is no `PolicyTable`
    assigned: np.ndarray  # [B] index of each episode's workflow in `workflows`
    workflows: tuple[Workflow, ...]  # empty: played without one
    turns: np.ndarray | None = None  # [T + 1, B] of `turn_dtype`, where they were kept

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


_BY_STEP = ("packed_obs", "held", "privileged", "actions", "rewards10", "choices", "found")


def join(parts: Sequence[Rollout]) -> Rollout:
    """Put rollouts of the same length, workflows and player side by side. The last one's rows are also those before it."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in parts[0]._by_step}
    assigned = np.concatenate([part.assigned for part in parts])
    return Rollout(**columns, rows=parts[-1].rows, assigned=assigned, workflows=parts[0].workflows)


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
    steps, n = world.game.steps, world.num_envs
    if isinstance(player, PolicyTable) and player.spec.scenario != world.scenario:
        raise errors.PolicyError(f"trained on {player.spec.scenario.label}, not on {world.scenario.name}")
    parts, keys, numbers = [], np.empty(n, np.uint64), _numbers_of(player, workflows)
    for number in range(passes):
        episode, assigned = first_episode + number, np.zeros(n, np.int64)
        table.chance_keys(policy_seed, episode, keys)
        if len(workflows) > 1 and not changes:
            assigned[:] = (episode + np.arange(n)) % len(workflows)
        world.reset(world_seed, episode=episode)
        track = Trajectory.empty(steps, n, world.scenario)
        compiles = isinstance(player, PolicyTable) and player.network is not None and not changes and not keep_turns
        turns = [world.turns()] if keep_turns else None
        if compiles and isinstance(world, World):
            play_steps(world, cast(PolicyTable, player), numbers[assigned], policy_seed, track)
        else:
            _step_by_step(world, player, numbers[assigned], keys, track, changes, turns, on_step)
        rows = player.rows if isinstance(player, PolicyTable) else np.empty((0, 1), np.uint64)
        columns = {name: getattr(track, name) for name in _BY_STEP}
        kept = None if turns is None else np.array(turns)
        parts.append(Rollout(**columns, rows=rows, assigned=assigned, workflows=tuple(workflows), turns=kept))
    return join(parts)


def _numbers_of(player: Player, workflows: Sequence[Workflow]) -> np.ndarray:
    """Return the numbers by which a player knows workflows; of one that does not know them all, as they come."""
    if isinstance(player, PolicyTable) and workflows and {*workflows} <= {*player.workflows}:
        return np.array([player.number_of(workflow) for workflow in workflows], np.int64)
    return np.arange(max(len(workflows), 1))


def _step_by_step(
    world: BaseWorld,
    player: Player,
    assigned: np.ndarray,
    keys: np.ndarray,
    track: Trajectory,
    changes: Sequence[Change],
    turns: list[np.ndarray] | None,
    on_step: Callable[[int], None],
) -> None:
    """Play as `play_steps` does, slowly: in any world, any player, orders that change on the way, turns that are kept."""
    assigned, later = assigned.copy(), {change.step - 1: change.workflow for change in changes}
    access = np.empty((len(track.packed_obs), *world.access.shape), np.uint8)
    track.packed_obs[0], access[0] = world.packed_obs, world.access
    for t in range(len(track.actions)):
        if t in later:
            assigned[:] = later[t]
        if isinstance(player, PolicyTable):
            track.found[t], track.choices[t], actions = player.choose(world.packed_obs, assigned, keys, t)
        else:
            track.choices[t] = actions = player.act(world.packed_obs, world.access, assigned, keys, t)
        world.step(actions)
        track.actions[t], track.rewards10[t] = actions, world.rewards10
        track.packed_obs[t + 1], access[t + 1] = world.packed_obs, world.access
        if turns is not None:
            turns.append(world.turns())
        on_step(t + 1)
    if isinstance(player, PolicyTable):
        track.found[-1] = player.look_after(world.packed_obs, assigned)
    track.held[:], track.privileged[:] = repairs.held_mask(access), repairs.held_mask(access, repairs.ROOT)


# ---------------------------------------------------------------- two policies meet


class Duel(NamedTuple):
    """The same B episodes from both sides. Red's choices and rows are in a rollout like blue's, for the same learner."""

    blue: Rollout
    red: Rollout


def collect_duel(world: World, player: Player, reds: Reds, *, first_episode: int, passes: int = 1, **options: Any) -> Duel:
    """Play as `collect` does, where one of these attackers plays in every episode."""
    parts, tracks = [], []
    for number in range(passes):
        reds.begin_track()
        parts.append(collect(world, player, first_episode=first_episode + number, **options))
        tracks.append(reds.end_track(world))
    blue = join(parts)
    found, choices = (np.concatenate(columns, axis=1) for columns in zip(*tracks, strict=True))
    return Duel(blue, blue._replace(found=found, choices=choices, rows=reds.rows, turns=None))
