"""Many steps of many environments in one compiled call: find the row, answer it if it is new, draw, step the world.

N environments, T steps. Environments are played in groups of GROUP, step by step: their states stay in the first cache, and
what is written about neighbours lies side by side. No result depends on the grouping, because chance is a function
of (seed, environment, episode, step).
"""

from typing import NamedTuple

import numpy as np

from fixfirst.game.chance import environment_key
from fixfirst.game.compiling import compiled
from fixfirst.game.kernel import NEXT_STEP, SAME_STEP, held, next_episode, step_one
from fixfirst.game.memory import MEMORY_DTYPE
from fixfirst.game.remembering import forget_one, remember_one, suspect_one, world_action
from fixfirst.game.world import World
from fixfirst.play.network import fill_up
from fixfirst.play.policy_table import PolicyTable, answer_row, draw_action, enter_odds, find_row, opening_choice, read_row

GROUP = 16


class Track(NamedTuple):
    """What happened in T steps of N environments."""

    words: np.ndarray  # [T + 1, N] uint64 observations; the last row is what came after the last action
    held: np.ndarray  # [T + 1, N] int16 sets of hosts red truly held, likewise
    found: np.ndarray  # [T + 1, N] int32 numbers of the rows the policy read, likewise
    choices: np.ndarray  # [T, N] int16 what the policy chose
    actions: np.ndarray  # [T, N] int16 the world's action that it was
    rewards10: np.ndarray  # [T, N] int32
    ended: np.ndarray  # [T, N] bool: the episode ended in this step

    @classmethod
    def empty(cls, steps: int, num_envs: int) -> "Track":
        return cls(
            np.empty((steps + 1, num_envs), np.uint64),
            np.empty((steps + 1, num_envs), np.int16),
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
    track: Track,
    memories: np.ndarray | None = None,
) -> None:
    """Play on from where the environments stand, as many steps as `track` holds. assigned [N]: each one's workflow.

    memories [N] of MEMORY_DTYPE: what the policy remembers, changed in place; unless given, nothing yet.
    """
    assert player.network is not None, "a function cannot be asked in compiled code"
    first, group = 0, min(GROUP, world.num_envs)
    records = np.zeros(world.num_envs, MEMORY_DTYPE) if memories is None else memories
    while first < world.num_envs:
        player.make_room(group * len(track.words))
        first = play_compiled(
            world.inside(),
            player.network.actor,
            player.desk,
            player.table,
            player.greedy,
            player.arrays,
            player.orders,
            player.shields,
            assigned,
            records,
            policy_seed,
            first,
            track,
        )
    world.show()


@compiled
def play_compiled(inside, actor, desk, table, greedy, role, orders, shields, assigned, memories, seed, first, track):
    """See `play_steps`. Plays from environment `first` on. Returns the next one to play: below N if the table is full."""
    steps, n = track.actions.shape
    fill_up(actor, desk.work)
    keys, read = np.empty(GROUP, np.uint64), np.empty((GROUP, orders.shape[1]), np.uint64)
    filled, rows, table_slots, cumulative, likely = table.filled, table.rows, table.slots, table.cumulative, table.likely
    starts, meanings, shifts, slots, openings = role.starts, role.meanings, role.shifts, role.slots, role.openings
    suspicion, first_macro, ranked, forbidden = role.suspicion, role.first_macro, shields.ranked, shields.forbidden
    states, chances, red_odds = inside.states, inside.chances, inside.red_odds
    words, hosts, found, choices = track.words, track.held, track.found, track.choices
    actions, rewards10, ends = track.actions, track.rewards10, track.ended
    for start in range(first, n, GROUP):
        stop = min(start + GROUP, n)
        if filled[0] + (stop - start) * (steps + 1) > len(rows):
            return start
        for i in range(start, stop):
            keys[i - start] = environment_key(environment_key(seed, i), states[i].episode)
        for t in range(steps + 1):
            for i in range(start, stop):
                env, chance, memory, g = states[i], chances[i], memories[i], i - start
                order, view = assigned[i], env.observation
                for k in range(read.shape[1]):
                    read[g, k] = orders[order, k]
                read_row(
                    memory, starts, suspicion, first_macro, slots, role.remembers, ranked, forbidden, order, view, read, g
                )
                known = filled[0]
                number = find_row(table_slots, rows, filled, read, g)
                if number == known:
                    answer_row(actor, rows, number, role.words, desk)
                    enter_odds(desk.work.outputs, cumulative, likely, number, greedy)
                words[t, i] = env.observation
                hosts[t, i] = held(env)
                found[t, i] = number
                if t == steps:
                    continue
                if env.step < openings.shape[1]:
                    choice = opening_choice(openings, keys[g], env.step)
                else:
                    choice = draw_action(cumulative, likely, number, keys[g], env.step)
                action = world_action(meanings, shifts, choice, memory)
                reward10, ended = 0, False
                if env.ended and inside.autoreset == NEXT_STEP:
                    next_episode(env, chance, red_odds[i])
                    keys[g] = environment_key(environment_key(seed, i), env.episode)
                    forget_one(memory)
                else:
                    if role.remembers:
                        remember_one(memory, env.observation, action)
                    elif suspicion >= 0:
                        suspect_one(memory, env.observation, action)
                    reward10 = step_one(env, action, chance, inside.variant, inside.green, inside.max_steps)
                    ended = env.ended
                    if ended and inside.autoreset == SAME_STEP:
                        next_episode(env, chance, red_odds[i])
                        keys[g] = environment_key(environment_key(seed, i), env.episode)
                        forget_one(memory)
                choices[t, i] = choice
                actions[t, i] = action
                rewards10[t, i] = reward10
                ends[t, i] = ended
    return n
