"""Where jobs run: one contract in this process, in workers and on a cluster, and what becomes of a job when a side dies."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from patience import PATIENCE_S
from sample_jobs import (
    count_up,
    die,
    double,
    leave,
    no_progress,
    overlap,
    raise_it,
    stumble,
    who,
    work_until_interrupted,
)
from searches import Switch

from fixfirst.adapters.ray import RayScheduler
from fixfirst.base.errors import ConfigError
from fixfirst.base.jobs import Finished, InlineScheduler, ProcessScheduler
from fixfirst.settings.search import Execution


@pytest.fixture(scope="module")
def shared():
    """Executors by kind, for the tests that leave them as they were: processes take seconds to start."""
    made = {}
    yield made
    close_all(made)


def close_all(made):
    while made:
        made.popitem()[1].close()
    assert multiprocessing.active_children() == []


@pytest.fixture(params=["inline", "process", pytest.param("ray", marks=pytest.mark.ray)])
def make(request, shared):
    """Makes executors of one kind, one at a time: the shared one, or one of the test's own, of which no process is left."""
    kind = request.param
    address = request.getfixturevalue("cluster").address if kind == "ray" else None
    kinds = {
        "inline": InlineScheduler,
        "process": lambda interrupt: ProcessScheduler(2, interrupt),
        "ray": lambda interrupt: RayScheduler(address, interrupt=interrupt),
    }
    made = []

    def make_one(interrupt=None, own=False):
        if interrupt is None and not own:
            if kind not in shared:
                shared[kind] = kinds[kind](None)
            return shared[kind]
        close_all(shared)
        made.append(kinds[kind](interrupt))
        return made[-1]

    yield make_one
    for executor in made:
        executor.close()
    assert shared or multiprocessing.active_children() == []


@pytest.fixture
def workers(shared):
    close_all(shared)
    executor = ProcessScheduler(2)
    yield executor
    executor.close()
    assert multiprocessing.active_children() == []


def test_every_job_ends_once_with_its_own_result(make):
    executor = make()
    for key in range(5):
        executor.submit(key, double, 10 * key)
    ended = sorted((executor.wait(no_progress) for _ in range(5)), key=lambda finished: finished.key)
    assert ended == [Finished(0, 0), Finished(1, 20), Finished(2, 40), Finished(3, 60), Finished(4, 80)]
    assert executor.wait(no_progress) is None  # no job is left: at once


def test_what_a_job_tells_arrives_in_order_with_its_key(make):
    executor, told = make(), []
    executor.submit(7, count_up, 3)
    assert executor.wait(lambda *message: told.append(message)) == Finished(7, 3)
    assert told == [(7, 0), (7, 1), (7, 2)]


def test_errors_a_user_can_cause_arrive_as_themselves(make):
    executor = make()
    for error in (ConfigError("seed: must be lucky"), OSError(errno.ENOSPC, "No space left"), MemoryError("too large")):
        executor.submit(0, raise_it, error)
        with pytest.raises(type(error)) as caught:
            executor.wait(no_progress)
        assert str(caught.value) == str(error)


def test_a_bug_in_a_job_arrives_with_its_traceback_and_the_next_job_runs(make):
    executor = make()
    executor.submit(0, stumble, 0)
    with pytest.raises(Exception) as caught:  # ZeroDivisionError, or a RuntimeError that quotes it
        executor.wait(no_progress)
    text = "".join(traceback.format_exception(caught.value))
    assert "ZeroDivisionError" in text and "return 1 / argument" in text
    executor.submit(1, stumble, 4)
    assert executor.wait(no_progress) == Finished(1, 0.25)


def test_no_more_jobs_run_at_a_time_than_there_are_workers(make, tmp_path):
    """Each runs long enough for others to come, on Ray long enough to tell more than once."""
    executor, folder = make(), tmp_path / "running"
    folder.mkdir()
    while_s = {"InlineScheduler": 0.1, "ProcessScheduler": 0.3, "RayScheduler": 1.2}[type(executor).__name__]
    for key in range(4):
        executor.submit(key, overlap, (folder, executor.workers, while_s))
    seen = {executor.wait(lambda key, message: None).result for _ in range(4)}
    assert max(seen) == executor.workers <= 2


