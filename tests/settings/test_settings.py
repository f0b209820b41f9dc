"""Settings by name, presets that are only values, and what becomes of wrong ones and of those without effect."""

import numpy as np
import pytest
from cage2 import HOST_NAMES
from hypothesis import given, settings as examples, strategies as st
from searches import ORDER

from fixfirst.base.errors import FixfirstError
from fixfirst.learner.training import Training
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.presets import PRESETS
from fixfirst.settings.search import SearchConfig, search_config
from fixfirst.settings.training import TrainConfig, make_config

SIZES = {"sequential": (1, 1, 4), "hybrid": (1, 5, 4), "parallel-25": (25, 25, 4), "parallel-100": (100, 100, 4)}


@pytest.mark.parametrize(("preset", "sizes"), (SIZES | {"original": (1, 200, 6)}).items())
def test_the_published_presets(preset, sizes):
    """Full batches of whole episodes, normalised Monte-Carlo returns, learning rate 0.002, betas (0.9, 0.99)."""
    config = make_config(preset)
    assert (config.ppo.num_envs, config.episodes_per_update, config.epochs) == sizes
    usual = {"returns": "monte_carlo", "reward_scale": 1.0, "lr_schedule": "constant", "adam_betas": (0.9, 0.99)}
    usual |= {"learning_rate": 0.002, "clip_coef": 0.2, "gamma": 0.99, "ent_coef": 0.01, "vf_coef": 0.5}
    usual |= {"max_grad_norm": 0.5, "keep": "delta", "gate_rule": "latest", "initial_logit_scale": 1}
    assert {name: getattr(config, name) for name in usual} == usual


def test_original_knows_no_order_remembers_scans_and_learns_from_20000_steps():
    config = make_config("original")
    assert config.policy_scheme is None and config.workflows == ()
    assert config.game.max_steps * config.ppo.episodes_per_update == 20_000
    assert (config.spec.memory.name, config.spec.inputs, config.spec.opening) == ("scans", 62, ())
    assert (len(config.spec.action_set.actions), len(config.spec.action_set.macros)) == (27, 9)


def test_a_presets_single_values_can_be_changed():
    config = make_config("hybrid", n_envs=2)
    assert config.ppo.episodes_per_update == 10  # still five of each environment
    assert make_config("hybrid", n_envs="2").ppo.episodes_per_update == 10  # as an environment variable gives it
    assert make_config("hybrid", epochs=7).ppo == make_config("hybrid").ppo.model_copy(update={"epochs": 7})
    assert make_config().ppo == PPOConfig()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_written_out_by_hand_without_its_name_is_the_same_training(preset):
    values = {name: value for name, value in PRESETS[preset].items() if name in TrainConfig.model_fields}
    assert TrainConfig.resolve({}, values) == make_config(preset).model_copy(update={"preset": "default"})


WRONG = [
    ({"preset": ["default"]}, "original, default, champion, guardian, got ['default']"),
    ({"ppo": 3}, "unknown setting 'ppo'"),
    ({"n_envs": "many"}, "--n-envs must be a whole number, got 'many'"),
    ({"n_envs": 4, "episodes_per_update": 6}, "--episodes-per-update must be a multiple of --n-envs 4, got 6"),
    ({"ppo": {"epoch": 3}}, "unknown setting 'epoch'; did you mean 'epochs'?"),
    ({"returns": "td"}, "--returns must be monte_carlo or gae, got 'td'"),
    ({"learning_rate": -1}, "--learning-rate must be above 0, got -1"),
    ({"gamma": float("nan")}, "--gamma must be"),
    ({"adam_betas": [0.9, 1.0]}, "--adam-betas must be below 1, got 1.0"),
    ({"adam_betas": 0.9}, "--adam-betas must be a list, got 0.9"),
    ({"green": "maybe"}, "--green must be true or false, got 'maybe'"),
    ({"total_episodes": 49}, "--total-episodes must be at least 50, got 49"),
    ({"keep": 3}, "--keep must be shield, evidence, recheck, expiry, limit, penalty, delta or none, got 3"),
    ({"compliance_threshold": 1.5}, "--compliance-threshold must be at most 1, got 1.5"),
    ({"units": {"a": ["User9"], "b": []}}, "'User9', which is none of Defender"),
    ({"growth": [[20, 2], [10, 3]]}, "growth has pairs of (episodes, factor from 1 on), episodes in order, got"),
    ({"workflow": "all", "units": {name: [name] for name in HOST_NAMES}}, "--workflow all needs at most 6 unit types"),
    # A stage that has no update
    (
        {"entrants": 2, "start_episodes": 1000, "total_episodes": 2020},
        "leaves 20 episodes after the starts, less than one update of 50; make it 2,000, or 2,050 or more",
    ),
    ({"preset": "champion", "final_episodes": 100}, "--final-episodes must be at least one update, 250 episodes, got 100"),
    ({"opening": "Sleep", "opening_episodes": 20}, "--opening-episodes must be at least one update, 50 episodes, got 20"),
    (
        {"entrants": 30, "start_episodes": 50, "total_episodes": 200},
        "--total-episodes must be at least 1,500 with 1,450 for starts that are given up and for openings, got 200",
    ),
    # A tournament that cannot be
    ({"entrants": 3}, "--entrants 3 needs --start-episodes: how many each of them has"),
    ({"survivors": 2}, "--survivors 2 needs as many --entrants, got 1"),
    ({"survivors": 2, "entrants": 2, "start_episodes": 20}, "--survivors 2 are compared by the openings they find"),
    ({"opening": "find"}, "--opening find needs --opening-episodes"),
    ({"opening": "Decoy User9", "action_set": "macros"}, "has no choice 'Decoy User9'; did you mean 'Decoy User"),
    (
        {"opening": "Decoy User3, Decoy User3", "opening_episodes": 50, "action_set": "macros"},
        "its choice 2, Decoy User3, is masked",
    ),
    ({"opening": "Sleep, Sleep", "max_steps": 2}, "an opening of 2 choices leaves nothing to choose in 2 steps"),
    ({"opening": "find", "opening_episodes": 50, "action_set": "all"}, "the action set all has none"),
    # Without effect
    ({"lr_final": 0.1}, "--lr-final has no effect here: it needs --lr-schedule linear"),
    ({"settle": 0.1}, "--settle has no effect here: it needs a linear schedule"),
    ({"workflow": ORDER, "alignment_rate": 1.0}, "--alignment-rate has no effect here: it needs --keep penalty and"),
    ({"keep": "penalty"}, "--keep has no effect here: it needs --workflow"),
    ({"initial_logit_scale": 0.1}, "--initial-logit-scale has no effect here: it needs --workflow"),
    ({"returns": "monte_carlo", "gae_lambda": 0.9}, "--gae-lambda has no effect here: it needs --returns gae"),
]
WRONG_IN_SEARCHES = [
    ({"min_judged": 77}, "--min-judged has no effect here: it needs --separate"),
    ({"separate": True, "rounds": 3}, "--rounds has no effect here: it needs a search without --separate"),
]


