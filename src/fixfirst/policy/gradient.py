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

from fixfirst.base.compile import called, compiled
from fixfirst.policy import network, vectors

_BLOCK = 32  # rows at a time: what they need stays in the first cache
ACTOR, CRITIC = 1, 2  # which network learns; 3: both
VALUE_LOSS = 1  # where it stands among an update's statistics
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
_EPSILON = np.float32(1e-8)
# Far below epsilon, so that it counts as 0: moments that fade away would end as subnormal numbers, which CPUs compute a
# hundred times slower.
_TINY = np.float32(1e-15)


class PPONumbers(NamedTuple):
    """Numbers that steer one update."""

    epochs: int
    clip: np.float32
    entropy: np.float32
    value: np.float32
    max_grad_norm: np.float32
    learning_rate: float
    beta1: float
    beta2: float
    parts: int  # of an epoch, each a share of the rows
    split: int  # how many numbers of the gradient, the actor's, are clipped apart from the others; 0: all together


class BackwardScratch(NamedTuple):
    """Where one network is worked on, forward and backward; W = outputs filled up to whole tiles."""

    work: network.LayerBuffers
    back2: np.ndarray  # [H, H] the second layer's matrix, transposed
    back3: np.ndarray  # [W, H] the third's
    matrix3: np.ndarray  # [H, W] gradient of the third layer
    bias3: np.ndarray  # [W]
    slope1: np.ndarray  # [R, H] gradients with respect to what goes into tanh
    slope2: np.ndarray  # [R, H]
    odds: np.ndarray  # [R, W]
    ones: np.ndarray  # [R, W]

    @classmethod
    def make(cls, outputs: int) -> "BackwardScratch":
        work = network.LayerBuffers.make(_BLOCK, outputs)
        width = len(work.bias3)
        return cls(
            work,
            back2=np.zeros((network.HIDDEN, network.HIDDEN), np.float32),
            back3=np.zeros((width, network.HIDDEN), np.float32),
            matrix3=np.zeros((network.HIDDEN, width), np.float32),
            bias3=np.zeros(width, np.float32),
            slope1=np.zeros((_BLOCK, network.HIDDEN), np.float32),
            slope2=np.zeros((_BLOCK, network.HIDDEN), np.float32),
            odds=np.zeros((_BLOCK, width), np.float32),
            ones=np.ones((_BLOCK, width), np.float32),
        )


@compiled
def learn(net, gradient, moment1, moment2, steps, rows, settings, actor_bench, critic_bench, stats, which):
    """Improve `network` in place, epoch by epoch.

    gradient: of the same kind, scratch. moment1, moment2: Adam's, [all numbers of the network]; steps: taken before these.
    stats [5] float64: policy loss, value loss, entropy, approximate KL divergence and clip fraction in the last epoch.
    which: ACTOR, CRITIC, or both; if their gradients are clipped apart, they may learn at the same time.
    """
    begin_number = 0 if which & ACTOR else settings.split
    end_number = len(net.vector) if which & CRITIC else settings.split
    slopes_of = gradient.vector[begin_number:end_number]
    old = np.empty(len(rows.action), np.float32)  # log-probabilities of the pairs before the first step
    pair_slopes = np.empty(len(rows.action), np.float32)
    taken, count = steps, len(rows.visits)
    if which & ACTOR and settings.parts > 1:  # a part changes the policy before the next is looked at
        span = 0, count, _ZERO
        policy_gradient(net.actor, gradient.actor, rows, span, old, True, pair_slopes, settings, actor_bench, stats)
    for epoch in range(settings.epochs):
        for number in range(len(stats)):
            if which & (CRITIC if number == VALUE_LOSS else ACTOR):
                stats[number] = 0
        for part in range(settings.parts):
            begin_row, end_row = part * count // settings.parts, (part + 1) * count // settings.parts
            transitions = _ZERO
            for row in range(begin_row, end_row):
                transitions += rows.visits[row]
            share = _ONE / max(transitions, _ONE)
            slopes_of[:] = 0
            span = begin_row, end_row, share
            is_new = settings.parts == 1 and epoch == 0
            if which & ACTOR:
                policy_gradient(
                    net.actor, gradient.actor, rows, span, old, is_new, pair_slopes, settings, actor_bench, stats
                )
            if which & CRITIC:
                value_gradient(net.critic, gradient.critic, rows, span, settings, critic_bench, stats)
            clip_norm(slopes_of[: settings.split - begin_number], settings.max_grad_norm)
            clip_norm(slopes_of[settings.split - begin_number :], settings.max_grad_norm)
            taken += 1
            numbers, first, second = (
                net.vector[begin_number:end_number],
                moment1[begin_number:end_number],
                moment2[begin_number:end_number],
            )
            adam(numbers, slopes_of, first, second, taken, settings)


