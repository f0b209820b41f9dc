"""PPO's gradient on distinct rows, compiled: all epochs of one update in one call.

U distinct rows, P (row, action) pairs that occurred, M transitions; R rows at a time; H hidden units, A actions, I inputs.

Within one pair all transitions have the same probability ratio r, so that the clipped objective

    sum over transitions of min(r a, clip(r) a)  =  gain * min(r, 1 + clip) + loss * max(r, 1 - clip)

needs of their advantages a only the sum of the positive ones (gain) and of the negative ones (loss). The value loss needs
of a row's returns y only their count n, sum and sum of squares: sum (v - y)^2 = n v^2 - 2 v sum y + sum y^2. This is the
mathematics of one row per transition, at a price that does not depend on their number.
"""

import math
from typing import NamedTuple

import numpy as np

from fixfirst.game import compiled
from fixfirst.play import (
    ONE,
    STRIDE,
    TWO,
    ZERO,
    Layers,
    add_product,
    add_scaled,
    arithmetic,
    dots,
    exponential,
    exponentials,
    filled_up,
    forward,
    log,
    lower_to_largest,
    totals,
)

BLOCK = 32  # rows at a time: what they need stays in the first cache
_EPSILON = np.float32(1e-8)
_TINY = np.float32(
    1e-15
)  # far below epsilon, so that it counts as 0: moments that fade away would end as subnormal numbers,
# which CPUs compute a hundred times slower


class Settings(NamedTuple):
    """Numbers that steer one update."""

    epochs: int
    transitions: np.float32
    clip: np.float32
    entropy: np.float32
    value: np.float32
    max_grad_norm: np.float32
    learning_rate: float
    beta1: float
    beta2: float


# ---------------------------------------------------------------- one update


@compiled
def learn(network, gradient, moment1, moment2, steps, rows, settings, stats):
    """Improve `network` in place, epoch by epoch.

    gradient: of the same kind, scratch. moment1, moment2: Adam's, [all numbers of the network]; steps: taken before these.
    stats [5] float64: policy loss, value loss, entropy, approximate KL divergence and clip fraction in the last epoch.
    """
    room = make_room(len(network.actor.bias1), len(network.actor.bias3))
    old = np.empty(len(rows.action), np.float32)  # log-probabilities of the pairs before the first step
    for epoch in range(settings.epochs):
        gradient.vector[:] = 0
        stats[:] = 0
        policy_gradient(network.actor, gradient.actor, rows, old, epoch == 0, settings, room, stats)
        value_gradient(network.critic, gradient.critic, rows, settings, room, stats)
        clip_norm(gradient.vector, settings.max_grad_norm)
        adam(network.vector, gradient.vector, moment1, moment2, steps + epoch + 1, settings)


class Room(NamedTuple):
    """Where a block of rows is worked on."""

    hidden1: np.ndarray  # [R, H] after tanh
    hidden2: np.ndarray  # [R, H]
    logits: np.ndarray  # [R, A], later the gradient with respect to them
    values: np.ndarray  # [R, 1], likewise
    back2: np.ndarray  # [R, H] gradient with respect to what goes into tanh
    back1: np.ndarray  # [R, H]
    odds: np.ndarray  # [R, A]
    sums: np.ndarray  # [R]
    means: np.ndarray  # [R]
    scratch: np.ndarray  # [R * H]
    powers: np.ndarray  # [R * H, A at least] int32


