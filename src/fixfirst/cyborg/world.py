"""N environments of real CybORG behind the interface of our own `World`, and learned attackers as red agents in it.

Environments are stepped one after the other. A worker process holds one of these (`game/worker_world.py`). An episode's
chances follow from (seed, environment, episode), so they are the same however the environments are spread over processes.
Only the draws differ from our own simulator's.
"""

import gc
import ipaddress
import random
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors
from fixfirst.cyborg.checkout import CyborgGame, find_cyborg, load_cyborg, scenario_file, variant_of
from fixfirst.game import chance as dice, red_view, rules, state, tables
from fixfirst.game.base_world import BaseWorld, pack
from fixfirst.game.game_config import Game
from fixfirst.game.images import OT_SERVICE
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy import red_file, reds

# ---------------------------------------------------------------- learned attackers
#
#     CybORG(scenario, "sim", agents={"Red": ff.LearnedRed.named("runs/red")})
#
# In anybody's CybORG, an attacker fills our record from what CybORG tells red: it reads its own last action, the observation
# that CybORG hands it, and the lists of the action space: which address is which host it takes from their order, as B_line
# does. Nothing is looked up in the true state.


class LearnedRed:
    """A learned attacker with the methods that CybORG asks of a red agent, for one game at a time.

    red: an attacker's folder or file, one that comes with fixfirst, or a loaded one. scenario: what CybORG plays. greedy:
    the most probable action instead of a drawn one. It draws from Python's generator, as CybORG's own agents do.

    For example:

        agents = {"Red": ff.LearnedRed.named("noise")}  # CybORG makes an agent without arguments
    """

    def __init__(self, red: red_file.RedPolicy | str | Path, *, scenario: Scenario = CAGE2, greedy: bool = False):
        self.red = red if isinstance(red, red_file.RedPolicy) else red_file.load_red(red, scenario)
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
    def named(red: red_file.RedPolicy | str | Path, **options: Any) -> Any:
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
        self.state["red_target"], self.state["red_exploit"], self.state["red_wish"] = state.NO_TARGET, -1, red_view.NO_WISH
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
            env["ot_known"] |= any(process.get("Service Name") == OT_SERVICE for process in processes)

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


# ---------------------------------------------------------------- worlds

_AGENT_STREAM, _GAME_STREAM = range(2)


