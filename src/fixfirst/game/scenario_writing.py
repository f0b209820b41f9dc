"""Scenario files of CybORG: writing one."""

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
    subnets, hosts = list(scenario.subnet_names), scenario.hosts
    shared = {"agent_type": "SleepAgent", "wrappers": []}
    everything = {"Interfaces": "All", "System info": "All", "User info": "All"}
    unwatched = [host.name for host in hosts if host.reached and not host.watched]
    server = (unwatched or [host.name for host in hosts if host.reached])[0]
    sessions: list[dict[str, Any]] = [
        {
            "hostname": server,
            "name": "Server",
            "type": SERVER,
            "username": "ubuntu",
            "artifacts": ["NetworkConnections", "ProcessCreation"],
        }
    ]
    for host in hosts:
        if host.watched:
            client = {"hostname": host.name, "name": f"Client{host.name}", "parent": "Server", "type": CLIENT}
            sessions.append(client | {"username": "ubuntu"})
    agents: dict[str, Any] = {
        "Blue": {
            "AllowedSubnets": subnets.copy(),
            "INT": {"Hosts": {host.name: everything.copy() for host in hosts if host.listed}},
            "adversary": "Red",
            "actions": list(scenario.verbs),
            "reward_calculator_type": REWARD,
            "starting_sessions": sessions,
        }
    }
    green = scenario.green_hosts
    if green is not None:
        agents["Green"] = {
            "AllowedSubnets": subnets.copy(),
            "INT": {"Hosts": {host: everything.copy() for host in green}},
            "actions": ["Sleep", "GreenPortScan"] if green else ["Sleep"],
            "reward_calculator_type": "None",
            "starting_sessions": [
                {"hostname": host, "name": "Green", "type": GREEN, "username": "GreenAgent"} for host in green[:1]
            ],
        }
    told = {finding.host: _finding_of(finding) for finding in scenario.known}
    red = {
        "AllowedSubnets": subnets.copy(),
        "INT": {"Hosts": {scenario.start: told.pop(scenario.start, {"User info": "All"})} | told},
        "actions": list(RED_ACTIONS),
        "reward_calculator_type": "HybridImpactPwn",
        "starting_sessions": [
            {
                "hostname": scenario.start,
                "name": "Foothold",
                "type": FOOTHOLD,
                "username": PRIVILEGED[hosts[scenario.start_id].os],
            }
        ],
    }
    agents = {"Blue": agents.pop("Blue"), "Red": red} | agents if scenario.red_before_green else agents | {"Red": red}
    return {name: agent | {**shared, "wrappers": []} for name, agent in agents.items()}


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
