"""`fixfirst evaluate` and `compare`: what is printed and written, whom a policy is judged by, and misuse is one line."""

import csv
import json
import re
import shlex

import pytest
from approved import approve

from fixfirst.cli import main
from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"
SMALL = ["--episodes", "20"]
TINY = ["--scenario", "tiny", "--episodes", "10", "--steps", "10"]
COMMANDS = {  # with the rows of the table
    "evaluate": (["evaluate", "react-restore", "--episodes", "10"], 9),
    "evaluate-order": (
        ["evaluate", "react-restore", *TINY, "--red-agent", "b_line", "--workflow", "user > op_server > enterprise"],
        1,
    ),
    "leaderboard": (["evaluate", "sleep", "--leaderboard", "--episodes", "10"], 7),
    "compare": (["compare", "react-restore", "random", "--episodes", "4", *TINY[:2], *TINY[4:]], 2),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_commands_print_and_write_as_latex_is_what_was_approved(name, tmp_path, capsys):
    command, rows = COMMANDS[name]
    assert main([*command, "--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex")]) == 0
    printed = "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())
    approve(f"{name}.txt", f"{printed}\n{(tmp_path / 't.tex').read_text()}")
    assert len(table(tmp_path / "t.csv")) == rows
    assert main([*command, "--csv", str(tmp_path / "nowhere" / "t.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def document(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_and_csv_hold_the_same_numbers(tmp_path, capsys):
    path = tmp_path / "table.csv"
    arguments = ["priority-restore", "--workflow", ORDER, "--red-agent", "b_line,meander", "--steps", "30,50", *SMALL]
    rows = document(capsys, "evaluate", *arguments, "--csv", str(path))
    assert len(rows) == 4
    for row, cells in zip(rows, table(path), strict=True):
        judged = row["compliance"]
        numbers = {name: row[name] for name in ("steps", "mean", "standard_error", "low", "high")}
        numbers |= {name: judged[name]["value"] for name in ("compliance", "effectiveness", "response")}
        numbers |= {"repairs_per_episode": judged["repairs_per_episode"]}
        assert {name: float(cells[name]) for name in numbers} == numbers
        assert (cells["red_agent"], cells["variant"]) == (row["red_agent"], "current")


def test_the_leaderboards_json_and_csv_hold_the_same_numbers_and_lead_over_the_published_ones(tmp_path, capsys):
    path = tmp_path / "table.csv"
    arguments = ["random", "--leaderboard", "--variant", "leaderboard", *SMALL]
    standing = document(capsys, "evaluate", *arguments, "--csv", str(path))
    columns, total = standing["columns"], standing["total"]
    assert list(columns) == ["B30", "M30", "B50", "M50", "B100", "M100"]
    assert [float(row["mean"]) for row in table(path)] == [cell["mean"] for cell in (*columns.values(), total)]
    assert total["mean"] == pytest.approx(sum(cell["mean"] for cell in columns.values()))
    assert all(cell["low"] < cell["mean"] < cell["high"] for cell in (*columns.values(), total))
    for row in standing["published"]:
        assert row["lead"]["mean"] == pytest.approx(total["mean"] - row["total"]) and list(row["columns"]) == list(columns)


def test_the_command_that_compare_names_watches_the_very_episode(capsys, tmp_path, monkeypatch):
    """With its length, seed and network, which are not the usual ones."""
    monkeypatch.chdir(tmp_path)
    flags = ["--scenario", "tiny", "--steps", "12", "--seed", "3", "--red-agent", "b_line"]
    assert main(["compare", "random", "sleep", *flags, *SMALL]) == 0
    printed = capsys.readouterr().out
    number, earned = re.search(r"worst of the first, episode (\d+): first (-[\d.]+), second", printed).groups()
    command = printed.splitlines()[-1]
    assert command.startswith("next: fixfirst watch random --beside sleep ")
    assert main(shlex.split(command)[2:]) == 0
    assert f"chosen: episode {number} against b_line: return {earned}" in capsys.readouterr().out


def test_without_an_order_there_is_no_compliance(tmp_path, capsys):
    path = tmp_path / "table.csv"
    rows = document(capsys, "evaluate", "sleep", *SMALL, "--steps", "5", "--csv", str(path))
    assert {row["compliance"] for row in rows} == {None} and {row["compliance"] for row in table(path)} == {""}


@pytest.fixture
def rows_of(capsys, tmp_path):
    """Evaluates a baseline, or an untrained policy of this workflow setting, against B_line for 30 steps."""

    def rows(policy, *arguments):
        if policy not in ("sleep", "random"):
            Training(make_config(workflow=policy)).save_policy(tmp_path / policy)
            policy = tmp_path / policy
        return document(capsys, "evaluate", str(policy), *SMALL, "--red-agent", "B_lineAgent", "--steps", "30", *arguments)

    return rows


def test_a_baseline_is_judged_by_the_given_order_and_settings_have_other_spellings(rows_of):
    (row,) = rows_of("random", "--workflow", ORDER)
    assert 0 < row["compliance"]["compliance"]["value"] < 1
    (row,) = rows_of("sleep", "--variant", "leaderboard", "--green")
    assert (row["red_agent"], row["variant"]) == ("b_line", "leaderboard")


def test_a_policy_follows_its_own_order_or_the_given_one(rows_of):
    own, same, other = (rows_of(ORDER, *more) for more in ([], ["--workflow", ORDER], ["--workflow", "reverse"]))
    assert own == same != other


def test_a_policy_that_knows_no_order_can_still_be_judged_by_one(rows_of):
    (free,), (judged,) = rows_of("none"), rows_of("none", "--workflow", ORDER)
    assert free["compliance"] is None and judged["compliance"]["compliance"]["count"] > 0
    assert free["mean"] == judged["mean"]  # it plays the same


def test_greedy_and_the_seed_matter_also_on_the_leaderboard(rows_of, tmp_path, capsys):
    rows = [rows_of(ORDER, *more)[0] for more in ([], ["--greedy"], ["--seed", "1"])]
    assert len({row["mean"] for row in rows}) == 3
    words = ["evaluate", str(tmp_path / ORDER), "--leaderboard", *SMALL]
    totals = {document(capsys, *words, *more)["total"]["mean"] for more in ([], ["--greedy"], ["--seed", "1"])}
    assert len(totals) == 3
