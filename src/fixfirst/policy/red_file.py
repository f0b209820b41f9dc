"""Learned attackers in their two files, red.json and red.safetensors: the same network, hashes and checks as a policy's."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fixfirst.base import array_files, errors
from fixfirst.game import attacker_files, red_view
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy.network import Network, Weights, shapes
from fixfirst.runs import provenance

BASE = "base-attacker"  # knows the way to the target: where trainings against a defender begin
KNOWN = ("noise", "two-fronts")  # that found holes in our defenders


@dataclass(frozen=True, eq=False)  # arrays have no single answer to ==
class RedPolicy:
    """A learned attacker, ready to play.

    For example:

        red = ff.load_red("base-attacker")
        red.spec.picky, red.spec.names, red.facts["against"]
    """

    weights: Weights = field(repr=False)
    spec: red_view.RedSpec
    facts: dict[str, Any] = field(repr=False)  # versions, hash, against whom it was trained, what its starts reached

    @property
    def seal(self) -> str:
        """The beginning of its hash, by which runs know it again."""
        return attacker_files.seal(self.facts)

    @property
    def network(self) -> Network:
        """Its weights as the compiled code reads them: without checks, so they must be those of its spec."""
        array_files.check_tensors("the weights of this attacker", self.weights, shapes(self.spec.inputs, self.spec.actions))
        return Network.of(self.weights)

    def save(self, folder: Path) -> None:
        """Write red.safetensors and red.json, which says what the attacker reads and chooses, and its facts."""
        document = {"scenario": self.spec.scenario.name, **self.spec.as_dict(), "versions": provenance.versions()}
        folder.mkdir(parents=True, exist_ok=True)
        array_files.write_pair(folder / attacker_files.RED_JSON, attacker_files.KIND, document | self.facts, self.weights)


def load_red(path: str | Path, scenario: Scenario = CAGE2) -> RedPolicy:
    """Return an attacker: from its folder (or a run's exploit/), from the file itself, or one that comes with fixfirst.

    After @ may stand the beginning of its hash, as runs note it; another attacker is refused then. For example:

        red = ff.load_red("base-attacker")
    """
    facts, tensors, spec = attacker_files.read_attacker(path, scenario)
    array_files.check_tensors(f"{path}: {attacker_files.RED_TENSORS}", tensors, shapes(spec.inputs, spec.actions))
    return RedPolicy(tensors, spec, facts)


def shipped_reds(names: Sequence[str], spec: red_view.RedSpec) -> dict[str, Weights]:
    """Return those of these attackers, which come with fixfirst, that attack the scenario as the spec says."""
    shipped: dict[str, Weights] = {}
    for name in names:
        with suppress(errors.PolicyError):
            red = load_red(name, spec.scenario)
            shipped |= {name: red.weights} if red.spec == spec else {}
    return shipped