class CyborgWorld(BaseWorld):
    """CybORG from `folder` (see `find_cyborg`). The game's variant, if it has one, must be what that CybORG is."""

    def __init__(self, game: Game, num_envs: int, *, folder: Path, **options: Any):
        cyborg = load_cyborg(folder)
        found = variant_of(cyborg)
        if game.variant not in (None, found):
            raise errors.CyborgError(f"CybORG in {folder} is the variant {found}, not {game.variant}")
        super().__init__(game.model_copy(update={"variant": found}), num_envs, **options)
        learned = [red_file.load_red(name, self.scenario) for name in game.learned]
        self._learned = [LearnedRed.named(red) for red in learned]
        scripts = self._red_odds[:, : state.LEARNED if learned else None]
        if (scripts[:, state.RedAgent.SLEEP] < scripts[:, -1]).any():
            raise errors.CyborgError("CybORG has neither late red agents nor your own; play them on the simulator")
        with scenario_file(cyborg, self.scenario) as file:
            self._games = [
                CyborgGame(cyborg, green=game.green, scenario=self.scenario, file=file) for _ in range(self.num_envs)
            ]
        self._seeds = np.zeros(self.num_envs, np.uint64)
        self._episodes = np.zeros(self.num_envs, np.int64)
        self._steps = np.zeros(self.num_envs, np.int32)  # [N] of this episode
        self._returns10 = np.zeros(self.num_envs, np.int32)
        self._red_agents = np.zeros(self.num_envs, np.uint8)  # [N] RedAgent of this episode
        self._blue_actions = np.zeros(self.num_envs, np.int64)  # [N] of the last step
        settle_for_cyborg()  # this world has its process to itself

    def _begin(self, mask: np.ndarray, seeds: np.ndarray | None, episodes: np.ndarray) -> None:
        if seeds is None:
            self._episodes[mask & self._started] += 1
        else:
            self._seeds[mask] = seeds[mask]
            self._episodes[mask] = episodes[mask]
        for i in np.flatnonzero(mask).tolist():
            self._start_episode(i)

    def _step(self, actions: np.ndarray) -> int:
        bad = (actions < 0) | (actions >= self.scenario.num_actions)
        if bad.any():
            return -1 - int(bad.argmax())
        num_ended = 0
        for i, game in enumerate(self._games):
            if self.ended[i] and self._autoreset == rules.NEXT_STEP:
                self._next_episode(i)
                self.rewards10[i] = 0
                self.ended[i] = False
                continue
            self.observations[i], self.rewards10[i] = game.step(actions[i])
            game.read_access(self.access[i])
            self._blue_actions[i] = actions[i]
            self._steps[i] += 1
            self._returns10[i] += self.rewards10[i]
            self.ended[i] = self._steps[i] == self.game.max_steps
            if self.ended[i]:
                num_ended += 1
                self.final_returns10[i], self.final_lengths[i] = self._returns10[i], self._steps[i]
                if self._autoreset == rules.SAME_STEP:
                    self.final_observations[i], self.final_access[i] = self.observations[i], self.access[i]
                    self._next_episode(i)
        self.packed_obs[:] = pack(self.observations)
        return num_ended

    def _turns(self) -> np.ndarray:
        turns = np.zeros(self.num_envs, state.turn_dtype(self.scenario))
        turns["step"], turns["return10"] = self._steps, self._returns10
        turns["red_agent"], turns["observation"], turns["access"] = self._red_agents, self.packed_obs, self.access
        turns["red_verb"], turns["red_target"], turns["red_exploit"] = state.RedVerb.SLEEP, state.NO_TARGET, -1
        turns["red_success"] = turns["blue_success"] = state.Success.UNKNOWN
        for i in np.flatnonzero(self._steps).tolist():
            game, red = self._games[i], self._games[i].red_action()
            turns["red_verb"][i], turns["red_target"][i], turns["red_exploit"][i] = red.verb, red.target, red.exploit
            turns["red_success"][i] = red.success
            turns["scan_answered"][i] = red.verb == state.RedVerb.SCAN and red.answered
            turns["blue_action"][i], turns["blue_success"][i] = self._blue_actions[i], game.blue_success()
            turns["ot"][i], turns["decoys"][i] = game.ot_service(), game.decoy_ports()
            if isinstance(game.red, LearnedRed):
                turns["red_belief"][i] = game.red.beliefs()
        return turns

    def _next_episode(self, i: int) -> None:
        self._episodes[i] += 1
        self._start_episode(i)

    def _start_episode(self, i: int) -> None:
        # Negative environment numbers are allowed elsewhere; entropy must not be negative.
        entropy = [int(self._seeds[i]), int(self.env_ids[i]) % 2**64, int(self._episodes[i])]
        u = np.random.default_rng([*entropy, _AGENT_STREAM]).random()
        number = int(np.searchsorted(self._red_odds[i], u, side="right"))
        self._red_agents[i] = number
        agent = self._learned[number - state.LEARNED] if number >= state.LEARNED else state.RedAgent(number)
        self._games[i].reset(agent, [*entropy, _GAME_STREAM])
        self._games[i].read_access(self.access[i])
        self.observations[i] = 0
        self.packed_obs[i] = 0
        self._steps[i] = self._returns10[i] = 0


def settle_for_cyborg() -> None:
    """Make this process, which does nothing else, a fifth faster for CybORG, without touching CybORG.

    It copies large dictionaries all the time: looking for cycles as often as Python does would take a tenth of the time, and
    find next to nothing. And in every step it reads and prints the same few IPv4 addresses some hundred times, an eighth of
    the time; both are pure functions, so they can be remembered.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    base = getattr(ipaddress, "_BaseV4", None)  # Python's own affair: if it is not there, we are only slower
    for name in ("_ip_int_from_string", "_string_from_ip_int"):
        if hasattr(base, name):
            setattr(base, name, staticmethod(lru_cache(maxsize=4096)(getattr(base, name))))


def world_maker(game: Game) -> Callable[..., CyborgWorld]:
    """Return what makes worlds of the CybORG that is found; for worker processes, which call it."""
    return partial(CyborgWorld, folder=find_cyborg(game.cyborg))
