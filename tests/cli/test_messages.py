"""Help says everything in the order of use; messages speak of what was typed."""

import re
import shlex
import shutil

import pytest
from approved import FOLDER, approve
from searches import one_line
from terminal import in_terminal

import fixfirst as ff
from fixfirst.cli import COMMANDS, main
from fixfirst.cli.app import app, as_typed
from fixfirst.orders.order import NAMED_ORDERS
from fixfirst.policy.trained import load_policy


def help_of(capsys, *command, flag="--help-all"):
    assert main([*command, flag]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_described_every_switch_says_its_default_and_nothing_stands_in_angle_brackets(command, capsys):
    """Which the renderer would eat. A switch is a flag after which no kind of value stands."""
    arguments = [a for a in app[command].assemble_argument_collection(parse_docstring=True) if a.parse and a.show]
    helps = {argument.name: argument.parameter.help for argument in arguments}
    assert all(helps.values()), helps
    assert not [text for text in (app[command].help, *helps.values()) if re.search(r"<\w", text)]
    entries = re.split(r"^│ (?:[ *]  )?(?=--)", help_of(capsys, command), flags=re.M)[1:]
    switches = [entry for entry in entries if not re.match(r"--[\w-]+ [A-Z]", entry)]
    assert switches and all(re.search(r"\[default:\s", entry) for entry in switches)


@pytest.mark.parametrize("command", ["search", "train"])
def test_help_is_what_people_use_on_one_screen(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    brief, everything = help_of(capsys, command, flag="--help"), help_of(capsys, command)
    flags = [re.findall(r"^│ (?:[ *]  )?(--[\w-]+)", text, re.M) for text in (brief, everything)]
    assert flags[0][0] == "--total-episodes" and len(flags[0]) <= 14 and set(flags[0]) < set(flags[1])
    assert len(brief.splitlines()) <= 45 and brief.splitlines()[-1] == f"--help-all shows all {len(flags[1])}"
    assert re.findall(r"╭─ ([\w ]+) ─", everything)[:2] == ["Settings", "Parameters"]


def test_defaults_are_said_in_one_way(capsys):
    text = " ".join(help_of(capsys, "search").replace("│", " ").split())
    assert "default: 1,150,000, and 1,800,000 against" in text and "[default: 24,000]" in text
    assert "[default: no]" in text and "None" not in text and "False" not in text


@pytest.mark.parametrize("command", ["train", "evaluate", "watch"])
def test_named_orders_are_listed_where_one_is_expected(command, capsys):
    assert set(NAMED_ORDERS) <= set(re.findall(r"\w+", help_of(capsys, command)))


def test_misuse_is_one_line_in_words_that_were_approved_and_exit_code_2_and_leaves_nothing(capsys, tmp_path, monkeypatch):
    """Each names the flag that was typed. A command more: a line with $ in the approved file, and FIXFIRST_APPROVE=1."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for command in re.findall(r"^\$ (.*)", (FOLDER / "misuse.txt").read_text(), re.M):
        assert main(shlex.split(command)) == 2, command
        error = capsys.readouterr().err
        assert error.startswith("fixfirst: ") and error.count("\n") == 1, error
        lines += [f"$ {command}", error]
    approve("misuse.txt", "\n".join(lines))
    assert main(["search", "--out", "a/" * 2_000]) == 2
    one_line(capsys, "--out must be a path, got one that is too long: 'a/a/")
    assert not any(tmp_path.iterdir())


def test_a_variable_is_named_as_its_flag_and_may_be_1e5(monkeypatch, capsys):
    monkeypatch.setenv("FIXFIRST_TOTAL_EPISODES", "1e5")
    monkeypatch.setenv("FIXFIRST_N_ENVS", "0")
    assert main(["search"]) == 2
    assert capsys.readouterr().err.startswith("fixfirst: --n-envs must be at least 1, got '0'")


def test_only_the_setting_at_the_beginning_becomes_a_flag():
    assert as_typed("n_envs: wrong", ["search", "--n-envs", "0"]) == "--n-envs: wrong"
    assert as_typed("n_envs: wrong", ["search"]) == "n_envs: wrong"
    assert as_typed("max_steps is 0", ["watch", "--steps", "0"]) == "--steps is 0"
    assert as_typed("'x' is no policy", ["watch", "x"]) == "'x' is no policy"


def test_another_order_than_the_policys_own_is_noted(tmp_path, capsys):
    train = ["train", "--workflow", "balanced", "--total-episodes", "4", "--n-envs", "4", "--max-steps", "5"]
    out = str(tmp_path / "run")
    assert main([*train, "--out", out, "--quiet"]) == 0
    capsys.readouterr()
    evaluate = ["evaluate", out, "--episodes", "2", "--steps", "5", "--red-agent", "sleep", "--quiet"]
    assert main([*evaluate, "--workflow", "balanced"]) == 0 and capsys.readouterr().err == ""
    assert main([*evaluate, "--workflow", "reverse"]) == 0
    assert "was trained for defender > enterprise > op_server > user > op_host; it is told" in capsys.readouterr().err
    evaluate[1] = "champion"
    assert main([*evaluate, "--workflow", "reverse"]) == 0
    assert capsys.readouterr().err == "fixfirst: champion knows no order; it is judged by this one\n"
    compare = ["compare", out, "champion", "--episodes", "2", "--steps", "5", "--red-agent", "sleep", "--quiet"]
    assert main([*compare, "--workflow", "reverse"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"fixfirst: {out} was trained for defender > enterprise > op_server > user > op_host; it is told another order",
        "fixfirst: champion knows no order; it plays as it does without",
        f"fixfirst: {out} was made for variant current, champion was made for variant leaderboard: both are played in each",
    ]
    policy = load_policy(out)
    policy.save(tmp_path / "best", follows="any")  # as a search does with one that follows any
    evaluate[1] = str(tmp_path / "best")
    assert main([*evaluate, "--workflow", "reverse"]) == 0 and capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["evaluate", "conform"])
def test_the_first_line_appears_before_anything_is_imported(command):
    told = in_terminal([command, "nothing"], width=80, code=2)
    assert told.splitlines()[0] == f"fixfirst: {command} ..."


def test_commands_that_are_printed_can_be_pasted_whatever_the_folder_is_called(answered, tmp_path, capsys):
    folder = shutil.copytree(answered, tmp_path / "it's mine")
    assert main(["resume", str(folder), "--no-report"]) == 0
    (command,) = [line.removeprefix("next:") for line in capsys.readouterr().out.splitlines() if line.startswith("next:")]
    assert shlex.split(command) == ["fixfirst", "evaluate", str(folder / "best")]
    page = ff.report(folder).document.sections
    (again,) = [section.command for section in page if section.command]
    assert str(folder / "config.toml") in shlex.split(again)
