"""States that come from outside, checked once: compiled code takes their fields as indices and sets without a look."""

from functools import cache

import numpy as np

from fixfirst.base import errors
from fixfirst.game.attackers import BLINE_LAST_STAGE
from fixfirst.game.chance import Decision
from fixfirst.game.parts import EXPLOITS
from fixfirst.game.red_agents import script_names
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import LEARNED, NO_TARGET, OTService, RedVerb, Success
from fixfirst.game.tables import MOST_FURTHER_PORTS, PORTS

_STATE_RANGES: dict[str, tuple[int, int]] = {
    "ot": (0, len(OTService) - 1),
    "red_verb": (0, len(RedVerb) - 1),
    "red_success": (min(Success), max(Success)),
    "red_exploit": (-1, len(EXPLOITS) - 1),
    "red_wish": (-1, len(EXPLOITS) - 1),
    "bline_stage": (0, BLINE_LAST_STAGE),
    "decoys": (0, 2 ** len(PORTS) - 1),
    "remembered": (0, 2 ** (len(PORTS) + MOST_FURTHER_PORTS) - 1),
    "blue_success": (min(Success), max(Success)),
    "chances": (0, 2 ** (Decision.REFUSED + 1) - 1),
}
_HOST_SETS: tuple[str, ...] = ("privileged", "removable", "stubborn", "malware", "patched")
_HOST_SETS += ("known_hosts", "known_names", "scanned", "exploited", "escalated", "breached")
_HOST_SETS += ("lost", "failed", "failed_again", "resisted")


@cache
def _ranges(scenario: Scenario) -> dict[str, tuple[int, int]]:
    hosts, subnets = scenario.num_hosts, len(scenario.subnets)
    return (
        _STATE_RANGES
        | dict.fromkeys(("red_target", "bline_user"), (NO_TARGET, hosts - 1))
        | dict.fromkeys(("known_subnets", "explored_subnets"), (0, 2**subnets - 1))
        | dict.fromkeys(_HOST_SETS, (0, 2**hosts - 1))
        | {"blue_action": (0, scenario.num_actions - 1)}
    )


def check_states(states: np.ndarray, scenario: Scenario, learned: int = 0) -> None:
    """Raise if a field of states [N] is out of range. learned: the number of learned attackers."""
    agents = states["red_agent"]
    _check_range("red_agent", agents[(agents < LEARNED) | (agents >= LEARNED + learned)], 0, len(script_names()) - 1)
    for name, (low, high) in _ranges(scenario).items():
        _check_range(name, states[name], low, high)
    for word, seen in enumerate(np.moveaxis(states["observation"], 1, 0)):
        _check_range("observation", seen, 0, 2 ** min(max(scenario.observation_bits - 64 * word, 0), 64) - 1)


def _check_range(name: str, values: np.ndarray, low: int, high: int) -> None:
    wrong = values[(values < low) | (values > high)]
    if wrong.size:
        raise errors.WorldError(f"state field {name} is {wrong.flat[0]}, not in {low}..{high}")
