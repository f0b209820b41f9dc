"""`fixfirst train` and `resume`: the same seed gives the same bytes, however often the run is killed on its way."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from cage2 import HOST_NAMES
from held import Holds, checkpoint
from searches import end, wait_for

from fixfirst.base.seeds import stream_seed
from fixfirst.cli import main
from fixfirst.game.game_config import Game
from fixfirst.learner import training_run
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import play
from fixfirst.play.rollout import collect
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.table import PolicyTable
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import UpdateRow
from fixfirst.settings.training import make_config

ORDER = "enterprise > op_server > op_host > user > defender"
QUIET = ["--no-tensorboard", "--quiet"]
BASE = ["--n-envs", "4", "--max-steps", "10", *QUIET]
TINY = [*BASE, "--total-episodes", "12", "--workflow", ORDER]  # 3 updates
TIMES = ("Collection_Time", "Update_Time", "checksum")  # which covers them


def train(folder, *arguments, expect=0):
    assert main(["train", "--out", str(folder), *arguments]) == expect
    return folder


def weights(folder):
    return (folder / "policy.safetensors").read_bytes()


def log(folder):
    """The rows of the log without what the clock says."""
    with open(RunFiles(folder).training_log, newline="") as file:
        return [{name: value for name, value in row.items() if name not in TIMES} for row in csv.DictReader(file)]


def one_line(capsys, *says):
    """The complaint on stderr."""
    error = capsys.readouterr().err
    assert error.startswith("fixfirst: ") and error.count("\n") == 1, error
    assert all(part in error for part in says), error


# ---------------------------------------------------------------- same seed, same bytes


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    first = train(tmp_path / "a", *TINY, "--seed", "5")
    again = train(tmp_path / "b", *TINY, "--seed", "5")
    other = train(tmp_path / "c", *TINY, "--seed", "6")
    assert weights(first) == weights(again) != weights(other)
    assert log(first) == log(again)
    assert (first / "result.json").read_bytes() == (again / "result.json").read_bytes()


@pytest.mark.parametrize("preset", ["sequential", "hybrid", "parallel-25", "parallel-100", "original"])
def test_every_preset_trains(tmp_path, preset):
    """Two updates each, of 3-step episodes."""
    config = make_config(preset, max_steps=3)
    total = 2 * config.ppo.episodes_per_update
    run = train(tmp_path / preset, "--preset", preset, "--total-episodes", str(total), "--max-steps", "3", *QUIET)
    assert [row["Episodes"] for row in log(run)] == [str(total // 2), str(total)]


def test_the_budget_is_never_exceeded(tmp_path):
    """11 episodes hold two updates of four."""
    run = train(tmp_path / "run", *BASE, "--total-episodes", "11")
    assert log(run)[-1]["Episodes"] == "8" and json.loads((run / "result.json").read_text())["episodes"] == 8


# ---------------------------------------------------------------- killed and resumed, for real

ROLE = ["--memory", "full", "--action-set", "macros"]
KILLED = ["--total-episodes", "160", "--n-envs", "20", "--max-steps", "60", "--workflow", ORDER, "--checkpoint-every", "2"]
KILLED += ROLE


def command(*arguments):
    return [sys.executable, "-m", "fixfirst", *map(str, arguments), "--quiet"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    train(folder, *KILLED, *QUIET)
    assert len(log(folder)) == 8
    return folder


def newest_checkpoint(folder):
    return max((int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.json")), default=0)


def send_when_it_waits(number, point, arguments, holds):
    """Start a command, send it a signal when it waits at a point, and return the process when it has ended."""
    holds.at(point)
    environment = os.environ | holds.environment
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    wait_for(process, lambda: holds.waiting() == 1)
    process.send_signal(number)
    process.out, process.error = end(process)
    return process


def test_killed_again_and_again_it_ends_with_the_bytes_of_an_undisturbed_run(tmp_path, undisturbed, capsys):
    """Killed before the first update, asked to stop, killed between checkpoints and while its policy is evaluated."""
    folder, holds = tmp_path / "run", Holds(tmp_path / "holds")
    moments = (
        (signal.SIGKILL, ("manifest.json", "")),
        (signal.SIGTERM, checkpoint(2)),
        (signal.SIGKILL, checkpoint(6)),
        (signal.SIGKILL, ("policy.json", "")),
    )
    arguments = ["train", "--out", folder, *KILLED, "--no-tensorboard"]
    for number, point in moments:
        ended = send_when_it_waits(number, point, arguments, holds)
        assert ended.returncode == (130 if number == signal.SIGTERM else -number)
        arguments = ["resume", folder]
    assert not (folder / "result.json").exists()
    assert main(["resume", str(folder), "--quiet"]) == 0
    told = capsys.readouterr()
    assert told.err == "" and "fixfirst evaluate" in told.out
    assert weights(folder) == weights(undisturbed) and log(folder) == log(undisturbed)
    assert (folder / "result.json").read_bytes() == (undisturbed / "result.json").read_bytes()
    assert newest_checkpoint(folder) == 0


def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path, undisturbed, capsys):
    folder = tmp_path / "run"
    arguments = ["train", "--out", folder, *KILLED, "--no-tensorboard"]
    process = send_when_it_waits(signal.SIGINT, checkpoint(2), arguments, Holds(tmp_path / "holds"))
    assert process.returncode == 130 and process.out == ""
    (line,) = process.error.splitlines()
    done = newest_checkpoint(folder)
    assert line == f"fixfirst: interrupted after {20 * done} episodes; go on with: fixfirst resume {folder}"
    assert 2 <= done == len(log(folder)) <= 3 and not (folder / "policy.json").exists()
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert capsys.readouterr().err == ""  # a refused checkpoint would be told here
    assert weights(folder) == weights(undisturbed) and log(folder) == log(undisturbed)


def test_the_number_of_threads_does_not_matter(tmp_path, undisturbed):
    environment = os.environ | {name: "2" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    arguments = command("train", "--out", tmp_path / "run", *KILLED, "--no-tensorboard")
    subprocess.run(arguments, env=environment, capture_output=True, check=True)
    assert weights(tmp_path / "run") == weights(undisturbed)


# ---------------------------------------------------------------- what a crash may leave behind


class Crash(Exception):
    pass


@pytest.fixture
def crashed(tmp_path, monkeypatch):
    """A run of three updates that crashed before its policy was saved, with checkpoints of updates 2 and 3; and its twin."""
    twin = train(tmp_path / "twin", *TINY)

    def crash(*arguments, **options):
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Training, "save_policy", crash)
        with pytest.raises(Crash):
            main(["train", "--out", str(tmp_path / "run"), *TINY, "--checkpoint-every", "1"])
    assert newest_checkpoint(tmp_path / "run") == 3
    return tmp_path / "run", twin


def ends_like(folder, twin):
    return weights(folder) == weights(twin) and log(folder) == log(twin)


def test_a_damaged_checkpoint_is_said_and_the_previous_one_used(crashed, capsys):
    folder, twin = crashed
    path = folder / "checkpoint-00000003.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["resume", str(folder)]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert "checkpoint-00000003.safetensors: damaged" in first
    assert second == "fixfirst: going on from update 2, the newest good checkpoint"
    assert ends_like(folder, twin)


def test_without_a_good_checkpoint_it_starts_over_and_says_so(crashed, capsys):
    folder, twin = crashed
    for path in folder.glob("checkpoint-*.json"):
        path.write_text("{}")
    assert main(["resume", str(folder)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "fixfirst: starting over"
    assert ends_like(folder, twin)


def test_half_written_files_are_swept_aside(crashed):
    """A log cut in the middle of a line, arrays whose JSON never came, and a temporary file."""
    folder, twin = crashed
    path = RunFiles(folder).training_log
    path.write_text(path.read_text() + "0,enterprise > op_ser")
    (folder / "checkpoint-00000009.safetensors").write_bytes(b"half")
    (folder / ".checkpoint-00000009.json.1.tmp").write_bytes(b"{")
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert ends_like(folder, twin)


def test_rows_after_the_checkpoint_are_played_and_written_again(crashed):
    folder, twin = crashed
    for suffix in (".json", ".safetensors"):
        (folder / f"checkpoint-00000003{suffix}").unlink()
    assert len(log(folder)) == 3  # the log is ahead of the checkpoint
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert ends_like(folder, twin)


def test_a_header_cut_in_half_is_written_anew(crashed):
    folder, twin = crashed
    for path in folder.glob("checkpoint-*"):
        path.unlink()
    RunFiles(folder).training_log.write_text("Workflow_ID,Workf")
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert ends_like(folder, twin)


def test_a_log_with_other_columns_is_refused(crashed, capsys):
    folder, _ = crashed
    RunFiles(folder).training_log.write_text("a,b\n1,2\n")
    assert main(["resume", str(folder), "--quiet"]) == 2
    one_line(capsys, "training_log.csv: has other columns than this version writes")


def test_a_full_disk_is_one_line_and_the_run_can_go_on(tmp_path, capsys):
    """Files may not grow beyond 20 kB: the first checkpoint does not fit."""
    twin = train(tmp_path / "twin", *TINY)
    capsys.readouterr()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        code = main(["train", "--out", str(tmp_path / "run"), *TINY, "--checkpoint-every", "2"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    one_line(capsys, "run: cannot be written (File too large); fix this, then run: fixfirst resume")
    assert main(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert ends_like(tmp_path / "run", twin)


# ---------------------------------------------------------------- the run directory


def test_a_run_directory_explains_itself(tmp_path):
    folder = train(tmp_path / "run", *TINY)
    names = {"config.toml", "manifest.json", "training_log.csv", "result.json", "policy.json", "policy.safetensors"}
    assert {path.name for path in folder.iterdir()} == names | {"runtime.csv", ".lock"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["kind"] == "train" and manifest["seed"] == 0 and "torch" in manifest["versions"]
    rows = log(folder)
    assert list(rows[0]) == [name for name in UpdateRow.columns() if name not in TIMES]
    assert [row["Update"] for row in rows] == ["1", "2", "3"] and rows[0]["Workflow_Order"] == ORDER
    for row in rows:
        assert float(row["Total_Reward"]) == pytest.approx(float(row["Env_Reward"]) + float(row["Alignment_Bonus"]))


def test_the_config_of_a_run_trains_the_same_policy_again(tmp_path):
    first = train(tmp_path / "a", *TINY, "--seed", "9", "--gamma", "0.9")
    again = train(tmp_path / "b", "--config", str(first / "config.toml"), *QUIET)
    assert weights(first) == weights(again)
    assert (first / "config.toml").read_bytes() == (again / "config.toml").read_bytes()


def test_tensorboard_has_every_update_once(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = ["--tensorboard" if a == "--no-tensorboard" else a for a in TINY]
    folder = train(tmp_path / "run", *arguments)
    events = EventAccumulator(str(folder / "tb")).Reload()
    shown = events.Scalars("rollout/ep_rew_mean")
    assert [event.step for event in shown] == [4, 8, 12]
    assert [event.value for event in shown] == pytest.approx([float(row["Env_Reward"]) for row in log(folder)], rel=1e-5)


def test_json_output_is_one_document(tmp_path, capsys):
    train(tmp_path / "run", *TINY, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["run"] == str(tmp_path / "run") and told["evaluation"]["episodes"] == 1000
    saved = json.loads((tmp_path / "run" / "result.json").read_text())
    assert told["evaluation"] == saved["evaluation"] and told["accepted"] == saved["accepted"]


def test_an_existing_folder_is_never_written_to(tmp_path, capsys):
    folder = train(tmp_path / "run", *TINY)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    train(folder, *TINY, expect=2)
    one_line(capsys, f"{folder} exists already; go on with it: fixfirst resume {folder}")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    train(tmp_path / "mine", *TINY, expect=2)
    one_line(capsys, "exists already; choose another --out")


def test_a_folder_that_cannot_be_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "run", "/proc/fixfirst-run"):
        train(place, *TINY, expect=2)
        one_line(capsys, f"{place}: cannot be written (")


def test_a_finished_run_is_not_resumed(tmp_path, capsys):
    folder = train(tmp_path / "run", *TINY)
    capsys.readouterr()
    assert main(["resume", str(folder)]) == 2
    one_line(capsys, f"{folder} is finished; see {folder / 'result.json'}")


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (None, "is not a run directory (manifest.json is missing)"),
        ("{", "manifest.json: cannot be read"),
        ("[]", "is a run of another version"),
        ('{"schema": 7, "kind": "train"}', "schema 7, this version reads 2"),
        ('{"schema": 1, "kind": "walk"}', "it does not say what kind of run this is"),
        ('{"schema": 1, "kind": "train"}', "config.toml: no such file"),
    ],
)
def test_what_is_no_run_is_not_resumed(tmp_path, capsys, manifest, says):
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    assert main(["resume", str(tmp_path)]) == 2
    one_line(capsys, says)


def test_a_policy_to_start_from_must_know_the_same_unit_types(tmp_path, capsys):
    units = tmp_path / "units.toml"
    units.write_text(f"[units]\nserver = {['Op_Server0']}\nrest = {[h for h in HOST_NAMES if h != 'Op_Server0']}\n")
    other = [*BASE, "--total-episodes", "12", "--workflow", "server > rest", "--units", str(units)]
    parent = train(tmp_path / "parent", *other)
    capsys.readouterr()
    train(tmp_path / "run", *TINY, "--from", str(parent), expect=2)
    one_line(
        capsys, "knows the unit types server, rest, the training needs a policy that knows the unit types user, op_host"
    )
    assert not (tmp_path / "run").exists()


def test_training_starts_from_the_given_policy(tmp_path, monkeypatch):
    """With a vanishing learning rate the child is its parent with softened preferences, also when resumed elsewhere."""
    parent = train(tmp_path / "parent", *BASE, "--total-episodes", "12", "--workflow", "all", "--keep", "penalty")
    monkeypatch.chdir(tmp_path)
    child = train(tmp_path / "child", *TINY, "--from", "parent", "--keep", "penalty", "--learning-rate", "1e-9")
    for name, array in load_policy(parent).weights.items():
        factor = 0.5 if name.startswith("actor.4") else 1.0
        assert np.allclose(load_policy(child).weights[name], factor * array, atol=1e-6), name
    for path in ("policy.json", "result.json"):
        (child / path).unlink()
    bytes_before = weights(child)
    monkeypatch.chdir("/")
    assert main(["resume", str(child), "--quiet"]) == 0
    assert weights(child) == bytes_before


# ---------------------------------------------------------------- workflows


def test_the_universal_policy_trains_on_all_orders(tmp_path):
    folder = train(tmp_path / "run", *BASE, "--total-episodes", "12", "--workflow", "all")
    assert load_policy(folder).workflow is None and log(folder)[0]["Workflow_Order"] == "all"
    training = Training(make_config(ppo={"num_envs": 100}, workflow="all", max_steps=2))
    assert len(np.unique(training._play().assigned)) > 50  # of 120, in 100 draws


def test_hosts_can_be_grouped_otherwise(tmp_path):
    units = tmp_path / "units.toml"
    units.write_text(f"[units]\nservers = {list(HOST_NAMES[:8])}\nusers = {list(HOST_NAMES[8:])}\n")
    folder = train(tmp_path / "run", *BASE, "--total-episodes", "12", "--workflow", "users > servers", "--units", str(units))
    policy = load_policy(folder)
    assert str(policy.workflow) == "users > servers" and policy.facts["inputs"] == 52 + 13 + 4
    again = train(tmp_path / "again", "--config", str(folder / "config.toml"), *QUIET)
    assert weights(folder) == weights(again)


def test_training_stops_as_soon_as_the_gate_is_passed(tmp_path):
    """Hardly any compliance is asked for, so the first update is enough."""
    easy = ["--compliance-threshold", "0.2", "--stop-when-compliant"]
    assert len(log(train(tmp_path / "stops", *TINY, *easy))) == 1
    assert len(log(train(tmp_path / "goes-on", *TINY, *easy[:2]))) == 3


# ---------------------------------------------------------------- rewards, and learning


def inherited(config, weights):
    training = Training(config)
    training.inherit(weights)
    return training.learner.weights


def test_inherited_preferences_that_break_the_order_are_softened_and_others_kept():
    """A sleeping policy judges nothing, so it is softened: half the logits. Without an order nothing changes."""
    config = make_config(workflow=ORDER, gate_episodes=10, max_steps=20, keep="penalty")
    weights = Training(config).learner.weights
    weights["actor.4.weight"] *= 0
    weights["actor.4.bias"] *= 0
    weights["actor.4.bias"][0] = 50.0  # always Sleep
    assert inherited(config, weights)["actor.4.bias"][0] == 25.0
    assert inherited(config.model_copy(update={"initial_logit_scale": 1.0}), weights)["actor.4.bias"][0] == 50.0
    narrow = Training(make_config(workflow="none")).learner.weights
    wide = inherited(config, narrow)
    assert wide["actor.0.weight"].shape == (64, 77) and not wide["actor.0.weight"][:, 52:].any()


def test_3000_episodes_teach_a_defender_what_random_play_never_shows():
    """Random play earns about -750 against b_line in 100 steps; 60 updates reach better than -120."""
    training = Training(make_config(workflow="none", total_episodes=3_000, seed=1))
    first = training.step()
    assert first.row.env_reward < -500
    while not training.done:
        training.step()
    assert training.episodes == 3_000 and training.updates == 60
    assert training.evaluate("test", 500).mean > -120


def test_a_penalty_teaches_an_order():
    """Compliance with enterprise first rises from about a third towards 1."""
    training = Training(make_config(workflow=ORDER, total_episodes=8_000, max_steps=50, seed=1, keep="penalty"))
    first = training.step()
    while not training.done:
        last = training.step()
    assert first.row.compliance < 0.5 < 0.95 < last.row.compliance


def test_training_gate_and_tests_never_share_an_episode():
    """The same sleeping player in the same game: each purpose has its own episodes, and the same ones every time."""
    game, sleep = (
        Game(red_agent="meander", max_steps=60),
        PolicyTable(lambda inputs: np.eye(145)[np.zeros(len(inputs), int)]),
    )
    training = Training(make_config(n_envs=50, workflow="none", red_agent="meander", max_steps=60))
    purposes = ("inherit", "gate/1", "gate/2", "test", "protocol")
    first, again = ({p: play(sleep, game, episodes=50, seed=0, purpose=p).rollout.held for p in purposes} for _ in range(2))
    own = collect(
        training.world, sleep, world_seed=stream_seed(0, "world"), policy_seed=stream_seed(0, "policy"), first_episode=0
    )
    for a, b in combinations([*first.values(), own.held], 2):
        assert not np.array_equal(a, b)
    assert all(np.array_equal(first[purpose], again[purpose]) for purpose in purposes)
    assert np.array_equal(training._play().held[0], own.held[0])  # the streams it trains on are these


def test_training_in_worker_processes_gives_the_same_bytes(tmp_path):
    """The published way of parallel environments, with our simulator in them: same weights as in this process."""
    here = train(tmp_path / "here", *TINY, *ROLE, "--test-episodes", "8")
    there = train(tmp_path / "there", *TINY, *ROLE, "--test-episodes", "8", "--backend", "workers")
    assert weights(here) == weights(there)


def test_a_kill_between_the_result_and_the_end_of_the_checkpoints_costs_nothing(tmp_path, capsys, monkeypatch):
    """Its result is there: nothing is trained again, and the checkpoints go."""

    def killed(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fixfirst.learner.checkpoint.delete", killed)
        assert main(["train", "--out", str(tmp_path / "run"), *TINY, "--checkpoint-every", "1"]) == 130
    folder = tmp_path / "run"
    assert newest_checkpoint(folder) == 3 and (folder / "result.json").exists()
    capsys.readouterr()
    before = weights(folder)
    monkeypatch.setattr(training_run, "Training", None)  # nothing is trained
    assert main(["resume", str(folder)]) == 0
    assert newest_checkpoint(folder) == 0 and weights(folder) == before
    assert main(["resume", str(folder)]) == 2
    assert "is finished" in capsys.readouterr().err


def test_a_training_whose_log_was_cut_is_not_gone_on_with(crashed, capsys):
    folder, _ = crashed
    (folder / "training_log.csv").write_text("")
    assert main(["resume", str(folder)]) == 2
    assert "training_log.csv: rows up to number 3 are missing" in capsys.readouterr().err
