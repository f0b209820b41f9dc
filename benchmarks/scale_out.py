"""What a search costs beside training: the executors' overhead per trial, and the driver's own work as a search grows.

    python benchmarks/scale_out.py            # everything; three minutes on two cores
    python benchmarks/scale_out.py --part executors | driver

Executors: 60 jobs that train nothing but carry what a trial carries (a parent policy there, a policy and a log back).
Driver: choosing an order (GP), ranking, and recording a trial, after n trials of made-up returns; with the five unit types,
and with one type per host (13! orders). Prints Markdown. Numbers of one run compare; those of different machines do not.
"""

import argparse
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from fixfirst.adapters.ray import RayScheduler
from fixfirst.base.jobs import InlineScheduler, ProcessScheduler
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.order import Workflow
from fixfirst.runs.layout import trial_folder
from fixfirst.runs.rows import Status, Trial
from fixfirst.searcher.published import SearchLogs
from fixfirst.searcher.study import begin_search
from fixfirst.settings.search import search_config

JOBS = 60
POLICY_BYTES, LOG_BYTES = 112_000, 40_000  # of a policy, and of 200 updates' log
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
PER_HOST = {host.name.lower(): [host.name] for host in CAGE2.hosts}


def carry(parent, tell, interrupt):
    """A trial without the training."""
    tell(("update", (50, -14.0, 0.99)))
    return {"policy.safetensors": parent, "training_log.csv": b"x" * LOG_BYTES}


def seconds_per_job(executor):
    """Once everything is started: a first round warms it up."""
    for jobs in (2 * executor.workers, JOBS):
        start = time.perf_counter()
        for key in range(jobs):
            executor.submit(key, carry, os.urandom(POLICY_BYTES))
        while executor.wait(lambda key, message: None) is not None:
            pass
    executor.close()
    return (time.perf_counter() - start) / JOBS


def measure_executors():
    from ray.cluster_utils import Cluster

    print("| executor | overhead per trial, ms |\n|---|---|")
    for name, make in (
        ("inline", InlineScheduler),
        ("process, 1 worker", lambda: ProcessScheduler(1)),
        ("process, 2 workers", lambda: ProcessScheduler(2)),
        ("ray, this machine, 1 worker", lambda: RayScheduler("local", workers=1)),
        ("ray, this machine, 2 workers", lambda: RayScheduler("local", workers=2)),
    ):
        print(f"| {name} | {1000 * seconds_per_job(make()):.1f} |", flush=True)
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **NODE})
    cluster.add_node(**NODE)
    try:
        print(f"| ray, 2 nodes of 1 CPU | {1000 * seconds_per_job(RayScheduler(cluster.address)):.1f} |", flush=True)
    finally:
        cluster.shutdown()


def made_up_search(folder, units, trials, rng):
    """A search that was told so many different orders."""
    config = search_config(units=units, separate=True, tensorboard=False, total_episodes=10**9, warmup_episodes=0)
    search = begin_search(config, folder)
    for number in range(trials):
        search.tell(made_up_trial(search, number, rng))
    return search


def made_up_trial(search, number, rng):
    order = Workflow(tuple(rng.permutation(search.scheme.size).tolist()), search.scheme)
    facts = {"id": number, "workflow": str(order), "status": Status.ACCEPTED, "episodes": 2000}
    return Trial(**facts, return_mean=float(rng.normal(-16, 2)), return_se=0.2)


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure_driver():
    print("| unit types | trials | choose the 1st of a round, s | each further one, s | rank, s | record, s |")
    print("|---|---|---|---|---|---|")
    for name, units in (("5", None), ("13", PER_HOST)):
        for trials in (100, 300, 1000):
            with tempfile.TemporaryDirectory() as folder:
                rng = np.random.default_rng(0)
                search = made_up_search(Path(folder) / "run", units, trials, rng)
                search.strategy.best()  # imports, and the first use of BLAS
                search.strategy._told_gp = None
                first = timed(lambda search=search: search.strategy.ask(1))
                further = timed(lambda search=search: search.strategy.ask(4)) / 4
                ranking = timed(search.standings)
                trial_folder(search.folder, trials).mkdir(parents=True)
                trial = made_up_trial(search, trials, rng)
                with ExitStack() as files:
                    logs = SearchLogs(search.folder, search.config, len(search.trials), search.used, files)
                    record = timed(lambda logs=logs, trial=trial: logs.record(trial, 0))
            print(f"| {name} | {trials:,} | {first:.2f} | {further:.2f} | {ranking:.2f} | {record:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("executors", "driver"))
    part = parser.parse_args().part
    if part != "driver":
        measure_executors()
    if part != "executors":
        measure_driver()


if __name__ == "__main__":
    main()
