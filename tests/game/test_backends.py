"""Worker processes, tested with our own simulator in them: the bytes of the in-process world, and what goes wrong told.

No test here needs CybORG; the same machinery hosts it (`test_cyborg.py`).
"""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from faulty import FAULT_STEP, FaultyWorld
from processes import eventually, gone

import fixfirst as ff
from fixfirst.game import worker_world
from fixfirst.game.base_world import output_arrays
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2
from fixfirst.game.simulator import World
from fixfirst.game.worker_world import WorkerWorld
from fixfirst.play.rollout import make_world

SETTINGS = {"red_agent": "b_line:0.5,meander:0.5", "green": True, "max_steps": 20}


def everything(world):
    """All arrays as bytes, of the final ones the rows that count, and the last turns."""
    rows = {name: world.ended if name.startswith("final") else slice(None) for name in output_arrays(CAGE2)}
    if world.autoreset != "same_step":
        rows = {name: row for name, row in rows.items() if name not in ("final_observations", "final_access")}
    return {name: getattr(world, name)[row].tobytes() for name, row in rows.items()} | {"turns": world.turns().tobytes()}


OWN = {"red_agent": ["noise", "b_line", "meander"] + ["sleep", "noise"] * 2, "variant": "leaderboard"}


@pytest.mark.parametrize(
    ("workers", "autoreset", "settings", "env_ids"),
    [(1, "next_step", SETTINGS, None), (3, "same_step", SETTINGS, None), (2, "next_step", OWN, [40, 7, 7, 1, 2, 3, 4])],
)
def test_workers_give_the_bytes_of_the_world_in_this_process(workers, autoreset, settings, env_ids):
    """Every array after every step and reset: over autoresets, a reset of some, and new seeds."""
    options, rng = {"autoreset": autoreset, "env_ids": env_ids}, np.random.default_rng(0)
    here = make_world(Game(**settings), 7, **options)
    with make_world(Game(backend="workers", **settings), 7, num_workers=workers, **options) as there:
        some = np.array([True, False, False, True, True, False, False])
        for reset in ({"seed": 5}, {"mask": some}, {}, {"seed": [3, 1, 4, 1, 5, 9, 2], "mask": ~some}):
            here.reset(**reset), there.reset(**reset)
            assert everything(here) == everything(there)
            for actions in rng.integers(0, 145, (45, 7)):
                assert here.step(actions) == there.step(actions)
                assert everything(here) == everything(there)
        assert there.num_workers == workers and there.variant == here.variant


def test_bad_input_is_told_as_by_the_world_in_this_process_and_breaks_nothing():
    with make_world(Game(backend="workers"), 2, num_workers=1) as world:
        with pytest.raises(ff.ResetNeeded):
            world.step(np.zeros(2, int))
        world.reset(0)
        with pytest.raises(ff.ActionError, match="action 145 of environment 1"):
            world.step(np.array([0, 145]))
        with pytest.raises(ff.WorldError, match="only the in-process simulator"):
            world.get_state()
        world.step(np.zeros(2, int))
    for bad, says in (
        ({"backend": "cloud"}, "backend must be"),
        ({"num_workers": 0}, "num_workers"),
        ({"timeout_s": 0}, "timeout_s"),
    ):
        with pytest.raises(ff.FixfirstError, match=says):
            ff.make_vec(2, **{"backend": "workers"} | bad)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into Linux's /proc")
def test_shared_memory_has_no_name_and_can_be_read_when_its_world_is_closed():
    world = make_world(Game(backend="workers"), 2, num_workers=1)
    world.reset(0)
    access = world.access
    shared = [line for line in Path("/proc/self/maps").read_text().splitlines() if "/pym-" in line]
    assert shared and all(line.endswith("(deleted)") for line in shared)
    world.close()
    del world
    assert access.tolist() == [[0] * 8 + [2] + [0] * 4] * 2


