"""The shield: an order as a mask on what blue may repair, computed from what blue knows.

Repairing a unit type is forbidden while one ranked above it is *suspected*: a host of it is suspect, or believed not clean
(`remembering.py` in the room of the game). Red's foothold cannot be cleaned and counts for nothing. Unit types that red
never holds are moved to the end of every order first: a false alarm there must not keep anybody from repairing.

S orders, U unit types, A choices, M = A / 64 words of masked choices, rounded up.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fixfirst.game.actions import ACTIONS, REPAIR_VERBS
from fixfirst.game.scenario import FOOTHOLD, HOST_ID
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet


class Shields(NamedTuple):
    """Orders for compiled functions."""

    ranked: np.ndarray  # [S, U] int64: the hosts of the unit type at each position, as sets
    forbidden: np.ndarray  # [S, U + 1, M] uint64: choices that are masked while the first suspected type has this position


def shields_of(workflows: Sequence[Workflow], action_set: ActionSet, idle: Sequence[int] = ()) -> Shields:
    """The shields of some orders; idle: unit types that red never holds."""
    orders = [workflow.with_last(idle) for workflow in workflows]
    ranked = [[_hosts(order, unit) for unit in order.order] for order in orders]
    repaired = [_repaired_host(action) for action in action_set.actions]
    forbidden = np.zeros((len(orders), len(orders[0].order) + 1, mask_words(action_set)), np.uint64)
    for s, order in enumerate(orders):
        for top in range(len(order.order)):
            for choice, host in enumerate(repaired):
                if host is not None and order.ranks[order.scheme.host_unit[host]] > top:
                    forbidden[s, top, choice // 64] |= np.uint64(1 << choice % 64)
    return Shields(np.array(ranked, np.int64), forbidden)


def no_shield(orders: int, words: int) -> Shields:
    """Nothing is forbidden, whatever the order."""
    return Shields(np.zeros((orders, 0), np.int64), np.zeros((orders, 1, words), np.uint64))


class ShieldMatrices(NamedTuple):
    """The same in bits, for files made by `fixfirst export`: of any order."""

    host_units: np.ndarray  # [13, U] bool: the unit type of each host that can be cleaned
    unit_repairs: np.ndarray  # [U, A] bool: the choices that repair each unit type


def shield_matrices(scheme: UnitScheme, action_set: ActionSet) -> ShieldMatrices:
    """Made anew."""
    units, hosts = np.eye(scheme.size, dtype=np.bool_), np.array(scheme.host_unit)
    host_units, repairs = units[hosts], np.zeros((scheme.size, action_set.size), np.bool_)
    host_units[FOOTHOLD] = False
    for choice, host in enumerate(map(_repaired_host, action_set.actions)):
        if host is not None:
            repairs[hosts[host], choice] = True
    return ShieldMatrices(host_units, repairs)


def mask_words(action_set: ActionSet) -> int:
    """M."""
    return -(-action_set.size // 64)


def _hosts(workflow: Workflow, unit: int) -> int:
    """The hosts of a unit type that can be cleaned, as a set."""
    return sum(1 << host for host, owner in enumerate(workflow.scheme.host_unit) if owner == unit and host != FOOTHOLD)


def _repaired_host(action: int) -> int | None:
    known = ACTIONS[action]
    return HOST_ID[known.host] if known.host and known.verb in REPAIR_VERBS else None
