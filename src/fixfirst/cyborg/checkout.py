"""A copy of CybORG: finding it, loading it, and checking whether it has a scenario.

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
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import arguments, errors
from fixfirst.game import parts
from fixfirst.game.images import ImageFolder
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import RedAgent

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
    red_agents: Mapping[RedAgent, Any]  # classes; only the simulator has the others
    green_agent: Any  # class GreenAgent

    @property
    def scenario(self) -> str:
        return str(self.folder / "CybORG" / _SCENARIO)

    def module(self, name: str) -> Any:
        """Return a module of CybORG by its name below the package."""
        return importlib.import_module(f"CybORG.{name}")


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
        if known[name] not in (host.image, parts.VARIANTS["debugged"].images.get(host.image)):
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
    reds = (
        (RedAgent.B_LINE, agents.B_lineAgent),
        (RedAgent.MEANDER, agents.RedMeanderAgent),
        (RedAgent.SLEEP, agents.SleepAgent),
    )
    simulator = importlib.import_module("CybORG").CybORG
    return Cyborg(folder, simulator, wrappers.ChallengeWrapper, dict(reds), agents.GreenAgent)


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
