"""Searches on a Ray cluster: the bytes of a search in one process, whatever is killed meanwhile, and nothing left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from held import Holds, checkpoint
from processes import eventually
from ray_cluster import listening_addresses, processes_naming, ray_environment, settings_of
from sample_jobs import double, no_progress
from searches import (
    EASY,
    LONG,
    NoView,
    checkpoints,
    end,
    launch,
    ledger,
    one_line,
    outcome,
    recorded,
    rows,
    settings_file,
    wait_for,
)

from fixfirst.adapters.ray import RayScheduler, who_reaches
from fixfirst.base.errors import ConfigError
from fixfirst.base.jobs import Finished, InlineScheduler
from fixfirst.base.plans import MAX_NODES_LOST
from fixfirst.cli import main
from fixfirst.searcher.study import begin_study, run_searches
from fixfirst.settings.search import search_config

on_a_cluster = pytest.mark.ray


@on_a_cluster
def test_whatever_is_lost_and_whoever_goes_on_the_bytes_stay_the_same(tmp_path, undisturbed, cluster):
    """The driver is killed in the warm-up. The only node with CPUs is killed in a round, another one joins, and a worker
    there is killed; in the next round the driver is killed, then interrupted. Another executor goes on from there."""
    folder, holds, orders = tmp_path / "run", cluster.holds, [row["workflow"] for row in ledger(undisturbed)]
    on_ray = ("--executor", "ray", "--ray-address", cluster.address)
    first, second = ([checkpoint(2, order) for order in pair] for pair in (orders[:2], orders[2:]))
    holds.at(checkpoint(2))
    process = launch("search", "--out", folder, "--config", settings_file(tmp_path, LONG), *on_ray)
    wait_for(process, lambda: holds.waiting() == 1)
    process.kill()
    end(process)

    holds.at(*first)
    process = launch("resume", folder, *on_ray)
    wait_for(process, lambda: holds.waiting() == 2)
    assert (folder / "warmup" / "policy.json").exists() and recorded(folder) == 0
    for number in cluster.processes():
        os.kill(number, signal.SIGKILL)
    holds.at(*first)
    cluster.join()
    wait_for(process, lambda: holds.waiting() == 2)
    working = (pid for pid in cluster.processes() if b"ray::_run_job" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(next(working), signal.SIGKILL)
    holds.at(*second)
    wait_for(process, lambda: holds.waiting() == 2)
    assert recorded(folder) == 2
    process.kill()
    _, error = end(process)
    complaints = error.splitlines()
    assert any("its worker is gone (its node is lost); trying again" in line for line in complaints)
    assert any("its worker is gone (killed, or crashed); trying again" in line for line in complaints)
    assert all(line.startswith("fixfirst: trial ") for line in complaints)  # Ray itself says nothing

    holds.at(*second)
    process = launch("resume", folder, *on_ray)
    wait_for(process, lambda: holds.waiting() == 2)
    os.killpg(process.pid, signal.SIGINT)
    _, error = end(process)
    going_on, interrupted = error.splitlines()
    assert going_on == "fixfirst: going on after 2 trials, 72 of 120 episodes used"
    assert interrupted == f"fixfirst: interrupted; go on with: fixfirst resume {folder}" and process.returncode == 130
    saved = [path for path in (folder / "trials").iterdir() if checkpoints(path)]
    assert saved and not any((path / "result.json").exists() for path in saved)
    assert main(["resume", str(folder), "--workers", "1", "--quiet", "--no-report"]) == 0
    assert outcome(folder) == outcome(undisturbed)


def tell_and_wait(file, tell, interrupt):
    tell("from the orphan")
    while not file.exists():
        time.sleep(0.01)
    tell("from the orphan")
    return "the orphan's result"


@on_a_cluster
def test_an_orphan_can_neither_deliver_nor_report_and_a_job_larger_than_every_node_is_refused(tmp_path, cluster):
    """A first attempt that was given up, as when its node seems lost, ends after its successor began."""
    with pytest.raises(ConfigError, match=r"asks for 3 CPUs \(--cpus-per-trial\), the largest Ray node has 2"):
        RayScheduler(cluster.address, cpus_per_job=3)
    executor = RayScheduler(cluster.address)
    try:
        executor.submit(0, tell_and_wait, tmp_path / "go")
        (orphan,) = executor._running
        executor._running.clear()
        executor.submit(0, double, 4)
        (tmp_path / "go").touch()
        assert executor._ray.get(orphan) == ("done", "the orphan's result")  # it did end, and told
        assert executor.wait(no_progress) == Finished(0, 8)
        assert executor.wait(no_progress) is None
    finally:
        executor.close()


class LosingNodes(InlineScheduler):
    """Every machine that takes the second trial is lost."""

    losses = 0

    def wait(self, on_progress):
        if self._jobs and self._jobs[0][0] == (0, 1):
            self._jobs.popleft()
            self.losses += 1
            return Finished((0, 1), died="its node is lost", node_lost=True)
        return super().wait(on_progress)


def test_a_trial_that_costs_ten_machines_has_failed(tmp_path):
    executor = LosingNodes()
    (run,) = begin_study([search_config(**EASY | {"n_workflows": 2})], tmp_path / "run").searches
    assert run_searches([run], executor, NoView(), interrupt=False, folder=run.folder)
    assert executor.losses == MAX_NODES_LOST
    assert [row["status"] for row in ledger(run.folder)] == ["accepted", "failed"]


def test_without_ray_it_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    path = settings_file(tmp_path, LONG)
    assert main(["search", "--out", str(tmp_path / "run"), "--executor", "ray", "--config", str(path)]) == 2
    one_line(capsys, "pip install 'fixfirst[ray]'")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--executor inline --workers 2", "--executor inline runs one trial at a time, --workers 2 asks for more"),
        ("--ray-address auto", "--ray-address and --cpus-per-trial need --executor ray"),
        ("--executor ray --cpus-per-trial 0", "--cpus-per-trial must be a whole number, at least 1, got 0"),
        ("--executor ray --ray-address auto --workers 2", "--workers is for this machine"),
        ("--executor ray --ray-address ray://x:1", "run fixfirst on a node of the cluster"),
        ("--executor ray --ray-address 127.0.0.1:1", "--ray-address 127.0.0.1:1: cannot be reached"),  # nobody listens there
        ("--executor ray --ray-address 127.0.0.1:port", "--ray-address 127.0.0.1:port: cannot be reached"),
        ("--executor slurm", "--executor"),
    ],
)
def test_a_cluster_that_cannot_be_had_is_one_line_at_once_and_leaves_nothing_behind(tmp_path, capsys, arguments, says):
    if ":" in arguments:
        pytest.importorskip("ray")
    config = ["--config", str(settings_file(tmp_path, LONG))]
    assert main(["search", "--out", str(tmp_path / "run"), *config, *arguments.split()]) == 2
    one_line(capsys, says)
    assert not (tmp_path / "run").exists()


@on_a_cluster
def test_a_cluster_of_this_machine_alone_goes_with_the_search(tmp_path, undisturbed, ray_folder):
    """`local`: the search is that of one process, Ray's are gone when it ends, and they wrote only in Ray's folder.

    All that listen meanwhile do so at 127.0.0.1: no other machine reaches them. They ask for a token that no file holds.
    """
    own, holds = Path(str(ray_folder) + "l"), Holds(tmp_path / "holds")
    own.mkdir()
    environment = os.environ | ray_environment(own, holds) | {"TMPDIR": str(own)}
    del environment["RAY_AUTH_MODE"]
    arguments = ["search", "--out", tmp_path / "run", "--config", settings_file(tmp_path, LONG), "--executor", "ray"]
    command = [sys.executable, "-m", "fixfirst", *map(str, arguments), "--workers", "2", "--quiet", "--no-report", "--json"]
    holds.at(checkpoint(2))  # a moment at which all of Ray's processes are there
    process = subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True)
    wait_for(process, lambda: holds.waiting() == 1)
    processes = processes_naming(own)
    listening = listening_addresses(processes)
    modes = {mode for number in processes for mode in settings_of(number, "RAY_AUTH_MODE", "raylet")}
    holds.at()
    said, complaints = process.communicate()
    assert (process.returncode, complaints, said[:1]) == (0, "", "{")
    assert len(listening) > 3 and {address for address, _ in listening} == {"127.0.0.1"}
    assert modes == {"token"}
    assert [row["workers"] for row in rows(tmp_path / "run" / "runtime.csv")] == ["2"]
    assert outcome(tmp_path / "run") == outcome(undisturbed)
    assert eventually(lambda: not processes_naming(own))
    assert {path.name for path in own.iterdir()} == {"home", "ray"} and not list((own / "home").iterdir())
    shutil.rmtree(own)


def test_one_line_says_who_reaches_a_cluster(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    assert who_reaches("local") == "Ray: a cluster of this machine, listens at 127.0.0.1 only, asks for a token"
    monkeypatch.delenv("RAY_AUTH_MODE")
    assert who_reaches("host:1") == "Ray: the cluster at host:1, asks for no token (RAY_AUTH_MODE)"
