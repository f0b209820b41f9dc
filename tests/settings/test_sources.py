"""Where settings come from, which of them wins, and what becomes of wrong ones on the command line."""

import pytest

from fixfirst.cli import main
from fixfirst.settings.training import TrainConfig


def test_the_command_line_beats_the_environment_which_beats_the_file(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_text('preset = "hybrid"\nseed = 1\nmax_steps = 7\nrule = "top"\n[ppo]\nepochs = 2\ngamma = 0.5\n')
    monkeypatch.setenv("FIXFIRST_SEED", "2")
    monkeypatch.setenv("FIXFIRST_MAX_STEPS", "8")
    monkeypatch.setenv("FIXFIRST_GAMMA", "0.6")
    monkeypatch.setenv("FIXFIRST_N_ENVS", "2")
    config = TrainConfig.resolve(*TrainConfig.gather({"seed": 3, "keep": "delta", "workflow": "balanced"}, path, None))
    assert (config.seed, config.game.max_steps, config.judging.rule) == (3, 8, "top")
    assert (config.ppo.epochs, config.ppo.gamma, config.ppo.num_envs) == (2, 0.6, 2)
    assert config.ppo.episodes_per_update == 10  # hybrid's five, of each of the two environments
    assert config.keep == "delta" and config.alignment_lambda == 30.0


def refused(folder, capsys, arguments, says):
    """The command says one line, and leaves nothing."""
    assert main(["train", "--out", str(folder / "run"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fixfirst: ") and error.count("\n") == 1 and says in error, error
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("sed = 1", "config.toml: unknown setting 'sed'; did you mean 'seed'?"),
        ("[ppo]\nepoch = 1", "unknown setting 'epoch'; did you mean 'epochs'?"),
        ("ppo = 3", "unknown setting 'ppo'"),
        ("keep = 3", "--keep must be shield, evidence, recheck, expiry, limit, penalty, delta or none, got 3"),
        ("seed = ", "config.toml: cannot be read as TOML"),
        ('preset = ["default"]', "preset must be one of "),
    ],
)
def test_a_wrong_config_file_is_one_line(tmp_path, capsys, content, says):
    (tmp_path / "config.toml").write_text(content)
    refused(tmp_path, capsys, ["--config", str(tmp_path / "config.toml")], says)


def test_wrong_flags_and_variables_are_one_line(tmp_path, capsys, monkeypatch):
    for arguments, says in (
        (["--workflow", "user > root"], "must name each of user"),
        (["--config", "nowhere.toml"], "nowhere.toml: no such file"),
        (["--units", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--total-episodes", "10"], "--total-episodes must be at least 50, got 10"),
        (["--from", str(tmp_path / "nowhere")], "holds no policy"),
        (["--seed", "x"], "--seed"),
    ):
        refused(tmp_path, capsys, arguments, says)
    monkeypatch.setenv("FIXFIRST_SEED", "lucky")
    refused(tmp_path, capsys, [], "--seed must be a whole number, got 'lucky'")
