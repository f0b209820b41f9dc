"""The compiled network for any scenario does what the formulas say: forward and backward, against PyTorch."""

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game.game_config import scenario_named
from fixfirst.learner.batch import UpdateBatch
from fixfirst.learner.host_ppo import HostBench
from fixfirst.orders.order import UnitScheme
from fixfirst.play.rollout import make_world
from fixfirst.policy.gradient import PPONumbers
from fixfirst.policy.host_gradient import HostRows
from fixfirst.policy.host_network import HostNetwork
from fixfirst.policy.host_player import HostPlayer, universal_spec
from fixfirst.policy.spec import bits_of
from fixfirst.policy.turns import play_on

torch = pytest.importorskip("torch")
from support import host_oracle  # noqa: E402  it needs PyTorch

SCENARIOS = ["cage2", "flat"]


def a_network(seed=3):
    """Weights drawn, biases not 0."""
    net = HostNetwork.drawn(seed)
    net.vector[:] += np.float32(0.01) * np.random.default_rng(seed).standard_normal(len(net.vector), np.float32)
    return net


def played(name, net, episodes=6):
    """A player that played with no order and with two, and what it played."""
    units = UnitScheme.by_type(scenario_named(name))
    orders = [ff.Workflow.from_number(number, units) for number in (1, 4)]
    player = HostPlayer(net, orders, spec=universal_spec(units))
    world = make_world(ff.Game(scenario=units.scenario), episodes)
    world.reset(1, episode=0)
    play_on(world, player, np.arange(episodes) % 3, 2, world.game.steps)
    return player


def oracle_row(player, number):
    side, spec = player.side, player.spec
    order = side.order[number]
    bits = bits_of(player.table.rows[number : number + 1], spec.inputs)[0]
    return side.facts, side.order_facts[order], side.told[order], bits


@pytest.mark.parametrize("name", SCENARIOS)
def test_odds_are_those_of_the_formulas(name):
    net = a_network()
    player = played(name, net)
    weights, allowed = host_oracle.parameters(net.actor), player.spec.allowed(player.rows)
    for number in range(0, len(player.rows), 17):
        logits = host_oracle.logits(weights, *oracle_row(player, number)).detach().numpy()
        odds = np.where(allowed[number], np.exp(logits - logits[allowed[number]].max()), 0)
        cumulative = player.table.cumulative[number]
        np.testing.assert_allclose(cumulative / cumulative[-1], np.cumsum(odds) / odds.sum(), atol=1e-6)


@pytest.mark.parametrize("name", SCENARIOS)
def test_gradients_are_those_of_pytorch(name):
    net, rng = a_network(), np.random.default_rng(0)
    player = played(name, net)
    side, spec = player.side, player.spec
    picked = rng.choice(len(player.rows), 40, replace=False)
    rows = HostRows(side.ids[picked], side.order[picked], side.quiet[picked])
    allowed = spec.allowed(player.rows[picked])
    action = np.array([rng.choice(np.flatnonzero(each)) for each in allowed])
    gain, loss, returns = (rng.standard_normal(40).astype(np.float32) for _ in range(3))
    gain, loss, visits = abs(gain), -abs(loss), np.full(40, 2, np.float32)
    none, squares = np.zeros(41, np.int64), np.full(40, 9, np.float32)
    batch = UpdateBatch(none, none, allowed, visits, returns, squares, np.arange(41), action, visits, gain, loss)
    entropy, share, gradient = 0.05, np.float32(1 / 80), HostNetwork.zeros()
    numbers = PPONumbers(1, *(np.float32(x) for x in (0.2, entropy, 0.5, 0.5)), 1e-3, 0.9, 0.999, 1, 0)
    bench = HostBench(side, rows, spec.actions)
    bench.encode(net)
    bench.learn_from(batch)
    bench.note_odds(net, numbers)
    bench.add_gradient(net, gradient, (0, 40, share), numbers, np.zeros(5))

    actor, critic, total = host_oracle.parameters(net.actor), host_oracle.parameters(net.critic), 0
    for k, number in enumerate(picked):
        row = oracle_row(player, number)
        logits = torch.where(torch.tensor(allowed[k]), host_oracle.logits(actor, *row), -torch.inf)
        log_odds = torch.log_softmax(logits, 0)
        odds = log_odds.exp()
        ratio = torch.exp(log_odds[action[k]] - log_odds[action[k]].detach())
        total = total - share * ratio * float(gain[k] + loss[k])
        total = total + entropy * 2 * share * (odds * log_odds.clamp(min=-100)).sum()
        value = host_oracle.value(critic, *row)
        total = total + 0.5 * share * (2 * value**2 - 2 * value * float(returns[k]) + 9)
    total.backward()
    for layers, weights in ((gradient.actor, actor), (gradient.critic, critic)):
        for name_of_part, array in layers._asdict().items():
            right = weights[name_of_part].grad.numpy()
            np.testing.assert_allclose(array, right, atol=3e-6 * abs(right).max(), err_msg=name_of_part)


def test_a_player_asked_turn_by_turn_answers_as_in_compiled_code():
    net = a_network()
    player = played("cage2", net)
    inputs = bits_of(player.rows, player.spec.inputs)
    odds = HostPlayer(net, player.workflows, spec=player.spec)._odds(inputs)
    cumulative = np.cumsum(np.where(player.spec.allowed(player.rows), odds, 0), axis=1)
    expected = player.table.cumulative[: len(player.rows)]
    np.testing.assert_allclose(cumulative / cumulative[:, -1:], expected / expected[:, -1:], atol=1e-5)
