"""From a rollout to what an update learns from: distinct rows, returns and advantages, sums per row and per pair. Compiled.

T steps, B episodes, M = T * B transitions, U distinct rows, P (row, action) pairs that occurred.
CAGE2 episodes end by their step limit only: the end is a truncation, and no return runs across it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fixfirst.base.compile import called, compiled
from fixfirst.game.chance import chance_keys, uniform
from fixfirst.play.rollout import Rollout
from fixfirst.policy import network
from fixfirst.settings.ppo import PPOConfig


class DistinctInputs(NamedTuple):
    """The distinct rows of a rollout."""

    rows: np.ndarray  # [V, row words] uint64: V >= U, the last V - U were seen after the last action only
    used: int  # U
    row_of: np.ndarray  # [T + 1, B] int64: the row of each step, and of what came after the last one


def distinct_rows(rollout: Rollout, seed: int | None = None) -> DistinctInputs:
    """Return the distinct rows in the order of first visit; with a seed, those visited before an action are shuffled."""
    numbers, met = np.full(len(rollout.rows), -1, np.int64), np.empty(len(rollout.rows), np.int64)
    row_of = np.empty(rollout.row_ids.shape, np.int64)
    used, count = number_rows(np.ascontiguousarray(rollout.row_ids), numbers, met, row_of)
    if seed is not None:
        keys, draws = np.empty(used, np.uint64), np.empty(used)
        chance_keys(seed, 0, keys)
        uniform(keys, 0, np.ones(used), draws)
        order = np.concatenate([np.argsort(draws, kind="stable"), np.arange(used, count)])
        met[:count], row_of = met[order], np.argsort(order, kind="stable")[row_of]
    return DistinctInputs(rollout.rows[met[:count]], used, row_of)


@compiled
def number_rows(before, numbers, met, row_of):
    """Fill row_of [T + 1, B] with new numbers for those of before [T + 1, B], and met with the old ones in their order.

    numbers [M]: all -1. Returns how many were met before the last action, and how many in all.
    """
    steps, episodes = before.shape
    used, count = 0, 0
    for t in range(steps):
        used = count if t == steps - 1 else used
        for i in range(episodes):
            old = before[t, i]
            if numbers[old] < 0:
                numbers[old] = count
                met[count] = old
                count += 1
            row_of[t, i] = numbers[old]
    return used, count


@compiled
def bits_of_rows(rows, words, starts, active):
    """Fill starts [V + 1] and active: the set bits in the first words of row v are active[starts[v] : starts[v + 1]]."""
    starts[0] = 0
    for v in range(len(rows)):
        starts[v + 1] = network.list_bits(rows, v, words, active, starts[v])


_IDLE = 0.01  # of all episodes' spread: a group that differs by less, such as games in which nothing happens, teaches little


def discounted_returns(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """[T, B] sum of the episode's rewards from each step on, the later ones discounted."""
    returns = np.array(rewards, np.float64)
    discount(returns, gamma)
    return returns


