"""A Ray cluster of two real nodes on this machine, for the tests marked `ray`."""

import os
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

import pytest
from held import HOOK, Holds
from patience import PATIENCE_S
from processes import children, eventually, gone

MEMORY = 80 * 2**20  # of a node's object store, bytes


class TwoNodes:
    """A head node without CPUs, where drivers connect, and a second node with two, which tests may lose."""

    def __init__(self, folder, holds):
        from ray.cluster_utils import Cluster

        class Patient(Cluster):
            """Waits for a node as long as it takes on a busy machine; Ray's own gives up after 30 s."""

            def _wait_for_node(self, node, timeout=PATIENCE_S):
                super()._wait_for_node(node, timeout)

        folder.mkdir()
        self.folder, self.holds, self._count = folder, holds, 0
        self._cluster = Patient(initialize_head=True, head_node_args={"include_dashboard": False, **self._node(cpus=0)})
        self.address = self._cluster.address
        self.join()

    def _node(self, cpus=2):
        scratch = self.folder / f"s{self._count}"
        scratch.mkdir()
        self._count += 1
        return {"num_cpus": cpus, "object_store_memory": MEMORY, "env_vars": {"TMPDIR": str(scratch)}}

    def join(self):
        """Start another second node."""
        self.second = self._cluster.add_node(**self._node())

    def processes(self):
        """Of the second node; the node itself comes first."""
        raylet = self.second.all_processes["raylet"][0].process.pid
        return [raylet, *children(raylet)]

    def shutdown(self):
        self._cluster.shutdown()


def ray_environment(folder, holds):
    """Ray keeps its files, and a token, below the folder; its workers find the modules of the tests, and wait at its points.

    They are as important as everybody else: nicer ones, Ray's default, would get next to nothing of a busy machine.
    """
    (folder / "home").mkdir(exist_ok=True)
    compiled = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {
        "HOME": str(folder / "home"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", compiled),
        **holds.environment,
        "PYTHONPATH": os.pathsep.join([str(HOOK), *filter(None, sys.path)]),
        "RAY_AUTH_MODE": "disabled",
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_NUM_REDIS_GET_RETRIES": "300",  # one a second: a busy machine takes longer than Ray's 20 to start a node
        "RAY_health_check_initial_delay_ms": "500",
        "RAY_health_check_period_ms": "500",
    }


@contextmanager
def surroundings(folder, holds):
    """The environment variables above, for a while: also tests that have nothing to do with Ray run in this process.

    A node takes SIGTERM for itself when it starts; afterwards it is again as it was.
    """
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ray_environment(folder, holds).items():
            patch.setenv(name, value)
        yield
    signal.signal(signal.SIGTERM, before)


def processes_naming(text):
    """Processes whose command line or environment mentions it: all that Ray starts names its folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            said = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if str(text).encode() in said and int(path.name) != os.getpid() and not gone(int(path.name)):
            found.append(int(path.name))
    return found


def settings_of(process, variable, program):
    """The value of a variable of a process that runs a program; nothing if it runs another, or is gone."""
    with suppress(OSError):
        said = Path(f"/proc/{process}/environ").read_text().split("\0")
        if program in Path(f"/proc/{process}/cmdline").read_text().split("\0")[0]:
            return [one.partition("=")[2] for one in said if one.startswith(f"{variable}=")]
    return []


def listening_addresses(processes):
    """Address and port of every TCP socket at which these processes listen."""
    sockets = set()
    for path in (Path("/proc", str(process), "fd") for process in processes):
        with suppress(OSError):
            sockets |= {os.readlink(descriptor) for descriptor in path.iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:  # listening
                address, port = local.split(":")
                words = [bytes.fromhex(address[place : place + 8])[::-1] for place in range(0, len(address), 8)]
                plain = ip_address(b"".join(words))
                found.add((str(getattr(plain, "ipv4_mapped", None) or plain), int(port, 16)))
    return found


@pytest.fixture(scope="session")
def ray_folder():
    """A folder for Ray's files, with a short name: its sockets are in there. Nothing of Ray may outlive it."""
    if not find_spec("ray"):  # imported later, with the variables below
        pytest.skip("needs pip install fixfirst[ray]")
    folder = Path(tempfile.mkdtemp(prefix="ff", dir="/tmp"))
    yield folder
    assert eventually(lambda: not processes_naming(folder)), processes_naming(folder)
    assert not list((folder / "home").rglob("*")), "Ray left something in the home folder"
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def two_nodes(ray_folder):
    """One cluster for all tests: it takes seconds to start.

    Ray gives a node 30 s, in which a busy machine may not start it: then it is tried again, with nothing of the first left.
    """
    holds = Holds(ray_folder / "holds")
    with surroundings(ray_folder, holds):
        for attempt in range(5):
            try:
                nodes = TwoNodes(ray_folder / str(attempt), holds)
                break
            except Exception as e:
                failure = e
                for process in processes_naming(ray_folder):
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        else:
            raise failure
    yield nodes
    nodes.shutdown()


@pytest.fixture
def cluster(two_nodes):
    """The cluster, with empty scratch folders: a killed trial leaves its own behind."""
    for scratch in two_nodes.folder.glob("s*/fixfirst-*"):
        shutil.rmtree(scratch)
    with surroundings(two_nodes.folder.parent, two_nodes.holds):
        yield two_nodes
    two_nodes.holds.at()
