"""The same search and beliefs on other CPUs: compiled for what they have, and with the libraries' code for them."""

import hashlib
import json
from pathlib import Path

import pytest
from cold_start import OLD_CPU, search

# What machine code is made for, and which features this machine needs so that its own is another. The second, with FMA, is
# in effect what a machine without AVX-512 makes in any case.
TARGETS = {
    "x86-64": (OLD_CPU, set()),
    "x86-64-v3": ({"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}, {"avx512f", "avx2", "fma", "bmi2", "movbe"}),
}


def features():
    try:
        return set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()) - {":"}
    except (OSError, IndexError):
        return set()


def told_by(folder, **environment):
    """Everything a search wrote that is not a time: file -> hash, or its rows without times and the checksums over them.

    And the bits of fits and beliefs of a Gaussian process, and of our exp and log.
    """
    found = {"beliefs": search(folder, **environment)}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".csv" and name != "runtime.csv":
            lines = [line.split(",") for line in path.read_text().splitlines()]
            timed = ("seconds", "time", "checksum")
            kept = [i for i, column in enumerate(lines[0]) if not any(word in column.lower() for word in timed)]
            found[name] = [[line[i] for i in kept] for line in lines]
        elif path.suffix == ".safetensors":
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Where a search on this machine is put, and what it told."""
    folder = tmp_path_factory.mktemp("here") / "run"
    return folder, told_by(folder)


@pytest.mark.parametrize("target", TARGETS)
def test_ledger_logs_weights_and_beliefs_are_the_same_on_other_cpus(run, target, tmp_path):
    _, here = run
    environment, needs = TARGETS[target]
    if not needs <= features():
        pytest.skip(f"this CPU's own code is in effect that for {target}")
    assert told_by(tmp_path / "run", **environment) == here
    assert len([name for name in here if name.endswith("policy.safetensors")]) >= 2 and len(here["beliefs"]) > 30_000


def test_the_manifest_says_which_cpu_it_was(run):
    machine = json.loads((run[0] / "manifest.json").read_text())["machine"]
    assert set(machine["features"]) == features() and isinstance(machine["model"], str)