@arithmetic
def make_room(hidden, actions):
    """The actions are filled up to a multiple of STRIDE."""
    width = -(-actions // STRIDE) * STRIDE
    return Room(
        np.empty((BLOCK, hidden), np.float32),
        np.empty((BLOCK, hidden), np.float32),
        np.empty((BLOCK, width), np.float32),
        np.empty((BLOCK, 1), np.float32),
        np.empty((BLOCK, hidden), np.float32),
        np.empty((BLOCK, hidden), np.float32),
        np.empty((BLOCK, width), np.float32),
        np.empty(BLOCK, np.float32),
        np.empty(BLOCK, np.float32),
        np.empty(BLOCK * hidden, np.float32),
        np.empty(BLOCK * max(hidden, width), np.int32),
    )


@compiled
def values_of_rows(critic, starts, active, values):
    """Fill values [V] of rows whose set bits are active[starts[v]:starts[v + 1]]."""
    room = make_room(len(critic.bias1), STRIDE)
    for first in range(0, len(values), BLOCK):
        last = min(first + BLOCK, len(values))
        outputs = room.values[: last - first]
        forward(
            critic,
            starts[first : last + 1],
            active,
            room.hidden1,
            room.hidden2,
            outputs,
            room.scratch,
            room.powers,
        )
        values[first:last] = outputs[:, 0]


# ---------------------------------------------------------------- losses


@arithmetic
def policy_gradient(actor, gradient, rows, old, is_first, settings, room, stats):
    """Add the gradient of the policy loss and of the entropy bonus. is_first: `old` [P] is still to be filled."""
    actions, width = len(actor.bias3), room.logits.shape[1]
    matrix3, bias3 = filled_up(actor.matrix3, actor.bias3, width)
    wide = Layers(actor.matrix1, actor.bias1, actor.matrix2, actor.bias2, matrix3, bias3)
    slope3, slope_bias3 = np.zeros(matrix3.shape, np.float32), np.zeros(width, np.float32)
    wide_gradient = Layers(gradient.matrix1, gradient.bias1, gradient.matrix2, gradient.bias2, slope3, slope_bias3)
    back2, back3 = transposed(actor.matrix2), transposed(matrix3)
    pair_slopes = np.empty(len(old), np.float32)
    for first in range(0, len(rows.count), BLOCK):
        last = min(first + BLOCK, len(rows.count))
        starts, logits, odds = rows.starts[first : last + 1], room.logits[: last - first], room.odds[: last - first]
        forward(wide, starts, rows.active, room.hidden1, room.hidden2, logits, room.scratch, room.powers)
        if len(rows.allowed):
            bar(logits, rows.allowed[first:last])
        lower_to_largest(logits)
        odds[:] = logits
        exponentials(odds.reshape(-1), room.powers[: odds.size])
        totals(odds, room.sums)
        dots(odds, logits, 1, room.means)
        slopes(logits, odds, rows, first, old, is_first, settings, room.sums, room.means, pair_slopes, stats)
        backward(wide_gradient, starts, rows.active, logits, back2, back3, room)
    gradient.matrix3[:] = slope3[:, :actions]
    gradient.bias3[:] = slope_bias3[:actions]


@arithmetic
def bar(logits, allowed):
    """Actions that are not allowed, [R, A], are not taken."""
    for r in range(len(logits)):
        for a in range(allowed.shape[1]):
            if not allowed[r, a]:
                logits[r, a] = -np.float32(np.inf)


@arithmetic
def slopes(logits, odds, rows, first_row, old, is_first, settings, sums, means, pair_slopes, stats):
    """Turn the logits [R, A] of the rows from `first_row` on into the loss's gradient with respect to them.

    A row's largest logit is 0; odds = e^logits, sums [R] theirs, means [R] the sums of odds * logits. With p = odds / sum, g
    the derivative of the loss with respect to a pair's log-probability, G the sum of the row's: the gradient is g - p G, and
    for the entropy bonus weight * p (log p + entropy). pair_slopes [P]: g, scratch.
    """
    low, high, share = ONE - settings.clip, ONE + settings.clip, ONE / settings.transitions
    policy_loss, entropies, divergence, clipped = 0.0, 0.0, 0.0, 0.0
    for r in range(len(logits)):
        row = first_row + r
        first, last, log_sum, sum_slopes = rows.first_pair[row], rows.first_pair[row + 1], np.float32(log(sums[r])), ZERO
        for k in range(first, last):
            log_prob = logits[r, rows.action[k]] - log_sum
            if is_first:
                old[k] = log_prob
            log_ratio = log_prob - old[k]
            ratio = exponential(log_ratio)
            slope = ZERO
            if ratio <= high:
                slope += rows.gain[k]
            if ratio >= low:
                slope += rows.loss[k]
            pair_slopes[k] = -share * ratio * slope
            sum_slopes += pair_slopes[k]
            policy_loss -= rows.gain[k] * min(ratio, high) + rows.loss[k] * max(ratio, low)
            divergence += rows.pair_count[k] * (ratio - ONE - log_ratio)
            if ratio < low or ratio > high:
                clipped += rows.pair_count[k]

        entropy = log_sum - means[r] / sums[r]
        entropies += rows.count[row] * entropy
        weight, inverse = settings.entropy * rows.count[row] * share, ONE / sums[r]
        constant = weight * (entropy - log_sum) - sum_slopes
        for a in range(logits.shape[1]):
            logits[r, a] = odds[r, a] * inverse * (constant + weight * logits[r, a])
        for k in range(first, last):
            logits[r, rows.action[k]] += pair_slopes[k]
    stats[0] += policy_loss
    stats[2] += entropies
    stats[3] += divergence
    stats[4] += clipped


@arithmetic
def value_gradient(critic, gradient, rows, settings, room, stats):
    """Add the gradient of the value loss."""
    back2, back3 = transposed(critic.matrix2), transposed(critic.matrix3)
    factor = TWO * settings.value / settings.transitions
    for first in range(0, len(rows.count), BLOCK):
        last = min(first + BLOCK, len(rows.count))
        starts, values = rows.starts[first : last + 1], room.values[: last - first]
        forward(critic, starts, rows.active, room.hidden1, room.hidden2, values, room.scratch, room.powers)
        for r in range(last - first):
            row, value = first + r, values[r, 0]
            stats[1] += rows.count[row] * value * value - TWO * value * rows.returns[row] + rows.squares[row]
            values[r, 0] = factor * (rows.count[row] * value - rows.returns[row])
        backward(gradient, starts, rows.active, values, back2, back3, room)


# ---------------------------------------------------------------- backward


@arithmetic
def backward(gradient, starts, active, outputs, back2, back3, room):
    """Add to a network's gradient what R rows contribute. outputs [R, N]: the loss's gradient with respect to theirs.

    back2 [H, H], back3 [N, H]: its matrices, transposed. Uses what `forward` left in `room`.
    """
    n = len(outputs)
    hidden1, hidden2, slope1, slope2 = room.hidden1[:n], room.hidden2[:n], room.back1[:n], room.back2[:n]
    if outputs.shape[1] == 1:
        add_outer(
            outputs, hidden2, gradient.matrix3.reshape(1, -1)
        )  # a column laid down, for loops that are not of length 1
    else:
        add_outer(hidden2, outputs, gradient.matrix3)
    slope2[:] = 0
    add_product(outputs, back3, slope2)
    through_tanh(hidden2, slope2)
    add_outer(hidden1, slope2, gradient.matrix2)
    slope1[:] = 0
    add_product(slope2, back2, slope1)
    through_tanh(hidden1, slope1)
    for r in range(n):
        add_scaled(ONE, outputs[r], gradient.bias3)
        add_scaled(ONE, slope2[r], gradient.bias2)
        add_scaled(ONE, slope1[r], gradient.bias1)
    scatter(slope1, starts, active, gradient.matrix1)


@arithmetic
def scatter(slope, starts, active, gradient):
    """Add slope [R, H] to the lines of gradient [I, H] that belong to the rows' set bits."""
    for r in range(len(slope)):
        for k in range(starts[r], starts[r + 1]):
            bit = active[k]
            for h in range(slope.shape[1]):
                gradient[bit, h] += slope[r, h]


@arithmetic
def through_tanh(hidden, slope):
    """slope [R, H] *= 1 - tanh^2."""
    for r in range(len(hidden)):
        for h in range(hidden.shape[1]):
            slope[r, h] *= ONE - hidden[r, h] * hidden[r, h]


@arithmetic
def add_outer(a, b, c):
    """c [J, N] += a [M, J] transposed times b [M, N]. Every number of c adds its terms in the order of M."""
    terms, height = a.shape
    for i in range(0, terms - 3, 4):
        b0, b1, b2, b3 = b[i], b[i + 1], b[i + 2], b[i + 3]
        for j in range(0, height - 1, 2):
            c0, c1 = c[j], c[j + 1]
            p0, p1, p2, p3 = a[i, j], a[i + 1, j], a[i + 2, j], a[i + 3, j]
            q0, q1, q2, q3 = a[i, j + 1], a[i + 1, j + 1], a[i + 2, j + 1], a[i + 3, j + 1]
            for n in range(len(c0)):
                c0[n] = c0[n] + p0 * b0[n] + p1 * b1[n] + p2 * b2[n] + p3 * b3[n]
                c1[n] = c1[n] + q0 * b0[n] + q1 * b1[n] + q2 * b2[n] + q3 * b3[n]
        for j in range(height - height % 2, height):
            p0, p1, p2, p3 = a[i, j], a[i + 1, j], a[i + 2, j], a[i + 3, j]
            line = c[j]
            for n in range(len(line)):
                line[n] = line[n] + p0 * b0[n] + p1 * b1[n] + p2 * b2[n] + p3 * b3[n]
    for i in range(terms - terms % 4, terms):
        for j in range(height):
            add_scaled(a[i, j], b[i], c[j])


@arithmetic
def transposed(matrix):
    """A copy, in C order."""
    out = np.empty((matrix.shape[1], matrix.shape[0]), np.float32)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[j, i] = matrix[i, j]
    return out


# ---------------------------------------------------------------- Adam (Kingma & Ba 2015)


@arithmetic
def clip_norm(gradient, largest):
    """Scale the gradient down to this norm, if it is longer."""
    width = 1024  # in partial sums side by side
    lanes, whole = np.zeros((1, width), np.float32), len(gradient) - len(gradient) % width
    for start in range(0, whole, width):
        for lane in range(width):
            lanes[0, lane] += gradient[start + lane] * gradient[start + lane]
    for i in range(whole, len(gradient)):
        lanes[0, i - whole] += gradient[i] * gradient[i]
    squared = np.empty(1, np.float32)
    totals(lanes, squared)
    norm = math.sqrt(squared[0])
    if norm > largest:
        factor = largest / norm
        for i in range(len(gradient)):
            gradient[i] *= factor


@arithmetic
def adam(vector, gradient, moment1, moment2, step, settings):
    """One step; `step` counts from 1."""
    beta1, beta2 = np.float32(settings.beta1), np.float32(settings.beta2)
    rest1, rest2 = np.float32(1 - settings.beta1), np.float32(1 - settings.beta2)
    rate = np.float32(settings.learning_rate / (1 - power(settings.beta1, step)))
    unbias = np.float32(1 / math.sqrt(1 - power(settings.beta2, step)))
    for i in range(len(vector)):
        slope = gradient[i] if abs(gradient[i]) > _TINY else ZERO
        first = beta1 * moment1[i] + rest1 * slope
        second = beta2 * moment2[i] + rest2 * slope * slope
        moment1[i] = first if abs(first) > _TINY else ZERO
        moment2[i] = second if second > _TINY * _TINY else ZERO
        vector[i] -= rate * moment1[i] / (math.sqrt(moment2[i]) * unbias + _EPSILON)


@arithmetic
def power(base, exponent):
    """base ** exponent for a whole exponent, by squaring: the C library's differs between CPUs."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
