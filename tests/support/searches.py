"""Small searches for tests: their settings, how to start them, and what must not depend on where and how often they ran."""

import csv
import itertools
import os
import subprocess
import sys
import time

import tomli_w
from patience import PATIENCE_S

# Updates of 4 episodes of 20 steps. The gate asks for little, so that most trials pass it. TensorBoard is slow to import.
EASY = {
    "separate": True,
    "keep": "penalty",
    "max_steps": 20,
    "gate_episodes": 20,
    "test_episodes": 20,
    "compliance_threshold": 0.2,
    "min_judged": 5,
    "warmup_episodes": 8,
    "min_episodes": 0,
    "max_episodes": 12,
    "total_episodes": 48,
    "initial_orders": 3,
    "checkpoint_every": 1,
    "tensorboard": False,
    "ppo": {"num_envs": 4},
}
RANDOM = EASY | {"strategy": "random"}  # spares the GP where the choice does not matter
# Two rounds of two trials, of 6 updates after a warm-up of as many, of policies that remember and choose among macros.
EPISODES = {"warmup_episodes": 24, "min_episodes": 24, "max_episodes": 24, "total_episodes": 120}
ROLE = {"memory": "full", "action_set": "macros"}
LONG = RANDOM | EPISODES | ROLE | {"max_steps": 60}
# One network for all orders: two trainings of 12 updates, three rounds.
SHARED = {
    "red_agent": "b_line",
    "max_steps": 20,
    "total_episodes": 240,
    "replicates": 2,
    "rounds": 3,
    "n_envs": 10,
    "episodes_per_update": 10,
    "watch_episodes": 60,
    "selection_episodes": 10,
    "measure_episodes": 20,
    "tensorboard": False,
}
ORDER = "enterprise > op_server > op_host > user > defender"
TRAINING = {"workflow": ORDER, "n_envs": 4, "max_steps": 10, "total_episodes": 12, "tensorboard": False}  # 3 updates


class NoView:
    """Nobody watches, but what went wrong is noted."""

    def __init__(self):
        self.complaints = []

    def progress(self, search, number, message):
        if isinstance(message, str):
            self.complaints.append(message)

    def __getattr__(self, name):
        return lambda *arguments: None


class Switch:
    """An interrupt that the test throws."""

    thrown = False

    def __bool__(self):
        return self.thrown


def one_line(capsys, *says):
    """The complaint on stderr."""
    error = capsys.readouterr().err
    assert error.startswith("fixfirst: ") and error.count("\n") == 1, error
    assert all(part in error for part in says), error


def settings_file(folder, settings):
    path = folder / f"settings-{len(list(folder.iterdir()))}.toml"
    path.write_text(tomli_w.dumps(settings))
    return path


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ledger(folder):
    """The ledger without what the clock says."""
    return [
        {name: value for name, value in row.items() if name not in ("seconds", "checksum")}
        for row in rows(folder / "trials.csv")
    ]


def training_log(folder):
    times = ("Collection_Time", "Update_Time", "checksum")
    return [{k: v for k, v in row.items() if k not in times} for row in rows(folder / "training_log.csv")]


def policies(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("policy.safetensors"))}


def outcome(folder):
    """All that must not depend on workers and interruptions."""
    choices = (folder / "gp_sampling_log.csv").read_bytes()
    return ledger(folder), choices, training_log(folder), policies(folder)


def everything(folder):
    """All that a run leaves and that must not depend on where and when it ran. Checkpoints and results count seconds."""
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    changing = {"manifest.json", "runtime.csv", "report.html", ".lock", "result.json"}
    timed = {
        name for name in files if name.name in changing or name.match("checkpoint-*.json") or name.parts[0] == "replays"
    }
    return {name: files[name] for name in files.keys() - timed}


def interrupt_step(monkeypatch, learner, number):
    """Let the step of such a number of a class of learners be interrupted, as by Ctrl-C."""
    step, steps = learner.step, itertools.count(1)

    def interrupted(training):
        if next(steps) == number:
            raise KeyboardInterrupt
        return step(training)

    monkeypatch.setattr(learner, "step", interrupted)


def checkpoints(folder):
    return len(list(folder.glob("checkpoint-*.json")))


def recorded(folder):
    """Rows of the ledger."""
    path = folder / "trials.csv"
    return max(path.read_text().count("\n") - 1, 0) if path.exists() else 0


def launch(*arguments, holds=None):
    """A command in a session of its own, as in a terminal. holds: the points at which its processes wait."""
    return subprocess.Popen(
        [sys.executable, "-m", "fixfirst", *map(str, arguments), "--quiet", "--no-report"],
        env=os.environ | (holds.environment if holds else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(process, ready):
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)


def end(process):
    """What it said. Workers hold its stdout: this returns when the last of them is gone."""
    return process.communicate(timeout=PATIENCE_S)
