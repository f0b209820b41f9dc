"""What is run, and what must come of it, whatever happens on the way: searches, trainings, attackers, leagues, exploits."""

import csv
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tomli_w
from forks import Trouble, in_process, run

import fixfirst as ff

SMALL = {"max_steps": 20, "n_envs": 4, "checkpoint_every": 2}
GATED = SMALL | {"gate_episodes": 20, "compliance_threshold": 0.2, "min_judged": 5, "min_episodes": 0}
SEPARATE = GATED | {
    "separate": True,
    "keep": "penalty",
    "warmup_episodes": 16,
    "max_episodes": 16,
    "total_episodes": 80,
    "test_episodes": 20,
    "tensorboard": False,
}
SHARED = SMALL | {
    "total_episodes": 120,
    "replicates": 2,
    "trainings": 3,
    "rounds": 3,
    "round_orders": 2,
    "initial_orders": 2,
    "base_episodes": 12,
    "selection_episodes": 4,
    "measure_episodes": 8,
    "tensorboard": False,
}
TRAIN = GATED | {"total_episodes": 80, "workflow": "critical_first"}
COURSE = {
    "max_steps": 8,  # thousands of episodes are played to choose
    "n_envs": 4,
    "checkpoint_every": 2,
    "memory": "full",
    "action_set": "macros",
    "growth": [[8, 2]],
    "total_episodes": 116,
    "entrants": 3,
    "start_episodes": 8,
    "survivors": 2,
    "opening": "find",
    "seek_episodes": 16,
    "halving_rounds": 2,
    "finalists": 2,
    "final_episodes": 8,
    "finalists_kept": 2,
    "opening_episodes": 8,
    "restore_cost_warmup_episodes": 20,
}
LEAGUE = {
    "updates": 28,  # it saves itself after 25
    "life": 14,
    "live": 1,
    "frozen": 1,
    "responses": 1,
    "response_episodes": 50,
    "envs": 4,
    "script_envs": 8,
    "matrix_episodes": 4,
}
QUIET = ["--quiet", "--no-report"]
NO_SETTINGS: dict[str, object] = {}
EXPLOIT = ["--exploit", "--exploit-starts", "scratch,noise", "--exploit-episodes", "200", "--episodes", "2", "--steps", "10"]
ATTACKED = ["--total-episodes", "100", "--n-envs", "4", "--max-steps", "10", "--quiet", "--no-tensorboard"]
RED = ["--side", "red", "--against", "react-restore", "--max-steps", "10", "--total-episodes", "600"]
ONE, TWO, SEEDS = ["--workers", "1"], ["--workers", "2"], ["--seeds", "2"]
WAYS: dict[str, tuple[str, dict[str, object], list[str]]] = {
    "separate": ("search", SEPARATE, ONE),
    "shared": ("search", SHARED, ONE),
    "train": ("train", TRAIN, []),
    "course": ("train", COURSE, ONE),
    "study": ("search", SHARED | {"rounds": 1, "total_episodes": 48}, [*ONE, *SEEDS]),
    "tiny": ("search", SHARED | {"scenario": "tiny"}, ONE),
    "red": ("train", NO_SETTINGS, RED),
    "league": ("train", LEAGUE, ["--league"]),
    "exploit": ("evaluate", NO_SETTINGS, EXPLOIT),
    "separate-workers": ("search", SEPARATE, TWO),
    "shared-workers": ("search", SHARED, TWO),
    "course-workers": ("train", COURSE, TWO),
    "separate-ray": ("search", SEPARATE, []),
    "shared-ray": ("search", SHARED, []),
}
ALONE = tuple(name for name in WAYS if "-" not in name)  # in one process
AGAIN = ("red", "exploit")  # the same command goes on with it
LARGEST = 2**24  # bytes of a file; what is larger was made so by us
NO_OTHER_FILES = {"manifest.json", "study.json", "runtime.csv", "end.json", ".lock"}  # they say when and where
CLOCK = {"seconds", "Collection_Time", "Update_Time", "checksum", "logs", "document_sha256"}
CLOCK |= {"against"}  # in which folder the defender lies that an attacker was trained against


