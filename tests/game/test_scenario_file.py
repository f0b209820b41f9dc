"""Scenario files: what is read from them, what is refused, what writing one keeps; and new ones."""

import json
import os
import pickle
import random
from copy import deepcopy
from functools import reduce
from itertools import pairwise
from operator import getitem
from pathlib import Path

import pytest
import yaml
from approved import approve, approve_refusals

import fixfirst as ff
from fixfirst.cli.entry import main
from fixfirst.game import parts
from fixfirst.game.documents import as_table
from fixfirst.game.images import ImageFolder, ImageTable
from fixfirst.game.scenario import CAGE2, SHIPPED_SCENARIOS, Scenario
from fixfirst.reporter.picture import map_of


@pytest.fixture(scope="module")
def tiny():
    return Scenario.load("tiny").document()


def put(document, place, value):
    """A copy of a document with another value in one place, as Hosts/User1/image; without a value: nothing there."""
    copy = deepcopy(document)
    *path, last = [int(key) if key.isdigit() else key for key in place.split("/")]
    table = reduce(getitem, path, copy)
    table[last] = value
    if value is None:
        del table[last]
    return copy


def changed(document, words):
    """The same, by the words for it: Hosts/User1/image: Gateway."""
    place, _, value = words.partition(": ")
    return put(document, place, yaml.safe_load(value))


def test_the_shipped_ones_are_written_and_read_as_the_same_values_of_the_documented_sizes(tmp_path):
    sizes = {}
    for name in SHIPPED_SCENARIOS:
        scenario = Scenario.load(name)
        (tmp_path / "mine.yaml").write_text(text := scenario.to_yaml())
        again = Scenario.load(tmp_path / "mine.yaml")
        assert again == scenario and again.digest == scenario.digest and hash(again) == hash(scenario)
        assert pickle.loads(pickle.dumps(again)) == again and again.to_yaml() == text and again.name == "mine"
        assert again.map_rows == scenario.map_rows
        sizes[name] = scenario.num_hosts, len(scenario.subnets), scenario.num_actions
    assert sizes == {
        "cage2": (13, 3, 145),
        "cage1": (13, 3, 54),  # one action Misinform a host instead of eight decoys
        "tiny": (6, 3, 68),
        "flat": (8, 1, 90),
        "office": (30, 3, 332),
    }


def test_what_plays_no_part_changes_nothing_but_a_slip_is_noted(tiny):
    odd = put(tiny, "Hosts/User1/ConfidentalityValue", "High") | {"Comment": [1, 2]}
    del odd["Hosts"]["User1"]["ConfidentialityValue"]  # Low unless given
    odd["Hosts"]["User1"] |= {"AWS_Info": ["x"], "AvailabilityValue": "High"}
    odd["Agents"]["Red"]["actions"].append("BlueKeep")
    scenario = Scenario.from_document(odd, "odd")
    assert scenario == Scenario.load("tiny")
    assert any("ConfidentalityValue plays no part; did you mean 'ConfidentialityValue'?" in note for note in scenario.notes)


def test_subnets_are_numbered_by_their_first_host_lists_keep_their_order_and_green_can_be_void_or_absent(tiny):
    document = put(tiny, "Subnets/Enterprise/Hosts", ["Enterprise2", "Enterprise0", "Enterprise1"])
    document["Subnets"] = dict(reversed(document["Subnets"].items()))
    scenario = Scenario.from_document(document, "x")
    assert scenario.subnet_names == ("Enterprise", "Plant", "User")
    third = scenario.b_line_ways[scenario.host_ids["Enterprise0"]][2]
    assert scenario.host_names[third] == "Enterprise1"
    assert Scenario.from_document(tiny, "x").green_hosts == ("Enterprise0", "Enterprise1", "Enterprise2", "User0", "User1")
    assert Scenario.from_document(put(tiny, "Agents/Green/actions", ["Sleep"]), "x").green_hosts == ()
    assert Scenario.from_document(put(tiny, "Agents/Green", None), "x").green_hosts is None


@pytest.mark.parametrize(
    ("rules", "reach", "ports"),
    [
        ({"all": {"in": "all"}}, "open", ()),
        ({"User": {"in": "None"}, "all": {"in": "all"}}, "gated", ()),
        ({"Enterprise": {"in": "all"}}, "closed", ()),  # red does not start there
        (None, "closed", ()),
        ({"all": {"in": [{"PortRange": [22, 23]}, {"PortRange": [20, 22]}]}}, "filtered", ((20, 23),)),
        ({"all": {"in": []}}, "filtered", ()),
    ],
)
def test_who_gets_through_is_one_word_per_subnet(tiny, rules, reach, ports):
    subnet = Scenario.from_document(put(tiny, "Subnets/Plant/NACLs", rules), "x").subnets[1]
    assert (subnet.reach, subnet.lets_through) == (reach, ports)


