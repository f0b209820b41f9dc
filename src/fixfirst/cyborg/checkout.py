"""A copy of CybORG: finding it, loading it, playing it, and saying which one it is.

CybORG is not on PyPI: users have a checkout of its repository. Nothing of it is part of this project. It is imported
from where it lies, in processes of its own, because it brings along one module name and one pair of random generators.
"""

import contextlib
import copy
import functools
import importlib
import importlib.util
import io
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random.mtrand import set_bit_generator

from fixfirst.base import arguments, errors, jobs
from fixfirst.game import parts, state
from fixfirst.game.images import ImageFolder
from fixfirst.game.scenario import CAGE2, Scenario

ENVIRONMENT_VARIABLE = "FIXFIRST_CYBORG"
HOW_TO_GET_IT = (
    "get it with `git clone https://github.com/cage-challenge/cage-challenge-2` and `pip install 'fixfirst[cyborg]'`, "
    f"then say where it is with --cyborg cage-challenge-2 or {ENVIRONMENT_VARIABLE}=cage-challenge-2"
)
_SCENARIO = Path("Shared", "Scenarios", "Scenario2.yaml")


def find_cyborg(path: str | Path | None = None) -> Path:
    """The folder that contains the package `CybORG`: below `path`, else below FIXFIRST_CYBORG, else on Python's path."""
    given = path or os.environ.get(ENVIRONMENT_VARIABLE)
    if given:
        start = arguments.check_path("cyborg", given).expanduser().resolve()
        for folder in (start, start / "CybORG", start / "Debugged_CybORG" / "CybORG", start.parent):
            if _holds_package(folder):
                return folder
        raise errors.CyborgError(f"{given} holds no package CybORG; {HOW_TO_GET_IT}")
    spec = importlib.util.find_spec("CybORG")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        if _holds_package(Path(package).parent):
            return Path(package).parent.resolve()
    raise errors.CyborgError(f"CybORG was not found; {HOW_TO_GET_IT}")


def _holds_package(folder: Path) -> bool:
    return (folder / "CybORG" / "CybORG.py").is_file() and (folder / "CybORG" / _SCENARIO).is_file()


@dataclass(frozen=True)
class Cyborg:
    """The parts of a loaded CybORG that we use; their types are CybORG's own."""

    folder: Path
    simulator: Any  # class CybORG
    wrapper: Any  # class ChallengeWrapper
    red_agents: tuple[Any, ...]  # classes, in the order of RedAgent; None for one that only the simulator has
    green_agent: Any  # class GreenAgent

    @property
    def scenario(self) -> str:
        return str(self.folder / "CybORG" / _SCENARIO)

    def module(self, name: str) -> Any:
        """Return a module of CybORG by its name below the package."""
        return importlib.import_module(f"CybORG.{name}")


@contextlib.contextmanager
def scenario_file(cyborg: Cyborg, scenario: Scenario) -> Iterator[str]:
    """Yield a file of the scenario for CybORG, there while it is read: its own Scenario2, or one that is written."""
    if scenario == CAGE2:
        yield cyborg.scenario
        return
    check_images(cyborg.folder, scenario)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scenario.yaml")
        file.write_text(scenario.to_yaml())
        yield str(file)


def check_images(folder: Path, scenario: Scenario) -> None:
    """Refuse a scenario with an image that CybORG does not have, or has otherwise, or with a reward that it cannot give."""
    if scenario.own_reward:
        raise errors.CyborgError(f"{scenario.name} has a reward of its own, which CybORG cannot give; play the simulator")
    known = ImageFolder(folder / "CybORG" / _SCENARIO.parent / "images")
    for host in scenario.hosts:
        name = host.image.name
        if name not in known:
            raise errors.CyborgError(
                f"{scenario.name}: CybORG in {folder} has no image {name}, which {host.name} has; add it"
            )
        if known[name] not in (host.image, dict(parts.DEBUGGED_IMAGES).get(host.image)):
            raise errors.CyborgError(
                f"{scenario.name}: the image {name} of CybORG in {folder} is another than {host.name} has"
            )


def load_cyborg(folder: Path) -> Cyborg:
    """Import CybORG from `folder` into this process, without the notices its libraries print on import."""
    loaded = sys.modules.get("CybORG")
    if loaded is not None and Path(str(loaded.__file__)).parent.parent.resolve() != folder:
        raise errors.CyborgError(f"this process has already loaded another CybORG, from {loaded.__file__}")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agents = importlib.import_module("CybORG.Agents")
            wrappers = importlib.import_module("CybORG.Agents.Wrappers")
            controllers = importlib.import_module("CybORG.Simulator.SimulationController")
    except ModuleNotFoundError as e:
        raise errors.CyborgError(f"CybORG in {folder} needs the module {e.name}: pip install 'fixfirst[cyborg]'") from e
    _parse_scenario_once(controllers.SimulationController)
    by_agent = {
        state.RedAgent.B_LINE: "B_lineAgent",
        state.RedAgent.MEANDER: "RedMeanderAgent",
        state.RedAgent.SLEEP: "SleepAgent",
    }
    return Cyborg(
        folder=folder,
        simulator=importlib.import_module("CybORG").CybORG,
        wrapper=wrappers.ChallengeWrapper,
        red_agents=tuple(getattr(agents, by_agent[agent]) if agent in by_agent else None for agent in state.RedAgent),
        green_agent=agents.GreenAgent,
    )


