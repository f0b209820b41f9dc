"""PyTorch's learner, the twin: losses and gradients worked by hand, minibatches, Adam."""

import math
import sys

import numpy as np
import pytest
from late import Late

from fixfirst.base.errors import ConfigError
from fixfirst.learner.ppo import initial_weights, make_learner
from fixfirst.learner.training import Training
from fixfirst.orders.order import FIVE_TYPES
from fixfirst.play.rollout import collect
from fixfirst.play.worlds import make_world
from fixfirst.policy.answers import probabilities
from fixfirst.policy.network import Network, shapes
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import PPOConfig, make_config

torch, twin = Late("torch"), Late("fixfirst.learner.torch_ppo")


def weights_of(net):
    return {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}


# ---------------------------------------------------------------- one gradient step, by hand


def two_actions():
    """A single row whose two logits and value are the parameters themselves, all 0 at first."""
    net = torch.nn.Module()
    net.actor, net.critic = torch.nn.Linear(1, 2, bias=False), torch.nn.Linear(1, 1, bias=False)
    for layer in (net.actor, net.critic):
        torch.nn.init.zeros_(layer.weight)
    return net


def hand_step(action, old_probability, advantage, returns, **options):
    """One step of plain gradient descent with rate 1: the net, and (policy loss, value loss, entropy, KL, clipped)."""
    net = two_actions()
    config = PPOConfig(**({"max_grad_norm": 100.0, "entropy": 0.0} | options))
    m = len(action)
    batch = twin.Batch(
        torch.ones(1, 1), torch.zeros(m, dtype=torch.int64), torch.tensor(action), torch.tensor([float(m)]), torch.ones(1, 1)
    )
    numbers = (torch.tensor(v) for v in (np.log(np.float32(old_probability)), np.float32(advantage), np.float32(returns)))
    stats = twin._gradient_step(net, torch.optim.SGD(net.parameters(), lr=1.0), config, batch, None, *numbers)
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
    net, _ = hand_step([0], [0.5], [0], [3], value_weight=0.25)
    assert net.critic.weight.item() == pytest.approx(0.25 * 2 * 3)


def test_the_gradient_norm_is_limited():
    """The gradient has length sqrt(0.75^2 + 0.75^2 + 2^2); after clipping the whole step has length 0.5."""
    net, _ = hand_step([0, 1], [0.25, 0.5], [1, -3], [1, 3], max_grad_norm=0.5)
    moved = np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])
    assert np.linalg.norm(moved) == pytest.approx(0.5, rel=1e-4)
    assert moved[2] / moved[0] == pytest.approx(2 / 0.75)


def test_the_entropy_bonus_pulls_towards_uniform():
    """Logits (1, 0): with advantage 0 only entropy acts, and lowers the larger one."""
    net = two_actions()
    with torch.no_grad():
        net.actor.weight[0] = 1.0
    batch = twin.Batch(torch.ones(1, 1), torch.tensor([0]), torch.tensor([0]), torch.tensor([1.0]), torch.ones(1, 1))
    config = PPOConfig(entropy=1.0, max_grad_norm=100.0)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    twin._gradient_step(net, optimiser, config, batch, None, torch.tensor([-0.3133]), torch.zeros(1), torch.zeros(1))
    p = 1 / (1 + math.exp(-1))
    slope = -p * (1 - p)  # dH/dl0 = -p (ln p + H) = -p (1 - p) (l0 - l1)
    assert net.actor.weight[:, 0].tolist() == pytest.approx([1 + 0.1 * slope, -0.1 * slope], abs=1e-5)


# ---------------------------------------------------------------- rows and updates


def played(workflow, **options):
    """A config, its rollout by the untrained policy, and the rewards of it."""
    settings = {"workflow": workflow, "max_steps": 30, "total_episodes": 1000}
    if workflow != "none":  # without an order there is nothing to keep to
        settings["keep"] = "penalty"
    config = make_config(ppo={"num_envs": 16} | options, **settings)
    network = Network.of(initial_weights(config.spec.inputs, 0, config.spec.actions))
    rollout = collect(
        make_world(config.game, config.ppo.num_envs, autoreset="disabled"),
        PolicyTable(network, config.workflows),
        world_seed=1,
        policy_seed=2,
        first_episode=0,
        workflows=config.workflows,
    )
    return config, rollout, rollout.rewards10 / 10


def test_a_batch_leads_every_transition_to_its_own_row():
    config, rollout, _ = played("all")
    batch = twin.make_batch(rollout, config.spec)
    assert len(batch.inputs) < 480 == len(batch.row) == batch.counts.sum() and batch.after.shape == (16, 77)
    for t, episode in ((0, 0), (29, 5), (17, 11)):
        order = config.workflows[rollout.assigned[episode]]
        row = batch.inputs[batch.row[t * 16 + episode]].numpy()
        assert np.array_equal(row[52:], order.encode())
        assert sum(int(bit) << i for i, bit in enumerate(row[:52])) == int(rollout.packed_obs[t, episode])
        assert batch.action[t * 16 + episode] == rollout.actions[t, episode]
    assert np.array_equal(batch.after[3, :52], bits_of(rollout.packed_obs[-1][:, None], 52)[3])


