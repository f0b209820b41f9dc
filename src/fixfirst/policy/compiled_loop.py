"""A network and a game in one compiled loop: many steps of many environments in one call.

The loop finds the row, answers it if it is new, draws, and steps the world. Environments are played in groups of GROUP,
step by step: their states stay in the first cache, and what is written about neighbours lies side by side. No result
depends on the groups. N environments, T steps.
"""

from typing import NamedTuple, cast

import numpy as np

from fixfirst.base.compile import compiled
from fixfirst.game import attackers, chance as dice, red_view, rules, state, tables
from fixfirst.game.scenario import Scenario
from fixfirst.game.simulator import World
from fixfirst.policy import network, reds, remembering
from fixfirst.policy.memories import Memories, read_row
from fixfirst.policy.reds import Reds
from fixfirst.policy.table import FREE, PolicyTable, answer_row, draw_action, enter_odds, find_row, opening_choice

GROUP = 16


class Trajectory(NamedTuple):
    """What happened in T steps of N environments."""

    packed_obs: np.ndarray  # [T + 1, N], or [T + 1, N, W]: uint64 observations; the last: after the last action
    held: np.ndarray  # [T + 1, N] int16 (or int64) sets of hosts red truly held, likewise
    privileged: np.ndarray  # [T + 1, N] of these, those on which red is root
    row_ids: np.ndarray  # [T + 1, N] int32 numbers of the rows the policy read, likewise
    choices: np.ndarray  # [T, N] int16 what the policy chose
    actions: np.ndarray  # [T, N] int16 the world's action that it was
    rewards10: np.ndarray  # [T, N] int32
    ended: np.ndarray  # [T, N] bool: the episode ended in this step

    @classmethod
    def empty(cls, steps: int, num_envs: int, scenario: Scenario) -> "Trajectory":
        hosts = tables.size_of(scenario).host_set
        return cls(
            np.empty((steps + 1, num_envs, *scenario.words_shape), np.uint64),
            np.empty((steps + 1, num_envs), hosts),
            np.empty((steps + 1, num_envs), hosts),
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
    memories: Memories,
) -> None:
    """Play on from where the environments stand, as many steps as `track` holds. assigned [N]: each one's workflow.

    memories: what the policy remembers, changed in place.
    """
    assert player.network is not None, "a function cannot be asked in compiled code"
    first, more = 0, min(GROUP, world.num_envs) * len(track.packed_obs)
    words = track._replace(packed_obs=track.packed_obs.reshape(*track.held.shape, -1))
    learned = cast(Reds | None, world.reds)
    while first < world.num_envs:
        player.make_room(more)
        if learned is not None:
            learned.make_room(more)
        first = play_compiled(
            world.inside(),
            player.network.actor,
            player.scratch,
            player.table,
            player.greedy,
            player.arrays,
            player.openings,
            player.orders,
            player.shields,
            assigned,
            memories.records,
            policy_seed,
            first,
            words,
            None if learned is None else learned.for_kernel(*track.actions.shape),
        )
    world.show()


