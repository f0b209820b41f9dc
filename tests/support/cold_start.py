"""The first use on a machine, which compiles: done once for all tests, and what the simulator printed is kept.

As a program: compile while the rest of what the tests need is being installed.
"""

import os
import subprocess
import sys
import tempfile

from fixfirst.base.compile import ANNOUNCED, ROOMS, cache_folder, is_compiled

OUTPUT = "cold_start.txt"  # beside the machine code: stdout and stderr of the process that compiled it

SCRIPT = """
import hashlib, numpy as np, fixfirst as ff
envs = ff.make_vec(8, red_agent="meander", green=True)
envs.reset(seed=11)
digest = hashlib.sha256()
for row in np.random.default_rng(1).integers(0, 145, (150, 8)):
    envs.step(row)
    digest.update(envs.get_state().tobytes())
print(digest.hexdigest())
"""

TRAIN = """
import sys, fixfirst as ff
ff.train(workflow="enterprise > op_server > op_host > user > defender", total_episodes=200, out=sys.argv[1], quiet=True)
"""


BELIEVE = """
import numpy as np
from fixfirst.searcher.gp import OrderGP
orders = np.array([[0, 1, 2], [2, 1, 0]])
OrderGP(orders, np.array([1.0, 2.0]), np.array([0.1, 0.1])).predict(orders)
"""
FILLS = {"searcher": BELIEVE}  # and training all others

SEARCH = """
import sys, fixfirst as ff
ff.search(separate=True, total_episodes=1_200, warmup_episodes=400, max_episodes=400, min_episodes=100, initial_orders=1,
          n_envs=20, max_steps=40, red_agent="meander", seed=5, gate_episodes=50, test_episodes=50, min_judged=5,
          compliance_threshold=0.2, workers=1, tensorboard=False, report=False, quiet=True, out=sys.argv[1])
"""
BITS = """
import itertools, sys
import numpy as np
from fixfirst.searcher.ieee import exp, log
from fixfirst.searcher.gp import OrderGP
rng = np.random.default_rng(0)
orders = rng.permutation(list(itertools.permutations(range(5))))
gp = OrderGP(orders[:40], rng.normal(-20, 5, 40), rng.uniform(0.5, 2, 40)).with_pending(orders[40:43])
elementary = np.array([(exp(x), log(-x)) for x in -rng.uniform(0, 700, 1000)])
sys.stdout.write(b"".join(a.tobytes() for a in (gp.weights, *gp.predict(orders), elementary)).hex())
"""
# What every x86-64 CPU has: NumPy, the C library and BLAS are told to do without the rest, too, as they would on such a one.
OLD_CPU = {
    "NUMBA_CPU_NAME": "x86-64",
    "NUMBA_CPU_FEATURES": "",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX",
    "OPENBLAS_CORETYPE": "Prescott",
}


def play(**environment):
    """What a new process that plays says: a digest of all states on stdout; on stderr that it compiles, if it does."""
    return _run(SCRIPT, **environment)


def _run(script, *arguments, **environment):
    given = {name: value for name, value in os.environ.items() if name != ANNOUNCED} | environment
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    run = subprocess.run(command, env=given, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def search(folder, **environment):
    """A small search in a new process, whose machine code is that of the environment's CPU; returns the bits of beliefs."""
    return _run(SEARCH + BITS, folder, **environment)[0]


def compile_once():
    """Fill the cache if it is empty; whatever runs afterwards, here and in other processes, finds it full."""
    if not is_compiled():
        output = "".join(play())
        (cache_folder() / OUTPUT).write_text(output)
    for room in ROOMS[1:]:  # the first holds what others put into theirs
        if not any(cache_folder(room).glob("*.nbc")):
            with tempfile.TemporaryDirectory() as folder:
                _run(FILLS.get(room, TRAIN), folder)


def cold(folder):
    """Return what the process printed that filled the empty cache; if that was long ago, of one that fills `folder`."""
    kept = cache_folder() / OUTPUT
    if kept.exists():
        stdout, _, stderr = kept.read_text().partition("\n")
        return stdout + "\n", stderr
    return play(NUMBA_CACHE_DIR=str(folder))


if __name__ == "__main__":
    compile_once()