def test_once_interrupted_running_jobs_save_themselves_and_the_others_never_begin(make, tmp_path):
    interrupt = Switch()
    executor = make(interrupt)
    for key in range(4):
        executor.submit(key, work_until_interrupted, tmp_path / str(key))
    begun = set()

    def throw_when_all_have_begun(key, message):
        begun.add(key)
        interrupt.thrown = isinstance(executor, InlineScheduler) or len(begun) == 2

    ended = executor.wait(throw_when_all_have_begun)
    executor.cancel()
    executor.close()
    assert ended.key in begun and ended.result is None and ended.died is None
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {str(key): "saved" for key in begun}


def test_closing_abandons_the_jobs_and_may_be_done_twice(make):
    executor = make(own=True)
    executor.submit(0, double, 1)
    executor.submit(1, double, 2)
    executor.close()
    executor.close()
    assert multiprocessing.active_children() == []


def test_a_killed_worker_is_reported_and_the_others_go_on(workers):
    workers.submit(0, die, None)
    workers.submit(1, leave, 3)
    for key in range(2, 6):
        workers.submit(key, double, key)
    ended = {finished.key: finished for finished in (workers.wait(no_progress) for _ in range(6))}
    assert ended[0].died == "killed by signal 9" and ended[1].died == "exit code 3"
    assert [ended[key].result for key in range(2, 6)] == [4, 6, 8, 10]


def test_jobs_have_a_process_of_their_own_and_one_that_is_killed_between_jobs_costs_one_attempt(workers):
    workers.submit(0, who, None)
    pid = workers.wait(no_progress).result
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)
    workers.submit(1, double, 1)
    assert workers.wait(no_progress) == Finished(1, died="killed by signal 9")
    workers.submit(1, double, 1)
    assert workers.wait(no_progress) == Finished(1, 2)


def test_a_job_that_cannot_travel_is_refused_and_leaves_no_process(workers):
    with pytest.raises(Exception, match="pickle"):
        workers.submit(0, lambda argument, tell, interrupt: None, None)


def drive(folder):
    """A driver for the tests below: one idle worker and one busy one; says so, and is interrupted by Ctrl-C."""
    from fixfirst.base.jobs import interrupts

    with interrupts() as interrupt:
        executor = ProcessScheduler(2, interrupt)
        executor.submit(0, work_until_interrupted, Path(folder) / "job")
        executor.submit(1, double, 1)
        print("submitted", flush=True)
        while not interrupt:
            executor.wait(lambda key, message: print(message, flush=True))
            print("idle", flush=True)
        executor.cancel()
        executor.close()


def driver(folder):
    """Start it in a session of its own: a terminal sends Ctrl-C to all of it."""
    command = [sys.executable, "-c", f"import test_jobs; test_jobs.drive({str(folder)!r})"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True, start_new_session=True)


def read_until(process, *wanted):
    lines = set()
    while not lines >= set(wanted):
        line = process.stdout.readline()
        assert line, process.communicate()
        lines.add(line.strip())


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """Workers hold the driver's stdout, so its end means that the last of them is gone."""
    process = driver(tmp_path)
    read_until(process, "begun", "idle")
    process.kill()
    out, error = process.communicate(timeout=PATIENCE_S)
    assert (out, error) == ("", "")
    assert (tmp_path / "job").read_text() == "begun"  # as after any kill: the job was not saved, its folder is free


@pytest.mark.parametrize("moment", ["submitted", "begun"])
def test_ctrl_c_in_a_terminal_reaches_only_the_driver(tmp_path, moment):
    """Also while the workers are still starting. They save and go quietly; the exit code is the driver's own."""
    process = driver(tmp_path)
    read_until(process, moment)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and error == ""
    assert moment == "submitted" or (tmp_path / "job").read_text() == "saved"


@pytest.mark.parametrize("wrong", [None, True, 2.5, "2"])
def test_workers_are_a_whole_number(wrong):
    with pytest.raises(ConfigError, match="--workers must be a whole number, at least 0, got"):
        Execution(workers=wrong)
