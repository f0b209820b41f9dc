"""Worlds that go wrong in a worker process, in the ways worlds do. A fault strikes in the third step."""

import os
import signal
import time

from fixfirst.game.simulator import World

FAULT_STEP = 3


class FaultyWorld(World):
    """Behaves until `fault` strikes the worker that has environment 0."""

    def __init__(self, game, num_envs, *, fault, **options):
        super().__init__(game, num_envs, **options)
        self._fault, self._steps = fault, 0
        if fault == "building":
            raise OSError("no room for another environment")

    def _step(self, actions):
        self._steps += 1
        if self._steps == FAULT_STEP and 0 in self.env_ids:
            strike(self._fault)
        return super()._step(actions)


def strike(fault):
    if fault == "exception":
        raise ZeroDivisionError("a bug in the simulator")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "exit":
        os._exit(7)
    if fault in ("hang", "busy"):
        print("struck", flush=True)  # whoever started this process reads it
    if fault == "hang":
        time.sleep(3600)
    if fault == "busy":
        while True:
            pass