@pytest.mark.parametrize(
    ("make", "settings", "says"),
    [(make_config, *wrong) for wrong in WRONG] + [(search_config, *wrong) for wrong in WRONG_IN_SEARCHES],
)
def test_bad_settings_are_one_line_that_names_what_came(make, settings, says):
    with pytest.raises(FixfirstError) as error:
        make(**settings)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("model", [TrainConfig, SearchConfig])
def test_no_number_is_infinite_or_larger_than_what_we_count_with(model):
    """Else it would overflow somewhere in compiled code, or be waited for until the end of days."""
    accepted = []
    for name in model.model_fields:
        for value in (float("inf"), 2**31, 2**200, 1e300, (1.0, float("inf")), ((0, 2**70),), np.zeros(3), np.void(b"abc")):
            try:
                model.resolve({name: value})
            except FixfirstError:
                continue
            accepted.append((name, value))
    assert accepted == [("seed", 2**31)]


def test_what_a_config_is_made_of_is_made_once_and_carried_to_copies():
    config = make_config(workflow="critical_first")
    game = config.game
    other = config.model_copy(update={"seed": 3, "gamma": 0.9})
    assert other.game is config.game is game and (other.ppo.gamma, config.ppo.gamma) == (0.9, 0.99)
    with pytest.raises(ValueError, match="frozen"):
        config.game.green = True
    assert config.model_copy(update={"workflow": "none"}).spec.units is None
    search = search_config(total_episodes=3_000)
    first, second, *_ = search.base_configs
    assert first.ppo is second.ppo and first.seed != second.seed
    assert search.model_copy(update={"max_episodes": 77}).training.total_episodes == 77


def test_variables_and_usual_values_may_be_without_effect():
    """A variable is there for other commands, too; and a value that it has anyway asks for nothing."""
    assert TrainConfig.resolve({}, {"lr_final": "0.1"}).lr_final == 0.1
    assert make_config(lr_final=0.0) == make_config("default")
    assert search_config(inherit="last", replicates=0) == search_config()


@pytest.mark.parametrize(
    "config",
    [
        *(make_config(preset) for preset in PRESETS),
        *(search_config(preset) for preset in ("default", "hybrid", "parallel-25")),
        search_config(red_agent="meander", lr_schedule="constant", total_episodes=500_000),
        search_config(separate=True, keep="delta"),
    ],
)
def test_a_config_that_was_accepted_is_accepted_as_a_file(config):
    assert type(config).resolve({}, file=config.model_dump(mode="json", exclude_none=True)) == config


few = st.integers(1, 5)


@given(
    st.fixed_dictionaries(
        {"n_envs": st.integers(1, 3), "total_episodes": st.integers(1, 60), "entrants": st.integers(1, 3)},
        optional={
            "episodes_per_update": few,
            "start_episodes": st.integers(0, 9),
            "growth": st.lists(st.tuples(st.integers(0, 20), few), max_size=2),
            "opening": st.sampled_from(["find", "Sleep"]),
            "opening_episodes": st.integers(0, 9),
            "seek_episodes": few,
            "final_episodes": few,
            **dict.fromkeys(("survivors", "halving_rounds", "finalists", "finalists_kept"), st.integers(1, 3)),
        },
    )
)
@examples(max_examples=60, deadline=None)
def test_whatever_is_accepted_trains_to_its_end(wanted):
    try:
        config = make_config(action_set="macros", max_steps=3, **wanted)
    except FixfirstError:
        return
    training = Training(config)
    while not training.done:
        training.step()
    assert 0 < training.episodes <= config.total_episodes
