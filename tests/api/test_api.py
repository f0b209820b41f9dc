"""The verbs from Python: one call does the whole job, and what it hands out is typed."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import tomli_w
from searches import RANDOM, ledger

import fixfirst as ff
from fixfirst.game.base_world import output_arrays
from fixfirst.game.scenario import CAGE2
from fixfirst.runs.rows import Status, Trial
from fixfirst.stats.ranking import Ranked, Ranking

ORDER = "enterprise > op_server > op_host > user > defender"
QUIET = {"quiet": True, "report": False, "workers": 1}
TINY = {"n_envs": 4, "max_steps": 10, "total_episodes": 12, "quiet": True, "tensorboard": False}


@pytest.fixture(scope="module")
def run(searched):
    """A search of policies that remember and choose among macros, with its report."""
    return ff.load_run(searched)


# ---------------------------------------------------------------- search


def test_a_run_hands_out_typed_values(run):
    assert isinstance(run.ranking, Ranking)
    first = run.ranking.rows[0]
    assert isinstance(first, Ranked) and isinstance(first.workflow, ff.Workflow) and first.low < first.mean < first.high
    assert all(isinstance(trial, Trial) for trial in run.trials)
    assert [trial.id for trial in run.trials] == [int(row["id"]) for row in ledger(run.folder)]
    accepted = {trial.workflow for trial in run.trials if trial.status is Status.ACCEPTED}
    assert {str(row.workflow) for row in run.ranking.rows} == accepted
    assert str(run.ranking).splitlines()[0].startswith(f"  1* {first.workflow}  {first.mean:.2f} [")
    assert run.config.total_episodes == 48 and run.config.training.game.max_steps == 20


def test_best_is_a_policy_that_plays(run):
    assert isinstance(run.best, ff.Policy) and run.best.workflow == run.ranking.rows[0].workflow
    assert (run.best.spec.memory.name, run.best.spec.action_set.name) == ("full", "macros")
    envs = ff.make_vec(3)
    obs, _ = envs.reset(seed=0)
    assert run.best.act(obs).shape == (3,)


def test_a_search_ends_with_its_report_and_writes_others_on_request(run, tmp_path):
    assert (run.folder / "report.html").exists()
    written = run.report(tmp_path / "again.md", form="md")
    assert written.path == tmp_path / "again.md"
    assert str(run.ranking.rows[0].workflow) in written.path.read_text().replace("\\", "")


def test_a_failing_report_does_not_fail_the_search_and_without_an_accepted_order_there_is_no_best(
    tmp_path, monkeypatch, capsys
):
    def fail(*arguments, **options):
        raise ZeroDivisionError("a bug\nin the report")

    monkeypatch.setattr("fixfirst.reporter.report.report_document", fail)
    hard = RANDOM | {"n_workflows": 1, "compliance_threshold": 0.999}
    found = ff.search(out=tmp_path / "run", **hard, **QUIET | {"report": True})
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"fixfirst: no report (a bug in the report); try again with: fixfirst report {found.folder}"
    assert (
        isinstance(found, ff.SearchRun) and len(found.trials) == 1 and found.ranking.rows == ()
    )  # nothing passes this gate: no ranking, no policy
    assert found.ranking.winner is None and found.standings is None
    with pytest.raises(ff.PolicyError, match=r"holds no policy \(no order passed the gate"):
        _ = found.best
    with pytest.raises(ff.RunDirError, match="has no answer: one training per order gives a ranking instead"):
        _ = found.answer


def test_several_seeds_are_a_study(tmp_path):
    study = ff.search(out=tmp_path / "study", seeds=2, **RANDOM | {"n_workflows": 1}, **QUIET)
    assert isinstance(study, ff.StudyRun) and [run.config.seed for run in study.searches] == [0, 1]
    (comparison,) = study.comparisons
    assert comparison.red_agent == "b_line" and len(comparison.best) == 2
    assert [run.trials for run in ff.load_run(tmp_path / "study").searches] == [run.trials for run in study.searches]


SCRIPT = """
import fixfirst as ff

