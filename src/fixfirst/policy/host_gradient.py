"""PPO's gradient of a `HostNetwork`, compiled: rows add to what their hosts' inputs need, then each input learns once.

U distinct rows of one network, D distinct inputs of hosts, L hosts. See `host_network.py`, and `gradient.py` for what a row
adds to the loss.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled
from fixfirst.policy import gradient as plain, host_network as hosts, network
from fixfirst.policy.host_facts import ORDER_FACTS, VERBS
from fixfirst.policy.host_network import AROUND, CODE, HIDDEN, MESSAGE, MIDDLE, POOLED, QUIET, VALUE
from fixfirst.policy.memory import QUIET_TURNS

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


class HostRows(NamedTuple):
    """The hosts of U distinct rows of one network, and the inputs that they have."""

    ids: np.ndarray  # [V, L] int32: numbers of inputs; V >= U, the last V - U are of rows seen after the last action only
    order: np.ndarray  # [V] int64
    quiet: np.ndarray  # [V] int64: turns


class Slopes(NamedTuple):
    """Gradients with respect to what the table holds of D distinct inputs."""

    hidden: np.ndarray  # [D, 64]
    code: np.ndarray  # [D, 32]
    message: np.ndarray  # [D, 16]

    @classmethod
    def make(cls, inputs: int) -> "Slopes":
        return cls(*(np.zeros((hosts.whole_tiles(inputs), width), np.float32) for width in (HIDDEN, CODE, MESSAGE)))


class HostBack(NamedTuple):
    """Where the gradient of R rows at a time is worked on, and matrices transposed."""

    output: np.ndarray  # [4, 48]
    whole: np.ndarray  # [48, 32]
    pool: np.ndarray  # [32, 80]
    around: np.ndarray  # [48, 80]
    own: np.ndarray  # [48, 32]
    message: np.ndarray  # [16, 32]
    code: np.ndarray  # [32, 64]
    value_pool: np.ndarray  # [64, 80]
    value_code: np.ndarray  # [32, 64]
    output_slope: np.ndarray  # [48, 16] gradient of the last layer, filled up
    d_logits: np.ndarray  # [R * L, 16]
    d_middle: np.ndarray  # [R * L, 48]
    d_code: np.ndarray  # [R * L, 32]
    d_around: np.ndarray  # [R * L, 80]
    d_base: np.ndarray  # [R, 48]
    d_whole: np.ndarray  # [R, 32]
    d_pooled: np.ndarray  # [R, 80]
    d_seen: np.ndarray  # [R, 64]
    values: np.ndarray  # [R, 1]
    d_near: np.ndarray  # [R * N, 16]
    d_kind: np.ndarray  # [R * U, 16]
    d_before: np.ndarray  # [R * U, 16]
    d_after: np.ndarray  # [R * U, 16]

    @classmethod
    def make(cls, rows: int, num_hosts: int, subnets: int, units: int) -> "HostBack":
        back = [(4, MIDDLE), (MIDDLE, CODE), (CODE, POOLED), (MIDDLE, AROUND), (MIDDLE, CODE), (MESSAGE, CODE)]
        back += [(CODE, HIDDEN), (VALUE, POOLED), (CODE, HIDDEN), (MIDDLE, 16)]
        work = [(rows * num_hosts, width) for width in (16, MIDDLE, CODE, AROUND)]
        work += [(rows, width) for width in (MIDDLE, CODE, POOLED, VALUE, 1)]
        work += [(rows * subnets, MESSAGE), *[(rows * units, MESSAGE)] * 3]
        return cls(*(np.zeros((hosts.whole_tiles(lines), width), np.float32) for lines, width in back + work))


@compiled
def encode_actor(actor, folded, table, num_hosts):
    """Encode all inputs of a table anew, for weights that have changed."""
    hosts.encode(actor, folded, table, num_hosts, 0)


@compiled
def encode_critic(critic, folded, table, num_hosts, hidden, code):
    """Fill hidden [D, 64] and code [D, 32] with what the critic's encoder makes of the inputs of a table."""
    hosts.encode_codes(critic, folded.critic, table.keys, num_hosts, hidden, code, 0, table.filled[0])


@called
def load_rows(rows, first, count, work):
    """Take over the hosts, orders and quiet turns of so many rows."""
    for r in range(count):
        work.order[r] = rows.order[first + r]
        for host in range(work.ids.shape[1]):
            work.ids[r, host] = rows.ids[first + r, host]
        for n in range(QUIET_TURNS):
            work.pooled[r, QUIET + n] = _ONE if n < rows.quiet[first + r] else _ZERO


