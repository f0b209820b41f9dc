"""Many steps of many environments in one compiled call: find the row, answer it if it is new, draw, step the world.

N environments, T steps. Environments are played in groups of GROUP, step by step: their states stay in the first cache, and
what is written about neighbours lies side by side. No result depends on the grouping, because chance is a function
of (seed, environment, episode, step).
"""

from typing import NamedTuple

import numpy as np

from fixfirst.game import NEXT_STEP, SAME_STEP, World, compiled, environment_key, held, next_episode, step_one
from fixfirst.play.network import fill_up
from fixfirst.play.policy_table import PolicyTable, answer_row, draw_action, enter_odds, find_row

GROUP = 16


class Track(NamedTuple):
    """What happened in T steps of N environments."""

    words: np.ndarray  # [T + 1, N] uint64 observations; the last row is what came after the last action
    held: np.ndarray  # [T + 1, N] int16 sets of hosts red truly held, likewise
    actions: np.ndarray  # [T, N] int16
    rewards10: np.ndarray  # [T, N] int32
    ended: np.ndarray  # [T, N] bool: the episode ended in this step

    @classmethod
    def empty(cls, steps: int, num_envs: int) -> "Track":
        return cls(
            np.empty((steps + 1, num_envs), np.uint64),
            np.empty((steps + 1, num_envs), np.int16),
            np.empty((steps, num_envs), np.int16),
            np.empty((steps, num_envs), np.int32),
            np.empty((steps, num_envs), np.bool_),
        )


def play_steps(world: World, player: PolicyTable, assigned: np.ndarray, policy_seed: int, track: Track) -> None:
    """Play on from where the environments stand, as many steps as `track` holds. assigned [N]: each one's workflow."""
    assert player.network is not None, "a function cannot be asked in compiled code"
    first, group = 0, min(GROUP, world.num_envs)
    heads, tails = player.read(assigned)
    while first < world.num_envs:
        player.make_room(group * len(track.actions))
        first = play_compiled(
            world.inside(),
            player.network.actor,
            player.desk,
            player.table,
            player.greedy,
            heads,
            tails,
            policy_seed,
            first,
            track,
        )
    world.show()


@compiled
def play_compiled(inside, actor, desk, table, greedy, heads, tails, seed, first, track):
    """See `play_steps`. Plays from environment `first` on. Returns the next one to play: below N if the table is full."""
    steps, n = track.actions.shape
    fill_up(actor, desk.work)
    keys = np.empty(GROUP, np.uint64)
    filled, rows, slots, cumulative, likely = table.filled, table.rows, table.slots, table.cumulative, table.likely
    states, chances, red_odds = inside.states, inside.chances, inside.red_odds
    words, hosts, actions, rewards10, ends = track.words, track.held, track.actions, track.rewards10, track.ended
    for start in range(first, n, GROUP):
        stop = min(start + GROUP, n)
        if filled[0] + (stop - start) * steps > len(rows):
            return start
        for i in range(start, stop):
            keys[i - start] = environment_key(environment_key(seed, i), states[i].episode)
            words[0, i] = states[i].observation
            hosts[0, i] = held(states[i])
        for t in range(steps):
            for i in range(start, stop):
                env, chance = states[i], chances[i]
                known = filled[0]
                number = find_row(slots, rows, filled, heads[i] | env.observation, tails, i)
                if number == known:
                    answer_row(actor, rows, number, desk)
                    enter_odds(desk.work.outputs, cumulative, likely, number, greedy)
                action = draw_action(cumulative, likely, number, keys[i - start], env.step)
                reward10, ended = 0, False
                if env.ended and inside.autoreset == NEXT_STEP:
                    next_episode(env, chance, red_odds[i])
                    keys[i - start] = environment_key(environment_key(seed, i), env.episode)
                else:
                    reward10 = step_one(env, action, chance, inside.variant, inside.green, inside.max_steps)
                    ended = env.ended
                    if ended and inside.autoreset == SAME_STEP:
                        next_episode(env, chance, red_odds[i])
                        keys[i - start] = environment_key(environment_key(seed, i), env.episode)
                actions[t, i] = action
                rewards10[t, i] = reward10
                ends[t, i] = ended
                words[t + 1, i] = env.observation
                hosts[t + 1, i] = held(env)
    return n
