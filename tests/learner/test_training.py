"""`fixfirst train` and `resume`: the same seed gives the same bytes, however often the run is killed on its way."""

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
from searches import ORDER, end, one_line, training_log as log, wait_for

from fixfirst.base.seeds import stream_seed
from fixfirst.cli import main
from fixfirst.game.game_config import Game
from fixfirst.learner import tournament
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import play
from fixfirst.play.rollout import collect
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import load_policy
from fixfirst.settings.training import make_config

QUIET = ["--no-tensorboard", "--quiet"]
BASE = ["--n-envs", "4", "--max-steps", "10", *QUIET, "--total-episodes", "12"]  # 3 updates, as of the run `trained`
TINY = [*BASE, "--workflow", ORDER]
ROLE = ["--memory", "full", "--action-set", "macros"]


def train(folder, *arguments, expect=0):
    assert main(["train", "--out", str(folder), *arguments]) == expect
    return folder


def weights(folder):
    return (folder / "policy.safetensors").read_bytes()


def ends_like(folder, twin):
    return weights(folder) == weights(twin) and log(folder) == log(twin)


def newest_checkpoint(folder):
    return max((int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.json")), default=0)


@pytest.mark.parametrize("preset", ["sequential", "hybrid", "parallel-25", "parallel-100", "original"])
def test_every_preset_trains(tmp_path, preset):
    """Two updates each, of 3-step episodes."""
    total = 2 * make_config(preset).ppo.episodes_per_update
    run = train(tmp_path / preset, "--preset", preset, "--total-episodes", str(total), "--max-steps", "3", *QUIET)
    assert [row["Episodes"] for row in log(run)] == [str(total // 2), str(total)]


KILLED = ["--total-episodes", "160", "--n-envs", "20", "--max-steps", "60", "--workflow", ORDER, "--checkpoint-every", "2"]
KILLED += [*ROLE, "--no-tensorboard"]


def command(*arguments):
    return [sys.executable, "-m", "fixfirst", *map(str, arguments), "--quiet"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = train(tmp_path_factory.mktemp("whole") / "run", *KILLED, "--quiet")
    assert len(log(folder)) == 8
    return folder


def send_when_it_waits(number, point, arguments, holds):
    """Run a command that waits after it has written a file, and send it a signal there: stdout, stderr and exit code."""
    holds.at(point)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command(*arguments), **pipes, env=os.environ | holds.environment)
    wait_for(process, lambda: holds.waiting() == 1)
    process.send_signal(number)
    return *end(process), process.returncode


def test_killed_again_and_again_it_ends_with_the_bytes_of_an_undisturbed_run(tmp_path, whole, capsys):
    """Killed before the first update, asked to stop, killed between checkpoints and while its policy is evaluated."""
    folder, holds = tmp_path / "run", Holds(tmp_path / "holds")
    arguments = ["train", "--out", folder, *KILLED]
    for number, point in (
        (signal.SIGKILL, ("manifest.json", "")),
        (signal.SIGTERM, checkpoint(2)),
        (signal.SIGINT, checkpoint(4)),
        (signal.SIGKILL, checkpoint(6)),
        (signal.SIGKILL, ("policy.json", "")),
    ):
        out, error, code = send_when_it_waits(number, point, arguments, holds)
        assert code == (-number if number == signal.SIGKILL else 130)
        if number != signal.SIGKILL:
            done = newest_checkpoint(folder)
            says = f"fixfirst: interrupted after {20 * done} episodes; go on with: fixfirst resume {folder}\n"
            assert (out, error) == ("", says) and not (folder / "policy.json").exists()
        arguments = ["resume", folder]
    assert not (folder / "result.json").exists()
    assert main(["resume", str(folder), "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and "fixfirst evaluate" in printed.out
    assert ends_like(folder, whole) and newest_checkpoint(folder) == 0
    assert (folder / "result.json").read_bytes() == (whole / "result.json").read_bytes()


def test_the_number_of_threads_does_not_matter(tmp_path, whole):
    threads = {name: "2" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    arguments = command("train", "--out", tmp_path / "run", *KILLED)
    subprocess.run(arguments, env=os.environ | threads, capture_output=True, check=True)
    assert weights(tmp_path / "run") == weights(whole)


@pytest.fixture
def crashed(tmp_path, monkeypatch):
    """A run of three updates that crashed before its policy was saved, with checkpoints of updates 2 and 3."""

    def crash(*arguments, **options):
        raise ZeroDivisionError

    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(Training, "save_policy", crash)
        main(["train", "--out", str(tmp_path / "run"), *TINY, "--checkpoint-every", "1"])
    assert newest_checkpoint(tmp_path / "run") == 3
    return tmp_path / "run"


def write_halves(folder):
    """A log cut in the middle of a line, arrays whose JSON never came, and a temporary file."""
    with open(folder / "training_log.csv", "a") as file:
        file.write("0,enterprise > op_ser")
    (folder / "checkpoint-00000009.safetensors").write_bytes(b"half")
    (folder / ".checkpoint-00000009.json.1.tmp").write_bytes(b"{")


def damage(folder, pattern):
    for path in folder.glob(pattern):
        path.write_text("{}")


def lose(folder, pattern):
    for path in folder.glob(pattern):
        path.unlink()


@pytest.mark.parametrize(
    ("leave", "says"),
    [
        (lambda run: damage(run, "checkpoint-*.json"), ["-00000003.json", "-00000002.json", "starting over"]),
        (write_halves, []),
        (lambda run: lose(run, "checkpoint-00000003*"), []),  # the log is ahead: its last row is played and written again
        (lambda run: [lose(run, "checkpoint-*"), (run / "training_log.csv").write_text("Workflow_ID,Workf")], []),
    ],
)
def test_what_a_crash_may_leave_costs_no_byte_and_damaged_checkpoints_are_named(crashed, trained, capsys, leave, says):
    leave(crashed)
    capsys.readouterr()
    assert main(["resume", str(crashed)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fixfirst: ")]
    assert len(lines) == len(says) and all(part in line for part, line in zip(says, lines, strict=True))
    assert ends_like(crashed, trained)


def test_a_full_disk_is_one_line_and_the_run_can_go_on(tmp_path, trained, capsys):
    """Files may not grow beyond 20 kB: the first checkpoint does not fit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        code = main(["train", "--out", str(tmp_path / "run"), *TINY, "--checkpoint-every", "2"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    one_line(capsys, "run: cannot be written (File too large); fix this, then run: fixfirst resume")
    assert main(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert ends_like(tmp_path / "run", trained)


def test_a_kill_between_the_result_and_the_end_of_the_checkpoints_costs_nothing(tmp_path, capsys, monkeypatch):
    """Its result is there: nothing is trained again, and the checkpoints go."""

    def killed(folder):
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("fixfirst.learner.driver.delete_checkpoints", killed)
        train(folder, *TINY, "--checkpoint-every", "1", expect=130)
    assert newest_checkpoint(folder) == 3 and (folder / "result.json").exists()
    before = weights(folder)
    monkeypatch.setattr(tournament, "Training", None)  # nothing is trained
    assert main(["resume", str(folder)]) == 0
    assert newest_checkpoint(folder) == 0 and weights(folder) == before
    capsys.readouterr()
    assert main(["resume", str(folder)]) == 2
    one_line(capsys, f"{folder} is finished; see {folder / 'result.json'}")


def test_a_run_directory_explains_itself_and_trains_the_same_bytes_again_another_seed_others(tmp_path, trained, capsys):
    names = {"config.toml", "manifest.json", "training_log.csv", "result.json", "policy.json", "policy.safetensors"}
    assert {path.name for path in trained.iterdir()} == names | {"runtime.csv", ".lock"}
    manifest = json.loads((trained / "manifest.json").read_text())
    assert manifest["kind"] == "train" and manifest["seed"] == 0 and "torch" in manifest["versions"]
    assert [row["Update"] for row in log(trained)] == ["1", "2", "3"] and log(trained)[0]["Workflow_Order"] == ORDER
    for row in log(trained):
        assert float(row["Total_Reward"]) == pytest.approx(float(row["Env_Reward"]) + float(row["Alignment_Bonus"]))
    again = train(tmp_path / "again", "--config", str(trained / "config.toml"), "--json", *QUIET)
    assert ends_like(again, trained)
    for name in ("config.toml", "result.json"):
        assert (trained / name).read_bytes() == (again / name).read_bytes()
    printed, saved = json.loads(capsys.readouterr().out), json.loads((trained / "result.json").read_text())
    assert printed["run"] == str(again) and printed["evaluation"]["episodes"] == 1000
    assert (printed["evaluation"], printed["accepted"]) == (saved["evaluation"], saved["accepted"])
    assert weights(train(tmp_path / "other", *TINY, "--seed", "6")) != weights(trained)


def test_an_existing_folder_is_never_written_to(tmp_path, trained, capsys):
    """The finished run is compared byte by byte when the tests end."""
    (tmp_path / "thesis.txt").write_text("")
    for folder, says in (
        (trained, f"{trained} exists already; go on with it: fixfirst resume {trained}"),
        (tmp_path, "exists already; choose another --out"),
        (tmp_path / "thesis.txt", "thesis.txt: cannot be written ("),
        (tmp_path / "thesis.txt" / "run", "run: cannot be written ("),
        ("/proc/fixfirst-run", "/proc/fixfirst-run: cannot be written ("),
    ):
        train(folder, *TINY, expect=2)
        one_line(capsys, says)


def test_training_starts_from_the_given_policy_also_one_of_all_orders(tmp_path, monkeypatch):
    """With a vanishing learning rate the child is its parent with softened preferences, also when resumed elsewhere."""
    parent = train(tmp_path / "parent", *BASE, "--workflow", "all", "--keep", "penalty")
    assert load_policy(parent).workflow is None and log(parent)[0]["Workflow_Order"] == "all"
    monkeypatch.chdir(tmp_path)
    child = train(tmp_path / "child", *TINY, "--from", "parent", "--keep", "penalty", "--learning-rate", "1e-9")
    for name, array in load_policy(parent).weights.items():
        factor = 0.5 if name.startswith("actor.4") else 1.0
        assert np.allclose(load_policy(child).weights[name], factor * array, atol=1e-6), name
    for path in ("policy.json", "result.json"):
        (child / path).unlink()
    before = weights(child)
    monkeypatch.chdir("/")
    assert main(["resume", str(child), "--quiet"]) == 0
    assert weights(child) == before


def test_hosts_can_be_grouped_otherwise_and_who_starts_from_such_a_policy_needs_the_same_unit_types(tmp_path, capsys):
    servers, users = list(HOST_NAMES[:8]), list(HOST_NAMES[8:])
    (tmp_path / "units.toml").write_text(f"[units]\nservers = {servers}\nusers = {users}\n")
    parent = train(tmp_path / "run", *BASE, "--workflow", "users > servers", "--units", str(tmp_path / "units.toml"))
    policy = load_policy(parent)
    assert str(policy.workflow) == "users > servers" and policy.facts["inputs"] == 52 + 13 + 4
    again = train(tmp_path / "again", "--config", str(parent / "config.toml"), *QUIET)
    assert weights(parent) == weights(again)
    capsys.readouterr()
    train(tmp_path / "child", *TINY, "--from", str(parent), expect=2)
    one_line(capsys, "knows the unit types servers, users, the training needs a policy that knows the unit types user, op_")
    assert not (tmp_path / "child").exists()


def test_training_stops_as_soon_as_the_gate_is_passed(tmp_path):
    """Hardly any compliance is asked for, so the first update is enough."""
    easy = ["--compliance-threshold", "0.2", "--stop-when-compliant"]
    assert len(log(train(tmp_path / "stops", *TINY, *easy))) == 1
    assert len(log(train(tmp_path / "goes-on", *TINY, *easy[:2]))) == 3


def test_inherited_preferences_that_break_the_order_are_softened_and_others_stay():
    """A sleeping policy judges nothing, so it is softened: half the logits. Without an order nothing changes."""

    def inherited(config, weights):
        training = Training(config)
        training.inherit(weights)
        return training.learner.weights

    config = make_config(workflow=ORDER, gate_episodes=10, max_steps=20, keep="penalty")
    sleeping = Training(config).learner.weights
    sleeping |= {name: 0 * sleeping[name] for name in ("actor.4.weight", "actor.4.bias")}
    sleeping["actor.4.bias"][0] = 50.0
    assert inherited(config, sleeping)["actor.4.bias"][0] == 25.0
    assert inherited(config.model_copy(update={"initial_logit_scale": 1.0}), sleeping)["actor.4.bias"][0] == 50.0
    wide = inherited(config, Training(make_config(workflow="none")).learner.weights)
    assert wide["actor.0.weight"].shape == (64, 77) and not wide["actor.0.weight"][:, 52:].any()


def learned(**settings):
    """A training at its end, and its first and last update."""
    training = Training(make_config(seed=1, **settings))
    first = training.step()
    while not training.done:
        last = training.step()
    return training, first.row, last.row


def test_3000_episodes_teach_a_defender_what_random_play_never_shows():
    """Random play earns about -750 against b_line in 100 steps; 60 updates reach better than -120."""
    training, first, _ = learned(workflow="none", total_episodes=3_000)
    assert first.env_reward < -500 and (training.episodes, training.updates) == (3_000, 60)
    assert training.evaluate("test", 500).mean > -120


def test_a_penalty_teaches_an_order():
    """Compliance with enterprise first rises from about a third towards 1."""
    _, first, last = learned(workflow=ORDER, total_episodes=8_000, max_steps=50, keep="penalty")
    assert first.compliance < 0.5 < 0.95 < last.compliance


def test_training_gate_and_tests_never_share_an_episode():
    """The same sleeping player in the same game: each purpose has its own episodes, and the same ones every time."""
    game = Game(red_agent="meander", max_steps=60)
    sleep = PolicyTable(lambda inputs: np.eye(145)[np.zeros(len(inputs), int)])
    training = Training(make_config(n_envs=50, workflow="none", red_agent="meander", max_steps=60))
    purposes = ("inherit", "gate/1", "gate/2", "test", "protocol")
    first, again = ({p: play(sleep, game, episodes=50, seed=0, purpose=p).rollout.held for p in purposes} for _ in range(2))
    streams = {f"{name}_seed": stream_seed(0, name) for name in ("world", "policy")}
    own = collect(training.world, sleep, first_episode=0, **streams)
    for a, b in combinations([*first.values(), own.held], 2):
        assert not np.array_equal(a, b)
    assert all(np.array_equal(first[purpose], again[purpose]) for purpose in purposes)
    assert np.array_equal(training._play().held[0], own.held[0])  # the streams it trains on are these


def test_training_in_worker_processes_gives_the_same_bytes(tmp_path):
    """The published way of parallel environments, with our simulator in them: same weights as in this process."""
    here, there = (
        train(tmp_path / backend, *TINY, *ROLE, "--test-episodes", "8", "--backend", backend)
        for backend in ("simulator", "workers")
    )
    assert weights(here) == weights(there)