@compiled
def values_of_rows(critic, rows, code, work, result):
    """Fill result [V] with the critic's values of rows."""
    for first in range(0, len(result), len(work.ids)):
        count = min(len(work.ids), len(result) - first)
        load_rows(rows, first, count, work)
        hosts.values_of(critic, code, count, work, result, first)


@compiled
def policy_gradient(
    actor, gradient, side, rows, batch, span, slopes, old, is_new, pair_slopes, settings, back, bench, stats
):
    """Add the gradient of the policy loss and of the entropy bonus, on a span of rows: first, end, share of a transition.

    is_new: their log-probabilities `old` are taken down first; with a share of 0, nothing else is done. bench: outputs and
    odds of the rows at hand, [R, W].
    """
    facts, table, work = side.facts, side.inputs, side.work
    hosts.load_output(actor, work)
    begin(actor, back)
    begin_row, end_row, share = span
    logits, odds, outputs = bench.work.outputs, bench.odds, facts.choice_output
    num_hosts, count = len(work.bits), table.filled[0]
    slopes.code[:count] = _ZERO
    slopes.message[:count] = _ZERO
    for first in range(begin_row, end_row, len(work.ids)):
        n = min(len(work.ids), end_row - first)
        load_rows(rows, first, n, work)
        hosts.host_logits(actor, facts, side.told, table, n, work)
        for r in range(n):
            for a in range(len(outputs)):
                output = outputs[a]
                verb = work.logits[r * num_hosts + (output >> 2), output & 3] if output < 4 * num_hosts else work.sleep[r, 0]
                logits[r, a] = verb if batch.allowed[first + r, a] else -network.INFINITY
            for a in range(len(outputs), logits.shape[1]):
                logits[r, a] = -network.INFINITY
        network.subtract_row_max(logits, n)
        for r in range(n):
            for a in range(logits.shape[1]):
                odds[r, a] = network.exp_nonpositive(logits[r, a])
        plain.slopes(batch, first, n, share, old, is_new, pair_slopes, settings, bench, stats)
        if share > _ZERO:
            host_backward(actor, gradient, facts, side.told, table, slopes, logits, n, work, back)
    if share > _ZERO:
        for n in range(MIDDLE):
            for verb in range(len(VERBS)):
                gradient.output[n, verb] += back.output_slope[n, verb]
        input_backward(gradient, facts, side.order_facts, table, slopes, back)


@called
def begin(actor, back):
    """Make matrices ready for weights that may have changed."""
    plain.transpose(actor.output, back.output)
    plain.transpose(actor.whole, back.whole)
    plain.transpose(actor.pool, back.pool)
    plain.transpose(actor.around, back.around)
    plain.transpose(actor.own, back.own)
    plain.transpose(actor.message, back.message)
    plain.transpose(actor.code, back.code)
    back.output_slope[:] = _ZERO


@called
def host_backward(actor, gradient, facts, ranks, table, slopes, d_choice, rows, work, back):
    """Add what rows contribute: to the gradient of what they have to themselves, and to the slopes of their hosts' inputs.

    d_choice [R, A]: the loss's gradient with respect to the logits of choices. Uses what `host_logits` left.
    """
    outputs, num_hosts = facts.choice_output, len(facts.unit)
    lines = rows * num_hosts
    for part in (back.d_logits, back.d_middle, back.d_code, back.d_around, back.d_base, back.d_pooled):
        part[:] = _ZERO
    for r in range(rows):
        d_sleep = _ZERO
        for a in range(len(outputs)):
            output = outputs[a]
            if output < 4 * num_hosts:
                back.d_logits[r * num_hosts + (output >> 2), output & 3] += d_choice[r, a]
                gradient.bias_output[output & 3] += d_choice[r, a]
            else:
                d_sleep += d_choice[r, a]
        gradient.bias_sleep[0] += d_sleep
        for n in range(CODE):
            back.d_whole[r, n] = d_sleep * actor.sleep[n, 0]
            gradient.sleep[n, 0] += d_sleep * work.whole[r, n]
    network.add_outer(work.middle, back.d_logits, back.output_slope, lines)
    hosts.add_lines(back.d_logits, back.output, back.d_middle, 0, lines)
    through_relu(work.middle, back.d_middle, lines)
    for r in range(rows):
        for me in range(r * num_hosts, (r + 1) * num_hosts):
            for n in range(MIDDLE):
                back.d_base[r, n] += back.d_middle[me, n]
        for n in range(MIDDLE):
            gradient.bias3[n] += back.d_base[r, n]
    network.add_outer(work.code, back.d_middle, gradient.own, lines)
    hosts.add_lines(back.d_middle, back.own, back.d_code, 0, lines)
    network.add_outer(work.around, back.d_middle, gradient.around, lines)
    hosts.add_lines(back.d_middle, back.around, back.d_around, 0, lines)
    scatter(facts, ranks, slopes, rows, work, back)
    network.add_outer(work.whole, back.d_base, gradient.whole, rows)
    hosts.add_lines(back.d_base, back.whole, back.d_whole, 0, rows)
    through_relu(work.whole, back.d_whole, rows)
    for r in range(rows):
        for n in range(CODE):
            gradient.bias_pool[n] += back.d_whole[r, n]
    network.add_outer(work.pooled, back.d_whole, gradient.pool, rows)
    hosts.add_lines(back.d_whole, back.pool, back.d_pooled, 0, rows)
    for r in range(rows):
        unpool(table.code, work.ids, work.pooled, back.d_pooled, slopes.code, r)


