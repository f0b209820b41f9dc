"""`fixfirst watch`: the document, the text, the page's bytes, and what to expect when it is misused."""

import json
import os
import re
import shutil
import webbrowser
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from approved import approve
from cage2 import HOST_NAMES, HOSTS
from PIL import Image
from searches import one_line

from fixfirst.api.defenders import make_defender
from fixfirst.api.replays import PURPOSE
from fixfirst.api.watch import replay
from fixfirst.base.files import sha256, with_checksum
from fixfirst.cli import main
from fixfirst.game.game_config import Game
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import play
from fixfirst.reporter.page import open_page
from fixfirst.reporter.replay import replay_lines
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"
UNIT_OF = {host.name: host.unit for host in HOSTS}
SHORT = ["--steps", "20", "--episodes", "12", "--red-agent", "b_line"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """An untrained policy of this order, made for meander in the variant leaderboard."""
    folder = tmp_path_factory.mktemp("policy")
    config = make_config(workflow=ORDER, red_agent="meander", variant="leaderboard", max_steps=10, total_episodes=100)
    Training(config).save_policy(folder)
    return folder


@pytest.fixture(scope="module")
def document():
    return replay("react-restore", workflow=ORDER, red_agent="b_line", episodes=12, steps=40)


def test_the_json_document_is_the_one_the_page_holds(capsys, tmp_path):
    arguments = ["watch", "random", "--workflow", ORDER, *SHORT]
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert main([*arguments, "--no-open", "--out", str(tmp_path / "x.html")]) == 0
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', (tmp_path / "x.html").read_text())
    inside = json.loads(block[1])
    del inside["map"]
    assert inside == printed
    assert [e["label"] for e in printed["episodes"]] == ["worst", "median", "best"]
    assert all(len(e["steps"]) == 21 for e in printed["episodes"]) and printed["played"]["episodes"] == 12
    assert printed["workflow"] == ORDER.split(" > ") and [h["name"] for h in printed["hosts"]] == list(HOST_NAMES)


def test_counts_and_returns_of_the_document_follow_from_its_steps(document):
    for told in document["episodes"]:
        kinds = [step["verdict"]["kind"] for step in told["steps"] if step["verdict"]]
        assert told["violations"] == kinds.count("violation")
        assert told["judged"] == kinds.count("violation") + kinds.count("in order")
        assert told["return10"] == sum(cost["tenths"] for step in told["steps"] for cost in step["costs"])
        assert told["return10"] == told["steps"][-1]["return10"]


def test_a_policy_is_watched_where_it_was_trained_unless_told_otherwise(policy):
    told = replay(str(policy), episodes=3, steps=10)
    assert (told["red_agent"], told["variant"], told["workflow"]) == ("meander", "leaderboard", ORDER.split(" > "))
    told = replay(str(policy), episodes=3, steps=10, red_agent="B_lineAgent", variant="debugged")
    assert (told["red_agent"], told["variant"]) == ("b_line", "debugged")
    (only,) = replay(str(policy), number=20, episodes=5, steps=10)["episodes"]  # one can be asked for
    assert (only["label"], only["number"]) == ("chosen", 20)


def test_what_is_watched_is_what_is_evaluated(policy):
    defender = make_defender(str(policy))
    game = Game(red_agent="meander", variant="leaderboard", max_steps=30)
    measured = play(defender.player, game, episodes=50, seed=5, purpose=PURPOSE, workflows=defender.orders)
    for told in replay(str(policy), episodes=9, steps=30, seed=5)["episodes"]:
        assert told["return10"] / 10 == measured.returns[told["number"]]


def test_what_a_learned_attacker_believes_stands_beside_what_is_true():
    """`noise` and a defender that restores: what was taken from red it believes to hold until something fails there."""
    told = replay("react-restore", red_agent="noise", steps=40, episodes=5)
    steps = [step for episode in told["episodes"] for step in episode["steps"]]
    pairs = {pair for step in steps for pair in zip(step["red_belief"], step["access"], strict=True)}
    assert ("user", "none") in pairs or ("root", "none") in pairs  # believed, and not so
    assert {"none", "user"} <= {belief for belief, _ in pairs} and told["episodes"][0]["red_agent"].startswith("noise@")
    assert any("of its turns it scans" in sentence for sentence in told["habits"])
    assert any("thinks red: " in line for line in replay_lines(told, turns=True))
    plain = replay("react-restore", red_agent="b_line", steps=5, episodes=1)
    assert "habits" not in plain and plain["episodes"][0]["steps"][-1]["red_belief"] == ()


def test_what_a_policy_remembers_is_told_turn_by_turn():
    """Of decoys it knows the truth. What was seen in a step is remembered from the next one on."""
    remembering = replay("champion", episodes=3, steps=20)
    assert remembering["memory"] == "full"
    for told in remembering["episodes"]:
        assert told["steps"][0]["remembered"] == {}
        active = set()
        for step in told["steps"]:
            said = {host: step["remembered"].get(host, "") for host in HOST_NAMES}
            decoys = [re.search(r"decoys ([\w ]+)", said[host]) for host in HOST_NAMES]
            assert [len(found[1].split()) if found else 0 for found in decoys] == [len(ports) for ports in step["decoys"]]
            assert {host for host in HOST_NAMES if said[host].startswith("active")} == active
            active |= {host for host, seen in zip(HOST_NAMES, step["activity"], strict=True) if seen != "none"}
    assert replay("sleep", episodes=3, steps=3)["memory"] == "none"
    head, worst, *_ = "\n".join(replay_lines(remembering, turns=True)).split("\n\n")
    assert "; memory full; " in head and "\n      memory network quiet turns 1" in worst


def test_the_second_player_meets_the_same_episodes_as_the_first(policy):
    told = replay("react-restore", beside=str(policy), workflow=ORDER, red_agent="b_line", episodes=12, steps=30)
    alone = replay(str(policy), workflow=ORDER, red_agent="b_line", variant="current", episodes=12, steps=30)
    assert [e["number"] for e in told["episodes"]] == [e["number"] for e in told["beside"]["episodes"]]
    assert told["beside"]["played"] == alone["played"]
    start = dict(parse_qsl(told["start"]))  # where the two begin to pay differently
    mine, other = (
        [step["return10"] for step in next(e for e in one["episodes"] if e["label"] == start["e"])["steps"]]
        for one in (told, told["beside"])
    )
    assert mine[: int(start["t"])] == other[: int(start["t"])] and mine[int(start["t"])] != other[int(start["t"])]
    assert [e["label"] for e in told["episodes"]][:3] == ["worst", "median", "best"]
    twice = replay("react-restore", workflow=ORDER, beside="react-restore", beside_workflow="reverse", episodes=2, steps=3)
    assert (twice["policy"], twice["beside"]["policy"]) == ("react-restore A", "react-restore B")


def test_until_the_order_changes_everything_is_as_without_a_change_and_afterwards_it_is_judged_by_the_other(shielded):
    there, back = "enterprise > op_server > user > op_host > defender", "user > op_server > enterprise > op_host > defender"
    options = {"episodes": 40, "steps": 60, "number": 7}
    plain, other = (replay(str(shielded), workflow=order, **options)["episodes"][0]["steps"] for order in (there, back))
    changed = replay(str(shielded), workflow=there, then=f"30: {back}", **options)
    steps = changed["episodes"][0]["steps"]
    assert steps[:30] == plain[:30] and changed["changes"] == [{"step": 30, "workflow": back.split(" > ")}]
    assert other[:30] != plain[:30]  # the two orders differ where it can be seen
    ranks = {False: there.split(" > "), True: back.split(" > ")}
    for step in steps[1:]:
        order = ranks[step["step"] >= 30]
        if step["forbidden"]:  # all that stand below the first suspected type
            first = min(order.index(UNIT_OF[host]) for host in step["suspected"])
            assert set(step["forbidden"]) == set(order[first + 1 :])
    assert sum(bool(step["forbidden"]) for step in steps[30:]) > 3
    repaired = [step for step in (*steps, *plain, *other) if step["repair"]]
    assert len(repaired) > 5 and all(UNIT_OF[step["blue_target"]] not in step["forbidden"] for step in repaired)


@pytest.fixture(scope="module")
def shielded(tmp_path_factory):
    """An untrained policy for all orders, kept to them by a shield."""
    folder = tmp_path_factory.mktemp("shielded")
    Training(make_config(workflow="all", red_agent="b_line", total_episodes=100)).save_policy(folder)
    return folder


def test_an_episode_can_be_had_as_an_animation(tmp_path):
    pair = ["watch", "sleep", "--beside", "random", *SHORT, "--no-open"]
    assert main([*pair, "--out", str(tmp_path), "--gif", str(tmp_path / "x.gif")]) == 0
    with Image.open(tmp_path / "x.gif") as animation:
        assert animation.n_frames > 10 and animation.size[0] > 1600  # two maps of 800 pixels


def test_the_text_is_what_was_approved(capsys):
    words = ["watch", "random", "--workflow", ORDER, "--steps", "15", "--episodes", "3", "--red-agent", "b_line", "--text"]
    assert main(words) == 0
    approve("watch.txt", capsys.readouterr().out)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert main(["watch", "random", *SHORT, "--seed", seed, "--no-open", "--out", str(tmp_path / name)]) == 0
    a, b, c = (sha256((tmp_path / name / "replay.html").read_bytes()) for name in "abc")
    assert a == b != c


def test_the_page_goes_beside_the_policy_or_where_it_is_told(policy, tmp_path, monkeypatch, capsys):
    assert main(["watch", str(policy), "--episodes", "2", "--steps", "5"]) == 0
    assert (policy / "replay.html").exists() and f"page: {policy / 'replay.html'}" in capsys.readouterr().out
    assert main(["watch", str(policy / "policy.json"), "--episodes", "2", "--steps", "5", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "replay.html").read_bytes()
    monkeypatch.chdir(tmp_path / "..")
    assert main(["watch", "sleep", *SHORT]) == 0
    assert os.path.exists("replay.html")


def test_a_browser_that_fails_is_no_error(monkeypatch, tmp_path):
    """Where a page is opened at all, `test_screen.py` shows."""

    def fail(address):
        raise webbrowser.Error("no browser")

    monkeypatch.setattr("webbrowser.open", fail)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    open_page(tmp_path / "x.html")


def test_the_documented_python_makes_an_animation(tmp_path, monkeypatch):
    page = (Path(__file__).parent.parent.parent / "docs" / "pages.md").read_text()
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "render_mode" in code)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "pages.md", "exec"), {})
    with Image.open(tmp_path / "b_line.gif") as animation:
        assert animation.n_frames > 10  # equal frames are joined


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"variant": "newest"}, "variant must be current, leaderboard or debugged, got 'newest'"),
        ({"variant": ["current"]}, "variant must be current, leaderboard or debugged, got ['current']"),
        ({"red_agent": "<b>"}, "unknown red agent '<b>'"),
        (["b_line"], "damaged (its config is not a table)"),
    ],
)
def test_a_policy_file_that_names_a_world_we_do_not_have_is_refused(policy, tmp_path, capsys, config, says):
    copy = shutil.copytree(policy, tmp_path / "policy")
    facts = json.loads((copy / "policy.json").read_text()) | {"config": config}
    (copy / "policy.json").write_text(json.dumps(with_checksum(facts)))  # whoever made the file can compute it, too
    assert main(["watch", str(copy), *SHORT[:4]]) == 2
    one_line(capsys, says)
