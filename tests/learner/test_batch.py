"""What an update learns from: returns and advantages worked by hand; distinct rows, and sums per row and per pair."""

import math

import numpy as np
import pytest

from fixfirst.learner.batch import aggregate, bits_of_rows, discounted_returns, distinct_rows, gae, targets
from fixfirst.orders.order import Workflow
from fixfirst.play.rollout import Rollout
from fixfirst.policy.spec import PolicySpec
from fixfirst.settings.ppo import PPOConfig

ORDERS = (Workflow.parse("critical_first"), Workflow.parse("reverse"))


def column(*values):
    """One episode [T, 1]."""
    return np.array(values, np.float32)[:, None]


def test_returns_and_advantages_by_hand():
    """With gamma 1/2: -2, then 0 + -2/2 = -1, then -1 + -1/2 = -1.5.

    With gamma = lambda = 1/2 the deltas are 1 + 4/2 - 3 = 0 and 2 + 5/2 - 4 = 0.5; advantages: 0 + 0.5/4 = 0.125 and 0.5.
    """
    assert discounted_returns(column(-1, 0, -2), 0.5)[:, 0].tolist() == [-1.5, -1.0, -2.0]
    assert gae(column(1, 2), column(3, 4, 5), 0.5, 0.5)[:, 0].tolist() == [0.125, 0.5]


def test_returns_never_cross_episodes():
    """Two episodes side by side: changing one leaves the other's numbers alone, for both kinds of returns."""
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    changed, changed_values = rewards.copy(), values.copy()
    changed[:, 1], changed_values[:, 1] = 1000, -1000
    assert np.array_equal(discounted_returns(rewards, 0.9)[:, 0], discounted_returns(changed, 0.9)[:, 0])
    assert np.array_equal(gae(rewards, values, 0.9, 0.9)[:, 0], gae(changed, changed_values, 0.9, 0.9)[:, 0])


@pytest.mark.parametrize(("bootstrap", "target"), [(True, 4.0), (False, 0.0)])
def test_the_end_of_an_episode_is_a_truncation_worth_the_value_of_what_follows(bootstrap, target):
    """One step, reward 0, values 0 then 8, gamma 1/2: the value target is 4 with a bootstrap, 0 without."""
    config = PPOConfig(gamma=0.5, reward_scale=1.0, bootstrap=bootstrap)
    assert targets(config, column(0.0), column(0.0, 8.0))[1].tolist() == [[target]]


def test_monte_carlo_returns_are_normalised_over_the_batch_and_not_bootstrapped():
    """gamma 1: returns 4, 2 and 2, 0 with mean 2 and standard deviation sqrt(2); values 1 everywhere, 99 at the end."""
    config = PPOConfig(returns="monte_carlo", gamma=1.0, reward_scale=1.0)
    rewards = np.array([[2.0, 2.0], [2.0, 0.0]])
    values = np.array([[1.0, 1.0], [1.0, 1.0], [99.0, 99.0]], np.float32)
    advantages, returns = targets(config, rewards, values)
    expected = np.array([[2, 0], [0, -2]]) / math.sqrt(2)
    assert np.allclose(returns, expected, atol=1e-6) and np.allclose(advantages, expected - 1, atol=1e-6)


def test_gae_advantages_are_normalised_and_the_value_targets_are_not():
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(-5, 3, (20, 4)), rng.normal(size=(21, 4)).astype(np.float32)
    advantages, returns = targets(PPOConfig(reward_scale=0.1), rewards, values)
    assert advantages.mean() == pytest.approx(0, abs=1e-5) and advantages.std() == pytest.approx(1, abs=1e-4)
    assert np.allclose(returns, gae(rewards * 0.1, values, 0.99, 0.95) + values[:-1], atol=1e-4)


