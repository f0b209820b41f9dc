"""PPO: returns, losses and gradients worked by hand; equal rows computed once give the gradients of all rows."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from fixfirst.cyborg import world_for
from fixfirst.errors import ConfigError
from fixfirst.learner import Training, make_config
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.networks import num_inputs, probabilities, shapes
from fixfirst.learner.ppo import (
    PPO,
    ActorCritic,
    Batch,
    _gradient_step,
    discounted_returns,
    gae,
    make_batch,
    targets,
    update,
)
from fixfirst.play import PolicyTable, collect

ORDER = "enterprise > op_server > op_host > user > defender"


def weights_of(net):
    return {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}


def column(*values):
    """One episode [T, 1]."""
    return np.array(values, np.float32)[:, None]


# ---------------------------------------------------------------- returns


def test_discounted_returns():
    """With gamma 1/2: -2, then 0 + -2/2 = -1, then -1 + -1/2 = -1.5."""
    assert discounted_returns(column(-1, 0, -2), 0.5)[:, 0].tolist() == [-1.5, -1.0, -2.0]


def test_gae():
    """gamma = lambda = 1/2. deltas: 1 + 4/2 - 3 = 0 and 2 + 5/2 - 4 = 0.5; advantages: 0 + 0.5/4 = 0.125 and 0.5."""
    assert gae(column(1, 2), column(3, 4, 5), 0.5, 0.5)[:, 0].tolist() == [0.125, 0.5]


def test_gae_with_lambda_one_is_the_return_minus_the_value():
    rewards, values = column(-1, 0, -2, -3), column(0.5, -1, 2, 1, 0)
    assert np.allclose(gae(rewards, values, 0.9, 1.0), discounted_returns(rewards, 0.9) - values[:-1])


def test_returns_never_cross_episodes():
    """Two episodes side by side: changing one leaves the other's numbers alone, for both kinds of returns."""
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    changed, changed_values = rewards.copy(), values.copy()
    changed[:, 1] = 1000
    changed_values[:, 1] = -1000
    assert np.array_equal(discounted_returns(rewards, 0.9)[:, 0], discounted_returns(changed, 0.9)[:, 0])
    assert np.array_equal(gae(rewards, values, 0.9, 0.9)[:, 0], gae(changed, changed_values, 0.9, 0.9)[:, 0])


def test_the_end_of_an_episode_is_a_truncation_worth_the_value_of_what_follows():
    """One step, reward 0, values 0 then 8, gamma 1/2: the value target is 4 with a bootstrap, 0 without."""
    for bootstrap, target in ((True, 4.0), (False, 0.0)):
        config = PPOConfig(gamma=0.5, gae_lambda=1.0, bootstrap=bootstrap, reward_scale=1.0)
        _, returns = targets(config, column(0.0), column(0.0, 8.0))
        assert returns.tolist() == [[target]]


def test_monte_carlo_returns_are_normalised_over_the_batch_and_not_bootstrapped():
    """gamma 1: returns 4, 2 and 2, 0 with mean 2 and standard deviation sqrt(2); values 1 everywhere, 99 at the end."""
    config = PPOConfig(returns="monte_carlo", gamma=1.0, reward_scale=1.0)
    rewards = np.array([[2.0, 2.0], [2.0, 0.0]])
    values = np.array([[1.0, 1.0], [1.0, 1.0], [99.0, 99.0]], np.float32)
    advantages, returns = targets(config, rewards, values)
    expected = np.array([[2, 0], [0, -2]]) / math.sqrt(2)
    assert np.allclose(returns, expected, atol=1e-6) and np.allclose(advantages, expected - 1, atol=1e-6)


def test_gae_advantages_are_normalised_and_the_value_targets_are_not():
    config = PPOConfig(reward_scale=0.1)
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(-5, 3, (20, 4)), rng.normal(size=(21, 4)).astype(np.float32)
    advantages, returns = targets(config, rewards, values)
    assert advantages.mean() == pytest.approx(0, abs=1e-5) and advantages.std() == pytest.approx(1, abs=1e-4)
    assert np.allclose(returns, gae(rewards * 0.1, values, 0.99, 0.95) + values[:-1], atol=1e-4)


# ---------------------------------------------------------------- one gradient step, by hand


class TwoActions(nn.Module):
    """A single row whose two logits and value are the parameters themselves, all 0 at first."""

    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(1, 2, bias=False), nn.Linear(1, 1, bias=False)
        for layer in (self.actor, self.critic):
            nn.init.zeros_(layer.weight)