def test_minibatches_are_learned_by_pytorch_and_need_no_more_than_their_own_transitions():
    """With three minibatches an update takes twelve gradient steps instead of four, and ends elsewhere."""
    ends = []
    for minibatches in (1, 3):
        config, rollout, rewards = played("none", minibatches=minibatches, engine="torch")
        learner = make_learner(config.ppo, config.spec, 0)
        assert isinstance(learner, twin.TorchPPO)
        learner.update(rollout, rewards, entropy=0.003, progress=0.0, seed=7)
        assert learner.tensors()["adam.step"] == 4 * minibatches
        ends.append(learner.policy.vector.copy())
    assert not np.allclose(*ends, atol=1e-4)


def test_without_pytorch_a_training_that_needs_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fixfirst.learner.torch_ppo")
    with pytest.raises(
        ConfigError,
        match=r"engine 'auto' with minibatches=2 needs PyTorch, which is not installed: pip install 'fixfirst\[torch\]'",
    ):
        make_learner(PPOConfig(minibatches=2), PolicySpec(), 0)


def test_the_compiled_policy_is_the_torch_policy():
    weights = initial_weights(77, 3, 145)
    learner = twin.TorchPPO(PPOConfig(), PolicySpec(units=FIVE_TYPES), seed=3)
    inputs = (np.random.default_rng(0).random((9, 77)) < 0.3).astype(np.float32)
    with torch.no_grad():
        expected = torch.softmax(learner.net.actor(torch.from_numpy(inputs)), dim=1).numpy()
    assert np.allclose(probabilities(Network.of(weights))(inputs), expected, atol=1e-6)


def test_the_networks_are_77_64_64_145_and_77_64_64_1():
    """As PyTorch has them, and as files of policies are checked against."""
    made = {name: array.shape for name, array in weights_of(twin.ActorCritic(77, 145)).items()}
    assert made == shapes(77, 145)
    matrices = [shape for name, shape in made.items() if name.endswith("weight")]
    assert matrices == [(64, 77), (64, 64), (145, 64), (64, 77), (64, 64), (1, 64)]


def test_the_linear_schedule_goes_down_to_zero():
    _, rollout, rewards = played("none")
    for schedule, rates in (("linear", [0.002, 0.0015, 0.0]), ("constant", [0.002] * 3)):
        learner = twin.TorchPPO(PPOConfig(lr_schedule=schedule), PolicySpec(), seed=0)
        for progress, rate in zip((0.0, 0.25, 1.0), rates, strict=True):
            learner.update(rollout, rewards, entropy=0.0, progress=progress, seed=0)
            assert learner.optimiser.learning_rate == pytest.approx(rate)


def test_adam_has_the_bits_of_pytorchs_own():
    """Three updates of four epochs, also of the moments; and PyTorch's compiler, which its own would import, is left out."""
    _, rollout, rewards = played("none")
    config = PPOConfig()
    ours, net = twin.TorchPPO(config, PolicySpec(), seed=3), twin.ActorCritic(52, 145)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in initial_weights(52, 3, 145).items()})
    theirs = torch.optim.Adam(net.parameters(), lr=config.learning_rate, betas=config.adam_betas, fused=True)
    for seed in range(3):
        ours.update(rollout, rewards, entropy=0.01, progress=0.0, seed=seed)
        twin.update(net, theirs, config, rollout, rewards, PolicySpec(), entropy=0.01, seed=seed)
    for name, parameter in net.named_parameters():
        assert np.array_equal(ours.weights[name], parameter.detach().numpy()), name
        state = theirs.state[parameter]
        for moment in ("exp_avg", "exp_avg_sq"):
            assert np.array_equal(ours.tensors()[f"adam.{moment}.{name}"], state[moment].numpy()), (moment, name)
        assert ours.tensors()["adam.step"] == state["step"] == 12


# ---------------------------------------------------------------- networks of one's own


def one_trunk():
    """One hidden layer that actor and critic share, wider than ours."""
    net, nn = torch.nn.Module(), torch.nn
    net.trunk = nn.Sequential(nn.Linear(52, 100), nn.ReLU())
    net.actor = nn.Sequential(net.trunk, nn.Linear(100, 145))
    net.critic = nn.Sequential(net.trunk, nn.Linear(100, 1))
    return net


def test_a_network_of_ones_own_learns_to_defend():
    torch.manual_seed(0)
    config = make_config(workflow="none", total_episodes=6_000, max_steps=30)
    training = Training(config, learner=twin.TorchPPO(config.ppo, config.spec, 0, net=one_trunk()))
    first = training.step().row.env_reward
    while not training.done:
        last = training.step().row.env_reward
    assert first < -100 and last > first / 3
    assert training.evaluate("test", 100).mean > first / 3


def test_a_policy_becomes_a_pytorch_module(tmp_path):
    """Its logits are those of the compiled network, on real observations."""
    training = Training(make_config(workflow="none", total_episodes=100, max_steps=20))
    rollout = training._play()
    training.save_policy(tmp_path)
    policy = load_policy(tmp_path)
    inputs = bits_of(rollout.packed_obs.reshape(-1, 1), 52)
    with torch.no_grad():
        theirs = torch.softmax(policy.to_torch().actor(torch.from_numpy(inputs)), dim=1).numpy()
    assert np.allclose(policy.probabilities(inputs), theirs, atol=1e-6)