def test_a_refusal_names_the_file_the_place_what_came_and_what_is_right(tiny):
    def refused(document):
        with pytest.raises(ff.ScenarioError, match=r"^lab\.yaml: [^\n]*$") as refused:
            Scenario.from_document(document, "lab", "lab.yaml")
        return str(refused.value)

    def crowded(extra, **subnet):
        """Tiny with more hosts, in the subnet Plant."""
        crowd = {f"Extra{n}": {"image": "Gateway"} for n in range(extra)}
        document = put(tiny, "Hosts", tiny["Hosts"] | crowd)
        document["Subnets"]["Plant"] |= {"Hosts": ["Op_Server0", *crowd]} | subnet
        return document

    approve_refusals("scenario-refusals.txt", lambda words: Scenario.from_document(changed(tiny, words), "lab", "lab.yaml"))
    backwards = put(tiny, "Agents", dict(reversed(tiny["Agents"].items())))
    assert "begins with Red; Blue must come first" in refused(backwards)
    assert "Hosts must have at most 63 values" in refused(crowded(58))
    assert "16 gives 14 addresses for 16 hosts; use 27" in refused(crowded(15, Size=16))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [1, 1]\nb: [*x, *x]\n", "it has the alias *x: write out what that stands for"),
        ("[" * 200 + "]" * 200, "is nested more than 20 deep"),
        ("x: " + "y" * 2_000_000, "is larger than 1,000,000 bytes"),
        ("a: !!python/object/apply:os.system [ls]\n", "is not YAML that can be read"),
        ("a: 1\na: 2\n", "has the key 'a' twice in one table"),
        ("- 1\n", "must be a table, got [1]"),
        ("\x00\x01", "is not YAML that can be read"),
        ("", "must be a table, got None"),
    ],
)
def test_hostile_files_are_refused_in_one_short_line_and_nobody_waits_for_a_pipe(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ff.ScenarioError) as refused:
        Scenario.load(path)
    assert words in str(refused.value) and len(str(refused.value)) < 1_000 and "\n" not in str(refused.value)
    os.mkfifo(tmp_path / "pipe")
    for read in (Scenario.load, Scenario.from_table):
        with pytest.raises(ff.ScenarioError, match=r"cannot be read \(Not a regular file\)"):
            read(tmp_path / "pipe")
    with pytest.raises(ff.ScenarioError, match=r"nowhere\.yaml: cannot be read"):
        Scenario.load("nowhere.yaml")


def test_files_changed_at_random_are_read_or_refused_but_never_break(tiny):
    """200 changes of one value each: another type, another word of the same file, or nothing."""
    rng = random.Random(0)
    words = ["All", "None", "User0", "Enterprise", "root", "", 7, -1, 2.5, True, None, [], {}, ["User0"], {"in": "all"}]

    def places(value, path=()):
        yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, one in items:
            yield from places(one, (*path, key))

    everywhere = [path for path in places(tiny) if path]
    outcomes = set()
    for _ in range(200):
        path, document = rng.choice(everywhere), deepcopy(tiny)
        reduce(getitem, path[:-1], document)[path[-1]] = deepcopy(rng.choice(words))
        try:
            scenario = Scenario.from_document(document, "x")
        except ff.ScenarioError as refused:
            outcomes.add("refused")
            assert str(refused).startswith("x: ")
        else:
            outcomes.add("read")
            assert Scenario.from_document(scenario.document(), "y") == scenario and scenario.digest
            _ = scenario.notes, scenario.exact("b_line"), scenario.exact("meander"), scenario.actions
    assert outcomes == {"refused", "read"}


def test_the_notes_say_which_names_are_missing(tiny):
    text = yaml.safe_dump(tiny, sort_keys=False).replace("Enterprise", "Office").replace("Op_Server0", "Plc0")
    scenario = Scenario.from_document(yaml.safe_load(text), "renamed")
    said = " | ".join(scenario.notes)
    assert "red never gets into Plant: no name of a host contains Enterprise" in said
    assert "nothing can be impacted and b_line cannot play: call the host to be protected most Op_Server0" in said
    assert "green: 6 of 8 scans hit nobody" in said
    assert not scenario.exact("b_line") and scenario.exact("sleep") and scenario.target is None


