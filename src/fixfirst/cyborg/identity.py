"""Which CybORG it is: its folder, its version, its commit, and the variant it behaves like.

A variant is told by how it behaves, not by its name, version or commit: a few moves against a sleeping attacker show every
fact in which the variants differ and that CybORG can be asked for.
"""

import subprocess
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from fixfirst.base import errors, jobs
from fixfirst.cyborg.checkout import Cyborg, load_cyborg
from fixfirst.cyborg.cyborg_game import CyborgGame
from fixfirst.game import parts, state
from fixfirst.game.scenario import CAGE2

Facts = Mapping[str, Any]


def facts_of_variant(name: parts.VariantName) -> Facts:
    """Return what `facts_of_cyborg` must find in this variant."""
    variant, scenario = parts.VARIANTS[name], CAGE2.by_variant[name]
    services = {name: scenario.hosts[scenario.host_ids[name]].image.services for name in ("Enterprise1", "User3")}
    return {
        "red's remembered ports accumulate": variant.scans_accumulate,
        "a restored smtp service is immune": variant.restore_patches_smtp,
        "port of the Vsftpd decoy": next(decoy.opens for decoy in scenario.decoys if decoy.name == "Vsftpd"),
        "EternalBlue works on Enterprise1": any(service.kind == "smb" for service in services["Enterprise1"]),
        "port of mysql on User3": next(s.ports[0] for s in services["User3"] if s.kind == "mysql"),
        "user-level access costs": variant.any_session_costs,
    }


def facts_of_cyborg(cyborg: Cyborg) -> Facts:
    """Return the same facts, found by playing."""
    game = CyborgGame(cyborg)
    game.reset(state.RedAgent.SLEEP, [0])
    truth, red = game.truth, game.truth.sessions["Red"][0]
    address = {host: ip for ip, host in truth.ip_addresses.items()}

    def red_does(action: str, host: str, folder: str = "ConcreteActions", **options: Any) -> bool:
        kind = getattr(cyborg.module(f"Shared.Actions.{folder}.{action}"), action)
        result = kind(session=0, agent="Red", ip_address=address[host], **options).sim_execute(truth)
        return bool(result.data["success"] == True)  # noqa: E712  CybORG's own three-valued truth

    def exploit(action: str, host: str) -> bool:
        return red_does(action, host, target_session=0)

    def ports_of(host: str, process: str) -> list[int]:
        found = (p for p in truth.hosts[host].processes if process in str(p.name))
        return [connection["local_port"] for p in found for connection in p.connections]

    remembered = []
    for _ in range(2):
        red_does("DiscoverNetworkServices", "User4", "AbstractActions")
        remembered.append(len(red.ports[address["User4"]]))
    mysql_port = ports_of("User3", "mysql")[0]
    game.step(CAGE2.action_id("Restore", "User3"))
    game.step(CAGE2.action_id("DecoyVsftpd", "Enterprise0"))
    patched = not exploit("HarakaRCE", "User3")
    game.step(CAGE2.action_id("Restore", "User3"))
    exploit("SSHBruteForce", "Enterprise0")
    user_level_reward = game.step(CAGE2.action_id("Sleep"))[1]
    return {
        "red's remembered ports accumulate": remembered[1] > remembered[0],
        "a restored smtp service is immune": patched,
        "port of the Vsftpd decoy": ports_of("Enterprise0", "vsftpd")[0],
        "EternalBlue works on Enterprise1": exploit("EternalBlue", "Enterprise1"),
        "port of mysql on User3": mysql_port,
        "user-level access costs": user_level_reward < 0,
    }


def variant_of(cyborg: Cyborg) -> parts.VariantName:
    """Return the variant that behaves like this CybORG."""
    found = facts_of_cyborg(cyborg)
    for variant in parts.VARIANTS:
        if facts_of_variant(variant) == found:
            return variant
    expected = facts_of_variant("current")
    others = "; ".join(
        f"{fact}: {value} instead of {expected[fact]}" for fact, value in found.items() if value != expected[fact]
    )
    raise errors.CyborgError(f"CybORG in {cyborg.folder} is none of our variants. It differs from current in: {others}")


@dataclass(frozen=True)
class Identity:
    """Which CybORG it is."""

    folder: str
    version: str | None  # that it states
    commit: str | None
    variant: parts.VariantName


def identify(folder: Path) -> Identity:
    """Say which CybORG is in a folder; its variant is asked in a process of its own, so that this one stays free of it."""
    with ProcessPoolExecutor(1, get_context("spawn"), jobs.follow_parent) as pool:
        variant = pool.submit(_load_and_ask, folder).result()
    file = folder / "CybORG" / "version.txt"
    return Identity(str(folder), file.read_text().strip() if file.is_file() else None, commit_of(folder), variant)


def _load_and_ask(folder: Path) -> parts.VariantName:
    return variant_of(load_cyborg(folder))


def commit_of(folder: Path) -> str | None:
    """Return the commit of a checkout, with `+changes` where files differ from it; None outside a repository of CybORG."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout

    try:
        if not git("ls-files", "CybORG/CybORG.py"):
            return None
        return git("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+changes").strip()
    except (OSError, subprocess.CalledProcessError):
        return None
