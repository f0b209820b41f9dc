"""What an episode cost, part by part: hosts that red held, by unit type; the stopped service; blue's own Restores.

A turn's cost is the sum of these, so that an episode's cost, minus its return, is their sum to the last tenth. T steps, B
episodes, H hosts, U unit types.
"""

import numpy as np

from fixfirst.orders.order import UnitScheme

SERVICE, OWN_RESTORES = "stopped service", "Restore"


def part_names(scheme: UnitScheme) -> tuple[str, ...]:
    """Return the names of the U + 2 parts: the unit types, then the service, then Restores."""
    return (*scheme.names, SERVICE, OWN_RESTORES)


def count_verb(actions: np.ndarray, verb: str, scheme: UnitScheme) -> np.ndarray:
    """[B] how often a verb was chosen in each episode. actions [T, B]."""
    of_verb = np.array([action.verb == verb for action in scheme.scenario.actions])
    return np.asarray(of_verb[actions].sum(axis=0))


def episode_costs(charged: np.ndarray, actions: np.ndarray, rewards10: np.ndarray, scheme: UnitScheme) -> np.ndarray:
    """[U + 2, B] what each part cost in each episode, in points.

    charged [T + 1, B]: sets of hosts whose value is charged, before each action and after the last; actions, rewards10
    [T, B]. What neither hosts nor Restores explain is the service.
    """
    tenths = np.zeros((scheme.size + 2, actions.shape[1]), np.int64)
    after = charged[1:]
    for host, unit in enumerate(scheme.host_unit):
        value = round(10 * scheme.scenario.hosts[host].value)
        if value:
            tenths[unit] += value * (after >> host & 1).sum(axis=0, dtype=np.int64)
    tenths[-1] = round(10 * scheme.scenario.restore_cost) * count_verb(actions, "Restore", scheme)
    tenths[-2] = -rewards10.sum(axis=0, dtype=np.int64) - tenths.sum(axis=0)
    return tenths / 10