def _parse_scenario_once(controller: Any) -> None:
    """CybORG reads its scenario files for every environment it builds, most of the time that takes: read them once."""
    parse = controller._parse_scenario
    if hasattr(parse, "read_once"):
        return
    files: dict[str, Any] = {}

    @functools.wraps(parse)
    def parse_once(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if path not in files:
            files[path] = parse(self, path, *args, **kwargs)
        return copy.deepcopy(files[path])

    parse_once.read_once = True  # type: ignore[attr-defined]
    controller._parse_scenario = parse_once


def version_of(folder: Path) -> str | None:
    """Return the version CybORG states."""
    file = folder / "CybORG" / "version.txt"
    return file.read_text().strip() if file.is_file() else None


def commit_of(folder: Path) -> str | None:
    """Return the commit of a checkout, with `+changes` where files differ from it; None outside a repository of CybORG."""
    git = ["git", "-C", str(folder)]
    try:
        tracked = subprocess.run([*git, "ls-files", "CybORG/CybORG.py"], capture_output=True, text=True, check=True)
        if not tracked.stdout.strip():
            return None
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "."], capture_output=True, check=False)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+changes" if changes.returncode else "")


# ---------------------------------------------------------------- one environment
#
# CybORG draws from process-wide generators, Python's and possibly NumPy's. A `CyborgGame` puts its own in their place for
# each of its calls, so that what happens in one game does not depend on others in the same process. It does not put the
# process's own back: games live in processes that do nothing else.


PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
USER_ACCESS, ROOT_ACCESS = 1, 2
_VERBS = {
    "Sleep": state.RedVerb.SLEEP,
    "DiscoverRemoteSystems": state.RedVerb.DISCOVER,
    "DiscoverNetworkServices": state.RedVerb.SCAN,
    "ExploitRemoteService": state.RedVerb.EXPLOIT,
    "PrivilegeEscalate": state.RedVerb.ESCALATE,
    "Impact": state.RedVerb.IMPACT,
}


class RedAction(NamedTuple):
    """What red did in the last step, in the numbers of our own state (`state.py`)."""

    verb: state.RedVerb
    target: int
    success: state.Success
    exploit: int
    answered: bool  # red learnt something: a scan that reached its host


