"""Scenario files of CybORG: writing one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fixfirst.game import parts, reward as rewards
from fixfirst.game.images import OT_SERVICE, PRIVILEGED, image_document
from fixfirst.game.parts import Finding
from fixfirst.game.scenario_reading import CLIENT, FOOTHOLD, GREEN, RED_ACTIONS, SERVER, VALUES, subnet_size

if TYPE_CHECKING:
    from fixfirst.game.scenario import Scenario


def document_of(scenario: "Scenario") -> dict[str, Any]:
    """Return the contents of a complete scenario file: what CybORG reads, and the images that it does not have."""
    hosts = scenario.hosts
    document: dict[str, Any] = {"Agents": _agents_of(scenario), "Hosts": {}, "Subnets": {}}
    for host in hosts:
        table: dict[str, Any] = {"image": host.image.name}
        if host.reveals:
            table["info"] = {finding.host: _finding_of(finding) for finding in host.reveals}
        words = {"ConfidentialityValue": _word_of(host.value)}
        if host.name == scenario.target:
            words["AvailabilityValue"] = _word_of(scenario.ot_cost)
        table |= {key: word for key, word in words.items() if word is not None}  # else `Reward` says it
        document["Hosts"][host.name] = table
    source = scenario.subnet_names[hosts[scenario.start_id].subnet]
    for subnet in scenario.subnets:
        table = {"Hosts": list(subnet.hosts), "Size": subnet_size(len(subnet.hosts))}
        rules: dict[str, Any] = {"all": {"in": "all", "out": "all"}}
        if subnet.reach == "filtered":
            rules = {"all": {"in": [{"PortRange": list(ports)} for ports in subnet.lets_through], "out": "all"}}
        elif subnet.reach == "gated":
            rules = {source: {"in": "None", "out": "all"}} | rules
        if subnet.reach != "closed":
            table["NACLs"] = rules
        document["Subnets"][subnet.name] = table
    own = {host.image.name: host.image for host in hosts if parts.IMAGES.get(host.image.name) != host.image}
    if own:
        document["Images"] = {name: image_document(image) for name, image in own.items()}
    if scenario.own_reward:
        document[rewards.TABLE] = rewards.table_of(scenario)
    return document


def _agents_of(scenario: "Scenario") -> dict[str, Any]:
    hosts, green = scenario.hosts, scenario.green_hosts
    start = hosts[scenario.start_id]
    server = min((host for host in hosts if host.reached), key=lambda host: host.watched).name
    sensors = ["NetworkConnections", "ProcessCreation"]
    sessions = [{"hostname": server, "name": "Server", "type": SERVER, "username": "ubuntu", "artifacts": sensors}]
    sessions += [
        {"hostname": name, "name": f"Client{name}", "parent": "Server", "type": CLIENT, "username": "ubuntu"}
        for name in (host.name for host in hosts if host.watched)
    ]
    listed = {host.name: _everything() for host in hosts if host.listed}
    blue = _agent(scenario, listed, scenario.verbs, "HybridAvailabilityConfidentiality", sessions, adversary="Red")
    foothold = {"hostname": start.name, "name": "Foothold", "type": FOOTHOLD, "username": PRIVILEGED[start.image.os]}
    known = {start.name: {"User info": "All"}} | {finding.host: _finding_of(finding) for finding in scenario.known}
    red = {"Red": _agent(scenario, known, RED_ACTIONS, "HybridImpactPwn", [foothold])}
    if green is None:
        return {"Blue": blue} | red
    sessions = [{"hostname": host, "name": "Green", "type": GREEN, "username": "GreenAgent"} for host in green[:1]]
    actions = ("Sleep", "GreenPortScan") if green else ("Sleep",)
    scans = {"Green": _agent(scenario, {host: _everything() for host in green}, actions, "None", sessions)}
    return {"Blue": blue} | (red | scans if scenario.red_before_green else scans | red)


def _agent(
    scenario: "Scenario",
    knows: dict[str, dict[str, Any]],
    actions: Iterable[str],
    reward: str,
    sessions: list[dict[str, Any]],
    **more: str,
) -> dict[str, Any]:
    """Return the table of an agent. more: keys that only this one has."""
    return {
        "AllowedSubnets": list(scenario.subnet_names),
        "INT": {"Hosts": knows},
        **more,
        "actions": list(actions),
        "reward_calculator_type": reward,
        "starting_sessions": sessions,
        "agent_type": "SleepAgent",
        "wrappers": [],
    }


def _everything() -> dict[str, str]:
    return {"Interfaces": "All", "System info": "All", "User info": "All"}


def _finding_of(finding: Finding) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if finding.address:
        table["Interfaces"] = "All" if finding.subnet else "IP Address"
    if finding.name:
        table["System info"] = "All"
    if finding.ot_service:
        table["Services"] = [OT_SERVICE]
    return table


def _word_of(value: float) -> str | None:
    """Return CybORG's word for a value, or None if it has none."""
    return next((word for word, number in VALUES.items() if number == value), None)
