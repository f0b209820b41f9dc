"""Where settings come from, which of them wins, what older names they had, and what becomes of wrong ones."""

import json

import pytest
from policies import FIRST_CHAMPION

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.runs.setting_names import GONE, RENAMED, flatten
from fixfirst.settings.league import LeagueConfig
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig, make_config

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


def test_flat_settings_and_tables_of_earlier_versions_say_the_same():
    flat = {"n_envs": 4, "red_agent": "meander", "rule": "top", "keep": "delta", "min_judged": 7}
    tables = {"ppo": {"num_envs": 4, "episodes_per_update": 4}, "game": {"red_agent": "meander"}}
    tables |= {"judging": {"rule": "top"}, "alignment": {"kind": "delta"}, "gate": {"min_judged": 7}}
    assert make_config(**flat, workflow="balanced") == make_config(**tables, workflow="balanced")


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
    error = capsys.readouterr().err
    assert error.startswith("fixfirst: ") and error.count("\n") == 1 and says in error, error
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


def test_a_league_reads_old_names(capsys):
    assert LeagueConfig(softer=0.5, entropy=0.02) == LeagueConfig(initial_logit_scale=0.5, ent_coef=0.02)
    assert "--softer is --initial-logit-scale" in capsys.readouterr().err


def test_what_changed_nothing_and_what_we_wrote_ourselves_is_read_without_a_word(capsys):
    """Whoever reads the configuration of a policy cannot change it."""
    for harmless in ({"engine": "auto"}, {"engine": "compiled"}, {"minibatches": 1}, {"minibatches": "1"}):
        assert make_config(**harmless) == make_config()
    old = json.loads((FIRST_CHAMPION / "policy.json").read_text())["config"]
    assert flatten(old) == flatten(flatten(old)) and not {*RENAMED} & flatten(old).keys()
    assert ff.load_policy("champion").config["entrants"] == 4 and capsys.readouterr().err == ""
