"""Rewards of your own: what is at stake in a scenario, in place of what CAGE2 says.

    hosts: {enterprise: 2, Op_Server0: 5}  # a step in which red is root there costs this; by host, or by unit type
    service: 20  # a step with the target's service stopped
    restore: 0.5  # blue's Restore
    detection: 0.8  # how often a reverse shell is seen where blue watches
    steps: 200  # length of an episode

All of it is optional. It is part of the scenario, as its table `Reward`, or a file of its own that replaces that table.
Costs are counted in tenths. CybORG has none of this: a scenario with a reward of its own is played by our simulator only.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from fixfirst.base import errors
from fixfirst.game import documents, parts

if TYPE_CHECKING:
    from fixfirst.game.scenario import Scenario

TABLE = "Reward"


def _in_tenths(cost: float) -> float:
    if abs(10 * cost - round(10 * cost)) > 1e-9:
        raise ValueError("must have at most one decimal")
    return round(10 * cost) / 10


Cost = Annotated[float, Field(ge=0, le=100), AfterValidator(_in_tenths)]


class RewardTable(documents.Table):
    """The table of a reward; what it does not say stays as it is."""

    model_config = ConfigDict(extra="forbid")

    hosts: dict[Annotated[str, documents.one_of("hosts")], Cost] = Field({})  # by host or unit type
    ot_cost: Cost | None = Field(None, alias="service")
    restore_cost: Cost | None = Field(None, alias="restore")
    detection: Annotated[float, Field(ge=0, le=1)] | None = None
    steps: Annotated[int, Field(ge=1, le=10_000)] | None = None


def with_reward(scenario: "Scenario", table: Any, file: str, *path: str) -> "Scenario":
    """Return the scenario with the reward that a table of a file describes: what it does not say stays as it is."""
    reward = documents.as_table(RewardTable, table, file, *path, hosts=(*scenario.host_names, *scenario.unit_types))
    if not table:
        raise errors.ScenarioError(f"{file}: is empty; use some of {', '.join(RewardTable.keys())}")
    if reward.ot_cost is not None and not scenario.can_stop_service:
        raise errors.ScenarioError(f"{file}: service: no service can be stopped: no host {parts.TARGET_NAME} runs one")
    values = (reward.hosts.get(host.name, reward.hosts.get(host.unit, host.value)) for host in scenario.hosts)
    hosts = tuple(replace(host, value=value) for host, value in zip(scenario.hosts, values, strict=True))
    return replace(scenario, own_reward=True, hosts=hosts, **reward.model_dump(exclude={"hosts"}, exclude_none=True))


def table_of(scenario: "Scenario") -> dict[str, Any]:
    """Return the table of a scenario with a reward of its own, complete."""
    service = {"service": scenario.ot_cost} if scenario.can_stop_service else {}
    rest = {"restore": scenario.restore_cost, "detection": scenario.detection}
    steps = {} if scenario.steps is None else {"steps": scenario.steps}
    return {"hosts": {host.name: host.value for host in scenario.hosts}, **service, **rest, **steps}