def gae(rewards: np.ndarray, values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """[T, B] advantages (Schulman et al. 2016). values [T + 1, B]; the last row is worth what follows the step limit."""
    return discounted_returns(rewards + gamma * values[1:] - values[:-1], gamma * lam)


def targets(
    config: PPOConfig, rewards: np.ndarray, values: np.ndarray, groups: Sequence[int] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and value targets, both [T, B] float64, from rewards [T, B] and values [T + 1, B].

    groups: how many episodes, one beside the other, belong together; the advantages of each are normalised by themselves.
    """
    rewards, values = rewards * config.reward_scale, values.astype(np.float64)
    if config.returns == "monte_carlo":
        returns = discounted_returns(rewards, config.gamma)
        normalise(returns, 1e-7)
        return returns - values[:-1], returns
    if not config.bootstrap:
        values[-1] = 0.0
    advantages = gae(rewards, values, config.gamma, config.gae_lambda)
    returns = advantages + values[:-1]
    if not groups:
        normalise(advantages, 1e-8)
        return advantages, returns
    least = _IDLE * float(advantages.std()) + 1e-8
    parts = [np.ascontiguousarray(part) for part in np.split(advantages, np.cumsum(groups)[:-1], axis=1)]
    for part in parts:
        normalise(part, least)
    return np.concatenate(parts, axis=1), returns


@compiled
def discount(x, factor):
    """x [T, B] becomes x[t] + factor * x[t + 1] + factor^2 * x[t + 2] + ..."""
    for t in range(len(x) - 2, -1, -1):
        for i in range(x.shape[1]):
            x[t, i] += factor * x[t + 1, i]


@compiled
def normalise(x, least):
    """x [T, B] gets mean 0 and standard deviation 1, or less than that if it was nearly constant (`least`)."""
    columns = np.empty(x.shape[1])
    mean = total_of(x, 0.0, False, columns) / x.size
    deviation = math.sqrt(total_of(x, mean, True, columns) / x.size) + least
    for t in range(len(x)):
        for i in range(x.shape[1]):
            x[t, i] = (x[t, i] - mean) / deviation


@called
def total_of(x, shift, squared, columns):
    """The sum of x [T, B] less `shift`, or of its squares; columns [B]: room to work in."""
    columns[:] = 0.0
    for t in range(len(x)):
        for i in range(x.shape[1]):
            gap = x[t, i] - shift
            columns[i] += gap * gap if squared else gap
    total = 0.0
    for i in range(x.shape[1]):
        total += columns[i]
    return total


class UpdateBatch(NamedTuple):
    """What one update learns from: U distinct rows and the pairs that occurred in them."""

    starts: np.ndarray  # [U + 1] int64: the set bits of row u are active[starts[u]:starts[u + 1]]
    active: np.ndarray  # int64
    allowed: np.ndarray  # [U, A] bool; [0, A]: all actions are allowed in all rows
    visits: np.ndarray  # [U] float32: transitions
    returns: np.ndarray  # [U] float32: sum of their returns
    squares: np.ndarray  # [U] float32: sum of the squares
    first_pair: np.ndarray  # [U + 1] int64: the pairs of row u are those from first_pair[u] to before first_pair[u + 1]
    action: np.ndarray  # [P] int64
    pair_visits: np.ndarray  # [P] float32: transitions
    gain: np.ndarray  # [P] float32: sum of their positive advantages
    loss: np.ndarray  # [P] float32: sum of their negative advantages


@compiled
def aggregate(starts, active, allowed, row_of, actions, advantages, returns, used, num_actions):
    """Rows of row_of [T + 1, B] (its last row is left out), actions, advantages and returns, all [T, B]."""
    steps, episodes = actions.shape
    total = steps * episodes
    visits, sums, squares = np.zeros(used), np.zeros(used), np.zeros(used)
    for t in range(steps):
        for i in range(episodes):
            row = row_of[t, i]
            visits[row] += 1
            sums[row] += returns[t, i]
            squares[row] += returns[t, i] * returns[t, i]

    # Transitions sorted by row, in the order of time within a row.
    begin = np.zeros(used + 1, np.int64)
    for row in range(used):
        begin[row + 1] = begin[row] + np.int64(visits[row])
    cursor, ordered = begin[:-1].copy(), np.empty(total, np.int64)
    for t in range(steps):
        for i in range(episodes):
            row = row_of[t, i]
            ordered[cursor[row]] = t * episodes + i
            cursor[row] += 1

    first_pair, action = np.zeros(used + 1, np.int64), np.empty(total, np.int64)
    pair_visits, gain, loss = np.zeros(total), np.zeros(total), np.zeros(total)
    pair_of = np.full(num_actions, -1, np.int64)  # within the row at hand
    pairs = 0
    for row in range(used):
        for k in range(begin[row], begin[row + 1]):
            t, i = ordered[k] // episodes, ordered[k] % episodes
            chosen = np.int64(actions[t, i])
            if pair_of[chosen] < 0:
                pair_of[chosen] = pairs
                action[pairs] = chosen
                pairs += 1
            pair = pair_of[chosen]
            pair_visits[pair] += 1
            gain[pair] += max(advantages[t, i], 0.0)
            loss[pair] += min(advantages[t, i], 0.0)
        first_pair[row + 1] = pairs
        for pair in range(first_pair[row], pairs):
            pair_of[action[pair]] = -1
    return UpdateBatch(
        starts[: used + 1],
        active,
        allowed,
        visits.astype(np.float32),
        sums.astype(np.float32),
        squares.astype(np.float32),
        first_pair,
        action[:pairs],
        pair_visits[:pairs].astype(np.float32),
        gain[:pairs].astype(np.float32),
        loss[:pairs].astype(np.float32),
    )
