"""Help says everything in the order of use; messages speak of what was typed."""

import re
import shlex
import shutil

import pytest
from searches import one_line
from terminal import in_terminal

import fixfirst as ff
from fixfirst.cli import COMMANDS, main
from fixfirst.cli.app import app
from fixfirst.cli.misuse import as_typed
from fixfirst.orders.order import NAMED_ORDERS
from fixfirst.policy.trained import load_policy


def help_of(capsys, *command, flag="--help-all"):
    assert main([*command, flag]) == 0
    return capsys.readouterr().out


def test_commands_are_listed_in_the_order_of_use(capsys):
    assert re.findall(r"^│ ([a-z]+) ", help_of(capsys), re.M) == list(COMMANDS)


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


MESSAGES = [
    ("fly", 'Unknown command "fly"'),
    ("conform", "FILES"),
    ("conform --loud x", "--loud"),
    ("bench --cyborg", "--cyborg"),
    ("record", "--out"),
    ("search --n-envs 0", "--n-envs must be at least 1, got 0"),
    ("search --n-envs=0", "--n-envs must be at least 1"),
    ("search --seeds 1000000000", "--seeds must be at most 10,000, got 1,000,000,000"),
    ("search --n-envs 50.5", "--n-envs: must be a whole number, got '50.5'"),
    ("search --total-episodes 1e5 --n-workflows 0", "--n-workflows must be at least 1"),
    ("search extra", "search does not know what to do with 'extra': its settings are flags"),
    ("report runs/mine --no-open", "fixfirst: Unknown option: --no-open. Did you mean --open?"),
    ("train --workflow critcal_first", "did you mean 'critical_first'?"),
    ("train --workflow 'user > op_servr'", "did you mean 'op_server'?"),
    ("train --preset champoin", "--preset must be one of"),
    ("train --preset champoin", "got 'champoin'; did you mean 'champion'?"),
    ("train --memory scan", "--memory 'scan' is not known"),
    ("train --memory scan", "did you mean 'scans'?"),
    ("train --from champoin", "did you mean 'champion'?"),
    ("evaluate", "POLICY"),
    ("evaluate champion --exploit-episodes 10", "--exploit-episodes goes with --exploit"),
    ("evaluate champion --picky", "--picky goes with --exploit"),
    ("evaluate champion --exploit --leaderboard", "--leaderboard does not go with --exploit"),
    ("evaluate champion --exploit --red-agent b_line", "--red-agent does not go with --exploit"),
    ("evaluate champion --exploit --csv t.csv", "--csv does not go with --exploit"),
    ("evaluate champion --backend both --csv t.csv", "--csv does not go with --backend both"),
    ("evaluate champion --backend both --margin 0", "--margin must be above 0, got 0"),
    ("evaluate champion --exploit --exploit-episodes 0", "--exploit-episodes must be a whole number, at least 50, got 0"),
    ("evaluate champion --exploit --steps 30,x", "--steps: must be a whole number, got 'x'"),
    ("export sleep", "sleep is a baseline: it has no network to export"),
    (f"search --out {'a/' * 2_000}", "--out must be a path, got one that is too long: 'a/a/"),
    ("train --side red", "--side red needs --against"),
    ("train --against champion", "--against does not go with --side blue"),
    ("train --side red --against champion --memory full", "--memory does not go with --side red"),
    ("evaluate champion sleep", "evaluate plays one policy, got also 'sleep'; to set two side by side: "),
    ("compare champion", "compare needs SECOND, see fixfirst compare --help"),
    ("watch champion --gif x.png", "--gif writes an animation, to a file that ends in .gif, got 'x.png'"),
    ("train --league --side red", "--side does not go with --league"),
    ("train --league --again", "--again does not go with --league"),
    ("train --side red --against champion --config x.toml", "--config does not go with --side red"),
    ("train --side red --against champion --updates 3", "--updates does not go with --side red"),
    ("evaluate champoin", "did you mean 'champion'?"),
    ("evaluate nobody", "'nobody' is neither a file or run nor a baseline (sleep, random, react-restore"),
    ("evaluate /proc", "holds no policy (policy.json is missing: name a finished run, of a study one of its searches)"),
    ("evaluate priority-restore", "priority-restore follows an order: give one with --workflow"),
    ("evaluate priority-restore --workflow user", "must name each of user, op_host"),
    ("evaluate sleep --seed -4", "--seed must be in 0..2**64-1, got -4"),
    ("evaluate sleep --episodes 1", "episodes must be a whole number, at least 2, got 1"),
    ("evaluate sleep --episodes many", "--episodes"),
    ("evaluate sleep --steps thirty", "--steps: must be a whole number, got 'thirty'"),
    ("evaluate sleep --steps 0", "--steps must be a whole number, at least 1, got 0"),
    ("evaluate sleep --red-agent purple", "unknown red agent 'purple'"),
    ("evaluate sleep --rule strict", "--rule"),
    ("evaluate sleep --leaderboard --steps 30", "the leaderboard is played for 30, 50 and 100 steps against b_line and"),
    ("evaluate sleep --leaderboard --red-agent b_line", "leave out red_agent (--red-agent)"),
    ("evaluate sleep --leaderboard --variant current", "leave out variant (--variant)"),
    ("evaluate sleep --leaderboard --green", "leave out green (--green)"),
    ("evaluate sleep --leaderboard --backend both", "--leaderboard does not go with --backend both"),
    ("evaluate sleep --leaderboard --episodes 1", "episodes must be a whole number, at least 2, got 1"),
    ("evaluate sleep --episodes 2 --csv /proc/table.csv", "/proc/table.csv: cannot be written ("),
    ("watch nowhere", "'nowhere' is neither a file or run nor a baseline"),
    ("watch priority-restore", "priority-restore follows an order: give one with --workflow"),
    ("watch champion --then '5: user_priority'", "champion follows no order, so that none can change"),
    ("watch sleep --workflow 'user > user'", "must name each of"),
    ("watch sleep --episodes 0", "episodes must be in 1..10000, got 0"),
    ("watch sleep --then '5: user_priority'", "sleep follows no order that could change: give the first one"),
    ("watch sleep --then soon", """--then must look like "30: user_priority", with a step of 2..100, got 'soon'"""),
    ("watch sleep --steps 0", "--steps must be a whole number, at least 1, got 0"),
    ("watch sleep --seed -4", "--seed must be in 0..2**64-1, got -4"),
    ("watch sleep --number 10000", "--number must be in 0..9999, got 10000"),
    ("watch sleep --red-agent blue", "unknown red agent 'blue'"),
    ("watch sleep --variant newest", "--variant"),
    ("watch sleep --rule none", "Invalid value for --rule: must be one of no_higher, top, fixed_types, got 'none'"),
    ("watch sleep --steps 20 --episodes 12 --out /nowhere/at/all.html", "/nowhere/at/all.html: cannot be written"),
    ("watch sleep --backend cyborg --cyborg /nowhere", "holds no package CybORG"),
]


@pytest.mark.parametrize(("command", "says"), MESSAGES)
def test_misuse_is_one_line_that_names_the_flag_that_was_typed_and_exit_code_2(command, says, capsys):
    assert main(shlex.split(command)) == 2
    one_line(capsys, says)


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


def test_a_message_breaks_between_words():
    words = set(re.findall(r"\S+", in_terminal(["evaluate", "nothing"], width=400, code=2)))
    lines = in_terminal(["evaluate", "nothing"], width=40, code=2).splitlines()
    assert len(lines) > 3 and set(re.findall(r"\S+", "\n".join(lines))) == words and max(map(len, lines)) <= 40