print("begun")
run = ff.search(out="run", workers=2, quiet=True, report=False, config="settings.toml")
print(len(run.trials))
"""


def test_a_script_may_search_at_its_top_level_with_several_workers(tmp_path):
    """Worker processes do not run the script again: it says `begun` once."""
    (tmp_path / "settings.toml").write_text(tomli_w.dumps(RANDOM | {"n_workflows": 2}))
    (tmp_path / "mine.py").write_text(SCRIPT)
    ran = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.stdout.split(), ran.stderr) == (["begun", "2"], "")


def test_a_search_may_run_in_a_thread_where_signals_cannot_be_heard(tmp_path):
    settings = RANDOM | {"n_workflows": 1} | QUIET
    with ThreadPoolExecutor(1) as thread:
        assert len(thread.submit(ff.search, out=tmp_path / "run", **settings).result().trials) == 1


# ---------------------------------------------------------------- train, evaluate, watch


def test_training_is_one_call_and_can_be_loaded_and_resumed(tmp_path):
    easy = {"compliance_threshold": 0.2, "min_judged": 5, "gate_episodes": 20}  # the gate asks for little
    passed = ff.train(out=tmp_path / "easy", workflow=ORDER, **TINY, **easy)
    assert passed.accepted is True and passed.best.facts["notes"] == {"accepted": True}
    trained = ff.train(out=tmp_path / "run", workflow=ORDER, keep="penalty", **TINY)
    assert isinstance(trained, ff.TrainRun) and trained.evaluation.episodes == 1_000
    assert trained.best.workflow == ff.Workflow.parse(ORDER) and trained.accepted is False
    loaded = ff.load_run(tmp_path / "run")
    assert loaded == trained
    (tmp_path / "run" / "result.json").unlink()
    assert ff.load_run(tmp_path / "run").evaluation is None
    assert ff.resume(tmp_path / "run", quiet=True) == trained


def test_evaluation_takes_runs_policies_and_baselines(run):
    options = {"red_agent": "b_line", "steps": 10, "episodes": 20, "quiet": True}
    by_run, by_folder, by_policy = (ff.evaluate(what, **options) for what in (run.folder, run.folder / "best", run.best))
    assert by_run == by_folder == by_policy and by_run[0].compliance is not None
    (asleep,) = ff.evaluate("sleep", **options, variant="leaderboard")
    assert (asleep.variant, asleep.steps, asleep.compliance) == ("leaderboard", 10, None)
    assert len(ff.evaluate("sleep", episodes=2, quiet=True)) == 9  # CAGE2's protocol


def test_watching_writes_a_page_and_what_a_run_hands_out_cannot_be_changed(run, tmp_path):
    page = ff.watch(run.best, out=tmp_path / "x.html", episodes=3, steps=5, greedy=np.True_)
    assert page.read_text().startswith("<!DOCTYPE html>")
    copied = shutil.copytree(run.folder, tmp_path / "run")
    assert ff.watch(copied, episodes=3, steps=5) == copied / "replay.html"
    policy = ff.load_policy(run.folder)
    assert np.array_equal(policy.weights["actor.0.bias"], run.best.weights["actor.0.bias"])
    with pytest.raises(FrozenInstanceError):
        run.trials[0].return_mean = 0.0


def begun(envs):
    envs.reset(seed=0)
    return envs


def changed(**fields):
    return replace(ff.load_policy("champion"), **fields)


def weights(change):
    return {name: change(array) for name, array in ff.load_policy("champion").weights.items()}


def vec_arrays(change):
    kept = {name: np.zeros((2, *shape), dtype) for name, (shape, dtype) in output_arrays(CAGE2).items()}
    return change(kept)


def unaligned(arrays):
    raw = np.zeros(2 * 8 + 1, np.int8)
    return arrays | {"packed_obs": np.ndarray(2, np.uint64, raw, offset=1 + (-raw.ctypes.data) % 8)}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ff.search(total_episode=10), "unknown setting 'total_episode'; did you mean 'total_episodes'?"),
        (lambda: ff.evaluate("sleep", wings=2), "unknown setting 'wings'; known are scenario, images, reward, red_agent"),
        (lambda: ff.load_run("nowhere"), "nowhere: is not a run directory"),
        (lambda: ff.report("nowhere"), "nowhere: no such folder"),
        (lambda: ff.watch("sleep", episodes=10_001), "episodes must be in 1..10000, got 10001"),
        (lambda: ff.watch("sleep", episodes="x"), "episodes must be a whole number, at least 0, got 'x'"),
        (lambda: ff.watch("sleep", out=5), "out must be a path, got 5"),
        (lambda: ff.watch("sleep", out="\ud800"), "out must be a path, got '\\ud800'"),
        (lambda: ff.export("champion", "numpy", out=2.5), "out must be a path, got 2.5"),
        (lambda: ff.export("champion", "numpy", out="no/where"), "no/where: cannot be written (No such file"),
        (lambda: ff.export("champion", np.zeros(3)), "a policy is exported to onnx, torch, numpy, not array"),
        (lambda: ff.export(5), "a policy must be a path, got 5"),
        (lambda: ff.compare("x" * 5000, "sleep"), "a policy must be a path, got one that is too long"),
        (lambda: ff.Remember("env"), "Remember needs an environment, got 'env'"),
        (lambda: ff.Workflow.parse("critical_first", "mine"), "the unit types of a workflow are a UnitScheme, got 'mine'"),
        (lambda: ff.BlueAgent("champion", seed="x"), "seed must be a whole number, got 'x'"),
        (lambda: ff.search(red_agent=np.zeros(3)), "red_agent must be a plain value, got array"),
        (lambda: ff.search(executor=np.zeros(3)), "executor must be a plain value, got array"),
        (lambda: ff.watch("sleep", backend=np.zeros(3)), "backend must be a plain value, got array"),
        (lambda: ff.evaluate("champion", greedy=b""), "greedy must be true or false, got b''"),
        (lambda: ff.exploit("champion", train_episodes=49), "train_episodes must be a whole number, at least 50, got 49"),
        (lambda: ff.ActionSet.parse("all", np.zeros(3)), "the scenario of an action set is a Scenario, got array"),
        (lambda: ff.load_red("champion"), "champion: holds a defender, not an attacker"),
        (lambda: ff.load_red("nowhere"), "nowhere: holds no attacker"),
        (lambda: ff.exploit("champion", starts="scratch", quiet=True), "starts are scratch, last, or attackers by name"),
        (lambda: ff.exploit("champion", starts=["noise"], picky=True, quiet=True), "noise: does not name its exploit"),
        (lambda: ff.exploit("champion", backend="cyborg", quiet=True), "trained on the simulator"),
        (lambda: ff.RedEnv("noise"), "noise is an attacker, not a defender"),
        (lambda: ff.RedEnv("champion", scenario="tiny"), "trained on cage2"),
        (lambda: ff.VecRedEnv("sleep", 2).step(np.zeros(2, int)), "call reset"),
        (lambda: begun(ff.VecRedEnv("sleep", 2)).step(np.array([44, 0])), "action 44 is not in 0..43"),
        (lambda: begun(ff.VecRedEnv("sleep", 2)).step(np.array([0.5, 0])), "actions must be 2 whole numbers"),
        (lambda: ff.RedEnv("sleep", backend="cyborg"), "on the simulator, not on cyborg"),
        (lambda: ff.rollout(ff.make_vec(2), "champion", 5), "call reset() first"),
        (lambda: ff.rollout(begun(ff.make_vec(2)), "champion", 0), "steps must be a whole number, at least 1, got 0"),
        (lambda: ff.rollout(begun(ff.make_vec(2)), "champion", 1, seed=-1), "seed must be in 0..2**63-1, got -1"),
        (lambda: ff.evaluate("sleep", red_agent=[]), "red_agent must be one value or a list of them, got []"),
        (lambda: ff.export(changed(weights=weights(lambda a: a * np.nan)), "numpy", "x"), "values that are not finite"),
        (lambda: ff.export(changed(weights=weights(lambda a: a[..., :1])), "numpy", "x"), "expected float32"),
        (
            lambda: ff.make_vec(2, arrays=vec_arrays(lambda a: a | {"final_access": a["access"]})),
            "'access'] and arrays['final_access'] share memory",
        ),
        (lambda: ff.make_vec(2, arrays=vec_arrays(unaligned)), "'packed_obs'] must be writable, contiguous and aligned"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing_behind(tmp_path, monkeypatch, call, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ff.FixfirstError) as error:
        call()
    assert says in str(error.value) and "\n" not in str(error.value) and not list(tmp_path.iterdir())
