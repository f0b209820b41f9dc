"""New scenarios: drawn by a seed, or made from a table of machines; and the command that shows them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from approved import approve, approve_refusals

import fixfirst as ff
from fixfirst.cli.entry import main
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.reporter.picture import map_of


def test_the_same_seed_gives_the_same_network_for_ever_with_the_ways_of_b_line_and_meander():
    """Change GENERATOR when the first ones change."""
    drawn = [Scenario.generate(seed) for seed in range(3)]
    assert [(s.name, s.num_hosts, s.digest[:8]) for s in drawn] == [
        ("generated1-0", 17, "52511b8b"), ("generated1-1", 28, "11cb9ef7"), ("generated1-2", 25, "d69e9db1")
    ]  # fmt: skip
    for seed in range(40):
        scenario = Scenario.generate(seed, hosts=(8, 63), subnets=(2, 8))
        assert scenario.exact("b_line") and scenario.exact("meander"), scenario.notes
        assert Scenario.from_document(scenario.document(), "again") == scenario
    scenario = Scenario.generate(1, hosts=20, subnets=(3, 3))
    assert scenario.num_hosts == 20 and len(scenario.subnets) == 3
    for wrong in ((7, 30), (8, 64), (9, 8), "many"):
        with pytest.raises(ff.ScenarioError, match=r"hosts must be a whole number in 8\.\.63, or two of them"):
            Scenario.generate(0, hosts=wrong)


TABLE = """name,subnet,os,services,value,leads_to,role,watched
laptop1,office,windows,,,,start,
laptop2,office,windows,ftp ssh,Low,,,
desk1,office,linux,web ssh,low,gw1,,no
gw1,servers,linux,,Medium,,gateway,
mail,servers,linux,smtp,Medium,,,
files,servers,windows,smb rdp,High,,,
plc,plant,linux,,Medium,,target,
"""


def make(tmp_path, text):
    path = tmp_path / "hosts.csv"
    path.write_text(text)
    return Scenario.from_table(path, lambda line: None)


def test_a_table_of_machines_becomes_a_scenario_and_every_guess_is_said(tmp_path, monkeypatch, capsys):
    """start, target and gateway are called as attackers know them; images follow from systems and services."""
    monkeypatch.chdir(tmp_path)
    scenario = make(tmp_path, TABLE)
    assert scenario.host_names == ("User0", "laptop2", "desk1", "Enterprise_gw1", "mail", "files", "Op_Server0")
    assert Scenario.from_document(scenario.document(), "again") == scenario
    assert main(["scenario", "hosts.csv"]) == 0
    shown = capsys.readouterr()
    approve("scenario-table.txt", shown.err + shown.out)


def test_what_cannot_be_guessed_is_refused_with_its_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    approve_refusals("table-refusals.txt", lambda change: make(Path(), TABLE.replace(*change.split(" => "), 1)))


def test_a_map_shows_every_host_once_in_rows_of_its_subnet_and_cage2s_is_as_it_was():
    for hosts in (8, 30, 63):
        scenario = Scenario.generate(hosts, hosts=hosts)
        chart = map_of(scenario)
        rows = [row for of_subnet in chart.rows.values() for row in of_subnet]
        assert sorted(name for row in rows for name in row) == sorted(scenario.host_names)
        assert max(map(len, rows)) <= (5 if hosts <= 30 else 8)
        for row in rows:
            assert len({scenario.hosts[scenario.host_ids[name]].subnet for name in row}) == 1
        assert scenario.start in [name for row in rows for name in row][: len(scenario.subnets[-1].hosts)]
        across = sorted(x for x, y in chart.middles.values() if y == chart.middles[rows[0][0]][1])
        assert all(b - a >= 54 for a, b in pairwise(across))  # boxes do not overlap
    chart = map_of(CAGE2)
    assert (chart.width, chart.height) == (400, 336) and chart.middles["User0"] == (40.0, 56.0)
    assert chart.subnets == {"User": (0, 112), "Enterprise": (112, 112), "Operational": (224, 112)}


def test_the_command_shows_networks_makes_them_and_says_what_is_wrong(tmp_path, capsys):
    assert main(["scenario", "tiny"]) == 0
    approve("scenario.txt", capsys.readouterr().out)
    assert main(["scenario", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == Scenario.load("tiny").digest
    out = tmp_path / "lab.yaml"
    assert main(["scenario", "new", "--hosts", "12", "--seed", "3", "--out", str(out)]) == 0
    assert Scenario.load(out) == Scenario.generate(3, hosts=12)
    assert main(["scenario", "tiny", "--hosts", "9"]) == 2
    assert "--hosts and --subnets are of a new network" in capsys.readouterr().err