@compiled
def values_of_rows(critic, starts, active, work, values):
    """Fill values [V] of rows whose set bits are active[starts[v] : starts[v + 1]]."""
    network.load_output_layer(critic, work)
    for first in range(0, len(values), _BLOCK):
        rows = min(_BLOCK, len(values) - first)
        network.forward(critic, starts, active, first, rows, work)
        for r in range(rows):
            values[first + r] = work.outputs[r, 0]


@called
def policy_gradient(actor, gradient, rows, span, old, is_new, pair_slopes, settings, scratch, stats):
    """Add the gradient of the policy loss and of the entropy bonus, on a span of rows: first, end, share of a transition.

    is_new: their log-probabilities `old` [P] are taken down first; with a share of 0, nothing else is done.
    """
    begin(actor, scratch)
    begin_row, end_row, share = span
    logits, odds = scratch.work.outputs, scratch.odds
    for first in range(begin_row, end_row, _BLOCK):
        n = min(_BLOCK, end_row - first)
        network.forward(actor, rows.starts, rows.active, first, n, scratch.work)
        if len(rows.allowed):
            mask_logits(logits, rows.allowed, first, n)
        network.subtract_row_max(logits, n)
        for r in range(n):
            for a in range(logits.shape[1]):
                odds[r, a] = network.exp_nonpositive(logits[r, a])
        slopes(rows, first, n, share, old, is_new, pair_slopes, settings, scratch, stats)
        if share > _ZERO:
            backward(gradient, rows.starts, rows.active, first, n, scratch)
    end(gradient, scratch)


@called
def mask_logits(logits, allowed, first, n):
    """Actions that are not allowed in the n rows from `first` on, [U, A], are not taken."""
    for r in range(n):
        for a in range(allowed.shape[1]):
            logits[r, a] = logits[r, a] if allowed[first + r, a] else -network.INFINITY


@called
def slopes(rows, first_row, n, share, old, is_new, pair_slopes, settings, scratch, stats):
    """Turn the logits [R, A] of the n rows from `first_row` on into the loss's gradient with respect to them.

    A row's largest logit is 0; odds = e^logits. With p = odds / their sum, g the derivative of the loss with respect to a
    pair's log-probability, G the sum of the row's: the gradient is g - p G, and for the entropy bonus
    weight * p (log p + entropy). pair_slopes [P]: g, scratch.
    """
    logits, odds = scratch.work.outputs, scratch.odds
    width = logits.shape[1]
    low, high = _ONE - settings.clip, _ONE + settings.clip
    policy_loss, entropies, divergence, clipped = 0.0, 0.0, 0.0, 0.0
    for r in range(n):
        row, total = first_row + r, vectors.dot(odds, scratch.ones, r, width)
        first, last, sum_slopes = rows.first_pair[row], rows.first_pair[row + 1], _ZERO
        log_sum = np.float32(network.log_of(total))
        for k in range(first, last):
            log_prob = logits[r, rows.action[k]] - log_sum
            if is_new:
                old[k] = log_prob
            log_ratio = log_prob - old[k]
            ratio = network.exponential(log_ratio)
            slope = _ZERO
            if ratio <= high:
                slope += rows.gain[k]
            if ratio >= low:
                slope += rows.loss[k]
            pair_slopes[k] = -share * ratio * slope
            sum_slopes += pair_slopes[k]
            policy_loss -= rows.gain[k] * min(ratio, high) + rows.loss[k] * max(ratio, low)
            divergence += rows.pair_visits[k] * (ratio - _ONE - log_ratio)
            if ratio < low or ratio > high:
                clipped += rows.pair_visits[k]

        entropy = log_sum - vectors.dot(odds, logits, r, width) / total
        entropies += rows.visits[row] * entropy
        weight, inverse = settings.entropy * rows.visits[row] * share, _ONE / total
        constant = weight * (entropy - log_sum) - sum_slopes
        for a in range(width):
            logits[r, a] = odds[r, a] * inverse * (constant + weight * logits[r, a])
        for k in range(first, last):
            logits[r, rows.action[k]] += pair_slopes[k]
    stats[0] += policy_loss
    stats[2] += entropies
    stats[3] += divergence
    stats[4] += clipped