@called
def through_relu(x, slope, rows):
    """Slopes of outputs of relu [R, N] become those of its inputs."""
    for r in range(rows):
        for n in range(x.shape[1]):
            slope[r, n] = slope[r, n] if x[r, n] > _ZERO else _ZERO


@called
def scatter(facts, ranks, slopes, rows, work, back):
    """Give slopes of work.code and work.around back to the inputs that they were gathered from."""
    unit, subnet, ids, d_around, d_message = facts.unit, facts.subnet, work.ids, back.d_around, slopes.message
    num_hosts, units, subnets = len(unit), facts.num_units, facts.num_subnets
    for part in (back.d_near, back.d_kind, back.d_before, back.d_after):
        part[:] = _ZERO
    share = _TWO / np.float32(num_hosts)
    for r in range(rows):
        for host in range(num_hosts):
            line, near, kind, me = ids[r, host], r * subnets + subnet[host], r * units + unit[host], r * num_hosts + host
            for n in range(CODE):
                slopes.code[line, n] += back.d_code[me, n]
            for n in range(MESSAGE):
                back.d_near[near, n] += d_around[me, 2 * MESSAGE + n]
                back.d_before[kind, n] += d_around[me, 3 * MESSAGE + n]
                back.d_after[kind, n] += d_around[me, 4 * MESSAGE + n]
            give_partners(facts.reached_from, facts.sources, host, d_message, ids, r, d_around, me, 0)
            give_partners(facts.leads_from, facts.targets, host, d_message, ids, r, d_around, me, MESSAGE)
        order, at = work.order[r], r * units
        for kind in range(units):
            for other in range(units):
                if ranks[order, other] < ranks[order, kind]:
                    for n in range(MESSAGE):
                        back.d_kind[at + other, n] += share * back.d_before[at + kind, n]
                        back.d_kind[at + kind, n] += share * back.d_after[at + other, n]
        for host in range(num_hosts):
            line, near, kind = ids[r, host], r * subnets + subnet[host], at + unit[host]
            for n in range(MESSAGE):
                d_message[line, n] += facts.subnet_share[host] * back.d_near[near, n] + back.d_kind[kind, n]


@called
def give_partners(starts, partners, host, d_message, ids, r, d_around, me, column):
    """The way back of `add_partners`."""
    first, end = starts[host], starts[host + 1]
    for k in range(first, end):
        line, share = ids[r, partners[k]], _ONE / np.float32(end - first)
        for n in range(MESSAGE):
            d_message[line, n] += share * d_around[me, column + n]


@called
def unpool(code, ids, pooled, d_pooled, d_code, r):
    """Add to d_code what the mean and the largest of row r's codes contribute; of equal ones the first is the largest."""
    share = _ONE / np.float32(ids.shape[1])
    for host in range(ids.shape[1]):
        line = ids[r, host]
        for n in range(CODE):
            d_code[line, n] += share * d_pooled[r, n]
    for n in range(CODE):
        top = pooled[r, CODE + n]
        if top > _ZERO:
            host = 0
            while code[ids[r, host], n] != top:
                host += 1
            d_code[ids[r, host], n] += d_pooled[r, CODE + n]