def test_what_happens_against_one_opponent_is_compared_with_that_only():
    """Episodes of 0 and -2 against a script, -10 and -30 against an attacker: a point for a script counts ten times more."""
    config, values = PPOConfig(reward_scale=1.0), np.zeros((2, 4), np.float32)
    rewards = np.array([[0.0, -2.0, -10.0, -30.0]])
    together, apart = (targets(config, rewards, values, groups)[0][0] for groups in ((), (2, 2)))
    assert together == pytest.approx([0.89, 0.72, 0.04, -1.65], abs=0.01)
    assert apart == pytest.approx([0.89, -0.89, 0.99, -0.99], abs=0.01)
    idle, _ = targets(config, np.array([[-1e-6, 0.0, -10.0, -30.0]]), values, groups=(2, 2))
    assert abs(idle[0, :2]).max() < 1e-4  # where nothing happens, nothing is blown up


def rollout_of(words, actions, workflows=(), assigned=(0, 0)):
    """As a policy without a memory would have played it. Its table met some rows before, in another order."""
    words, actions, assigned = np.array(words, np.uint64), np.array(actions, np.int16), np.array(assigned)
    nothing, spec = np.zeros_like(words, np.int16), PolicySpec.for_orders(workflows)
    read = np.repeat(spec.orders(workflows)[assigned][None], len(words), axis=0)
    read[:, :, 0] |= words
    rows, numbers = np.unique(read.reshape(-1, spec.row_words), axis=0, return_inverse=True)
    before = np.full((3, spec.row_words), 99, np.uint64)
    row_ids, rewards10 = (numbers.reshape(words.shape) + 3).astype(np.int32), nothing[:-1].astype(np.int32)
    rows = np.concatenate([before, rows])
    return Rollout(words, nothing, nothing, actions, rewards10, actions, row_ids, rows, assigned, workflows)


def test_rows_are_numbered_as_they_are_met_and_those_after_the_last_action_come_last():
    """Two episodes of two steps: 5, 7 then 7, 5 then, after the last action, 9, 5."""
    seen = distinct_rows(rollout_of([[5, 7], [7, 5], [9, 5]], [[0, 0], [0, 0]]))
    assert seen.rows.tolist() == [[5], [7], [9]] and seen.used == 2
    assert seen.row_of.tolist() == [[0, 1], [1, 0], [2, 0]]


def test_the_same_observation_under_another_order_is_another_row():
    seen = distinct_rows(rollout_of([[5, 5], [5, 5]], [[0, 0]], ORDERS, [0, 1]))
    assert len(seen.rows) == 2 and seen.row_of.tolist() == [[0, 1], [0, 1]]
    starts, active = np.empty(3, np.int64), np.empty(2 * 77, np.int64)
    bits_of_rows(seen.rows, 2, starts, active)
    for row, order in enumerate(ORDERS):
        expected = [0, 2, *(52 + np.flatnonzero(order.encode())).tolist()]
        assert active[starts[row] : starts[row + 1]].tolist() == expected


def test_advantages_are_summed_by_sign_within_a_row_and_action():
    """Row 0 takes action 3 with advantages 2, -1 and 5, and action 8 with -4; row 1 action 3 with 0.5."""
    rollout = rollout_of([[5, 5], [5, 7], [5, 5], [1, 1]], [[3, 8], [3, 3], [3, 3]])
    advantages = np.array([[2, -4], [-1, 0.5], [5, -7]])
    returns = np.array([[1, 2], [3, 4], [5, 6.0]])
    seen = distinct_rows(rollout)
    starts, active, nothing = np.zeros(3, np.int64), np.empty(0, np.int64), np.empty((0, 145), np.bool_)
    rows = aggregate(starts, active, nothing, seen.row_of, rollout.actions, advantages, returns, seen.used, 145)
    assert rows.visits.tolist() == [5, 1] and rows.returns.tolist() == [1 + 2 + 3 + 5 + 6, 4]
    assert rows.squares.tolist() == [1 + 4 + 9 + 25 + 36, 16]
    assert rows.first_pair.tolist() == [0, 2, 3] and rows.action.tolist() == [3, 8, 3]
    assert rows.pair_visits.tolist() == [4, 1, 1]
    assert rows.gain.tolist() == [7, 0, 0.5] and rows.loss.tolist() == [-8, -4, 0]
