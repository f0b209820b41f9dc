"""What only Linux has is done without elsewhere: names are taken away, and the main jobs run all the same."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import fixfirst as ff
from fixfirst.base import locks
from fixfirst.game import backends as workers
from fixfirst.runs import files

# Runs first in every process of a command. These names are not there on macOS, nor any of these on Windows.
MACOS = """
import fcntl, os
for name in ("F_OFD_GETLK", "F_OFD_SETLK", "F_OFD_SETLKW"):
    delattr(fcntl, name)
del os.memfd_create, os.sched_getaffinity
"""
WINDOWS = (
    MACOS
    + """
import multiprocessing.resource_tracker, signal
for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY"):
    delattr(os, name)
del signal.pthread_sigmask
multiprocessing.resource_tracker._HAVE_SIGMASK = False
open_anything = os.open
def open_no_folder(path, *arguments, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return open_anything(path, *arguments, **options)
os.open = open_no_folder
"""
)
SYSTEMS = {"macOS": MACOS, "Windows": WINDOWS}
SMALL = ["--n-envs", "4", "--no-tensorboard", "--quiet"]


@pytest.fixture
def on(tmp_path):
    """Runs a program in a folder on a system without some names."""

    def run(system, code, *arguments):
        (tmp_path / "sitecustomize.py").write_text(SYSTEMS[system])
        source = str(Path(ff.__file__).parent.parent)
        variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), source]), "FIXFIRST_MAX_STEPS": "10"}
        command = [sys.executable, "-c", code, *arguments]
        ran = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run


MAIN = "import sys; from fixfirst.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("system", SYSTEMS)
def test_simulator_training_and_search_need_no_linux(system, on):
    """Two worker processes, a page, a policy; a run that is finished is told from one that goes on."""
    sizes = [
        "--total-episodes",
        "60",
        "--replicates",
        "2",
        "--rounds",
        "2",
        "--base-episodes",
        "8",
        "--measure-episodes",
        "8",
    ]
    on(system, MAIN, "search", "--workers", "2", "--out", "found", *sizes, *SMALL)
    on(system, MAIN, "train", "--workflow", "none", "--total-episodes", "8", "--out", "trained", *SMALL)
    told = on(system, MAIN, "runs", ".")
    assert told.count("finished") == 2 and "running" not in told
    assert "b_line" in on(system, MAIN, "evaluate", "found", "--episodes", "4", "--quiet")


def test_worker_processes_share_memory_without_memfd(on):
    assert on("macOS", WORKERS) == "(4, 52)\n"


def test_where_no_file_can_be_handed_to_a_worker_one_line_says_so(monkeypatch):
    monkeypatch.setattr(workers, "_DUP_FD", None)
    with pytest.raises(ff.WorkerError, match="hands no open file to a worker process: use backend='simulator'"):
        ff.make_vec(2, backend="workers")


WORKERS = """
import fixfirst as ff
envs = ff.make_vec(4, backend="workers", num_workers=2)
print(envs.reset(seed=0)[0].shape)
envs.close()
"""


# ---------------------------------------------------------------- locks of Windows


@pytest.fixture
def windows_locks(monkeypatch):
    """`base/locks.py` as Windows reads it, over a stand-in for its own locks: one owner per file, others are refused."""
    owners = {}

    def locking(descriptor, how, size):
        place = os.fstat(descriptor).st_ino
        if how == "unlock":
            owners.pop(place, None)
        elif owners.setdefault(place, descriptor) != descriptor:
            raise PermissionError(13, "Permission denied")

    fake = types.SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="unlock")
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(sys, "platform", "win32")
    module = types.ModuleType("windows_locks")
    exec(compile(Path(locks.__file__).read_text(), "base/locks.py", "exec"), vars(module))
    monkeypatch.undo()
    return module


def test_locks_of_windows_are_taken_refused_and_asked_for(windows_locks, tmp_path):
    path = tmp_path / "lock"
    with open(path, "w+b") as mine, open(path, "r+b") as other:
        assert not windows_locks.is_taken(other.fileno())
        windows_locks.take(mine.fileno())
        assert windows_locks.is_taken(other.fileno())
        with pytest.raises(BlockingIOError):
            windows_locks.take(other.fileno())
        with pytest.raises(BlockingIOError):
            windows_locks.lock(other)


def test_no_process_of_windows_is_asked_whether_it_lives(monkeypatch):
    """There, asking with signal 0 is Ctrl-C."""
    monkeypatch.setattr(files.os, "kill", lambda *_: pytest.fail("it was sent a signal"))
    monkeypatch.setattr(files.sys, "platform", "win32")
    assert files._is_alive(1) and not files._is_alive(os.getpid())
