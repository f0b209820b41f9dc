"""The first use on a machine, which compiles: done once for all tests, and what the simulator's said is kept."""

import os
import subprocess
import sys
import tempfile

from fixfirst.base.compile import ROOMS, TOLD as ANNOUNCED, cache_folder, is_compiled

TOLD = "TESTS_COLD_START"  # the variable in which test processes find it: stdout and stderr, one after the other

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


def play(**environment):
    """What a new process that plays says: a digest of all states on stdout; on stderr that it compiles, if it does."""
    return _run(SCRIPT, **environment)


def _run(script, *arguments, **environment):
    given = {name: value for name, value in os.environ.items() if name != ANNOUNCED} | environment
    run = subprocess.run([sys.executable, "-c", script, *arguments], env=given, capture_output=True, text=True, check=True)
    return run.stdout, run.stderr


def compile_once():
    """Fill the cache if it is empty; whatever runs afterwards, here and in other processes, finds it full."""
    if not is_compiled():
        os.environ[TOLD] = "".join(play())
    for room in ROOMS:
        if not any(cache_folder(room).glob("*.nbc")):
            with tempfile.TemporaryDirectory() as folder:
                _run(FILLS.get(room, TRAIN), folder)


def cold(folder):
    """What the process said that filled the empty cache; where it was full already, one that fills another, in `folder`."""
    if TOLD in os.environ:
        said, _, complained = os.environ[TOLD].partition("\n")
        return said + "\n", complained
    return play(NUMBA_CACHE_DIR=str(folder))
