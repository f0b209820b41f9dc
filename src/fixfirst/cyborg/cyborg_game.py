"""One environment of CybORG, in the numbers of our own state (`game/state.py`).

CybORG draws from process-wide generators, Python's and possibly NumPy's. A `CyborgGame` puts its own in their place for
each of its calls, so that what happens in one game does not depend on others in the same process. It does not put the
process's own back: games live in processes that do nothing else.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random.mtrand import set_bit_generator

from fixfirst.base import errors
from fixfirst.cyborg.checkout import Cyborg, check_images, load_cyborg
from fixfirst.game import state
from fixfirst.game.scenario import CAGE2, Scenario

_PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
_USER_ACCESS, _ROOT_ACCESS = 1, 2
_MALWARE_DENSITY = 0.9  # of files that Analyse takes for malware
_VERBS = {
    "Sleep": state.RedVerb.SLEEP,
    "DiscoverRemoteSystems": state.RedVerb.DISCOVER,
    "DiscoverNetworkServices": state.RedVerb.SCAN,
    "ExploitRemoteService": state.RedVerb.EXPLOIT,
    "PrivilegeEscalate": state.RedVerb.ESCALATE,
    "Impact": state.RedVerb.IMPACT,
}


class RedAction(NamedTuple):
    """What red did in the last step, in the numbers of our own state (`state.py`)."""

    verb: state.RedVerb
    target: int
    success: state.Success
    exploit: int
    answered: bool  # red learnt something: a scan that reached its host


class CyborgGame:
    """One CybORG environment."""

    def __init__(self, cyborg: Cyborg, *, green: bool = False, scenario: Scenario = CAGE2, file: str | Path | None = None):
        """file: of the scenario; unless given, CybORG's own Scenario2."""
        self.scenario = scenario
        agents = {"Red": cyborg.red_agents[state.RedAgent.SLEEP]} | ({"Green": cyborg.green_agent} if green else {})
        simulator = cyborg.simulator(str(file or cyborg.scenario), "sim", agents=agents)
        self.env = cyborg.wrapper(env=simulator, agent_name="Blue")
        self.controller = simulator.environment_controller
        self._red_agents = cyborg.red_agents
        self.red: Any = None  # the agent of this episode
        self._python_generator: Any = random.getstate()
        self._numpy_generator = np.random.MT19937()

    @property
    def truth(self) -> Any:
        """CybORG's true state, rebuilt at every reset."""
        return self.controller.state

    def reset(self, red_agent: state.RedAgent | Callable[[], Any], entropy: Sequence[int]) -> None:
        """A new episode against `red_agent`, one of CybORG's or what makes one; all its chances follow from `entropy`.

        Blue's first view is all zeros.
        """
        agent = red_agent
        if isinstance(agent, state.RedAgent):
            if agent not in self._red_agents:
                raise errors.CyborgError(f"CybORG has no red agent {agent.name.lower()!r}; play it on the simulator")
            agent = self._red_agents[agent]
        for_python, for_numpy = np.random.SeedSequence(list(entropy)).spawn(2)
        random.seed(for_python.generate_state(8).tobytes())
        self._numpy_generator = np.random.MT19937(for_numpy)
        set_bit_generator(self._numpy_generator)
        self.red = self.controller.agent_interfaces["Red"].agent = agent()
        self.env.reset()
        self._python_generator = random.getstate()

    def step(self, action: int) -> tuple[np.ndarray, int]:
        """Play one turn. Returns what blue sees and the reward in tenths."""
        random.setstate(self._python_generator)
        set_bit_generator(self._numpy_generator)
        observation, reward, *_ = self.env.step(int(action))  # 4 values in gym's interface, 5 in gymnasium's
        self._python_generator = random.getstate()
        return observation, round(10 * reward)

    def red_sessions(self) -> Iterator[tuple[int, bool, bool]]:
        """Yield red's sessions: the host's number, is it privileged, and has blue noted its process as suspicious?"""
        noted = self.noted_pids
        for session in self.truth.sessions["Red"].values():
            privileged, suspicious = session.username in _PRIVILEGED_ACCOUNTS, session.pid in noted.get(session.host, ())
            yield self.scenario.host_ids[session.host], privileged, suspicious

    def read_access(self, access: np.ndarray) -> None:
        """Write red's true access per host into `access` [H]: 0 none, 1 user, 2 root."""
        access[:] = 0
        for host, privileged, _ in self.red_sessions():
            access[host] = max(access[host], _ROOT_ACCESS if privileged else _USER_ACCESS)

    @property
    def noted_pids(self) -> Mapping[str, list[int]]:
        """Process ids that blue takes for suspicious, per host name; filled while the episode goes on."""
        noted: Mapping[str, list[int]] = self.truth.sessions["Blue"][0].sus_pids
        return noted

    def has_malware(self) -> list[bool]:
        """Return per host whether Analyse would find a file of red."""
        files = (self.truth.hosts[host].files for host in self.scenario.host_names)
        return [any(file.density >= _MALWARE_DENSITY for file in of_host) for of_host in files]

    def red_action(self) -> RedAction:
        """Return what red did in the last step and how it was told that it went."""
        action, told = self.controller.action["Red"], self.controller.observation["Red"].data
        name = type(action).__name__
        if name not in _VERBS:
            raise errors.CyborgError(f"red did {name}, which our model does not have: {action}")
        target, exploit = state.NO_TARGET, -1
        if name == "DiscoverRemoteSystems":
            target = self.scenario.subnet_names.index(self.truth.subnets[action.subnet].name)
        elif name in ("DiscoverNetworkServices", "ExploitRemoteService"):
            target = self.host_id(action.ip_address)
        elif name != "Sleep":
            target = self.host_id(action.hostname)
        if (weapon := getattr(action, "sub_action", None)) is not None:  # never set where red knew no port
            exploit = self.scenario.exploit_names.index(type(weapon).__name__)
        return RedAction(_VERBS[name], target, state.Success[told["success"].name], exploit, len(told) > 1)

    def blue_success(self) -> state.Success:
        """Return how blue was told that its last action went."""
        return state.Success[self.controller.observation["Blue"].data["success"].name]

    def ot_service(self) -> state.OTService:
        """Return the service on Op_Server0."""
        if not self.scenario.can_stop_service:
            return state.OTService.RUNNING
        server = self.truth.hosts[self.scenario.target]
        if not any(process.name == "OTService" for process in server.processes):
            return state.OTService.STOPPED
        # Restore loses the service's process id: that is why Impact cannot stop it any more.
        return state.OTService.RESTORED if server.services["OTService"]["process"] is None else state.OTService.RUNNING

    def decoy_ports(self) -> list[int]:
        """Return per host the set of ports that decoys opened, as a bit mask."""
        processes = (self.truth.hosts[host].processes for host in self.scenario.host_names)
        decoys = ([process for process in of_host if process.decoy_type.name != "NONE"] for of_host in processes)
        return [self.scenario.ports_mask(*(p["local_port"] for d in of_host for p in d.open_ports)) for of_host in decoys]

    def host_id(self, host_or_address: Any) -> int:
        """Return our number of a host that CybORG gives by name or address."""
        return self.scenario.host_ids[self.truth.ip_addresses.get(host_or_address, host_or_address)]


def open_games(folder: Path, scenario: Scenario, count: int = 1, *, green: bool = False) -> list[CyborgGame]:
    """Return games of the CybORG in a folder: of its own Scenario2, or of another scenario, which is written down for it."""
    cyborg, file = load_cyborg(folder), None
    with tempfile.TemporaryDirectory() as written:
        if scenario != CAGE2:
            check_images(folder, scenario)
            file = Path(written, "scenario.yaml")
            file.write_text(scenario.to_yaml())
        return [CyborgGame(cyborg, green=green, scenario=scenario, file=file) for _ in range(count)]
