"""Settings by name, presets that are only values, and what becomes of wrong ones."""

import numpy as np
import pytest

from fixfirst.base.errors import FixfirstError
from fixfirst.learner.config import Alignment, PPOConfig, TrainConfig
from fixfirst.learner.presets import PRESETS
from fixfirst.learner.settings import make_config, places, resolve
from fixfirst.learner.training import Training
from fixfirst.searcher.config import SearchConfig

ORDER = "enterprise > op_server > op_host > user > defender"

# ---------------------------------------------------------------- names and places


def test_a_setting_is_found_by_its_flat_name():
    train, search = places(TrainConfig), places(SearchConfig)
    assert train["red_agent"] == ("game", "red_agent") and search["red_agent"] == ("training", "game", "red_agent")
    assert train["n_envs"] == ("ppo", "num_envs") and train["keep"] == ("alignment", "kind")
    assert search["total_episodes"] == ("total_episodes",) and search["max_episodes"] == ("training", "total_episodes")


def test_every_setting_of_a_training_has_a_name_of_its_own():
    """Fields of all models together are as many as names: no two share one."""
    models = [TrainConfig] + [info.annotation for info in TrainConfig.model_fields.values()]
    tables = [model for model in models if hasattr(model, "model_fields")]
    leaves = sum(len(model.model_fields) for model in tables) - (len(tables) - 1)
    assert len(places(TrainConfig)) == leaves
    assert set(places(TrainConfig)) - {"total_episodes"} <= set(places(SearchConfig))


def test_flat_settings_and_tables_say_the_same():
    flat = make_config(n_envs=4, red_agent="meander", rule="top", keep="delta", min_judged=7)
    nested = make_config(
        ppo={"num_envs": 4, "episodes_per_update": 4},
        game={"red_agent": "meander"},
        judging={"rule": "top"},
        alignment={"kind": "delta"},
        gate={"min_judged": 7},
    )
    assert flat == nested


# ---------------------------------------------------------------- presets


@pytest.mark.parametrize(
    ("preset", "envs", "episodes", "epochs"),
    [
        ("sequential", 1, 1, 4),
        ("hybrid", 1, 5, 4),
        ("parallel-25", 25, 25, 4),
        ("parallel-100", 100, 100, 4),
        ("original", 1, 200, 6),
    ],
)
def test_the_published_presets(preset, envs, episodes, epochs):
    """Full batches of whole episodes, normalised Monte-Carlo returns, learning rate 0.002, betas (0.9, 0.99)."""
    config = make_config(preset)
    ppo = config.ppo
    assert (ppo.num_envs, ppo.episodes_per_update, ppo.epochs) == (envs, episodes, epochs)
    assert ppo.returns == "monte_carlo" and ppo.minibatches == 1 and ppo.reward_scale == 1.0
    assert ppo.learning_rate == 0.002 and ppo.adam_betas == (0.9, 0.99) and ppo.lr_schedule == "constant"
    assert (ppo.clip, ppo.gamma, ppo.entropy, ppo.value, ppo.max_grad_norm) == (0.2, 0.99, 0.01, 0.5, 0.5)
    assert config.alignment.kind == "delta" and config.gate.gate_rule == "latest" and config.softening == 1


def test_original_has_no_workflow_and_batches_of_20000_steps():
    config = make_config("original")
    assert config.workflow == "none" and config.policy_scheme is None and config.workflows == ()
    assert config.game.max_steps * config.ppo.episodes_per_update == 20_000


def test_original_remembers_scans_and_chooses_from_27_actions_and_9_macros():
    spec = make_config("original").spec
    assert (spec.memory.name, spec.inputs) == ("scans", 62)
    assert (len(spec.action_set.actions), len(spec.action_set.macros)) == (27, 9) and spec.opening == ()


def test_all_presets_are_known():
    assert set(PRESETS) == {"sequential", "hybrid", "parallel-25", "parallel-100", "original", "default", "champion"}


def test_a_presets_single_values_can_be_changed():
    config = make_config("hybrid", n_envs=2)
    assert config.ppo.episodes_per_update == 10  # still five of each environment
    assert make_config("hybrid", n_envs="2").ppo.episodes_per_update == 10  # as an environment variable gives it
    assert make_config("hybrid", epochs=7).ppo == make_config("hybrid").ppo.model_copy(update={"epochs": 7})
    assert make_config().ppo == PPOConfig()


@pytest.mark.parametrize("preset", PRESETS)
def test_equal_values_under_another_name_are_the_same_training(preset):
    """A preset written out by hand, without its name."""
    named = make_config(preset)
    written_out = {name: value for name, value in PRESETS[preset].items() if name in places(TrainConfig)}
    assert resolve(TrainConfig, written_out) == named.model_copy(update={"preset": "default"})


