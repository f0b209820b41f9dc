"""Rewards of your own: what is at stake in a scenario, in place of what CAGE2 says.

    hosts: {enterprise: 2, Op_Server0: 5}  # a step in which red is root there costs this; by host, or by unit type
    service: 20  # a step with the target's service stopped
    restore: 0.5  # blue's Restore
    detection: 0.8  # how often a reverse shell is seen where blue watches
    steps: 200  # length of an episode

All of it is optional. It is part of the scenario, as its table `Reward`, or a file of its own that replaces that table.
Costs are counted in tenths. CybORG has none of this: a scenario with a reward of its own is played by our simulator only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fixfirst.base import errors
from fixfirst.game import documents, parts

if TYPE_CHECKING:
    from fixfirst.game.scenario import Scenario

TABLE = "Reward"
KEYS = ("hosts", "service", "restore", "detection", "steps")
MOST_COST = 100.0
MOST_STEPS = 10_000


def with_reward(scenario: "Scenario", table: Any, place: documents.Place) -> "Scenario":
    """Return the scenario with this reward: what the table does not say stays as it is."""
    values = documents.as_table(table, place)
    for key in values:
        if key not in KEYS:
            raise place.refuse(f"has the key {documents.short(key)}; use {', '.join(KEYS)}{errors.did_you_mean(key, KEYS)}")
    if not values:
        raise place.refuse(f"is empty; use some of {', '.join(KEYS)}")
    changed: dict[str, Any] = {"own_reward": True}
    if "hosts" in values:
        changed["hosts"] = _hosts(scenario, documents.as_table(values["hosts"], place / "hosts"), place / "hosts")
    if "service" in values:
        if not (scenario.target is not None and scenario.hosts[scenario.target_id].runs_ot):
            raise (place / "service").refuse(f"no service can be stopped: no host {parts.TARGET_NAME} runs one")
        changed["ot_cost"] = _cost(values["service"], place / "service")
    if "restore" in values:
        changed["restore_cost"] = _cost(values["restore"], place / "restore")
    if "detection" in values:
        changed["detection"] = _number(values["detection"], place / "detection", 1.0)
    if "steps" in values:
        steps = values["steps"]
        if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
            raise (place / "steps").refuse(f"{documents.short(steps)} must be a whole number, 1 to {MOST_STEPS:,}")
        changed["steps"] = steps
    return replace(scenario, **changed)


def _hosts(scenario: "Scenario", table: Mapping[str, Any], place: documents.Place) -> tuple[parts.Host, ...]:
    """Return the hosts with their values: those of unit types first, then those of single hosts."""
    known = (*scenario.host_names, *scenario.unit_types)
    for name in table:
        if name not in known:
            near = errors.did_you_mean(name, known)
            raise place.refuse(f"names {documents.short(name)}, which is no host and no unit type of {scenario.name}{near}")
    costs = {name: _cost(value, place / name) for name, value in table.items()}
    by_unit = (replace(host, value=costs.get(host.unit, host.value)) for host in scenario.hosts)
    return tuple(replace(host, value=costs.get(host.name, host.value)) for host in by_unit)


def _cost(value: Any, place: documents.Place) -> float:
    cost = _number(value, place, MOST_COST)
    if abs(10 * cost - round(10 * cost)) > 1e-9:
        raise place.refuse(f"{documents.short(value)} must have at most one decimal: rewards are counted in tenths")
    return round(10 * cost) / 10


def _number(value: Any, place: documents.Place, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise place.refuse(f"{documents.short(value)} must be a number, 0 to {most:g}")
    return float(value)


def table_of(scenario: "Scenario") -> dict[str, Any]:
    """Return the table of a scenario with a reward of its own, complete."""
    table: dict[str, Any] = {"hosts": {host.name: host.value for host in scenario.hosts}}
    if scenario.target is not None and scenario.hosts[scenario.target_id].runs_ot:
        table["service"] = scenario.ot_cost
    table |= {"restore": scenario.restore_cost, "detection": scenario.detection}
    return table | ({} if scenario.steps is None else {"steps": scenario.steps})


def in_words(scenario: "Scenario") -> str:
    """Return what is at stake in one line; "" where the reward is CAGE2's."""
    if not scenario.own_reward:
        return ""
    costs = [f"Restore {scenario.restore_cost:g}", f"a stopped service {scenario.ot_cost:g}"]
    length = "" if scenario.steps is None else f"; episodes of {scenario.steps} steps"
    hosts = f"hosts up to {max(host.value for host in scenario.hosts):g}"
    return f"not CAGE2's reward: {' and '.join(costs)} points, {hosts}, shells seen with {scenario.detection:g}{length}"
