"""Small things that people meet first: where a run goes, what was run before, short flags, words in any case."""

import json

import pytest
from searches import SHARED

import fixfirst as ff
from fixfirst.cli import machine, main
from fixfirst.stats.answer import short_order

TINY = ["--workflow", "none", "--total-episodes", "8", "--n-envs", "4", "--max-steps", "5"]


def test_a_run_says_first_where_it_writes_and_the_same_again_that_it_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *TINY]) == 0
    told = capsys.readouterr()
    said = [line for line in told.err.splitlines() if "compiling" not in line]  # which comes before, once per machine
    assert said[0] == "fixfirst: writing to runs/train-b_line-0"
    assert main(["train", *TINY]) == 0
    same = capsys.readouterr()
    assert same.out == told.out and same.err == "fixfirst: runs/train-b_line-0 has this answer; --again to repeat\n"
    assert main(["train", *TINY, "--seed", "1", "-q"]) == 0  # another run
    assert main(["train", *TINY, "--again", "-q"]) == 0
    assert capsys.readouterr().err == ""
    found = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert found == ["train-b_line-0", "train-b_line-0-2", "train-b_line-1"]
    policies = [(tmp_path / "runs" / name / "policy.safetensors").read_bytes() for name in found]
    assert policies[0] == policies[1] != policies[2]


@pytest.mark.parametrize("change", ["versions", "unfinished", "damaged", "more files"])
def test_a_run_that_may_differ_does_not_count(change, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"workflow": "none", "total_episodes": 8, "n_envs": 4, "max_steps": 5, "quiet": True}
    first = ff.train(**settings).folder
    if change == "versions":
        monkeypatch.setattr("fixfirst.runs.manifest.versions", lambda: {"fixfirst": "0.0.1"})
    elif change == "unfinished":
        (first / "runtime.csv").unlink()
    elif change == "damaged":
        (first / "manifest.json").write_text("{}")
    else:
        settings["checkpoint_every"] = 3
    assert ff.train(**settings).folder != first


def test_orders_are_read_in_capitals_too():
    assert ff.Workflow.parse("Enterprise > USER > op_server > OP_HOST > Defender") == ff.Workflow.parse(
        "enterprise > user > op_server > op_host > defender"
    )
    assert ff.Workflow.parse("Critical_First") == ff.Workflow.parse("critical_first")
    hosts = ff.UnitScheme.per_host().names
    capitals = ff.UnitScheme.from_dict({"a": list(hosts[:1]), "A": list(hosts[1:])})
    assert str(ff.Workflow.parse("A > a", capitals)) == "A > a"


def test_shells_can_be_taught_to_complete():
    from fixfirst.cli.app import app

    script = app.generate_completion(prog_name="fixfirst", shell="bash")
    assert all(word in script for word in ("evaluate", "leaderboard", "total-episodes"))


def test_where_there_is_no_terminal_every_round_is_a_line_with_the_best_order_so_far(tmp_path, capsys):
    run = ff.search(out=tmp_path / "run", **SHARED, workers=1, report=False)
    lines = [line for line in capsys.readouterr().err.splitlines() if " of 3" in line]
    assert [line[: len("fixfirst: round 1 of 3")] for line in lines] == [f"fixfirst: round {n} of 3" for n in (1, 2, 3)]
    assert "best so far" not in lines[0] and all("; best so far " in line for line in lines[1:])
    best = lines[-1].split("; best so far ")[1].rpartition(", ")
    assert best[0] in {short_order(order.workflow, run.answer.idle) for order in run.answer.orders} and float(best[2]) < 0


def test_bench_prints_what_it_measures(monkeypatch, capsys):
    monkeypatch.setattr(machine, "BATCHES", (1, 10))
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    assert main(["bench", "--scenario", "tiny", "--json"]) == 0
    speeds = json.loads(capsys.readouterr().out)["steps_per_s"]
    assert set(speeds["b_line"]) == set(speeds["meander"]) == {"make_vec(1)", "make_vec(10)", "gym.make"}
    assert all(speed > 0 for rates in speeds.values() for speed in rates.values())
    assert main(["bench", "--scenario", "tiny"]) == 0 and "make_vec(10)" in capsys.readouterr().out