def test_equal_values_under_another_name_train_the_same_weights():
    """Three updates of `hybrid` against the same values under the name `default`: also what inherits and what is gated."""
    weights = []
    for preset in ("hybrid", "default"):
        values = {name: value for name, value in PRESETS["hybrid"].items() if name in places(TrainConfig)}
        training = Training(make_config(preset, **values, workflow=ORDER, max_steps=10))
        training.inherit(Training(make_config(workflow=ORDER, seed=9, keep="penalty")).learner.weights)
        gated = [(training.step(), training.passes_gate())[1] for _ in range(3)]
        weights.append((gated, training.learner.weights))
    assert weights[0][0] == weights[1][0]
    assert all(np.array_equal(weights[0][1][name], weights[1][1][name]) for name in weights[0][1])


# ---------------------------------------------------------------- wrong settings


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"preset": "turbo"}, "preset must be one of sequential, hybrid"),
        ({"preset": ["default"]}, "original, default, champion, got ['default']"),
        ({"ppo": 3}, "setting 'ppo' must be a table, got 3"),
        ({"ppo": {"num_envs": 0}}, "n_envs: Input should be greater than or equal to 1, got 0"),
        ({"ppo": {"num_envs": "many"}}, "n_envs: Input should be a valid integer"),
        ({"ppo": {"num_envs": 4, "episodes_per_update": 6}}, "episodes_per_update (6) must be a multiple of num_envs (4)"),
        ({"ppo": {"epoch": 3}}, "epoch: Extra inputs are not permitted, got 3"),
        ({"ppo": {"returns": "td"}}, "returns: Input should be 'monte_carlo' or 'gae', got 'td'"),
        ({"ppo": {"learning_rate": -1}}, "learning_rate: Input should be greater than 0, got -1"),
        ({"ppo": {"gamma": float("nan")}}, "gamma: Input should be"),
        ({"ppo": {"adam_betas": [0.9, 1.0]}}, "adam_betas: Input should be less than 1, got 1.0"),
        ({"ppo": {"minibatches": 101}, "max_steps": 2}, "minibatches (101) is more than the 100 steps of one update"),
        ({"total_episodes": 49}, "a budget of 49 episodes is less than one update of 50"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0, got -1"),
        ({"sed": 1}, "unknown setting 'sed'; did you mean 'seed'?"),
        ({"alignment": {"kind": "carrot"}}, "keep: Input should be 'shield', 'penalty', 'delta' or 'none', got 'carrot'"),
        ({"keep": 3}, "keep: Input should be 'shield', 'penalty', 'delta' or 'none', got 3"),
        ({"rule": "strict"}, "rule: Input should be 'no_higher', 'top' or 'fixed_types', got 'strict'"),
        ({"compliance_threshold": 1.5}, "compliance_threshold: Input should be less than or equal to 1, got 1.5"),
        ({"red_agent": "redd"}, "unknown red agent 'redd'; use b_line, meander, sleep"),
        ({"variant": "newest"}, "unknown variant 'newest'; use current, leaderboard, debugged"),
        ({"workflow": "user > defender"}, "must name each of user, op_host"),
        ({"units": {"a": ["User9"], "b": []}}, "'User9', which is none of Defender"),
    ],
)
def test_bad_settings_are_one_line_that_names_what_came(settings, says):
    with pytest.raises(FixfirstError) as error:
        make_config(**settings)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("model", [TrainConfig, SearchConfig])
def test_no_number_is_infinite_or_larger_than_what_we_count_with(model):
    """Else it would overflow somewhere in compiled code, or be waited for until the end of days."""
    accepted = []
    for name in places(model):
        for value in (float("inf"), 2**31, 2**200, 1e300, (1.0, float("inf")), ((0, 2**70),), np.zeros(3), np.void(b"abc")):
            try:
                resolve(model, {name: value})
            except FixfirstError:
                continue
            accepted.append((name, value))
    assert accepted == [("seed", 2**31)]


def test_configs_are_frozen():
    config = make_config()
    for thing, field in ((config, "seed"), (config.ppo, "epochs"), (config.alignment, "weight")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(thing, field, 1)


def test_a_config_survives_its_own_json():
    config = make_config("hybrid", gamma=0.9, workflow=ORDER, alignment={"kind": "delta"}, seed=3)
    assert TrainConfig.model_validate_json(config.model_dump_json()) == config
    assert config.alignment == Alignment(kind="delta", weight=30.0)