class CyborgGame:
    """One CybORG environment."""

    def __init__(self, cyborg: Cyborg, *, green: bool = False, scenario: Scenario = CAGE2, file: str | Path | None = None):
        """file: of the scenario; unless given, CybORG's own Scenario2."""
        self.scenario = scenario
        agents = {"Red": cyborg.red_agents[state.RedAgent.SLEEP]} | ({"Green": cyborg.green_agent} if green else {})
        simulator = cyborg.simulator(str(file or cyborg.scenario), "sim", agents=agents)
        self.env = cyborg.wrapper(env=simulator, agent_name="Blue")
        self.controller = simulator.environment_controller
        self._red_agents = cyborg.red_agents
        self.red: Any = None  # the agent of this episode
        self._python_generator: Any = random.getstate()
        self._numpy_generator = np.random.MT19937()

    @property
    def truth(self) -> Any:
        """CybORG's true state, rebuilt at every reset."""
        return self.controller.state

    def reset(self, red_agent: state.RedAgent | Callable[[], Any], entropy: Sequence[int]) -> None:
        """A new episode against `red_agent`, one of CybORG's or what makes one; all its chances follow from `entropy`.

        Blue's first view is all zeros.
        """
        agent = self._red_agents[red_agent] if isinstance(red_agent, state.RedAgent) else red_agent
        if agent is None:
            name = red_agent.name.lower() if isinstance(red_agent, state.RedAgent) else str(red_agent)
            raise errors.CyborgError(f"CybORG has no red agent {name!r}; play it on the simulator")
        for_python, for_numpy = np.random.SeedSequence(list(entropy)).spawn(2)
        random.seed(for_python.generate_state(8).tobytes())
        self._numpy_generator = np.random.MT19937(for_numpy)
        set_bit_generator(self._numpy_generator)
        self.red = self.controller.agent_interfaces["Red"].agent = agent()
        self.env.reset()
        self._python_generator = random.getstate()

    def step(self, action: int) -> tuple[np.ndarray, int]:
        """Play one turn. Returns what blue sees and the reward in tenths."""
        random.setstate(self._python_generator)
        set_bit_generator(self._numpy_generator)
        observation, reward, *_ = self.env.step(int(action))  # 4 values in gym's interface, 5 in gymnasium's
        self._python_generator = random.getstate()
        return observation, round(10 * reward)

    def read_access(self, access: np.ndarray) -> None:
        """Red's true access per host into `access` [H]: 0 none, 1 user, 2 root."""
        access[:] = 0
        for session in self.truth.sessions["Red"].values():
            level = ROOT_ACCESS if session.username in PRIVILEGED_ACCOUNTS else USER_ACCESS
            host = self.scenario.host_ids[session.host]
            access[host] = max(access[host], level)

    def red_action(self) -> RedAction:
        """Return what red did in the last step and how it was told that it went."""
        action, told = self.controller.action["Red"], self.controller.observation["Red"].data
        name = type(action).__name__
        if name not in _VERBS:
            raise errors.CyborgError(f"red did {name}, which our model does not have: {action}")
        target, exploit = state.NO_TARGET, -1
        if name == "DiscoverRemoteSystems":
            target = self.scenario.subnet_names.index(self.truth.subnets[action.subnet].name)
        elif name in ("DiscoverNetworkServices", "ExploitRemoteService"):
            target = self.host_id(action.ip_address)
        elif name != "Sleep":
            target = self.host_id(action.hostname)
        if (weapon := getattr(action, "sub_action", None)) is not None:  # never set where red knew no port
            exploit = self.scenario.exploit_names.index(type(weapon).__name__)
        return RedAction(_VERBS[name], target, state.Success[told["success"].name], exploit, len(told) > 1)

    def blue_success(self) -> state.Success:
        """Return how blue was told that its last action went."""
        return state.Success[self.controller.observation["Blue"].data["success"].name]

    def ot_service(self) -> state.OTService:
        """Return the service on Op_Server0."""
        if self.scenario.target is None or not self.scenario.hosts[self.scenario.target_id].runs_ot:
            return state.OTService.RUNNING
        server = self.truth.hosts[self.scenario.target]
        if not any(process.name == "OTService" for process in server.processes):
            return state.OTService.STOPPED
        # Restore loses the service's process id: that is why Impact cannot stop it any more.
        return state.OTService.RESTORED if server.services["OTService"]["process"] is None else state.OTService.RUNNING

    def decoy_ports(self) -> list[int]:
        """Per host the set of ports that decoys opened, as a bit mask."""
        found = ([p["local_port"] for d in self._decoys(host) for p in d.open_ports] for host in self.scenario.host_names)
        return [self.scenario.ports_mask(*ports) for ports in found]

    def _decoys(self, host: str) -> Iterator[Any]:
        return (process for process in self.truth.hosts[host].processes if process.decoy_type.name != "NONE")

    def host_id(self, host_or_address: Any) -> int:
        """Our number of a host that CybORG gives by name or address."""
        return self.scenario.host_ids[self.truth.ip_addresses.get(host_or_address, host_or_address)]


# ---------------------------------------------------------------- which variant it is
#
# It is told by how it behaves, not by its name, version or commit: a few moves against a sleeping attacker show every fact
# in which the variants differ and that CybORG can be asked for.


Facts = Mapping[str, Any]


def facts_of_variant(variant: parts.Variant) -> Facts:
    """Return what `facts_of_cyborg` must find in this variant."""
    scenario = CAGE2.by_variant[parts.VARIANTS.index(variant)]
    services = {name: scenario.hosts[scenario.host_ids[name]].services for name in ("Enterprise1", "User3")}
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
            return variant.name
    expected = facts_of_variant(parts.VARIANTS[0])
    others = "; ".join(
        f"{fact}: {value} instead of {expected[fact]}" for fact, value in found.items() if value != expected[fact]
    )
    raise errors.CyborgError(
        f"CybORG in {cyborg.folder} is none of our variants. It differs from {parts.VARIANTS[0].name} in: {others}"
    )


@dataclass(frozen=True)
class Identity:
    """Which CybORG it is."""

    folder: str
    version: str | None
    commit: str | None
    variant: parts.VariantName


def identify(folder: Path) -> Identity:
    """Who is there? Asked in a process of its own, so that this one stays free of CybORG."""
    with ProcessPoolExecutor(1, get_context("spawn"), jobs.follow_parent) as pool:
        variant = pool.submit(_load_and_ask, folder).result()
    return Identity(str(folder), version_of(folder), commit_of(folder), variant)


def _load_and_ask(folder: Path) -> parts.VariantName:
    return variant_of(load_cyborg(folder))