def hand_step(action, old_probability, advantage, returns, **options):
    """One step of plain gradient descent with rate 1: the net, and (policy loss, value loss, entropy, KL, clipped)."""
    net = TwoActions()
    config = PPOConfig(**({"max_grad_norm": 100.0, "entropy": 0.0} | options))
    m = len(action)
    batch = Batch(
        torch.ones(1, 1), torch.zeros(m, dtype=torch.int64), torch.tensor(action), torch.tensor([float(m)]), torch.ones(1, 1)
    )
    numbers = (torch.tensor(v) for v in (np.log(np.float32(old_probability)), np.float32(advantage), np.float32(returns)))
    stats = _gradient_step(net, torch.optim.SGD(net.parameters(), lr=1.0), config, batch, None, *numbers)
    return net, [float(s) for s in stats]


def test_losses_of_two_transitions():
    """Both actions have probability 1/2. The first had 1/4: ratio 2, advantage 1, clipped to 1.2. The second: ratio 1,
    advantage -3. Policy loss -(1.2 - 3) / 2 = 0.9; value loss (1 + 9) / 2; KL (2 - 1 - ln 2) / 2."""
    _, stats = hand_step([0, 1], [0.25, 0.5], [1, -3], [1, 3])
    assert stats == pytest.approx([0.9, 5.0, math.log(2), (1 - math.log(2)) / 2, 0.5])


def test_gradients_of_two_transitions():
    """The clipped one has none. The other: 3/2 * d(ratio) with d(ratio) = +-1/2 on its own and the other logit, so
    +-0.75; the value moves by 0.5 * 2 * mean(1, 3) = 2."""
    net, _ = hand_step([0, 1], [0.25, 0.5], [1, -3], [1, 3])
    assert net.actor.weight[:, 0].tolist() == pytest.approx([0.75, -0.75])
    assert net.critic.weight.item() == pytest.approx(2.0)


def test_a_bad_action_that_became_likelier_is_not_clipped():
    """Ratio 2, advantage -1: min(-2, -1.2) = -2."""
    _, stats = hand_step([0], [0.25], [-1], [0])
    assert stats[0] == pytest.approx(2.0)


def test_the_value_coefficient_scales_the_critics_gradient():
    net, _ = hand_step([0], [0.5], [0], [3], value=0.25)
    assert net.critic.weight.item() == pytest.approx(0.25 * 2 * 3)


def test_the_gradient_norm_is_limited():
    """The gradient has length sqrt(0.75^2 + 0.75^2 + 2^2); after clipping the whole step has length 0.5."""
    net, _ = hand_step([0, 1], [0.25, 0.5], [1, -3], [1, 3], max_grad_norm=0.5)
    moved = np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])
    assert np.linalg.norm(moved) == pytest.approx(0.5, rel=1e-4)
    assert moved[2] / moved[0] == pytest.approx(2 / 0.75)


def test_the_entropy_bonus_pulls_towards_uniform():
    """Logits (1, 0): with advantage 0 only entropy acts, and lowers the larger one."""
    net = TwoActions()
    with torch.no_grad():
        net.actor.weight[0] = 1.0
    batch = Batch(torch.ones(1, 1), torch.tensor([0]), torch.tensor([0]), torch.tensor([1.0]), torch.ones(1, 1))
    config = PPOConfig(entropy=1.0, max_grad_norm=100.0)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    _gradient_step(net, optimiser, config, batch, None, torch.tensor([-0.3133]), torch.zeros(1), torch.zeros(1))
    p = 1 / (1 + math.exp(-1))
    slope = -p * (1 - p)  # dH/dl0 = -p (ln p + H) = -p (1 - p) (l0 - l1)
    assert net.actor.weight[:, 0].tolist() == pytest.approx([1 + 0.1 * slope, -0.1 * slope], abs=1e-5)


# ---------------------------------------------------------------- the engines


def played(workflow, **options):
    """A config, its rollout by the untrained policy, and the rewards of it."""
    settings = {"workflow": workflow, "max_steps": 30, "total_episodes": 1000}
    config = make_config(ppo={"num_envs": 16} | options, **settings)
    net = ActorCritic(num_inputs(config.policy_scheme), 0)
    rollout = collect(
        world_for(config.game, config.ppo.num_envs),
        PolicyTable(probabilities(weights_of(net)), config.workflows),
        world_seed=1,
        policy_seed=2,
        first_episode=0,
        workflows=config.workflows,
    )
    return config, rollout, rollout.rewards10 / 10


def learn(engine, config, rollout, rewards):
    """Weights after one update with plain gradient descent, which does not blow up rounding as Adam's signs can."""
    net = ActorCritic(num_inputs(config.policy_scheme), 0)
    ppo = config.ppo.model_copy(update={"engine": engine})
    stats = update(net, torch.optim.SGD(net.parameters(), lr=0.5), ppo, rollout, rewards, seed=7)
    return weights_of(net), stats