@called
def value_gradient(critic, gradient, rows, span, settings, scratch, stats):
    """Add the gradient of the value loss, on a span of rows."""
    begin(critic, scratch)
    begin_row, end_row, share = span
    outputs, factor = scratch.work.outputs, _TWO * settings.value * share
    for first in range(begin_row, end_row, _BLOCK):
        n = min(_BLOCK, end_row - first)
        network.forward(critic, rows.starts, rows.active, first, n, scratch.work)
        for r in range(n):
            row, value = first + r, outputs[r, 0]
            stats[VALUE_LOSS] += rows.visits[row] * value * value - _TWO * value * rows.returns[row] + rows.squares[row]
            outputs[r, 0] = factor * (rows.visits[row] * value - rows.returns[row])
            for unused in range(1, outputs.shape[1]):
                outputs[r, unused] = _ZERO
        backward(gradient, rows.starts, rows.active, first, n, scratch)
    end(gradient, scratch)


@called
def begin(net, scratch):
    """Make a scratch ready for a network whose weights may have changed."""
    network.load_output_layer(net, scratch.work)
    transpose(net.matrix2, scratch.back2)
    transpose(scratch.work.matrix3, scratch.back3)
    scratch.matrix3[:] = 0
    scratch.bias3[:] = 0


@called
def end(gradient, scratch):
    """Take over the last layer's gradient."""
    for n in range(len(gradient.bias3)):
        gradient.bias3[n] = scratch.bias3[n]
        for h in range(network.HIDDEN):
            gradient.matrix3[h, n] = scratch.matrix3[h, n]


@called
def backward(gradient, starts, active, first, n, scratch):
    """Add to a network's gradient what the n rows from `first` on contribute. Uses what `forward` left.

    The loss's gradient with respect to the outputs stands in their place.
    """
    hidden1, hidden2, outputs = scratch.work.hidden1, scratch.work.hidden2, scratch.work.outputs
    slope1, slope2 = scratch.slope1, scratch.slope2
    for r in range(n, network.whole_tiles(n)):
        for a in range(outputs.shape[1]):
            outputs[r, a] = _ZERO
    network.add_outer(hidden2, outputs, scratch.matrix3, n)
    slope2[:] = 0
    network.add_product(outputs, scratch.back3, slope2, n)
    through_tanh(hidden2, slope2, n)
    network.add_outer(hidden1, slope2, gradient.matrix2, n)
    slope1[:] = 0
    network.add_product(slope2, scratch.back2, slope1, n)
    through_tanh(hidden1, slope1, n)
    for r in range(n):
        for a in range(outputs.shape[1]):
            scratch.bias3[a] += outputs[r, a]
        for h in range(network.HIDDEN):
            gradient.bias2[h] += slope2[r, h]
            gradient.bias1[h] += slope1[r, h]
        vectors.add_to_lines(slope1, r, gradient.matrix1, active, starts[first + r], starts[first + r + 1])


@called
def through_tanh(hidden, slope, n):
    """slope [R, H] *= 1 - tanh^2, for the first n rows."""
    for r in range(n):
        for h in range(network.HIDDEN):
            slope[r, h] *= _ONE - hidden[r, h] * hidden[r, h]


@called
def transpose(matrix, out):
    """out [J, I] of matrix [I, J]."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[j, i] = matrix[i, j]


@called
def clip_norm(gradient, largest):
    """Scale the gradient down to this norm, if it is longer."""
    whole = gradient[: len(gradient) - len(gradient) % vectors.TILE].reshape(1, -1)
    squared = vectors.dot(whole, whole, 0, whole.shape[1])
    for i in range(whole.shape[1], len(gradient)):
        squared += gradient[i] * gradient[i]
    norm = math.sqrt(squared)
    if norm > largest:
        factor = largest / norm
        for i in range(len(gradient)):
            gradient[i] *= factor


@called
def adam(vector, gradient, moment1, moment2, step, settings):
    """One step; `step` counts from 1."""
    beta1, beta2 = np.float32(settings.beta1), np.float32(settings.beta2)
    rest1, rest2 = np.float32(1 - settings.beta1), np.float32(1 - settings.beta2)
    rate = np.float32(settings.learning_rate / (1 - power(settings.beta1, step)))
    unbias = np.float32(1 / math.sqrt(1 - power(settings.beta2, step)))
    for i in range(len(vector)):
        slope = gradient[i] if abs(gradient[i]) > _TINY else _ZERO
        first = beta1 * moment1[i] + rest1 * slope
        second = beta2 * moment2[i] + rest2 * slope * slope
        moment1[i] = first if abs(first) > _TINY else _ZERO
        moment2[i] = second if second > _TINY * _TINY else _ZERO
        vector[i] -= rate * moment1[i] / (math.sqrt(moment2[i]) * unbias + _EPSILON)


@called
def power(base, exponent):
    """base ** exponent for a whole exponent, by squaring: the C library's differs between CPUs."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
