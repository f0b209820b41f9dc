"""The compiled learner: its gradients are those of plain autograd in double precision, on every configuration."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cage2 import HOST_NAMES
from late import Late
from numba import njit
from searches import ORDER
from torch_oracle import Oracle, Seen, losses

from fixfirst.base.errors import ConfigError
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.ppo import PPO
from fixfirst.learner.training import Training
from fixfirst.play.rollout import collect, make_world
from fixfirst.policy.gradient import PPONumbers, adam, power
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.training import make_config

torch = Late("torch")


def played(workflow, **options):
    """A config, its rollout by the untrained policy, and rewards of it that hang on what was done."""
    config = make_config(workflow=workflow, max_steps=30, n_envs=16, episodes_per_update=16, **options)
    network = Network.drawn(config.spec.inputs, config.spec.actions, 0)
    world = make_world(config.game, config.n_envs, autoreset="disabled")
    player = PolicyTable(network, config.workflows, spec=config.spec)
    rollout = collect(world, player, world_seed=1, policy_seed=2, first_episode=0, workflows=config.workflows)
    return config, rollout, rollout.rewards10 / 10 - (rollout.actions % 7 == 3)


def gradient_of(oracle):
    """The gradient of its loss, as one vector."""
    return Network.of({name: tensor.grad.numpy().astype(np.float32) for name, tensor in oracle.weights.items()}).vector


CASES = {
    "default": ("none", {}),
    "an order": (ORDER, {}),
    "all orders": ("all", {"ent_coef": 0.0}),
    "the published presets": (ORDER, {"preset": "parallel-100"}),
    "without a bootstrap": ("none", {"bootstrap": False}),
    "large entropy bonus": (ORDER, {"ent_coef": 0.3}),
    "no value loss": ("none", {"vf_coef": 0.0}),
    "narrow clip": ("none", {"clip_coef": 0.01}),
    "memory": ("none", {"memory": "full"}),
    "memory, macros and an order": (ORDER, {"memory": "full", "action_set": "macros", "red_agent": "meander"}),
    "macros without a memory of decoys": ("none", {"memory": "scans", "action_set": "macros"}),
    "other units": ("front > back", {"units": {"front": HOST_NAMES[8:], "back": HOST_NAMES[:8]}}),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_autograd_in_double_precision(case):
    """After one large step, so that ratios differ from 1 and some are clipped: the second epoch's gradient, within 5e-6 of
    its largest number, and the statistics."""
    workflow, options = CASES[case]
    config, rollout, rewards = played(workflow, **{"learning_rate": 0.02, "max_grad_norm": 1e9} | options, epochs=1)
    spec, entropy = config.spec, config.ent_coef
    once, twice = PPO(config.ppo, spec, 0), PPO(config.ppo.model_copy(update={"epochs": 2}), spec, 0)
    once.update(rollout, rewards, entropy=entropy, progress=0.0, seed=0)
    stats = twice.update(rollout, rewards, entropy=entropy, progress=0.0, seed=0)
    old, new = Oracle(config, Network.drawn(spec.inputs, spec.actions, 0).as_weights()), Oracle(config, once.weights)
    numbers = new.differentiate(old.see(rollout, rewards), entropy)
    expected = gradient_of(new)
    assert np.abs(twice._gradient.vector - expected).max() < 5e-6 * max(np.abs(expected).max(), 1)
    shown = [stats.policy_loss, stats.value_loss, stats.entropy, stats.approx_kl, stats.clip_fraction]
    assert shown == pytest.approx(numbers, rel=1e-4, abs=2e-6)
    assert stats.clip_fraction > 0.01 and stats.rows < stats.transitions == 480


@pytest.mark.parametrize(
    ("workflow", "options"),
    [(ORDER, {}), ("none", {"memory": "full", "action_set": "macros", "norms_apart": True, "last_layer": 0.1})],
)
def test_ten_updates_end_where_the_oracle_ends(workflow, options):
    """Four epochs each, on the same episodes: weights within 2 % of what they moved, and the same statistics."""
    config, rollout, rewards = played(workflow, **options)
    learner = PPO(config.ppo, config.spec, 5)
    start = learner.policy.vector.copy()
    oracle = Oracle(config, learner.weights)
    for seed in range(10):
        ours = learner.update(rollout, rewards, entropy=0.003, progress=0.0, seed=seed)
        _, value_loss, entropy, *_ = oracle.update(rollout, rewards, 0.003)
        assert (ours.entropy, ours.value_loss) == pytest.approx((entropy, value_loss), rel=2e-3)
    theirs = Network.of({name: tensor.detach().numpy().astype(np.float32) for name, tensor in oracle.weights.items()})
    difference = np.abs(learner.policy.vector - theirs.vector)
    assert difference.mean() < 0.02 * np.abs(learner.policy.vector - start).mean()


def test_the_oracles_losses_and_gradients_of_two_transitions_by_hand():
    """Both actions have probability 1/2. The first had 1/4: ratio 2, advantage 1, clipped to 1.2. The second: ratio 1,
    advantage -3. Policy loss -(1.2 - 3) / 2 = 0.9; value loss (1 + 9) / 2; KL (2 - 1 - ln 2) / 2. The clipped one has no
    gradient. The other: 3/2 * d(ratio) with d(ratio) = +-1/2 on its own and the other logit, so +-0.75; 2 * mean(1, 3)."""
    logits, value = (torch.zeros(size, dtype=torch.float64, requires_grad=True) for size in ((1, 2), (1,)))
    log_probs, values = torch.log_softmax(logits, dim=1).expand(2, 2), value.expand(2)
    old, advantages, returns = torch.tensor([[math.log(1 / 4), math.log(1 / 2)], [1, -3], [1, 3]], dtype=torch.float64)
    statistics = losses(log_probs, values, Seen(None, (), torch.tensor([0, 1]), old, advantages, returns), 0.2)
    expected = [0.9, 5.0, math.log(2), (1 - math.log(2)) / 2, 0.5]
    assert [number.item() for number in statistics] == pytest.approx(expected)
    (statistics[0] + 0.5 * statistics[1]).backward()
    assert logits.grad[0].tolist() == pytest.approx([-0.75, 0.75]) and value.grad.item() == pytest.approx(-2.0)


def test_linear_schedules_go_down_to_their_ends():
    ppo = PPOConfig(lr_schedule="linear", entropy_schedule="linear", lr_final=0.1, settle=0.5, ent_coef=0.02)
    assert [ppo.learning_rate_at(p) for p in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0.002, 0.0011, 0.0002, 0.0002])
    assert [ppo.entropy_at(p) for p in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0.02, 0.01, 0.0, 0.0])
    assert {PPOConfig().learning_rate_at(p) for p in (0.0, 1.0)} == {0.002}


@njit(error_model="numpy")
def take_step(vector, gradient, moment1, moment2, step, settings):
    adam(vector, gradient, moment1, moment2, step, settings)


NONE = np.float32(0)
ADAM = PPONumbers(1, NONE, NONE, NONE, np.float32(1e9), learning_rate=0.1, beta1=0.9, beta2=0.99, parts=1, split=0)


def test_adam_takes_pytorchs_steps():
    """A hundred random gradients."""
    rng = np.random.default_rng(0)
    vector, moments = rng.normal(size=50).astype(np.float32), np.zeros((2, 50), np.float32)
    parameter = torch.nn.Parameter(torch.from_numpy(vector.copy()))
    theirs = torch.optim.Adam([parameter], lr=0.1, betas=(0.9, 0.99))
    for step in range(1, 101):
        gradient = (rng.normal(size=50) * 10.0 ** rng.integers(-6, 3)).astype(np.float32)
        take_step(vector, gradient, *moments, step, ADAM)
        parameter.grad = torch.from_numpy(gradient)
        theirs.step()
    assert np.allclose(vector, parameter.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_moments_that_fade_away_end_at_zero_and_not_as_subnormal_numbers():
    vector, moments = np.zeros(1, np.float32), np.ones((2, 1), np.float32)
    for step in range(1, 20_000):
        take_step(vector, np.zeros(1, np.float32), *moments, step, ADAM)
        assert all(m == 0 or abs(m) > 1e-31 for m in moments.ravel())
    assert not moments.any()


def test_powers_by_squaring():
    raised = njit(lambda base, exponent: power(base, exponent))
    assert raised(0.9, 0) == 1 and raised(0.5, 10) == 2**-10 and raised(0.99, 12345) == pytest.approx(0.99**12345, rel=1e-12)


def test_training_that_diverges_stops_and_says_so():
    config = make_config(n_envs=2, workflow="none", max_steps=5)
    training = Training(config.model_copy(update={"learning_rate": 1e30}))  # more than a setting may be
    with pytest.raises(ConfigError, match=r"training diverged in update 1; try a learning rate below 1e\+30"):
        training.step()


def test_a_critic_that_learns_beside_the_actor_learns_the_same():
    """Their gradients are clipped apart, so that neither needs the other's: the bytes are the same."""
    config = PPOConfig(epochs=3, row_parts=2, norms_apart=True, last_layer=0.1)
    together, apart = PPO(config, PolicySpec(), 5), PPO(config, PolicySpec(), 5)
    world = World(Game(max_steps=20), 30, autoreset="disabled")
    played = collect(world, PolicyTable(together.policy), world_seed=1, policy_seed=2, first_episode=0)
    rewards, how = played.rewards10 / 10, {"entropy": 0.01, "progress": 0.2, "seed": 3}
    with ThreadPoolExecutor(1) as beside:
        stats = [together.update(played, rewards, **how), apart.update(played, rewards, beside=beside, **how)]
    assert stats[0] == stats[1] and together.policy.vector.tobytes() == apart.policy.vector.tobytes()
    assert not np.array_equal(together.policy.vector, PPO(config, PolicySpec(), 5).policy.vector)