def test_b_lines_way_follows_from_what_hosts_tell_and_is_its_own_where_they_tell_nothing(tiny):
    scenario = Scenario.load("cage1")
    ways = [tuple(scenario.host_names[host] for host in scenario.b_line_ways[u]) for u in scenario.b_line_first]
    one, other = ("Enterprise1", "Enterprise2"), ("Enterprise0", "Enterprise2")
    assert ways == [("User1", *one), ("User2", *one), ("User3", *other), ("User4", *other)]
    assert scenario.exact("b_line") and scenario.exact("meander")
    scenario = Scenario.from_document(put(tiny, "Hosts/User1/info", None), "x")
    assert not scenario.exact("b_line")
    assert any("b_line: red finds no address of a host whose name contains Enterprise on User1" in n for n in scenario.notes)


def test_unit_types_are_names_without_numbers_else_subnets_else_asked_for(tiny):
    assert Scenario.from_document(tiny, "x").unit_types == ("user", "op_server", "enterprise")
    assert CAGE2.unit_types == ("user", "op_host", "op_server", "enterprise", "defender")
    text = yaml.safe_dump(tiny, sort_keys=False)
    for number, host in enumerate(tiny["Hosts"]):
        text = text.replace(host, f"Machine{number}")
    one_word = Scenario.from_document(yaml.safe_load(text), "x")
    assert one_word.unit_types == ("enterprise", "plant", "user")
    flat = put(yaml.safe_load(text), "Subnets", {"Lan": {"Hosts": [f"Machine{n}" for n in range(6)], "Size": 6}})
    for agent in flat["Agents"].values():
        agent["AllowedSubnets"] = ["Lan"]
    scenario = Scenario.from_document(flat, "flat")
    assert scenario.unit_types == ()
    with pytest.raises(ff.WorkflowError, match="give --units FILE"):
        ff.UnitScheme.by_type(scenario)


OWN = {
    "System info": {"Architecture": "x64", "OSDistribution": "UBUNTU", "OSType": "LINUX", "OSVersion": "U18_04_3"},
    "Processes": [
        {"PID": 1, "Process Name": "sshd", "Username": "root", "Connections": [{"local_port": 22}]},
        {"PID": 2, "Process Name": "x", "Process Type": "http", "Username": "root", "Connections": [{"local_port": 80}]},
    ],
    "User Info": [{"Username": "root", "Bruteforceable": True}],
}


def test_own_images_come_from_a_folder_or_with_the_scenario(tiny, tmp_path):
    (tmp_path / "images.yaml").write_text("Web: {path: web}\n")
    (tmp_path / "web.yaml").write_text(yaml.safe_dump({"Test_Host": OWN}))
    folder = ImageFolder(tmp_path)
    web, http = folder["Web"], parts.EXPLOITS[2]
    assert folder["Gateway"] == parts.IMAGES["Gateway"] and web.services[0].root and web.services[1].immune
    document = put(tiny, "Hosts/User1/image", "Web")
    scenario = Scenario.from_document(document, "x", images=folder)
    assert http.meets(scenario.hosts[scenario.host_ids["User1"]]) == parts.IMMUNE
    assert Scenario.from_document(scenario.document(), "again") == scenario  # the image travels with it
    with pytest.raises(ff.ScenarioError, match=r"User1\.image must be one of .*, got 'Web'"):
        Scenario.from_document(document, "x")


def test_images_are_read_as_cyborg_writes_them_and_stay_in_their_folder(tmp_path):
    """Aliases of single values, and one property as a word: its own image files have both."""
    (tmp_path / "images.yaml").write_text("Web: {path: web}\n")
    text = yaml.safe_dump({"Test_Host": put(OWN, "Processes/1/Properties", "rfi")})
    text = text.replace("Username: root", "Username: &who root", 1).replace("Username: root", "Username: *who")
    (tmp_path / "web.yaml").write_text(text)
    assert "*who" in text and not ImageFolder(tmp_path)["Web"].services[1].immune
    (tmp_path / "images.yaml").write_text("Web: {path: ../web}\n")
    with pytest.raises(ff.ScenarioError, match="must be the name of a file in this folder"):
        ImageFolder(tmp_path)["Web"]


def test_an_image_that_cannot_be_played_is_refused():
    def refuse(words):
        as_table(ImageTable, changed(OWN, words), "web.yaml").image("Web", "web.yaml")

    approve_refusals("image-refusals.txt", refuse)


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
