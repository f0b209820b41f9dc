"""The files of learned attackers: found by the name of a folder or of one that comes with fixfirst, known by their hash."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base import arguments, array_files, errors

if TYPE_CHECKING:
    from fixfirst.game.red_view import RedSpec
    from fixfirst.game.scenario import Scenario

SHIPPED = Path(__file__).parent.parent / "shipped"  # policies and attackers that come with fixfirst, a folder each
RED_JSON, RED_TENSORS = "red.json", "red.safetensors"
EXPLOIT = "exploit"  # the folder of a run with the best response to what it trained
KIND = "red"
_SEALED = re.compile(r"(.+)@([0-9a-f]{8})")  # an attacker and its seal


def shipped_reds() -> list[str]:
    """Return the names of the attackers that come with fixfirst."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{RED_JSON}"))


def seal(facts: dict[str, Any]) -> str:
    """Return the beginning of an attacker's hash, by which runs know it again."""
    return str(facts.get("sha256", ""))[:8]


def sealed(name: str, scenario: "Scenario") -> str | None:
    """Return the name with the seal of its attacker, one for this scenario; None if it names nothing at all."""
    if _SEALED.fullmatch(name):
        return name
    try:
        is_there = name in (folder.name for folder in SHIPPED.iterdir()) or (name != "" and Path(name).exists())
    except (OSError, ValueError):  # no name of a file
        is_there = False
    return f"{name}@{seal(read_attacker(name, scenario)[0])}" if is_there else None


def read_attacker(path: str | Path, scenario: "Scenario") -> "tuple[dict[str, Any], dict[str, np.ndarray], RedSpec]":
    """Return what red.json says, the weights, and what the attacker reads and chooses. Raises PolicyError.

    After @ may stand the beginning of its hash, as runs note it; another attacker is refused then.
    """
    from fixfirst.game.red_view import RedSpec  # imports the compiler: only for those who meet learned attackers

    name = str(arguments.check_path("an attacker", path))
    match = _SEALED.fullmatch(name)
    facts, tensors = array_files.read_pair(_folder(Path(match[1] if match else name)) / RED_JSON, KIND)
    if match and not facts["sha256"].startswith(match[2]):
        other = f"is another attacker than was named, {name}: its hash begins with {seal(facts)}"
        raise errors.PolicyError(f"{match[1]}: {other}")
    spec = RedSpec(scenario, facts.get("picky") is True)
    if facts.get("choices") != list(spec.names) or facts.get("inputs") != spec.inputs:
        theirs = f"attacks the hosts of scenario {facts.get('scenario')}, not those of {scenario.name}"
        raise errors.PolicyError(f"{path}: {theirs}")
    return facts, tensors, spec


def _folder(path: Path) -> Path:
    """Return the folder that holds an attacker's two files. Raises PolicyError, in one line."""
    folder = path.parent if path.name in (RED_JSON, RED_TENSORS) else path
    for candidate in (folder, folder / EXPLOIT):
        if (candidate / RED_JSON).exists():
            return candidate
    if str(path) in shipped_reds():
        return SHIPPED / str(path)
    if any((candidate / "policy.json").exists() for candidate in (folder, SHIPPED / str(path))):
        raise errors.PolicyError(f"{path}: holds a defender, not an attacker; train one with: fixfirst train --side red")
    missing = f"{RED_JSON} is missing" if folder.exists() else f"there is no such file; known: {', '.join(shipped_reds())}"
    raise errors.PolicyError(f"{path}: holds no attacker ({missing})")
