"""`fixfirst evaluate`: the protocol as a table, JSON and CSV, and misuse is one line."""

import csv
import io
import json
import re
import shlex

import pytest

from fixfirst.cli import main
from fixfirst.learner.training import Training
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"

SMALL = ["--episodes", "20"]


def test_the_protocol_has_nine_rows_and_a_sum(capsys):
    assert main(["evaluate", "react-restore", *SMALL]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    rows, total, repairs = lines[:9], lines[9], lines[10:]
    columns = [[red, steps] for red in ("b_line", "meander", "sleep") for steps in ("30", "50", "100")]
    assert [row.split()[:2] for row in rows] == columns
    assert [line.split(":")[0] for line in repairs] == [f"{red}, {steps} steps" for red, steps in columns]
    assert header.split()[:2] == ["red", "agent"]
    shown = [float(row.split()[2]) for row in rows]
    assert float(total.split()[1]) == pytest.approx(sum(shown), abs=0.05)
    assert shown[6:] == [0, 0, 0] and "20 episodes each, variant current" in total  # sleep does no harm


def test_a_network_other_than_cage2_is_named_beside_the_variant(capsys):
    assert main(["evaluate", "sleep", "--scenario", "tiny", "--red-agent", "b_line", "--steps", "10", *SMALL]) == 0
    assert "20 episodes each, variant current, scenario tiny (" in capsys.readouterr().out
    assert main(["compare", "sleep", "random", "--scenario", "tiny", "--steps", "10", *SMALL]) == 0
    assert "the same for both, variant current, scenario tiny (" in capsys.readouterr().out


def test_the_command_that_compare_names_watches_the_very_episode(capsys, tmp_path, monkeypatch):
    """With its length, seed and network, which are not the usual ones."""
    monkeypatch.chdir(tmp_path)
    flags = ["--scenario", "tiny", "--steps", "12", "--seed", "3", "--red-agent", "b_line"]
    assert main(["compare", "random", "sleep", *flags, *SMALL]) == 0
    *_, worst_of_first, _, command = capsys.readouterr().out.splitlines()
    number, earned = re.search(r"episode (\d+): A (-[\d.]+), B", worst_of_first).groups()
    assert command.startswith("next: fixfirst watch random --beside sleep ")
    assert main(shlex.split(command)[2:]) == 0
    assert f"chosen: episode {number} against b_line: return {earned}" in capsys.readouterr().out


def test_json_and_csv_hold_the_same_numbers(tmp_path, capsys):
    path = tmp_path / "table.csv"
    arguments = ["priority-restore", "--workflow", ORDER, "--red-agent", "b_line,meander", "--steps", "30,50"]
    assert main(["evaluate", *arguments, *SMALL, "--json", "--csv", str(path)]) == 0
    documents = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(documents) == len(rows) == 4
    for document, row in zip(documents, rows, strict=True):
        assert (row["red_agent"], int(row["steps"]), row["variant"]) == (document["red_agent"], document["steps"], "current")
        for name in ("mean", "standard_error", "low", "high"):
            assert float(row[name]) == document[name]
        for rate in ("compliance", "effectiveness", "response"):
            assert float(row[rate]) == document["compliance"][rate]["value"]
        assert float(row["repairs_per_episode"]) == document["compliance"]["repairs_per_episode"]


def test_the_leaderboard_shows_six_columns_and_a_total_beside_the_published_ones(capsys):
    assert main(["evaluate", "react-restore", "--leaderboard", *SMALL]) == 0
    head, ours, error, low, high, *published, to_winner, to_best, repairs, played, source = (
        capsys.readouterr().out.splitlines()
    )
    assert head.split() == ["B30", "M30", "B50", "M50", "B100", "M100", "total"]
    lines = [[float(cell) for cell in line.split()[-7:]] for line in (low, ours, high, error, *published)]
    assert all(a < b < c and e > 0 for a, b, c, e in zip(*lines[:4], strict=True))
    assert sum(lines[1][:6]) == pytest.approx(lines[1][6], abs=0.05)
    assert lines[4] == [-3.47, -5.64, -6.41, -8.69, -13.76, -16.60, -54.57] and published[0].startswith("CardiffUni, winner")
    assert lines[5] == [-3.47, -5.64, -5.85, -8.69, -11.39, -16.60, -51.64] and published[1].startswith(
        "best of all entries"
    )
    assert float(to_winner.split(":")[1].split()[0]) == pytest.approx(lines[1][6] + 54.57, abs=0.02) and "best" in to_best
    assert repairs.startswith("Restores and Removes an episode: B30 ") and ", M100 " in repairs
    assert "20 episodes against each, variant leaderboard" in played and "CAGE Challenge 2 leaderboard" in source


def test_the_leaderboard_as_json_and_csv(tmp_path, capsys):
    path, arguments = tmp_path / "table.csv", ["--variant", "leaderboard", *SMALL, "--json", "--csv"]
    assert main(["evaluate", "random", "--leaderboard", *arguments, str(path)]) == 0
    told, rows = json.loads(capsys.readouterr().out), list(csv.DictReader(io.StringIO(path.read_text())))
    earned = [*told["columns"].values(), told["total"]]
    assert [float(row["mean"]) for row in rows] == [cell["mean"] for cell in earned] and rows[-1]["red_agent"] == "total"
    for cell in (*told["columns"].values(), told["total"]):
        assert cell["low"] < cell["mean"] < cell["high"] and cell["standard_error"] > 0
    for row in told["published"]:
        assert row["lead"]["mean"] == pytest.approx(told["total"]["mean"] - row["total"])
        assert list(row["columns"]) == list(told["columns"]) == ["B30", "M30", "B50", "M50", "B100", "M100"]


def test_without_an_order_there_is_no_compliance(tmp_path, capsys):
    path = tmp_path / "table.csv"
    assert main(["evaluate", "sleep", *SMALL, "--steps", "5", "--json", "--csv", str(path)]) == 0
    assert all(row["compliance"] is None for row in json.loads(capsys.readouterr().out))
    assert all(row["compliance"] == "" for row in csv.DictReader(io.StringIO(path.read_text())))


def test_a_baseline_is_judged_by_the_given_order_and_settings_have_other_spellings(capsys):
    assert main(["evaluate", "random", "--workflow", ORDER, *SMALL, "--red-agent", "b_line", "--json"]) == 0
    (row, *_) = json.loads(capsys.readouterr().out)
    assert 0 < row["compliance"]["compliance"]["value"] < 1
    arguments = ["--red-agent", "B_lineAgent", "--steps", "10", "--variant", "leaderboard", "--green", *SMALL, "--json"]
    assert main(["evaluate", "sleep", *arguments]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["red_agent"], row["variant"]) == ("b_line", "leaderboard")


@pytest.fixture
def policy(tmp_path):
    """Saves an untrained policy of the given workflow setting; returns its folder."""

    def make(workflow):
        Training(make_config(workflow=workflow)).save_policy(tmp_path / "policy")
        return str(tmp_path / "policy")

    return make


def rows_of(capsys, *arguments):
    assert main(["evaluate", *arguments, *SMALL, "--red-agent", "b_line", "--steps", "30", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_policy_follows_its_own_order_or_the_given_one(policy, capsys):
    folder = policy(ORDER)
    own, same, other = (rows_of(capsys, folder, *more) for more in ([], ["--workflow", ORDER], ["--workflow", "reverse"]))
    assert own == same != other
    assert main(["evaluate", policy("all"), *SMALL]) == 2
    assert "this policy follows any order: say which one (workflow=..., --workflow)" in capsys.readouterr().err


def test_a_policy_that_knows_no_order_can_still_be_judged_by_one(policy, capsys):
    folder = policy("none")
    (free,), (held,) = rows_of(capsys, folder), rows_of(capsys, folder, "--workflow", ORDER)
    assert free["compliance"] is None and held["compliance"]["compliance"]["count"] > 0
    assert free["mean"] == held["mean"]  # it plays the same


def test_greedy_and_the_seed_matter_also_on_the_leaderboard(policy, capsys):
    folder, totals = policy(ORDER), set()
    rows = [rows_of(capsys, folder, *more) for more in ([], ["--greedy"], ["--seed", "1"])]
    assert rows[0] != rows[1] != rows[2] != rows[0]
    for more in ([], ["--greedy"], ["--seed", "1"]):
        assert main(["evaluate", folder, "--leaderboard", *SMALL, "--json", *more]) == 0
        totals.add(json.loads(capsys.readouterr().out)["total"]["mean"])
    assert len(totals) == 3


def test_both_backends_without_cyborg_is_one_clear_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("FIXFIRST_CYBORG", str(tmp_path))
    assert main(["evaluate", "sleep", "--backend", "both", "--steps", "5", "--episodes", "5", "--red-agent", "b_line"]) == 2
    error = capsys.readouterr().err
    assert "holds no package CybORG" in error and error.count("\n") == 1
    assert main(["evaluate", "sleep", "--backend", "both", "--margin", "0"]) == 2
