"""Settings by name, presets that are only values, and what becomes of wrong ones and of those without effect."""

import numpy as np
import pytest
from cage2 import HOST_NAMES
from hypothesis import given, settings as examples, strategies as st

from fixfirst.base.errors import FixfirstError
from fixfirst.learner.training import Training
from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.presets import PRESETS
from fixfirst.settings.search import SearchConfig, search_config
from fixfirst.settings.training import Alignment, TrainConfig, make_config

ORDER = "enterprise > op_server > op_host > user > defender"

# ---------------------------------------------------------------- names


def test_flat_settings_and_tables_say_the_same():
    flat = make_config(n_envs=4, red_agent="meander", rule="top", keep="delta", min_judged=7, workflow=ORDER)
    nested = make_config(
        ppo={"num_envs": 4, "episodes_per_update": 4},
        game={"red_agent": "meander"},
        judging={"rule": "top"},
        alignment={"kind": "delta"},
        gate={"min_judged": 7},
        workflow=ORDER,
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
    assert ppo.returns == "monte_carlo" and ppo.reward_scale == 1.0
    assert ppo.learning_rate == 0.002 and ppo.adam_betas == (0.9, 0.99) and ppo.lr_schedule == "constant"
    assert (ppo.clip_coef, ppo.gamma, ppo.ent_coef, ppo.vf_coef, ppo.max_grad_norm) == (0.2, 0.99, 0.01, 0.5, 0.5)
    assert config.keep == "delta" and config.gate.gate_rule == "latest" and config.initial_logit_scale == 1


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
    written_out = {name: value for name, value in PRESETS[preset].items() if name in TrainConfig.model_fields}
    assert TrainConfig.resolve({}, written_out) == named.model_copy(update={"preset": "default"})


def test_equal_values_under_another_name_train_the_same_weights():
    """Three updates of `hybrid` against the same values under the name `default`: also what inherits and what is gated."""
    weights = []
    for preset in ("hybrid", "default"):
        values = {name: value for name, value in PRESETS["hybrid"].items() if name in TrainConfig.model_fields}
        training = Training(TrainConfig.resolve({"preset": preset, "workflow": ORDER, "max_steps": 10}, values))
        training.inherit(Training(make_config(workflow=ORDER, seed=9, keep="penalty")).learner.weights)
        gated = [(training.step(), training.passes_gate())[1] for _ in range(3)]
        weights.append((gated, training.learner.weights))
    assert weights[0][0] == weights[1][0]
    assert all(np.array_equal(weights[0][1][name], weights[1][1][name]) for name in weights[0][1])


# ---------------------------------------------------------------- wrong settings


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"preset": "turbo"}, "--preset must be one of sequential, hybrid"),
        ({"preset": ["default"]}, "original, default, champion, guardian, got ['default']"),
        ({"ppo": 3}, "unknown setting 'ppo'"),
        ({"ppo": {"num_envs": 0}}, "--n-envs must be at least 1, got 0"),
        ({"n_envs": "many"}, "--n-envs must be a whole number, got 'many'"),
        ({"n_envs": 4, "episodes_per_update": 6}, "--episodes-per-update must be a multiple of --n-envs 4, got 6"),
        ({"ppo": {"epoch": 3}}, "unknown setting 'epoch'; did you mean 'epochs'?"),
        ({"ppo": {None: 3}}, "unknown setting None"),
        ({"gate": {7: 3}}, "unknown setting 7"),
        ({"returns": "td"}, "--returns must be monte_carlo or gae, got 'td'"),
        ({"learning_rate": -1}, "--learning-rate must be above 0, got -1"),
        ({"gamma": float("nan")}, "--gamma must be"),
        ({"adam_betas": [0.9, 1.0]}, "--adam-betas must be below 1, got 1.0"),
        ({"adam_betas": 0.9}, "--adam-betas must be a list, got 0.9"),
        ({"green": "maybe"}, "--green must be true or false, got 'maybe'"),
        ({"total_episodes": 49}, "--total-episodes must be at least 50, got 49"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
        ({"sed": 1}, "unknown setting 'sed'; did you mean 'seed'?"),
        ({"keep": 3}, "--keep must be shield, evidence, recheck, expiry, limit, penalty, delta or none, got 3"),
        ({"compliance_threshold": 1.5}, "--compliance-threshold must be at most 1, got 1.5"),
        ({"red_agent": "redd"}, "unknown red agent 'redd'; use b_line, meander, sleep"),
        ({"variant": "newest"}, "unknown variant 'newest'; use current, leaderboard, debugged"),
        ({"workflow": "user > defender"}, "must name each of user, op_host"),
        ({"units": {"a": ["User9"], "b": []}}, "'User9', which is none of Defender"),
        # A stage that has no update
        (
            {"entrants": 2, "start_episodes": 1000, "total_episodes": 2020},
            "leaves 20 episodes after the starts, less than one update of 50; make it 2,000, or 2,050 or more",
        ),
        ({"entrants": 2, "start_episodes": 40}, "--start-episodes 40 is less than one update of 50 episodes"),
        (
            {"preset": "champion", "final_episodes": 100},
            "--final-episodes must be at least one update, 250 episodes, got 100",
        ),
        (
            {"opening": "Sleep", "opening_episodes": 20},
            "--opening-episodes must be at least one update, 50 episodes, got 20",
        ),
        # A tournament that cannot be
        ({"entrants": 3}, "--entrants 3 needs --start-episodes: how many each of them has"),
        ({"survivors": 2}, "--survivors 2 needs as many --entrants, got 1"),
        (
            {"survivors": 2, "entrants": 2, "start_episodes": 20},
            "--survivors 2 are compared by the openings they find",
        ),
        ({"finalists_kept": 5}, "--finalists-kept 5 needs as many --finalists, got 3"),
        ({"opening": "find"}, "--opening find needs --opening-episodes"),
        (
            {"opening": "Decoy User9", "action_set": "macros"},
            "the action set macros has no choice 'Decoy User9'; did you mean 'Decoy User",
        ),
        (
            {"opening": "Decoy User3, Decoy User3", "opening_episodes": 50, "action_set": "macros"},
            "its choice 2, Decoy User3, is masked",
        ),
        ({"opening": "Sleep, Sleep", "max_steps": 2}, "an opening of 2 choices leaves nothing to choose in 2 steps"),
        ({"opening": "find", "opening_episodes": 50, "action_set": "all"}, "the action set all has none"),
        (
            {"entrants": 30, "start_episodes": 50, "total_episodes": 200},
            "--total-episodes must be at least 1,500 with 1,450 for starts that are given up, got",
        ),
        ({"growth": [[20, 2], [10, 3]]}, "growth has pairs of (episodes, factor from 1 on), episodes in order, got"),
        ({"memory": "elephant"}, "memory 'elephant' is not known; use none, scans, full"),
        ({"workflow": "all", "units": {name: [name] for name in HOST_NAMES}}, "--workflow all needs at most 6 unit types"),
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
    for name in model.model_fields:
        for value in (float("inf"), 2**31, 2**200, 1e300, (1.0, float("inf")), ((0, 2**70),), np.zeros(3), np.void(b"abc")):
            try:
                model.resolve({name: value})
            except FixfirstError:
                continue
            accepted.append((name, value))
    assert accepted == [("seed", 2**31)]


def test_configs_are_frozen():
    config = make_config()
    for thing, field in ((config, "seed"), (config.ppo, "epochs"), (config.game, "green")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(thing, field, 1)


def test_a_config_survives_its_own_json():
    config = make_config("hybrid", gamma=0.9, workflow=ORDER, keep="delta", seed=3)
    assert TrainConfig.model_validate_json(config.model_dump_json()) == config
    assert config.alignment_lambda == Alignment(keep="delta").alignment_lambda == 30.0


def test_what_a_config_is_made_of_is_made_once_and_carried_to_copies():
    config = make_config(workflow="critical_first")
    game = config.game
    other = config.model_copy(update={"seed": 3, "gamma": 0.9})
    assert other.game is config.game is game and other.tournament is config.tournament
    assert other.ppo.gamma == 0.9 and config.ppo.gamma == 0.99
    assert config.model_copy(update={"workflow": "none"}).spec.units is None
    search = search_config(total_episodes=3_000)
    assert (
        search.base_config(0).ppo is search.base_config(1).ppo and search.base_config(0).seed != search.base_config(1).seed
    )
    assert search.model_copy(update={"max_episodes": 77}).training.total_episodes == 77


# ---------------------------------------------------------------- settings without effect


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lr_final": 0.1}, "--lr-final has no effect here: it needs --lr-schedule linear"),
        ({"settle": 0.1}, "--settle has no effect here: it needs a linear schedule"),
        ({"workflow": ORDER, "alignment_rate": 1.0}, "--alignment-rate has no effect here: it needs --keep penalty and"),
        ({"workflow": ORDER, "min_repairs": 3}, "--min-repairs has no effect here: it needs --gate-rule latest"),
        ({"keep": "penalty"}, "--keep has no effect here: it needs --workflow"),
        ({"workflow": "all", "min_episodes": 9}, "--min-episodes has no effect here: it needs --workflow with one order"),
        ({"finalists": 2}, "--finalists has no effect here: it needs --opening find"),
        ({"start_episodes": 500}, "--start-episodes has no effect here: it needs --entrants 2 or more"),
        ({"returns": "monte_carlo", "gae_lambda": 0.9}, "--gae-lambda has no effect here: it needs --returns gae"),
    ],
)
def test_a_setting_without_effect_says_what_it_needs(settings, words):
    with pytest.raises(FixfirstError) as error:
        make_config(**settings)
    assert str(error.value).startswith(words)


@pytest.mark.parametrize("name", ["n_workflows", "max_episodes", "warmup_episodes", "min_judged", "round_size"])
def test_what_only_the_published_search_knows_needs_separate(name):
    with pytest.raises(FixfirstError, match="has no effect here: it needs --separate"):
        search_config(**{name: 77})
    with pytest.raises(FixfirstError, match="it needs --separate"):
        search_config(tensorboard=True)
    with pytest.raises(FixfirstError, match="--rounds has no effect here: it needs a search without --separate"):
        search_config(separate=True, rounds=3)


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


# ---------------------------------------------------------------- whatever is accepted, trains

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