@pytest.mark.parametrize("workflow", ["none", ORDER, "all"])
@pytest.mark.parametrize("minibatches", [1, 3])
@pytest.mark.parametrize("returns", ["gae", "monte_carlo"])
def test_rows_engine_learns_what_the_plain_engine_learns(workflow, minibatches, returns):
    """16 episodes of 30 steps, four epochs: the same weights and numbers up to rounding, from fewer rows."""
    config, rollout, rewards = played(workflow, minibatches=minibatches, returns=returns)
    rows, plain = (learn(engine, config, rollout, rewards) for engine in ("rows", "plain"))
    start = weights_of(ActorCritic(num_inputs(config.policy_scheme), 0))
    for name, array in rows[0].items():
        assert np.allclose(array, plain[0][name], rtol=1e-4, atol=2e-6), name
        assert not np.allclose(array, start[name], atol=2e-5), name  # far more than the tolerance
    assert rows[1].rows < plain[1].rows == plain[1].transitions == 480
    assert rows[1].approx_kl == pytest.approx(plain[1].approx_kl, rel=1e-3, abs=1e-7)
    assert rows[1].entropy == pytest.approx(plain[1].entropy, rel=1e-5)


def test_auto_computes_rows_once_when_most_repeat_and_plainly_otherwise():
    _, repeating, _ = played("none")
    distinct = repeating._replace(words=np.arange(repeating.words.size, dtype=np.uint64).reshape(repeating.words.shape))
    assert len(make_batch(repeating, "auto").inputs) == len(np.unique(repeating.words[:-1])) < 240
    assert len(make_batch(distinct, "auto").inputs) == 480


def test_a_batch_leads_every_transition_to_its_own_row():
    config, rollout, _ = played("all")
    batch = make_batch(rollout, "rows")
    plain = make_batch(rollout, "plain")
    assert torch.equal(batch.inputs[batch.row], plain.inputs[plain.row])
    assert torch.equal(batch.action, plain.action) and torch.equal(batch.after, plain.after)
    assert batch.counts.sum() == 480 and batch.after.shape == (16, 77)
    t, episode = 29, 5
    order = config.workflows[rollout.assigned[episode]]
    row = batch.inputs[batch.row[t * 16 + episode]].numpy()
    assert np.array_equal(row[52:], order.encode())
    assert sum(int(bit) << i for i, bit in enumerate(row[:52])) == int(rollout.words[t, episode])


def test_the_numpy_policy_is_the_torch_policy():
    net = ActorCritic(77, 3)
    inputs = (np.random.default_rng(0).random((9, 77)) < 0.3).astype(np.float32)
    with torch.no_grad():
        expected = torch.softmax(net.actor(torch.from_numpy(inputs)), dim=1).numpy()
    assert np.allclose(probabilities(weights_of(net))(inputs), expected, atol=1e-6)


def test_the_networks_are_77_64_64_145_and_77_64_64_1():
    """As PyTorch has them, and as files of policies are checked against."""
    made = {name: array.shape for name, array in weights_of(ActorCritic(77, 0)).items()}
    assert made == shapes(77)
    matrices = [shape for name, shape in made.items() if name.endswith("weight")]
    assert matrices == [(64, 77), (64, 64), (145, 64), (64, 77), (64, 64), (1, 64)]


# ---------------------------------------------------------------- update after update


def test_the_linear_schedule_goes_down_to_zero():
    _, rollout, rewards = played("none")
    for schedule, rates in (("linear", [0.002, 0.0015, 0.0]), ("constant", [0.002] * 3)):
        learner = PPO(PPOConfig(lr_schedule=schedule), 52, seed=0)
        for progress, rate in zip((0.0, 0.25, 1.0), rates, strict=True):
            learner.update(rollout, rewards, entropy=0.0, progress=progress, seed=0)
            assert learner.optimiser.learning_rate == pytest.approx(rate)


def test_adam_has_the_bits_of_pytorchs_own():
    """Three updates of four epochs, also of the moments; and PyTorch's compiler, which its own would import, is left out."""
    _, rollout, rewards = played("none")
    config = PPOConfig()
    ours, net = PPO(config, 52, seed=3), ActorCritic(52, 3)
    theirs = torch.optim.Adam(net.parameters(), lr=config.learning_rate, betas=config.adam_betas, fused=True)
    for seed in range(3):
        ours.update(rollout, rewards, entropy=0.01, progress=0.0, seed=seed)
        update(net, theirs, config, rollout, rewards, entropy=0.01, seed=seed)
    for name, parameter in net.named_parameters():
        assert np.array_equal(ours.weights[name], parameter.detach().numpy()), name
        for moment, tensor in theirs.state[parameter].items():
            assert np.array_equal(ours.tensors()[f"adam.{moment}.{name}"], tensor.numpy()), (moment, name)


def test_training_that_diverges_stops_and_says_so():
    training = Training(make_config(ppo={"num_envs": 2, "learning_rate": 1e30}, workflow="none", max_steps=5))
    with pytest.raises(ConfigError, match=r"training diverged in update 1; try a learning rate below 1e\+30"):
        training.step()
