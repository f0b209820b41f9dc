"""A learned attacker and its two files, red.json and red.safetensors. The same network, hashes and checks as a policy's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import arrays, checks, errors
from fixfirst.game import game, red_view
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy.file import SHIPPED_POLICIES
from fixfirst.policy.network import Network, Weights, shapes
from fixfirst.runs import layout, manifest

BASE = "base-attacker"  # knows the way to the target: where trainings against a defender begin
KNOWN = ("noise", "two-fronts")  # that found holes in our defenders
_KIND = "red"
SEAL = 8  # characters of a hash


@dataclass(frozen=True, eq=False)  # arrays have no single answer to ==
class RedPolicy:
    """A learned attacker, ready to play.

    For example:

        red = ff.load_red("base-attacker")
        red.spec.picky, red.spec.names, red.facts["against"]
    """

    weights: dict[str, np.ndarray] = field(repr=False)
    spec: red_view.RedSpec
    facts: dict[str, Any] = field(repr=False)  # versions, hash, against whom it was trained, what its starts reached

    @property
    def seal(self) -> str:
        """The beginning of its hash, by which runs know it again."""
        return str(self.facts.get("sha256", ""))[:SEAL]

    @property
    def network(self) -> Network:
        """Its weights as the compiled code reads them: without checks, so they must be those of its spec."""
        arrays.check_tensors("the weights of this attacker", self.weights, shapes(self.spec.inputs, self.spec.actions))
        return Network.of(self.weights)


def shipped_reds() -> list[str]:
    """Return the names of the attackers that come with fixfirst."""
    return sorted(folder.parent.name for folder in SHIPPED_POLICIES.glob(f"*/{layout.RED_JSON}"))


def save_red(folder: Path, weights: Weights, spec: red_view.RedSpec, facts: Mapping[str, Any]) -> None:
    """Write red.safetensors and red.json."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"scenario": spec.scenario.name, **spec.as_dict(), "versions": manifest.versions(), **facts}
    arrays.write_pair(folder / layout.RED_JSON, _KIND, document, weights)


def load_red(path: str | Path, scenario: Scenario = CAGE2) -> RedPolicy:
    """Return an attacker: from its folder (or a run's exploit/), from the file itself, or one that comes with fixfirst.

    After @ may stand the beginning of its hash, as runs note it; another attacker is refused then. For example:

        red = ff.load_red("base-attacker")
    """
    name = str(checks.check_path("an attacker", path))
    sealed = game.SEALED.fullmatch(name)
    folder = red_folder(Path(sealed[1] if sealed else name))
    place = folder / layout.RED_JSON
    facts, tensors = arrays.read_pair(place, _KIND)
    if sealed and not facts["sha256"].startswith(sealed[2]):
        raise errors.PolicyError(
            f"{sealed[1]}: is another attacker than was named, {name}: its hash begins with {facts['sha256'][:SEAL]}"
        )
    spec = red_view.RedSpec(scenario, facts.get("picky") is True)
    if facts.get("choices") != list(spec.names) or facts.get("inputs") != spec.inputs:
        raise errors.PolicyError(
            f"{path}: attacks the hosts of scenario {facts.get('scenario')}, not those of {scenario.name}"
        )
    arrays.check_tensors(folder / layout.RED_TENSORS, tensors, shapes(spec.inputs, spec.actions))
    return RedPolicy(tensors, spec, facts)


def is_there(name: str) -> bool:
    """Return whether a name is that of a folder or of something that comes with fixfirst, whatever it holds."""
    try:
        return name in (folder.name for folder in SHIPPED_POLICIES.iterdir()) or (name != "" and Path(name).exists())
    except (OSError, ValueError):  # no name of a file
        return False


def red_folder(path: Path) -> Path:
    """Return the folder that holds an attacker's two files. Raises PolicyError, in one line."""
    if not path.exists() and str(path) in shipped_reds():
        return SHIPPED_POLICIES / str(path)
    folder = path.parent if path.name in (layout.RED_JSON, layout.RED_TENSORS) else path
    for place in (folder, folder / layout.EXPLOIT):
        if (place / layout.RED_JSON).exists():
            return place
    if (folder / layout.POLICY_JSON).exists() or (SHIPPED_POLICIES / str(path) / layout.POLICY_JSON).exists():
        raise errors.PolicyError(f"{path}: holds a defender, not an attacker; train one with: fixfirst train --side red")
    missing = (
        f"{layout.RED_JSON} is missing" if folder.exists() else f"there is no such file; known: {', '.join(shipped_reds())}"
    )
    raise errors.PolicyError(f"{path}: holds no attacker ({missing})")
