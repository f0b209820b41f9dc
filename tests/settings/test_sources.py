"""Where settings come from, which of them wins, and how older versions wrote them."""

import json
import tomllib

import pytest
from policies import FIRST_CHAMPION
from searches import one_line

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.orders.order import UnitScheme
from fixfirst.reporter.run import Run
from fixfirst.runs.layout import Kind
from fixfirst.runs.manifest import GONE, RENAMED, create_run, flat_settings
from fixfirst.settings.league import LeagueConfig
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig, make_config

# As earlier versions wrote them.
OLD_SEARCH = """
seed = 7
total_episodes = 3000
strategy = "gp_ucb"
separate = true
beginners = 3
[training]
seed = 0
total_episodes = 20000
workflow = "none"
[training.game]
red_agent = "meander"
cyborg = "/there"
[training.gate]
compliance_threshold = 0.9
min_episodes = 0
[training.ppo]
num_envs = 100
episodes_per_update = 100
value = 0.25
[training.alignment]
kind = "penalty"
weight = 3.0
rate = 1.0
"""
OLD_TRAINING = 'total_episodes = 400\nworkflow = "balanced"\n[game]\nmax_steps = 9\n[ppo]\nnum_envs = 4'
FLAT = {
    **{"seed": 7, "total_episodes": 3000, "strategy": "gp_ucb", "separate": True, "trainings": 3, "max_episodes": 20_000},
    **{"workflow": "none", "red_agent": "meander", "cyborg": "/there", "compliance_threshold": 0.9, "min_episodes": 0},
    **{"n_envs": 100, "episodes_per_update": 100, "vf_coef": 0.25},
    **{"keep": "penalty", "alignment_lambda": 3.0, "alignment_rate": 1.0},
}
OLD = {"entropy": 0.02, "value_weight": 0.25, "clip": 0.1, "starts": 2, "start_episodes": 50, "free_restores": 100}
NEW = {"ent_coef": 0.02, "vf_coef": 0.25, "clip_coef": 0.1, "entrants": 2, "start_episodes": 50}
NEW |= {"restore_cost_warmup_episodes": 100}
LINE = "some settings have other names now: --clip is --clip-coef, --entropy is --ent-coef, "


def test_the_command_line_beats_the_environment_which_beats_the_file(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_text('preset = "hybrid"\nseed = 1\nmax_steps = 7\nrule = "top"\n[ppo]\nepochs = 2\ngamma = 0.5\n')
    for name, value in {"SEED": 2, "MAX_STEPS": 8, "GAMMA": 0.6, "N_ENVS": 2}.items():
        monkeypatch.setenv(f"FIXFIRST_{name}", str(value))
    config = TrainConfig.resolve(*TrainConfig.gather({"seed": 3, "keep": "delta", "workflow": "balanced"}, path, None))
    assert (config.seed, config.game.max_steps, config.rule) == (3, 8, "top")
    assert (config.ppo.epochs, config.ppo.gamma, config.ppo.num_envs) == (2, 0.6, 2)
    assert config.ppo.episodes_per_update == 10  # hybrid's five, of each of the two environments
    assert config.keep == "delta" and config.alignment_lambda == 30.0


FILES = [
    ("sed = 1", "config.toml: unknown setting 'sed'; did you mean 'seed'?"),
    ("seed = ", "config.toml: cannot be read as TOML"),
    ('preset = ["default"]', "preset must be one of "),
]
FLAGS = [
    (["--workflow", "user > root"], "must name each of user"),
    (["--config", "nowhere.toml"], "nowhere.toml: no such file"),
    (["--units", "nowhere.toml"], "nowhere.toml: cannot be read"),
    (["--from", "nowhere"], "holds no policy"),
    (["--seed", "x"], "--seed"),
    ([], "--seed must be a whole number, got 'lucky'"),  # the variable
]


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [(file, ["--config", "config.toml"], says) for file, says in FILES] + [("", *f) for f in FLAGS],
)
def test_a_wrong_file_flag_or_variable_is_one_line_and_leaves_nothing(
    tmp_path, monkeypatch, capsys, content, arguments, says
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text(content)
    if not arguments:
        monkeypatch.setenv("FIXFIRST_SEED", "lucky")
    assert main(["train", "--out", "run", *arguments]) == 2
    one_line(capsys, says)
    assert not (tmp_path / "run").exists()


def test_every_old_name_stands_for_a_setting_and_is_none():
    known = {*SearchConfig.model_fields, *TrainConfig.model_fields, *LeagueConfig.model_fields}
    assert set(RENAMED.values()) <= known and not {*RENAMED, *GONE} & known


def test_old_names_from_python_a_file_and_the_environment_are_the_new_ones(tmp_path, monkeypatch, capsys):
    file = tmp_path / "old.toml"
    file.write_text("".join(f"{name} = {value}\n" for name, value in OLD.items()))
    expected = make_config(**NEW)
    assert capsys.readouterr().err == ""
    assert make_config(**OLD) == expected == TrainConfig(**expected.model_dump() | {"clip": 0.1})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"fixfirst: {LINE}") and second.endswith("--clip is --clip-coef")
    assert TrainConfig.resolve(*TrainConfig.gather({}, file, None)) == expected
    assert capsys.readouterr().err.startswith(f"fixfirst: {file}: {LINE}")
    for name, value in OLD.items():
        monkeypatch.setenv(f"FIXFIRST_{name.upper()}", str(value))
    assert TrainConfig.resolve(*TrainConfig.gather({}, None, None)) == expected
    assert capsys.readouterr().err.startswith(f"fixfirst: {LINE}")
    assert LeagueConfig(softer=0.5, entropy=0.02) == LeagueConfig(initial_logit_scale=0.5, ent_coef=0.02)
    assert "--softer is --initial-logit-scale" in capsys.readouterr().err


