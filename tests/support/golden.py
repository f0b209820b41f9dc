"""Finished runs for tests that only read one: made once per test run, by whichever process needs it first.

    def test_x(searched): ...   a search with a training for each order (searches.EASY, with memory and macros)
    def test_x(answered): ...   a search with one network for all orders (searches.SHARED)
    def test_x(trained): ...    a training of one order (searches.TRAINING)

Each is a folder. Who wants to change it copies it first: when the tests end, every byte must be as it was.
"""

import fcntl
import os

import pytest
from searches import EASY, LONG, ROLE, SHARED, TRAINING

import fixfirst as ff
from fixfirst.base.files import sha256

QUIET = {"quiet": True, "workers": 1, "report": False}


def golden(factory, name, make):
    """A folder that make(folder) writes once per test run; processes meet in the folder above their own."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = base / f"golden-{name}" / "run"
        if not (folder.parent / "done").exists():
            folder.parent.mkdir(exist_ok=True)
            make(folder)
            (folder.parent / "done").touch()
    return folder


def content(folder):
    return {path: sha256(path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


def finished_run(make):
    """The session's fixture of a golden run, named after the function that makes it."""

    @pytest.fixture(scope="session", name=make.__name__)
    def run(tmp_path_factory):
        folder = golden(tmp_path_factory, make.__name__, make)
        before = content(folder)
        yield folder
        assert content(folder) == before, f"a test changed {folder}: it should have copied it"

    return run


@finished_run
def searched(folder):
    ff.search(out=folder, **EASY | ROLE | {"tensorboard": True}, log_episodes=True, **QUIET | {"report": True})


@finished_run
def answered(folder):
    ff.search(out=folder, **SHARED, **QUIET | {"report": True})


@finished_run
def trained(folder):
    ff.train(out=folder, **TRAINING, quiet=True)


@finished_run
def undisturbed(folder):
    """The search of LONG, which tests elsewhere kill and resume to the same bytes."""
    ff.search(out=folder, **LONG, **QUIET)
