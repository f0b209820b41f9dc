"""Fixtures that several test modules share, and how tests are shared out among processes (`-n`)."""

import os
import signal
from collections import Counter
from pathlib import Path

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before anything starts a pool: on a busy machine spinning threads are 10x slower

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background; tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup starts it; tests close terminals
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import pytest  # noqa: E402
from browser import chromium, visit  # noqa: E402
from cold_start import compile_once  # noqa: E402
from golden import answered, searched, trained, undisturbed  # noqa: E402
from ray_cluster import cluster, ray_folder, two_nodes  # noqa: E402

# Finished runs that tests only read (support/golden.py): `searched`, `answered`, `trained`. Copy one to change it:
# shutil.copytree(searched, tmp_path / "run"). Their settings are those of support/searches.py.
__all__ = ["answered", "chromium", "cluster", "ray_folder", "searched", "trained", "two_nodes", "undisturbed", "visit"]


def pytest_configure(config):
    """Where several processes test, an empty cache is filled before them; one alone compiles what it comes to need."""
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None):
        compile_once()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One process more than there are cores, for some wait for others; four at most: the longest file takes its time."""
    return min((os.cpu_count() or 1) + 1, 4)


# What takes longest comes first, so that no process is left alone with it at the end.
LONGEST = (
    "ray", "docs", "same_bits", "search", "stages", "torch", "soak", "compile", "training", "replay_page", "backends",
    "shared", "terminal", "report", "own_agents", "report_page", "report_files", "examples",
    "ranking", "study", "startup", "pricing",
)  # fmt: skip
TORCH = ("export", "gp", "ppo", "sb3")  # files that import PyTorch, which takes ten seconds in each process


def share_of(nodeid):
    """What stays in one process: a file, for its fixtures; all that needs PyTorch; all on Ray, for there is one cluster."""
    path, _, name = nodeid.partition("::")
    file = Path(path).stem.removeprefix("test_")
    return "ray" if file == "ray" or "[ray" in name else "torch" if file in TORCH else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Shares(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return share_of(nodeid)

    config.option.loadscopereorder = False  # by number of tests
    return Shares(config, log)


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        rank = {share: place for place, share in enumerate(LONGEST)}
        items.sort(key=lambda item: rank.get(share_of(item.nodeid), len(rank)))


def pytest_terminal_summary(terminalreporter):
    """Say how many tests were skipped, and why: what nobody sees, nobody installs."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