@compiled
def play_compiled(
    inside, actor, scratch, answered, greedy, spec, openings, orders, shields, assigned, memories, seed, first, track, red
):
    """See `play_steps`. Plays from environment `first` on. Returns the next one to play: below N if a table is full.

    red: a `RedSide`; None, if scripts alone attack: the compiler leaves out what is not needed then.
    """
    steps, n = track.actions.shape
    network.load_output_layer(actor, scratch.work)
    keys, read = np.empty(GROUP, np.uint64), np.empty((GROUP, orders.shape[1]), np.uint64)
    nothing = np.zeros(1, memories.dtype)  # what is remembered when an episode begins
    filled, rows, table_slots = answered.filled, answered.rows, answered.slots
    cumulative, likely = answered.cumulative, answered.likely
    starts, meanings, shifts, slots = spec.starts, spec.meanings, spec.shifts, spec.slots
    suspicion, first_macro, ranked, forbidden = starts[-1], spec.first_macro, shields.ranked, shields.forbidden
    keeping, remembers = spec.keeping, spec.remembers
    effects, host_slots, host_scans, listed = spec.tables
    states, tables, chances, red_odds = inside.states, inside.tables[0], inside.chances, inside.red_odds
    views, hosts, rooted, row_ids, choices = track.packed_obs, track.held, track.privileged, track.row_ids, track.choices
    actions, rewards10, ends = track.actions, track.rewards10, track.ended
    if red is not None:
        networks, red_table, red_scratch, picky = red.networks, red.table, red.scratch, red.networks.picky
        red_keys, loaded = np.empty(GROUP, np.uint64), -1
        red_read, red_words = np.empty((GROUP, red_table.rows.shape[1]), np.uint64), red.arrays.words
        red_filled, red_rows, red_slots = red_table.filled, red_table.rows, red_table.slots
        red_cumulative, red_likely, red_starts = red_table.cumulative, red_table.likely, red.arrays.starts
        ports, pairs, gates, subnets = red.arrays.ports, red.arrays.pairs, red.arrays.gates, red.arrays.subnets
        verbs, targets, wishes = red.arrays.verbs, red.arrays.targets, red.arrays.wishes
        red_row_ids, red_choices = red.track.row_ids, red.track.choices
        num_hosts, goal = red.arrays.hosts, red.arrays.target
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
                read_row(
                    memory, starts, listed, keeping, first_macro, slots, remembers, ranked, forbidden, order, view, read, g
                )
                count = filled[0]
                number = find_row(table_slots, rows, filled, read, g)
                if number == count:
                    answer_row(actor, rows, number, spec.words, scratch)
                    enter_odds(scratch.work.outputs, cumulative, likely, number, greedy)
                for k in range(views.shape[2]):
                    views[t, i, k] = view[k]
                hosts[t, i] = rules.held(env)
                rooted[t, i] = env.privileged
                row_ids[t, i] = number
                if red is not None:
                    learned, owner = env.red_agent >= state.LEARNED, env.red_agent - state.LEARNED
                    red_number, red_choice = 0, 0
                    if learned:
                        mine = picky[owner]
                        red_view.read_red(
                            env, red_starts, ports, pairs, num_hosts, goal, red_words, owner, mine, red_read, g
                        )
                        red_count = red_filled[0]
                        red_number = find_row(red_slots, red_rows, red_filled, red_read, g)
                        if red_number == red_count:
                            loaded = reds.answer_red(
                                networks, red_rows, red_number, red_words, red_scratch, red_cumulative, red_likely, loaded
                            )
                    red_row_ids[t, i] = red_number
                if t == steps:
                    continue
                choice = opening_choice(openings, keys[g], env.step)
                if choice == FREE:
                    choice = draw_action(cumulative, likely, number, keys[g], env.step)
                action = remembering.resolve_choice(meanings, shifts, choice, memory)
                reward10, ended, begins = 0, False, env.ended and inside.autoreset == rules.NEXT_STEP
                if not begins:
                    if remembers:
                        remembering.remember_one(memory, effects, host_slots, host_scans, listed, view, action, keeping)
                    elif suspicion >= 0:
                        remembering.suspect_one(memory, effects, view, action, keeping)
                    if red is not None and learned:
                        red_choice = draw_action(red_cumulative, red_likely, red_number, red_keys[g], env.step)
                        env.red_verb = verbs[red_choice]
                        env.red_target = targets[red_choice]
                        env.red_wish = wishes[red_choice]
                    dice.begin_turn(env, chance)
                    verb, target = attackers.decide_red(env, tables, chance, inside.own)
                    reward10 = rules.step_one(env, tables, action, verb, target, chance, inside.green, inside.max_steps)
                    if red is not None and learned:
                        red_view.digest(env, gates, subnets)
                    ended = env.ended
                    begins = ended and inside.autoreset == rules.SAME_STEP
                if begins:
                    rules.next_episode(env, tables, chance, red_odds[i])
                    keys[g] = dice.environment_key(dice.environment_key(seed, i), env.episode)
                    if red is not None:
                        red_keys[g] = reds.red_key(chance.key, env.episode)
                    memories[i] = nothing[0]
                choices[t, i] = choice
                actions[t, i] = action
                rewards10[t, i] = reward10
                ends[t, i] = ended
                if red is not None:
                    red_choices[t, i] = red_choice
    return n
