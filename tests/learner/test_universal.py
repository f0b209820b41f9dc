"""One defender for many networks: trained with and without orders, and the same after a stop."""

import numpy as np

import fixfirst as ff
from fixfirst.game.scenario import SHIPPED_SCENARIOS
from fixfirst.learner.universal import UniversalTraining, draw_networks
from fixfirst.orders.repairs import Counts, judge
from fixfirst.settings.universal import UniversalConfig

SMALL = UniversalConfig(networks=4, side_by_side=3, envs=4, total_episodes=60, ordered_from=0.3, epochs=1, row_parts=2)


def small_networks():
    return [ff.Scenario.generate(seed, hosts=(8, 9)) for seed in range(4)]


def trained(updates, training=None):
    training = training or UniversalTraining(SMALL, small_networks())
    for _ in range(updates):
        training.step()
    return training


def test_a_training_that_goes_on_from_a_checkpoint_ends_with_the_same_bits():
    whole, first, second = trained(4), trained(2), UniversalTraining(SMALL, small_networks())
    second.restore(first.tensors(), first.numbers())
    trained(2, second)
    assert second.numbers() == whole.numbers()
    for name, array in whole.tensors().items():
        np.testing.assert_array_equal(second.tensors()[name], array, err_msg=name)


def test_networks_of_a_training_are_drawn_each_once_and_none_of_them_comes_with_fixfirst():
    networks = draw_networks(5_000, 60)
    digests = {network.digest for network in networks}
    assert len(digests) == 60 and not digests & {ff.Scenario.load(name).digest for name in SHIPPED_SCENARIOS}
    assert digests == {network.digest for network in draw_networks(5_000, 60)}
    assert {len(network.subnets) for network in networks} == {1, 2, 3, 4}
    assert {"Misinform" in network.verbs for network in networks} == {True, False}
    assert min(network.num_hosts for network in networks) == 6 and max(network.num_hosts for network in networks) > 20


def test_a_share_of_episodes_has_an_order_and_the_shield_keeps_it():
    training = UniversalTraining(SMALL.model_copy(update={"ordered": 1.0, "ordered_from": 0.0}), small_networks())
    lesson = training._play(0, np.random.default_rng(0))
    rollout, player = lesson.rollout, lesson.player
    ranks = np.array([order.ranks for order in player.workflows])[rollout.assigned - 1]
    counts = Counts.of(judge(rollout.actions, rollout.held, ranks, player.spec.units))
    assert counts.compliant.sum() >= 0.95 * counts.judged.sum() > 0  # what blue does not see, it may break
