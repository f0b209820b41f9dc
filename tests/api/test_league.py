"""Leagues as runs: rounds, the matrix, the page; interrupted or killed, they end with the same files."""

import os
import shutil
import signal

import pytest

import fixfirst as ff
from fixfirst.cli.entry import main
from fixfirst.learner.league import League
from fixfirst.reporter.run import Run
from fixfirst.runs.rows import MatrixRow, league_rounds
from fixfirst.settings.league import LeagueConfig

SMALL = {"updates": 4, "life": 2, "live": 2, "lapsing": 1, "frozen": 1, "responses": 1, "response_episodes": 50, "envs": 5}
SMALL |= {"script_envs": 5, "matrix_episodes": 5, "quiet": True}
KEPT = ("policy.safetensors", "league.csv", "attackers/003/red.safetensors")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return ff.train_league(out=tmp_path_factory.mktemp("league") / "run", **SMALL)


def row(number, attacker, kind, born, mean):
    return MatrixRow(
        round=number, updates=9, attacker=attacker, kind=kind, start="scratch", born=born, mean=mean, standard_error=1.0
    )


def test_a_round_tells_known_attackers_from_fresh_responses():
    matrix = [row(2, "b_line", "script", 0, -12.0), row(2, "000", "response", 1, -40.0), row(2, "001", "live", 2, -30.0)]
    (found,) = league_rounds([*matrix, row(2, "002", "response", 2, -70.0), row(2, "003", "response", 2, -50.0)])
    assert (found.scripts, found.attackers, found.known.mean, found.fresh.mean) == ({"b_line": -12.0}, 4, -40.0, -70.0)
    assert found.worst.attacker == "002"
    assert found.in_words() == "round 2, 9 updates: b_line -12.0, the worst of 4 attackers -40.0, a fresh one -70.0"


def test_a_league_has_a_row_per_round_and_attacker_a_policy_and_its_attackers(finished):
    assert [one.round for one in finished.rounds] == [1, 2]
    rows = finished.table().rows
    assert [len([r for r in rows if r[0] == number]) for number in (1, 2)] == [3 + 3, 3 + 6]  # scripts, and attackers
    assert finished.best.facts["notes"] == {"league": True}
    assert ff.load_red(finished.folder / "attackers" / "002").facts["kept_as"] == "response"
    assert repr(ff.load_run(finished.folder)) == repr(finished)


def test_the_page_of_a_league_shows_every_attacker_and_the_course(finished, capsys):
    page = finished.report().path.read_text()
    assert "Every defender and every attacker" in page and "response of round 2" in page and "best fresh response" in page
    assert main(["runs", str(finished.folder.parent)]) == 0
    assert "league" in capsys.readouterr().out
    assert main(["resume", str(finished.folder)]) == 2
    assert "is finished; see" in capsys.readouterr().err


@pytest.mark.parametrize(("sent", "step"), [(signal.SIGINT, 2), (signal.SIGKILL, 4)])
def test_a_league_that_was_stopped_ends_with_the_same_files(finished, tmp_path, monkeypatch, sent, step):
    """Killed in its third update, after the first round was closed: the checkpoint is older than the matrix."""
    monkeypatch.setattr("fixfirst.api.league.SAVE_EVERY", 1)
    pid = os.fork()
    if pid == 0:
        steps, go = 0, League.step

        def stop(league):
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), sent)
            return go(league)

        League.step = stop
        try:
            ff.train_league(out=tmp_path / "run", **SMALL)
        except ff.Interrupted as e:
            os._exit(7 if "fixfirst resume" in str(e) else 8)
        os._exit(9)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (7 if sent == signal.SIGINT else -sent)
    again = ff.resume(tmp_path / "run", quiet=True)
    assert again.rounds == finished.rounds
    for name in KEPT:
        assert (again.folder / name).read_bytes() == (finished.folder / name).read_bytes(), name
    assert not list(again.folder.glob("checkpoint-*"))


def test_a_league_that_was_killed_at_its_very_end_is_closed_without_training(finished, tmp_path, monkeypatch):
    run = shutil.copytree(finished.folder, tmp_path / "run")
    (run / "runtime.csv").unlink()
    monkeypatch.setattr(League, "step", None)
    assert ff.resume(run, quiet=True).rounds == finished.rounds and ff.load_run(run).folder == run


@pytest.mark.parametrize("name", [n for n, f in LeagueConfig.model_fields.items() if f.annotation in (int, float)])
def test_no_number_of_a_league_is_larger_than_what_we_count_with(name, tmp_path):
    """Else it is begun, and waited for until the end of days."""
    for value in (2**200, 1e300, float("inf"), float("nan"), *([2**31] if name != "seed" else [])):
        with pytest.raises(ff.ConfigError, match=name.replace("_", "[_-]")):
            ff.train_league(out=tmp_path / "run", **{**SMALL, name: value})
    assert not (tmp_path / "run").exists()


def test_a_league_against_scripts_that_are_none_leaves_nothing_behind(tmp_path):
    with pytest.raises(ff.FixfirstError, match="nobody"):
        ff.train_league(out=tmp_path / "run", **SMALL, scripts="nobody")
    assert not (tmp_path / "run").exists()


def test_a_round_that_is_being_written_is_left_out(finished, tmp_path):
    shutil.copy(finished.folder / "manifest.json", tmp_path)
    lines = (finished.folder / "league.csv").read_text().splitlines(keepends=True)
    (tmp_path / "league.csv").write_text("".join(lines[: 1 + 6 + 2]))  # the header, a round, the beginning of another
    assert [row.round for row in Run(tmp_path).matrix] == [1] * 6


def test_a_league_that_begins_with_anothers_defender_meets_its_attackers(finished, tmp_path):
    """Six of them, and in its first update one of its own grows old. Its defender counts break-ins already."""
    again = ff.train_league(start=finished.folder, out=tmp_path / "run", **{**SMALL, "updates": 1, "responses": 0})
    assert len(again.table().rows) == 3 + 6 + 1
    assert again.best.spec == finished.best.spec and again.best.spec.memory.name == "counts"


def test_the_preset_is_the_league(tmp_path, monkeypatch):
    """The command says no more than `ff.train_league` with its defaults."""
    asked = {}
    monkeypatch.setattr("fixfirst.api.league.train_league", lambda **said: asked.update(said) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["train", "--preset", "guardian", "--seed", "3", "--out", str(tmp_path / "run")])
    assert asked.pop("out") == tmp_path / "run"
    assert asked == {"quiet": False, "seed": 3}


def test_the_config_of_a_league_begins_the_same_one(finished, tmp_path):
    command = ["train", "--league", "--config", str(finished.folder / "config.toml"), "--quiet", "--out"]
    assert main([*command, str(tmp_path / "run")]) == 0
    assert ff.load_run(tmp_path / "run").rounds == finished.rounds