@called
def input_backward(gradient, facts, order_facts, table, slopes, back):
    """Add what the distinct inputs contribute, from their slopes."""
    count = table.filled[0]
    network.add_outer(table.code, slopes.message, gradient.message, count)
    hosts.add_lines(slopes.message, back.message, slopes.code, 0, count)
    code_backward(gradient, facts, order_facts, table.keys, count, table.hidden, table.code, slopes, back.code)


@called
def code_backward(gradient, facts, order_facts, keys, count, hidden, code, slopes, back_code):
    """Add what an encoder contributes: slopes.code [D, 32] with respect to its outputs."""
    num_hosts = len(facts.unit)
    d_code, d_hidden = slopes.code, slopes.hidden
    through_relu(code, d_code, count)
    for number in range(count):
        for n in range(CODE):
            gradient.bias2[n] += d_code[number, n]
    network.add_outer(hidden, d_code, gradient.code, count)
    d_hidden[:count] = _ZERO
    hosts.add_lines(d_code, back_code, d_hidden, 0, count)
    folded = np.zeros((len(order_facts), num_hosts, HIDDEN), np.float32)
    through_relu(hidden, d_hidden, count)
    for number in range(count):
        where = np.int64(keys[number, 1])
        order, host = where // num_hosts, where % num_hosts
        for n in range(HIDDEN):
            folded[order, host, n] += d_hidden[number, n]
        bits, bit = keys[number, 0], 0
        while bits:
            if bits & uint64(1):
                for n in range(HIDDEN):
                    gradient.moment[bit, n] += d_hidden[number, n]
            bits >>= uint64(1)
            bit += 1
    width = facts.network.shape[1]
    for order in range(len(order_facts)):
        for host in range(num_hosts):
            for n in range(HIDDEN):
                gradient.bias1[n] += folded[order, host, n]
            for fact in range(width + ORDER_FACTS):
                factor = facts.network[host, fact] if fact < width else order_facts[order, host, fact - width]
                if factor != _ZERO:
                    for n in range(HIDDEN):
                        gradient.facts[fact, n] += factor * folded[order, host, n]


@compiled
def value_gradient(critic, gradient, side, rows, batch, span, hidden, code, slopes, settings, back, stats):
    """Add the gradient of the value loss, on a span of rows. hidden, code: of the critic's encoder, by input."""
    facts, table, work = side.facts, side.inputs, side.work
    plain.transpose(critic.pool, back.value_pool)
    plain.transpose(critic.code, back.value_code)
    begin_row, end_row, share = span
    count, factor = table.filled[0], _TWO * settings.value * share
    slopes.code[:count] = _ZERO
    for first in range(begin_row, end_row, len(work.ids)):
        n = min(len(work.ids), end_row - first)
        load_rows(rows, first, n, work)
        hosts.values_of(critic, code, n, work, back.values, 0)
        for r in range(n):
            row, value = first + r, back.values[r, 0]
            stats[plain.VALUE_LOSS] += (
                batch.visits[row] * value * value - _TWO * value * batch.returns[row] + batch.squares[row]
            )
            d_value = factor * (batch.visits[row] * value - batch.returns[row])
            gradient.bias_value[0] += d_value
            for m in range(VALUE):
                gradient.value[m, 0] += d_value * work.seen[r, m]
                back.d_seen[r, m] = d_value * critic.value[m, 0] if work.seen[r, m] > _ZERO else _ZERO
                gradient.bias_pool[m] += back.d_seen[r, m]
        network.add_outer(work.pooled, back.d_seen, gradient.pool, n)
        back.d_pooled[:] = _ZERO
        hosts.add_lines(back.d_seen, back.value_pool, back.d_pooled, 0, n)
        for r in range(n):
            unpool(code, work.ids, work.pooled, back.d_pooled, slopes.code, r)
    code_backward(gradient, facts, side.order_facts, table.keys, count, hidden, code, slopes, back.value_code)


@compiled
def improve(vector, gradient, moment1, moment2, taken, settings):
    """Take one step of Adam; the actor's and the critic's gradients are clipped apart. taken: counts from 1."""
    plain.clip_norm(gradient[: settings.split], settings.max_grad_norm)
    plain.clip_norm(gradient[settings.split :], settings.max_grad_norm)
    plain.adam(vector, gradient, moment1, moment2, taken, settings)
