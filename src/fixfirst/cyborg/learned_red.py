"""Learned attackers as red agents in anybody's CybORG.

    CybORG(scenario, "sim", agents={"Red": ff.LearnedRed.named("runs/red")})

An attacker fills our record from what CybORG tells red: it reads its own last action, the observation that CybORG hands it,
and the lists of the action space: which address is which host it takes from their order, as B_line does. Nothing is looked
up in the true state.
"""

import random
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors
from fixfirst.game import chance as dice, red_view, state, tables
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy import reds


class LearnedRed:
    """A learned attacker with the methods that CybORG asks of a red agent, for one game at a time.

    red: an attacker's folder or file, one that comes with fixfirst, or a loaded one. scenario: what CybORG plays. greedy:
    the most probable action instead of a drawn one. It draws from Python's generator, as CybORG's own agents do.

    For example:

        agents = {"Red": ff.LearnedRed.named("noise")}  # CybORG makes an agent without arguments
    """

    def __init__(self, red: reds.RedPolicy | str | Path, *, scenario: Scenario = CAGE2, greedy: bool = False):
        self.red = red if isinstance(red, reds.RedPolicy) else reds.load_red(red, scenario)
        self.scenario = self.red.spec.scenario
        self._reds = reds.Reds([self.red.network], [self.red.spec], greedy)
        size = tables.size_of(self.scenario)
        self.state = np.zeros(1, state.state_dtype(size))  # what red knows and believes, in the fields of our own record
        self._chances = np.zeros(1, dice.chance_dtype(size))
        self._last: red_view.RedChoice | None = None
        self._addresses: list[Any] = []
        self._subnets: list[Any] = []
        self.end_episode()

    @staticmethod
    def named(red: reds.RedPolicy | str | Path, **options: Any) -> Any:
        """Return what CybORG takes for the class of an agent: called without arguments, it makes this attacker."""
        return partial(LearnedRed, red, **options)

    # ---- what CybORG asks of an agent

    def get_action(self, observation: dict[str, Any], action_space: dict[str, Any]) -> Any:
        """Return red's next action, after what came of the last one."""
        self._places(action_space)
        env = self.state[0]
        if self._last is not None:
            env["step"] += 1
            self._hear(env, self._last, observation)
            self._reds.conclude(self.state)
        self._look(env, observation, action_space)
        self._reds.decide(self.state, self._chances)
        choice = red_view.RedChoice(state.RedVerb(int(env["red_verb"])), int(env["red_target"]), int(env["red_wish"]))
        self._last = choice
        return self._action(choice)

    def end_episode(self) -> None:
        """Forget everything: another game begins."""
        self.state[:] = 0
        self.state["red_agent"] = state.LEARNED
        self.state["red_target"], self.state["red_exploit"], self.state["red_wish"] = state.NO_TARGET, -1, -1
        self.state["red_success"] = state.Success.UNKNOWN
        self._chances["key"] = random.getrandbits(64)
        self._last, self._addresses, self._subnets = None, [], []

    def train(self, results: Any) -> None:
        """Do nothing: it has learned."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing: all that it knows it is told in every turn."""

    def beliefs(self) -> np.ndarray:
        """Return what it believes to have on every host [H], 0 none, 1 user, 2 root, 3 lost, as of its last action."""
        return red_view.beliefs_of(self.state, self.scenario.num_hosts)[0]

    # ---- what it is told

    def _places(self, space: dict[str, Any]) -> None:
        """Find out which address and which network is which, from the order of CybORG's lists."""
        if self._addresses:
            return
        names, addresses = list(space["hostname"]), list(space["ip_address"])
        if sorted(names) != sorted(self.scenario.host_names) or len(addresses) != len(names):
            raise errors.CyborgError(
                f"this attacker attacks the hosts of {self.scenario.name}, CybORG plays another network"
            )
        self._addresses = [addresses[names.index(name)] for name in self.scenario.host_names]
        nets: dict[int, Any] = {}
        for host, address in zip(self.scenario.hosts, self._addresses, strict=True):
            nets.setdefault(host.subnet, next(net for net in space["subnet"] if address in net))
        self._subnets = [nets.get(number) for number in range(len(self.scenario.subnets))]

    def _hear(self, env: Any, last: red_view.RedChoice, told: dict[str, Any]) -> None:
        """Enter what came of the last action."""
        env["red_verb"], env["red_target"], env["red_wish"] = last
        env["red_success"] = state.Success[told["success"].name]
        answered = len(told) > 1
        env["scan_answered"] = last.verb == state.RedVerb.SCAN and answered
        env["red_met"] = last.verb in (state.RedVerb.SCAN, state.RedVerb.EXPLOIT) and answered
        env["red_exploit"] = last.wish
        if not answered:
            return
        if last.verb == state.RedVerb.SCAN:
            seen = (port for port, _ in self._ports(told, last.target))
            ports = self.scenario.ports_mask(*(port for port in seen if port in self.scenario.ports))
            keeps = not hasattr(import_module("CybORG.Simulator.Session").RedAbstractSession, "clearports")
            env["remembered"][last.target] = ports | (env["remembered"][last.target] if keeps else 0)
        elif last.verb == state.RedVerb.EXPLOIT:
            attacked = [port for port, is_open in self._ports(told, last.target) if is_open]
            used = [n for n, exploit in enumerate(self.scenario.exploits) if exploit.port in attacked]
            env["red_exploit"] = used[0] if used else last.wish
        elif last.verb == state.RedVerb.ESCALATE and env["red_success"] == state.Success.TRUE:
            processes = (each for facts in told.values() if isinstance(facts, dict) for each in facts.get("Processes", ()))
            env["ot_known"] |= any(process.get("Service Name") == "OTService" for process in processes)

    def _ports(self, told: dict[str, Any], host: int) -> list[tuple[int, bool]]:
        """Return the ports of a host that an observation names, each with whether it was attacked."""
        processes = told.get(str(self._addresses[host]), {}).get("Processes", ())
        connections = [each for process in processes for each in process.get("Connections", ())]
        return [(each["local_port"], "Status" in each) for each in connections if "remote_port" not in each]

    def _look(self, env: Any, told: dict[str, Any], space: dict[str, Any]) -> None:
        """Enter which networks, addresses and names red knows."""
        env["known_subnets"] = _set_of(space["subnet"].get(net, False) for net in self._subnets)
        env["known_hosts"] = _set_of(space["ip_address"][address] for address in self._addresses)
        env["known_names"] = _set_of(space["hostname"][name] for name in self.scenario.host_names)

    # ---- what it does

    def _action(self, choice: red_view.RedChoice) -> Any:
        """Return an action of CybORG."""
        actions, who = import_module("CybORG.Shared.Actions"), {"session": 0, "agent": "Red"}
        if choice.verb == state.RedVerb.DISCOVER:
            return actions.DiscoverRemoteSystems(subnet=self._subnets[choice.target], **who)
        if choice.verb == state.RedVerb.SCAN:
            return actions.DiscoverNetworkServices(ip_address=self._addresses[choice.target], **who)
        if choice.verb == state.RedVerb.EXPLOIT:
            name = self.scenario.exploit_names[choice.wish] if choice.wish >= 0 else None
            wish = None if name is None else getattr(import_module(f"CybORG.Shared.Actions.ConcreteActions.{name}"), name)
            return actions.ExploitRemoteService(ip_address=self._addresses[choice.target], priority=wish, **who)
        if choice.verb == state.RedVerb.ESCALATE:
            return actions.PrivilegeEscalate(hostname=self.scenario.host_names[choice.target], **who)
        if choice.verb == state.RedVerb.IMPACT:
            return actions.Impact(hostname=self.scenario.host_names[choice.target], **who)
        return actions.Sleep()


def _set_of(members: Any) -> int:
    """Return a set: bit i is the truth of the i-th."""
    return sum(1 << place for place, member in enumerate(members) if member)