def faulty(fault, num_workers=1, **options):
    """Environments 0 and 1, in which the fault strikes, are in the first worker."""
    return WorkerWorld(partial(FaultyWorld, fault=fault), Game(), 2 * num_workers, num_workers=num_workers, **options)


def step(world):
    world.step(np.zeros(world.num_envs, int))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("exception", r"environments 0-1 failed in a step: ZeroDivisionError: a bug"),
        ("kill", r"environments 0-1 died \(killed by SIGKILL\) during a step"),  # noticed without waiting for the timeout
        ("exit", r"environments 0-1 died \(exit code 7\) during a step"),
        ("hang", r"environments 0-1\b.*: no answer to a step within 0.3 s"),
        ("busy", r"environments 0-1\b.*: no answer to a step within 0.3 s"),
    ],
)
def test_a_worker_that_fails_dies_or_hangs_is_named_and_nothing_is_left(fault, says):
    world = faulty(fault, num_workers=2, timeout_s=None)
    pids = world.process_ids
    world.reset(0)
    for _ in range(FAULT_STEP - 1):
        step(world)
    world.timeout_s = 0.3 if "no answer" in says else None
    with pytest.raises(ff.WorkerError, match=says) as caught:
        step(world)
    if fault == "exception":
        assert "in strike\n" in caught.value.__notes__[0] and "faulty.py" in caught.value.__notes__[0]
    assert all(map(gone, pids))
    world.close()


def test_a_worker_killed_between_steps_is_noticed_at_the_next_and_one_that_is_forgotten_ends():
    world = make_world(Game(backend="workers"), 4, num_workers=2)
    world.reset(0)
    pids = world.process_ids
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(ff.WorkerError, match="environments 2-3 died"):
        step(world)
    assert all(map(gone, pids))
    world = make_world(Game(backend="workers"), 2, num_workers=1)
    pids = world.process_ids
    del world
    assert eventually(lambda: all(map(gone, pids)))


PARENT = """
import sys, time
from functools import partial
import numpy as np
from faulty import FaultyWorld
from fixfirst.game.worker_world import WorkerWorld
from fixfirst.game.game_config import Game
if __name__ == "__main__":
    world = WorkerWorld(partial(FaultyWorld, fault=sys.argv[1]), Game(), 4, num_workers=2)
    world.reset(0)
    print(*world.process_ids, flush=True)
    while sys.argv[1] != "none":
        world.step(np.zeros(4, int))
    time.sleep(3600)
"""


@pytest.mark.parametrize("doing", ["none", "hang", "busy"])
def test_nothing_is_left_when_the_parent_is_killed(tmp_path, doing):
    """kill -9 of the parent, while its workers are idle and while one of them hangs."""
    (tmp_path / "parent.py").write_text(PARENT)
    command, pipes = [sys.executable, tmp_path / "parent.py", doing], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, text=True, env=variables, **pipes) as parent:
        pids = list(map(int, parent.stdout.readline().split()))
        assert len(pids) == 2 and not any(map(gone, pids))
        assert doing == "none" or parent.stdout.readline() == "struck\n"
        parent.kill()
        assert eventually(lambda: all(map(gone, pids)))
        assert parent.stderr.read() == ""


def test_a_worker_that_cannot_be_started_or_build_is_told_in_one_line_and_the_others_end(monkeypatch):
    with pytest.raises(ff.WorkerError, match=r"failed in its start .*: OSError: no room"):
        faulty("building")
    started, start = [], worker_world._Worker

    def second_fails(*arguments):
        if started:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(start(*arguments))
        return started[0]

    monkeypatch.setattr(worker_world, "_Worker", second_fails)
    says = r"worker 2 of 3 cannot be started \(Resource temporarily unavailable\); ask for fewer workers"
    with pytest.raises(ff.WorkerError, match=says):
        WorkerWorld(World, Game(**SETTINGS), 6, num_workers=3)
    with pytest.raises(ValueError, match="closed"):  # the first one is gone
        started[0].process.is_alive()
