"""One environment of CybORG: reset, step, and the true state read from the simulator's own objects.

CybORG draws from process-wide generators, Python's and possibly NumPy's. A `CyborgGame` puts its own in their place for
each of its calls, so that what happens in one game does not depend on others in the same process. It does not put the
process's own back: games live in processes that do nothing else.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random.mtrand import set_bit_generator

from fixfirst.base import errors
from fixfirst.cyborg.checkout import Cyborg
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.state import NO_TARGET, OTService, RedAgent, RedVerb, Success

PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
USER_ACCESS, ROOT_ACCESS = 1, 2
_VERBS = {
    "Sleep": RedVerb.SLEEP,
    "DiscoverRemoteSystems": RedVerb.DISCOVER,
    "DiscoverNetworkServices": RedVerb.SCAN,
    "ExploitRemoteService": RedVerb.EXPLOIT,
    "PrivilegeEscalate": RedVerb.ESCALATE,
    "Impact": RedVerb.IMPACT,
}


class RedAction(NamedTuple):
    """What red did in the last step, in the numbers of our own state (`state.py`)."""

    verb: RedVerb
    target: int
    success: Success
    exploit: int
    answered: bool  # red learnt something: a scan that reached its host


class CyborgGame:
    """One CybORG environment."""

    def __init__(self, cyborg: Cyborg, *, green: bool = False, scenario: Scenario = CAGE2, file: str | Path | None = None):
        """file: of the scenario; unless given, CybORG's own Scenario2."""
        self.scenario = scenario
        agents = {"Red": cyborg.red_agents[RedAgent.SLEEP]} | ({"Green": cyborg.green_agent} if green else {})
        simulator = cyborg.simulator(str(file or cyborg.scenario), "sim", agents=agents)
        self.env = cyborg.wrapper(env=simulator, agent_name="Blue")
        self.controller = simulator.environment_controller
        self._red_agents = cyborg.red_agents
        self.red: Any = None  # the agent of this episode
        self._python_generator: Any = random.getstate()
        self._numpy_generator = np.random.MT19937()

    @property
    def state(self) -> Any:
        """CybORG's true state, rebuilt at every reset."""
        return self.controller.state

    def reset(self, red_agent: RedAgent | Callable[[], Any], entropy: Sequence[int]) -> None:
        """A new episode against `red_agent`, one of CybORG's or what makes one; all its chances follow from `entropy`.

        Blue's first view is all zeros.
        """
        agent = self._red_agents[red_agent] if isinstance(red_agent, RedAgent) else red_agent
        if agent is None:
            name = red_agent.name.lower() if isinstance(red_agent, RedAgent) else str(red_agent)
            raise errors.CyborgError(f"CybORG has no red agent {name!r}; play it on the simulator")
        for_python, for_numpy = np.random.SeedSequence(list(entropy)).spawn(2)
        random.seed(for_python.generate_state(8).tobytes())
        self._numpy_generator = np.random.MT19937(for_numpy)
        set_bit_generator(self._numpy_generator)
        self.red = self.controller.agent_interfaces["Red"].agent = agent()
        self.env.reset()
        self._python_generator = random.getstate()

    def step(self, action: int) -> tuple[np.ndarray, int]:
        """One turn. Returns what blue sees and the reward in tenths."""
        random.setstate(self._python_generator)
        set_bit_generator(self._numpy_generator)
        observation, reward, *_ = self.env.step(int(action))  # 4 values in gym's interface, 5 in gymnasium's
        self._python_generator = random.getstate()
        return observation, round(10 * reward)

    def read_access(self, access: np.ndarray) -> None:
        """Red's true access per host into `access` [H]: 0 none, 1 user, 2 root."""
        access[:] = 0
        for session in self.state.sessions["Red"].values():
            level = ROOT_ACCESS if session.username in PRIVILEGED_ACCOUNTS else USER_ACCESS
            host = self.scenario.host_ids[session.host]
            access[host] = max(access[host], level)

    def red_action(self) -> RedAction:
        """What red did in the last step and how it was told that it went."""
        action, told = self.controller.action["Red"], self.controller.observation["Red"].data
        name = type(action).__name__
        if name not in _VERBS:
            raise errors.CyborgError(f"red did {name}, which our model does not have: {action}")
        target, exploit = NO_TARGET, -1
        if name == "DiscoverRemoteSystems":
            target = self.scenario.subnet_names.index(self.state.subnets[action.subnet].name)
        elif name in ("DiscoverNetworkServices", "ExploitRemoteService"):
            target = self.host_id(action.ip_address)
        elif name != "Sleep":
            target = self.host_id(action.hostname)
        if (weapon := getattr(action, "sub_action", None)) is not None:  # never set where red knew no port
            exploit = self.scenario.exploit_names.index(type(weapon).__name__)
        return RedAction(_VERBS[name], target, Success[told["success"].name], exploit, len(told) > 1)

    def blue_success(self) -> Success:
        """How blue was told that its last action went."""
        return Success[self.controller.observation["Blue"].data["success"].name]

    def ot_service(self) -> OTService:
        """The service on Op_Server0."""
        if self.scenario.target is None or not self.scenario.hosts[self.scenario.target_id].runs_ot:
            return OTService.RUNNING
        server = self.state.hosts[self.scenario.target]
        if not any(process.name == "OTService" for process in server.processes):
            return OTService.STOPPED
        # Restore loses the service's process id: that is why Impact cannot stop it any more.
        return OTService.RESTORED if server.services["OTService"]["process"] is None else OTService.RUNNING

    def decoy_ports(self) -> list[int]:
        """Per host the set of ports that decoys opened, as a bit mask."""
        found = ([p["local_port"] for d in self._decoys(host) for p in d.open_ports] for host in self.scenario.host_names)
        return [self.scenario.ports_mask(*ports) for ports in found]

    def _decoys(self, host: str) -> Iterator[Any]:
        return (process for process in self.state.hosts[host].processes if process.decoy_type.name != "NONE")

    def host_id(self, host_or_address: Any) -> int:
        """Our number of a host that CybORG gives by name or address."""
        return self.scenario.host_ids[self.state.ip_addresses.get(host_or_address, host_or_address)]
