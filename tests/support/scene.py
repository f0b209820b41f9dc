"""A single turn set up by hand: put red and the network into a situation, play one action, look at what came of it."""

from dataclasses import dataclass

import numpy as np
from cage2 import CAGE2, EXPLOIT_NAMES, HOST_ID, HOST_NAMES, PORTS, action_id, hosts_mask, ports_mask

from fixfirst.game.attackers import BLINE_VERB
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.game.state import OTService, RedAgent, RedVerb, Success
from fixfirst.game.tables import tables_of


@dataclass
class Turn:
    """The state after a turn, and what blue got."""

    state: np.void
    reward: float
    observation: np.ndarray  # [52]

    def sees(self, host):
        """The four bits of a host as text, e.g. "1101"."""
        h = HOST_ID[host]
        return "".join(map(str, self.observation[4 * h : 4 * h + 4]))

    def access(self, host):
        """none, removable, stubborn, both or privileged."""
        bits = [self.state[name] >> HOST_ID[host] & 1 for name in ("privileged", "removable", "stubborn")]
        if bits[0]:
            return "privileged"
        return ("none", "removable", "stubborn", "both")[bits[1] + 2 * bits[2]]

    def holds_malware(self, host):
        return bool(self.state["malware"] >> HOST_ID[host] & 1)

    @property
    def red(self):
        """(verb, success, exploit) of red's action."""
        exploit = self.state["red_exploit"]
        name = None if exploit < 0 else EXPLOIT_NAMES[exploit]
        return RedVerb(self.state["red_verb"]).name.lower(), int(self.state["red_success"]), name


class Scene:
    """One environment whose red is B_line about to do what the scene says."""

    def __init__(self, variant="current", green=False):
        self.world = World(Game(red_agent="b_line", variant=variant, green=green, max_steps=None), 1)
        self.world.reset(seed=0)
        self.state = self.world.get_state()
        self.red_sleeps()

    def red_sleeps(self):
        self.state["red_agent"] = RedAgent.SLEEP
        return self

    def red_will(self, verb, host, via_user="User1"):
        """B_line's next action: scan, exploit, escalate or impact on a host of its path."""
        user = HOST_ID[via_user]
        targets = tables_of(CAGE2)["bline_target"][0, :, user]
        stage = next(i for i, t in enumerate(targets) if BLINE_VERB[i] == RedVerb[verb.upper()] and t == HOST_ID[host])
        self.state["red_agent"] = RedAgent.B_LINE
        self.state["bline_user"] = user
        self.state["bline_stage"] = stage - 1
        self.state["bline_seen_server"] = True
        self.state["red_success"] = Success.TRUE
        return self

    def remembers(self, host, *ports):
        """The ports red saw on a host."""
        further = [port for port in ports if port not in PORTS]  # of which only their number counts
        known = ports_mask(*(port for port in ports if port in PORTS))
        self.state["remembered"][0, HOST_ID[host]] = known | (1 << len(further)) - 1 << len(PORTS)
        return self

    def holds(self, kind, *hosts):
        """Red has sessions of this kind: privileged, removable or stubborn."""
        self.state[kind] |= hosts_mask(*hosts)
        return self

    def malware_on(self, *hosts):
        self.state["malware"] |= hosts_mask(*hosts)
        return self

    def decoy_ports(self, host, *ports):
        self.state["decoys"][0, HOST_ID[host]] = ports_mask(*ports)
        return self

    def ot(self, name):
        self.state["ot"] = OTService[name]
        self.state["ot_known"] = True
        return self

    def chance(self, **outcomes):
        """Decide what would be left to chance; hosts and exploits by name."""
        record = self.world.inside().chances
        record["recorded"] = True
        for name, value in outcomes.items():
            names = {"other": EXPLOIT_NAMES, "green_host": HOST_NAMES}.get(name)
            record[name] = value if names is None else names.index(value)
        return self

    def turn(self, verb="Sleep", host=None):
        """Blue acts, then red; the scene goes on from there."""
        self.world.set_state(self.state)
        self.world.step(np.array([action_id(verb, host)]))
        self.state = self.world.get_state()
        return Turn(self.state[0].copy(), int(self.world.rewards10[0]) / 10, self.world.observations[0].copy())


def open_ports(mask):
    """The port numbers of a bit mask."""
    return {port for bit, port in enumerate(PORTS) if mask >> bit & 1}
