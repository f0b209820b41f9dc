"""The compiled learner: its gradients are those of plain autograd in double precision, on every configuration."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from late import Late
from numba import njit

from fixfirst.base.errors import ConfigError
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.batch import aggregate, bits_of_rows, distinct_rows, targets
from fixfirst.learner.gradient import ACTOR, CRITIC, BackwardScratch, PPONumbers, adam, learn, power
from fixfirst.learner.ppo import PPO, initial_weights, make_learner
from fixfirst.learner.training import Training
from fixfirst.play.rollout import collect
from fixfirst.play.worlds import make_world
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import PPOConfig, make_config

torch, twins = Late("torch"), Late("fixfirst.learner.torch_ppo")
ORDER = "enterprise > op_server > op_host > user > defender"


def played(workflow, preset="default", **options):
    """A config, its rollout by the untrained policy, and rewards of it that hang on what was done."""
    settings = {"workflow": workflow, "max_steps": 30, "total_episodes": 10_000, "n_envs": 16, "episodes_per_update": 16}
    config = make_config(preset, **settings, **options)
    network = Network.of(initial_weights(config.spec.inputs, 0, config.spec.actions))
    rollout = collect(
        make_world(config.game, config.ppo.num_envs, autoreset="disabled"),
        PolicyTable(network, config.workflows, spec=config.spec),
        world_seed=1,
        policy_seed=2,
        first_episode=0,
        workflows=config.workflows,
    )
    return config, rollout, rollout.rewards10 / 10 - (rollout.actions % 7 == 3)


def autograd(config, rollout, rewards, old, new, entropy, allowed=None):
    """Gradient and statistics of PPO's loss at the weights `new`, one row per transition, in double precision.

    old: the weights with which the rollout was played. allowed [A] bool: other actions are never taken.
    """
    rows = rollout.rows[rollout.found.ravel()]  # what was read, transition by transition
    x = torch.from_numpy(bits_of(rows, config.spec.inputs)).double()
    masks = config.spec.allowed(rows) if allowed is None else np.repeat(allowed[None], len(rows), axis=0)

    def forward(weights, net):
        hidden = x
        for layer in (0, 2):
            hidden = torch.tanh(hidden @ weights[f"{net}.{layer}.weight"].T + weights[f"{net}.{layer}.bias"])
        out = hidden @ weights[f"{net}.4.weight"].T + weights[f"{net}.4.bias"]
        return out if net == "critic" or not len(masks) else out.masked_fill(~torch.from_numpy(masks), -1e30)

    def double(weights, grad):
        return {name: torch.tensor(array, dtype=torch.float64, requires_grad=grad) for name, array in weights.items()}

    before, after = double(old, False), double(new, True)
    values = forward(before, "critic").reshape(rollout.packed_obs.shape).numpy()
    advantages, returns = (torch.from_numpy(array.ravel()) for array in targets(config.ppo, rewards, values))
    m = rollout.actions.size
    action = torch.from_numpy(rollout.choices.ravel().astype(np.int64))
    log_probs = torch.log_softmax(forward(after, "actor")[:m], dim=1)
    old_log_probs = torch.log_softmax(forward(before, "actor")[:m], dim=1)
    chosen, old_chosen = (table.gather(1, action[:, None])[:, 0] for table in (log_probs, old_log_probs))
    ratio = (chosen - old_chosen).exp()
    clipped = ratio.clamp(1 - config.ppo.clip, 1 + config.ppo.clip)
    policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value_loss = (forward(after, "critic")[:m, 0] - returns).square().mean()
    spread = -(log_probs.exp() * log_probs.clamp(min=-1e9)).sum(dim=1).mean()
    (policy_loss + config.ppo.value_weight * value_loss - entropy * spread).backward()
    gradient = Network.of({name: tensor.grad.numpy().astype(np.float32) for name, tensor in after.items()})
    kl = (ratio - 1 - (chosen - old_chosen)).mean()
    out = ((ratio - 1).abs() > config.ppo.clip).double().mean()
    return gradient.vector, [number.item() for number in (policy_loss, value_loss, spread, kl, out)]


CASES = {
    "default": ("none", {}),
    "an order": (ORDER, {}),
    "all orders": ("all", {"entropy": 0.0}),
    "the published presets": (ORDER, {"preset": "parallel-100"}),
    "without a bootstrap": ("none", {"bootstrap": False}),
    "large entropy bonus": (ORDER, {"entropy": 0.3}),
    "no value loss": ("none", {"value_weight": 0.0}),
    "narrow clip": ("none", {"clip": 0.01}),
    "memory": ("none", {"memory": "full"}),
    "memory, macros and an order": (ORDER, {"memory": "full", "action_set": "macros", "red_agent": "meander"}),
    "macros without a memory of decoys": ("none", {"memory": "scans", "action_set": "macros"}),
    "other units": (
        "front > back",
        {"units": {"front": ["User0", "User1", "User2", "User3", "User4"], "back": "rest"}},
    ),
}
REST = ["Defender", "Enterprise0", "Enterprise1", "Enterprise2", "Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"]


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_autograd_in_double_precision(case):
    """After one large step, so that ratios differ from 1 and some are clipped: the second epoch's gradient, within 5e-6 of
    its largest number, and the statistics."""
    workflow, options = CASES[case]
    options = {name: {**value, "back": REST} if name == "units" else value for name, value in options.items()}
    options = {"learning_rate": 0.02, "max_grad_norm": 1e9} | options
    first, rollout, rewards = played(workflow, **options, epochs=1)
    second = first.model_copy(update={"epochs": 2})
    spec, entropy = first.spec, first.ppo.entropy
    once, twice = PPO(first.ppo, spec, 0), PPO(second.ppo, spec, 0)
    once.update(rollout, rewards, entropy=entropy, progress=0.0, seed=0)
    stats = twice.update(rollout, rewards, entropy=entropy, progress=0.0, seed=0)
    old, new = initial_weights(spec.inputs, 0, spec.actions), once.weights
    expected, numbers = autograd(first, rollout, rewards, old, new, entropy)
    assert np.abs(twice._gradient.vector - expected).max() < 5e-6 * max(np.abs(expected).max(), 1)
    shown = [stats.policy_loss, stats.value_loss, stats.entropy, stats.approx_kl, stats.clip_fraction]
    assert shown == pytest.approx(numbers, rel=1e-4, abs=2e-6)
    assert stats.clip_fraction > 0.01 and stats.rows < stats.transitions == 480


def test_actions_that_are_not_allowed_have_no_odds_and_no_gradient():
    """Only actions that were taken, and every third one, are allowed: the same gradient as autograd with a mask."""
    config, rollout, rewards = played("none", max_grad_norm=1e9, epochs=1)
    allowed = np.zeros(145, np.bool_)
    allowed[::3] = True
    allowed[np.unique(rollout.actions)] = True
    assert not allowed.all()
    weights = initial_weights(52, 0, 145)
    network, gradient = Network.of(weights), Network.zeros(52, 145)
    seen = distinct_rows(rollout)
    starts, active = np.empty(len(seen.rows) + 1, np.int64), np.empty(52 * len(seen.rows), np.int64)
    bits_of_rows(seen.rows, 1, starts, active)
    learner = PPO(config.ppo, config.spec, 0)
    values = learner.values(starts, active)
    advantages, returns = targets(config.ppo, rewards, values[seen.found])
    masks = np.repeat(allowed[None], seen.used, axis=0)
    rows = aggregate(starts, active, masks, seen.found, rollout.actions, advantages, returns, seen.used, 145)
    moments, stats = np.zeros((2, len(network.vector)), np.float32), np.empty(5)
    learn(
        network,
        gradient,
        *moments,
        0,
        rows,
        learner.settings(0.003, 0.0),
        BackwardScratch.make(145),
        BackwardScratch.make(1),
        stats,
        ACTOR | CRITIC,
    )
    expected, _ = autograd(config, rollout, rewards, weights, weights, 0.003, allowed)
    assert np.abs(gradient.vector - expected).max() < 5e-6 * max(np.abs(expected).max(), 1)
    assert not gradient.actor.bias3[~allowed].any() and not gradient.actor.matrix3[:, ~allowed].any()


@pytest.mark.parametrize(
    ("workflow", "options"),
    [
        ("none", {}),
        (ORDER, {}),
        ("none", {"memory": "full", "action_set": "macros", "norms_apart": True, "last_layer": 0.1}),
    ],
)
def test_both_learners_learn_the_same(workflow, options):
    """Ten updates of four epochs on the same episodes: probabilities of all rows within 2 %, and the same statistics."""
    config, rollout, rewards = played(workflow, **options)
    compiled, twin = PPO(config.ppo, config.spec, 5), twins.TorchPPO(config.ppo, config.spec, 5)
    assert np.array_equal(compiled.policy.vector, twin.policy.vector)
    for seed in range(10):
        ours, theirs = (
            learner.update(rollout, rewards, entropy=0.003, progress=0.0, seed=seed) for learner in (compiled, twin)
        )
        assert ours.rows == theirs.rows and ours.transitions == theirs.transitions
        assert ours.entropy == pytest.approx(theirs.entropy, rel=2e-3)
        assert ours.value_loss == pytest.approx(theirs.value_loss, rel=2e-3)
    difference = np.abs(compiled.policy.vector - twin.policy.vector)
    moved = np.abs(compiled.policy.vector - Network.of(initial_weights(config.spec.inputs, 5, config.spec.actions)).vector)
    assert difference.mean() < 0.02 * moved.mean()


def test_a_learner_goes_on_from_its_tensors_with_the_same_bits_and_its_twin_can_take_over():
    config, rollout, rewards = played("none")
    learner, again, twin = (kind(config.ppo, config.spec, seed) for seed, kind in enumerate((PPO, PPO, twins.TorchPPO)))
    learner.update(rollout, rewards, entropy=0.01, progress=0.0, seed=0)
    for other in (again, twin):
        other.restore(learner.tensors())
        for name, array in other.tensors().items():
            assert np.array_equal(array, learner.tensors()[name]), name
    for each in (learner, again):
        each.update(rollout, rewards, entropy=0.01, progress=0.0, seed=0)
    assert np.array_equal(learner.policy.vector, again.policy.vector)


def test_who_learns():
    assert isinstance(make_learner(PPOConfig(), PolicySpec(), 0), PPO)
    assert isinstance(make_learner(PPOConfig(engine="torch"), PolicySpec(), 0), twins.TorchPPO)
    assert isinstance(make_learner(PPOConfig(minibatches=2), PolicySpec(), 0), twins.TorchPPO)
    with pytest.raises(ValueError, match="--engine compiled learns from all at once, got --minibatches 2; use"):
        PPOConfig(engine="compiled", minibatches=2)


# ---------------------------------------------------------------- Adam


@njit(error_model="numpy")
def take_step(vector, gradient, moment1, moment2, step, settings):
    adam(vector, gradient, moment1, moment2, step, settings)


@njit
def raised(base, exponent):
    return power(base, exponent)


def settings(**options):
    numbers = {"clip": 0.2, "entropy": 0, "value": 0.5, "max_grad_norm": 1e9}
    numbers = {name: np.float32(number) for name, number in numbers.items()}
    rest = {"epochs": 1, "learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "parts": 1, "split": 0}
    return PPONumbers(**{**rest, **numbers} | options)


def test_adam_takes_pytorchs_steps():
    """A hundred random gradients."""
    rng = np.random.default_rng(0)
    vector, moments = rng.normal(size=50).astype(np.float32), np.zeros((2, 50), np.float32)
    parameter = torch.nn.Parameter(torch.from_numpy(vector.copy()))
    theirs = torch.optim.Adam([parameter], lr=0.1, betas=(0.9, 0.99))
    for step in range(1, 101):
        gradient = (rng.normal(size=50) * 10.0 ** rng.integers(-6, 3)).astype(np.float32)
        take_step(vector, gradient, *moments, step, settings())
        parameter.grad = torch.from_numpy(gradient)
        theirs.step()
    assert np.allclose(vector, parameter.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_moments_that_fade_away_end_at_zero_and_not_as_subnormal_numbers():
    vector, moments = np.zeros(1, np.float32), np.ones((2, 1), np.float32)
    for step in range(1, 20_000):
        take_step(vector, np.zeros(1, np.float32), *moments, step, settings())
        assert all(m == 0 or abs(m) > 1e-31 for m in moments.ravel())
    assert not moments.any()


def test_powers_by_squaring():
    assert raised(0.9, 0) == 1 and raised(0.5, 10) == 2**-10 and raised(0.99, 12345) == pytest.approx(0.99**12345, rel=1e-12)


def test_training_that_diverges_stops_and_says_so():
    config = make_config(ppo={"num_envs": 2}, workflow="none", max_steps=5)
    training = Training(config.model_copy(update={"learning_rate": 1e30}))  # more than a setting may be
    with pytest.raises(ConfigError, match=r"training diverged in update 1; try a learning rate below 1e\+30"):
        training.step()


def test_a_critic_that_learns_beside_the_actor_learns_the_same():
    """Their gradients are clipped apart, so that neither needs the other's: the bytes are the same."""
    config = PPOConfig(epochs=3, row_parts=2, norms_apart=True, last_layer=0.1)
    together, apart = PPO(config, PolicySpec(), 5), PPO(config, PolicySpec(), 5)
    world = World(Game(max_steps=20), 30, autoreset="disabled")
    played = collect(world, PolicyTable(together.policy), world_seed=1, policy_seed=2, first_episode=0)
    how = {"entropy": 0.01, "progress": 0.2, "seed": 3}
    with ThreadPoolExecutor(1) as beside:
        stats = [
            together.update(played, played.rewards10 / 10, **how),
            apart.update(played, played.rewards10 / 10, beside=beside, **how),
        ]
    assert stats[0] == stats[1] and together.policy.vector.tobytes() == apart.policy.vector.tobytes()
    assert not np.array_equal(together.policy.vector, PPO(config, PolicySpec(), 5).policy.vector)