class Job:
    """A command that makes a run, and what is in its folder if nothing happens to it."""

    def __init__(self, name: str, folder: Path, *arguments: str):
        self.command, settings, own = WAYS[name]
        self.name, self.folder = name, folder / name
        self.resuming = [*arguments] if name == "league" else [*own, *arguments]  # it knows how it was begun
        if SEEDS[0] in own:
            self.resuming = [*own[: own.index(SEEDS[0])], *arguments]
        self.arguments = [*own, *arguments]
        self.folder.mkdir(parents=True)
        self.settings = self.folder / "settings.toml"
        self.settings.write_text(tomli_w.dumps(settings))
        self.read = ["--config", str(self.settings)] if settings else []
        self.reference = self.folder / "reference"
        if name == "exploit" and (wrong := in_process(["train", *ATTACKED, "--out", str(self.folder / "attacked")], (0,))):
            raise RuntimeError(f"{name}: {wrong}")
        if name in ALONE and (wrong := in_process(self.start(self.folder / "first"), (0,))):  # forks find all of it loaded
            raise RuntimeError(f"{name}: {wrong}")
        began = time.monotonic()
        code, text = run(self.start(self.reference), self.folder / "said")
        if code != 0:
            raise RuntimeError(f"{name}: exit code {code}: {text}")
        self.seconds = time.monotonic() - began
        self.expected = contents(self.reference)

    def start(self, out: Path, *more: str) -> list[str]:
        if self.name == "exploit":
            if not out.exists():
                shutil.copytree(self.folder / "attacked", out)
            return [self.command, str(out), "--quiet", *self.arguments, *more]
        tensorboard = self.read and self.name != "league"
        quiet = QUIET if self.command == "search" else ["--quiet", *(["--no-tensorboard"] if tensorboard else [])]
        return [self.command, *self.read, "--out", str(out), *quiet, *self.arguments, *more]

    def resume(self, out: Path) -> list[str]:
        return self.start(out) if self.name in AGAIN else ["resume", str(out), *QUIET, *self.resuming]

    def go_on(self, out: Path) -> list[str]:
        """Resume what can be resumed, else begin again."""
        return self.resume(out) if is_begun(out) else self.start(out)

    def finish(self, out: Path, said: Path) -> Trouble:
        """Go on to the end, and compare. What an exploit left is whole, or not there."""
        if self.name == "exploit" and (out / "exploit" / "red.json").exists():
            try:
                ff.load_red(out / "exploit")
            except ff.FixfirstError as e:
                return f"exploit: {e}"
        code, text = run(self.go_on(out), said)
        if code == 2 and "is finished" in text:
            code = 0
        if code != 0:
            return f"{self.name}: cannot be finished, exit code {code}: {text[-1000:]}"
        wrong = difference(self.expected, contents(out))
        return wrong and f"{self.name}: {wrong}"


def is_begun(out: Path) -> bool:
    """Has a run written down what it is?"""
    return any((out / name).exists() for name in ("manifest.json", "study.json", "checkpoint-last.json"))


@contextmanager
def made_jobs(folder: Path, names: tuple[str, ...]) -> Iterator[list[Job]]:
    """Each run once; those on Ray share a cluster of this machine that lives as long."""
    plain = [Job(name, folder) for name in names if not name.endswith("ray")]
    on_ray = [name for name in names if name.endswith("ray")]
    if not on_ray:
        yield plain
        return
    with ray_cluster() as address:
        where = ("--executor", "ray", "--ray-address", address)
        yield plain + [Job(name, folder, *where) for name in on_ray]


CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 2, "object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=node)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextmanager
def ray_cluster() -> Iterator[str]:
    """Its address. Ray keeps its files below a folder of its own, with a short name: sockets are in there."""
    folder = Path(tempfile.mkdtemp(prefix="ff", dir="/tmp"))
    (folder / "home").mkdir()
    compiled = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    os.environ |= {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", compiled), "HOME": str(folder / "home")}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    os.environ |= {"RAY_TMPDIR": str(folder), "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "RAY_worker_niceness": "0"}
    process = subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def contents(folder: Path) -> dict[str, object]:
    """Every file of a run by name, with what must not depend on when and how often it was worked on."""
    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def content(path: Path) -> object:
    if path.name in NO_OTHER_FILES:
        return None
    if path.stat().st_size > LARGEST:
        return path.stat().st_size
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            return [{k: v for k, v in row.items() if k not in CLOCK} for row in csv.DictReader(file)]
    if path.name in ("result.json", "red.json") or path.match("checkpoint-*.json"):  # how long it took stands there, too
        return _without_times(path.read_text(errors="replace"))
    return path.read_bytes()


def _without_times(text: str) -> object:
    try:
        return json.loads(text, object_hook=lambda table: {k: v for k, v in table.items() if k not in CLOCK})
    except ValueError:
        return text


def difference(expected: dict[str, object], found: dict[str, object]) -> Trouble:
    names = sorted(expected.keys() ^ found.keys())
    if names:
        return f"other files: {', '.join(names[:5])}"
    odd = [name for name in expected if expected[name] != found[name]]
    return f"other contents: {', '.join(odd[:5])}" if odd else None
