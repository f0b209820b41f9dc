"""Draws of actions, compiled: by counter-based chance keyed by (seed, environment, episode, step), like those of the world.

N environments, M rows, A choices.
"""

import numpy as np

from fixfirst.base.compile import compiled, inlined
from fixfirst.game import chance as dice

FREE = -1  # a step for which an opening says nothing


@inlined
def draw_action(cumulative, likely, number, key, when):
    """The first action whose cumulative odds exceed the draw. The likely one is tried before others are searched."""
    last = cumulative.shape[1] - 1
    threshold = dice.counter_uniform(key, when) * cumulative[number, last]
    low, high = 0, last
    guess = likely[number]
    if cumulative[number, guess] > threshold:
        if guess == 0 or cumulative[number, guess - 1] <= threshold:
            return guess
        high = guess
    while low < high:
        middle = (low + high) // 2
        if cumulative[number, middle] > threshold:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def opening_choice(openings, key, when):
    """The choice of this step, by the opening that is drawn for an episode: with the draw of its first step. FREE later."""
    if when >= openings.shape[1]:
        return FREE
    return openings[np.int64(dice.counter_uniform(key, 0) * len(openings)), when]


@compiled
def draw_choices(table, row_ids, keys, steps, openings, choices):
    """Fill choices [N] of environments that read rows row_ids [N], at these steps [N] of their episodes."""
    for i in range(len(row_ids)):
        choices[i] = opening_choice(openings, keys[i], steps[i])
        if choices[i] == FREE:
            choices[i] = draw_action(table.cumulative, table.likely, row_ids[i], keys[i], steps[i])


@compiled
def chance_keys(seed, episode, keys):
    """Fill keys [N] uint64, one per environment, for the draws of one episode."""
    for i in range(len(keys)):
        keys[i] = dice.environment_key(dice.environment_key(seed, i), episode)


@compiled
def uniform(keys, when, scale, out):
    """Fill out [N] with draws in [0, scale)."""
    for i in range(len(keys)):
        out[i] = dice.counter_uniform(keys[i], when) * scale[i]
