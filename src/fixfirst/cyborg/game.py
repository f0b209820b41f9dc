"""One environment of CybORG: reset, step, and the true state read from the simulator's own objects.

CybORG draws from process-wide generators, Python's and possibly NumPy's. A `Game` puts its own in their place for each of
its calls, so that what happens in one game does not depend on others in the same process. It does not put the process's
own back: games live in processes that do nothing else.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random.mtrand import set_bit_generator

from fixfirst.cage2.state import RedAgent
from fixfirst.cyborg.checkout import Cyborg
from fixfirst.errors import CyborgError
from fixfirst.network import HOST_ID

PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
USER_ACCESS, ROOT_ACCESS = 1, 2


class Game:
    """One CybORG environment of CAGE Challenge 2."""

    def __init__(self, cyborg: Cyborg, *, green: bool = False):
        agents = {"Red": cyborg.red_agents[RedAgent.SLEEP]} | ({"Green": cyborg.green_agent} if green else {})
        simulator = cyborg.simulator(cyborg.scenario, "sim", agents=agents)
        self.env = cyborg.wrapper(env=simulator, agent_name="Blue")
        self.controller = simulator.environment_controller
        self._red_agents = cyborg.red_agents
        self._python_generator: Any = random.getstate()
        self._numpy_generator = np.random.MT19937()

    @property
    def state(self) -> Any:
        """CybORG's true state, rebuilt at every reset."""
        return self.controller.state

    def reset(self, red_agent: RedAgent, entropy: Sequence[int]) -> None:
        """A new episode against `red_agent`; all its chances follow from `entropy`. Blue's first view is all zeros."""
        agent = self._red_agents[red_agent]
        if agent is None:
            raise CyborgError(f"CybORG has no red agent {red_agent.name.lower()!r}; play it on the simulator")
        for_python, for_numpy = np.random.SeedSequence(list(entropy)).spawn(2)
        random.seed(for_python.generate_state(8).tobytes())
        self._numpy_generator = np.random.MT19937(for_numpy)
        set_bit_generator(self._numpy_generator)
        self.controller.agent_interfaces["Red"].agent = agent()
        self.env.reset()
        self._python_generator = random.getstate()

    def step(self, action: int) -> tuple[np.ndarray, int]:
        """One turn. Returns what blue sees [52] and the reward in tenths."""
        random.setstate(self._python_generator)
        set_bit_generator(self._numpy_generator)
        observation, reward, *_ = self.env.step(int(action))  # 4 values in gym's interface, 5 in gymnasium's
        self._python_generator = random.getstate()
        return observation, round(10 * reward)

    def read_access(self, access: np.ndarray) -> None:
        """Red's true access per host into `access` [13]: 0 none, 1 user, 2 root."""
        access[:] = 0
        for session in self.state.sessions["Red"].values():
            level = ROOT_ACCESS if session.username in PRIVILEGED_ACCOUNTS else USER_ACCESS
            host = HOST_ID[session.host]
            access[host] = max(access[host], level)
