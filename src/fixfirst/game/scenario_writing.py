"""Scenario files of CybORG: writing one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fixfirst.game import parts, reward as rewards
from fixfirst.game.images import OT_SERVICE, PRIVILEGED, built_in
from fixfirst.game.parts import Finding, Image, Service
from fixfirst.game.scenario_reading import CLIENT, FOOTHOLD, GREEN, RED_ACTIONS, REWARD, SERVER, VALUES, subnet_size

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
    own = {host.image.name: host.image for host in hosts if built_in().get(host.image.name) != host.image}
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
    blue = _agent(scenario, listed, scenario.verbs, REWARD, sessions, adversary="Red")
    foothold = {"hostname": start.name, "name": "Foothold", "type": FOOTHOLD, "username": PRIVILEGED[start.os]}
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


def image_document(image: Image) -> dict[str, Any]:
    """Return the table of an image file that plays like this image."""
    windows = image.os == parts.WINDOWS
    root, user = PRIVILEGED[image.os], "NetworkService" if windows else "www-data"
    ssh = [service for service in image.services if service.kind == "ssh"]
    guessed = {service.root for service in ssh if service.accounts}
    users: list[dict[str, Any]] = [{"Username": name} for name in (root, user, "GreenAgent", "ubuntu")]
    if guessed:
        users.insert(0, {"Username": root if guessed == {True} else "pi", "Password": "guess", "Bruteforceable": True})
    processes = [_process_of(service, 1000 + n, root, user) for n, service in enumerate(image.services)]
    table: dict[str, Any] = {
        "System info": {
            "Architecture": "x64",
            "OSDistribution": "WINDOWS_SVR_2008" if windows else "UBUNTU",
            "OSType": image.os.upper(),
            "OSVersion": "W6_1_7601" if windows else "U18_04_3",
        },
        "Processes": processes,
        "User Info": users,
    }
    if any(service.kind == "smb" and service.immune for service in image.services) and windows:
        table["System info"]["Patches"] = ["MS17_010"]
    if image.runs_ot:
        processes.append({"PID": 999, "PPID": 1, "Process Name": OT_SERVICE, "Username": root})
        table["Services"] = {OT_SERVICE: {"active": True, "PID": 999}}
    return table


def _process_of(service: Service, pid: int, root: str, user: str) -> dict[str, Any]:
    words = {"ssh": "ssh", "ftp": "femitter", "web": "webserver", None: "other"}
    table: dict[str, Any] = {
        "Connections": [{"local_address": "0.0.0.0", "local_port": port} for port in service.ports],
        "PID": pid,
        "PPID": 1,
        "Process Name": f"service{pid}",
        "Process Type": words.get(service.kind, service.kind),
        "Username": root if service.root and service.kind != "ssh" else user,
    }
    if service.kind == "web" and not service.immune:
        table["Properties"] = ["rfi"]
    if service.kind == "smtp":
        table["Process Version"] = "haraka 2.7.0"
    return table