def test_old_flags_train_as_the_new_ones_and_the_run_has_the_new_names(tmp_path, capsys):
    small = ["train", "--workflow=none", "--total-episodes=4", "--n-envs=2", "--max-steps=3", "--test-episodes=2", "--quiet"]
    for name, flags in (("old", ["--entropy", "0.02", "--engine=torch"]), ("new", ["--ent-coef", "0.02"])):
        assert main([*small, *flags, "--out", str(tmp_path / name)]) == 0
    renamed, gone = capsys.readouterr().err.splitlines()
    assert renamed == "fixfirst: some settings have other names now: --entropy is --ent-coef"
    assert gone.startswith("fixfirst: --engine has no effect: PyTorch no longer learns here. --row-parts cuts an epoch")
    assert "Stable-Baselines3 on our environments" in gone
    files = [(tmp_path / name / "config.toml").read_text() for name in ("old", "new")]
    assert files[0] == files[1] and "ent_coef = 0.02" in files[0]


def test_what_changed_nothing_and_what_we_wrote_ourselves_is_read_without_a_word(capsys):
    """Whoever reads the configuration of a policy cannot change it."""
    for harmless in ({"engine": "auto"}, {"engine": "compiled"}, {"minibatches": 1}, {"minibatches": "1"}):
        assert make_config(**harmless) == make_config()
    old = json.loads((FIRST_CHAMPION / "policy.json").read_text())["config"]
    flat = flat_settings(old)
    assert flat == flat_settings(flat) and not {*RENAMED} & flat.keys()
    assert ff.load_policy("champion").config["entrants"] == 4 and capsys.readouterr().err == ""


def test_a_configuration_in_tables_is_flattened_and_the_outermost_of_a_name_wins():
    assert flat_settings(tomllib.loads(OLD_SEARCH)) == FLAT == flat_settings(FLAT)
    for training in (3, [], "game"):  # a table that is none holds no settings
        assert flat_settings({"training": training}) == {"training": training}


def test_configurations_of_earlier_versions_still_make_configs():
    search = SearchConfig.resolve({}, {name: value for name, value in FLAT.items() if name != "cyborg"})
    assert search == SearchConfig.resolve({}, tomllib.loads(OLD_SEARCH) | {"cyborg": None})
    assert (search.total_episodes, search.training.total_episodes, search.game.red_agent) == (3000, 20_000, "meander")
    training = TrainConfig.resolve({}, tomllib.loads(OLD_TRAINING))
    assert (training.total_episodes, training.max_steps, training.ppo.num_envs) == (400, 9, 4)


def test_a_run_gives_back_its_settings_but_those_that_name_code_and_knows_which_decide_its_result(tmp_path):
    units = UnitScheme.per_host().as_dict()
    create_run(tmp_path / "run", Kind.SEARCH, FLAT | {"units": units, "from_policy": None})
    run = Run(tmp_path / "run")
    assert run.config == {name: value for name, value in FLAT.items() if name != "cyborg"} | {"units": units}
    assert run.scheme == UnitScheme.per_host()
    assert run.result_settings["kind"] == "search" and run.result_settings["n_envs"] == "100"
    assert not {"seed", "cyborg", "workflow"} & set(run.result_settings)
