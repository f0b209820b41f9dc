"""The format of recordings: episodes read from files, and the words of a step (`tests/conformance/README.md`).

Recorded outcomes of chance become indices, for they go into compiled code; all else stays in the words that are compared.
"""

import gzip
import string
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game import chance as dice, parts, state
from fixfirst.game.scenario import CAGE2, Scenario

HOST_LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits + "-_"  # of so many hosts as there are
RED_AGENTS = tuple(agent.name.lower() for agent in state.RedAgent)
LEARNED_RED = "learned"  # whichever it was: a recording tells all that it did
RED_VERBS = tuple(verb.name.lower() for verb in state.RedVerb)
OT_NAMES = tuple(service.name.lower() for service in state.OTService)
PID_REUSED = "pid_reused"  # field of an episode: the step in which a process got a process id that blue had noted before
LONGEST_EPISODE = 4 * files.MB  # as a line of text; one of 100 steps has 10 kB


class Step(NamedTuple):
    """What came of a step, in the order in which a difference explains itself best."""

    chance_decisions: tuple[str, ...]
    chance_outcomes_possible: bool
    red_verb: str
    red_target: str | None
    red_success: int
    red_exploit: str | None
    access: str  # a letter per host
    malware: str
    observation: str  # a hex digit per host that blue sees
    ot: str
    reward10: int


@dataclass(frozen=True)
class RecordedEpisode:
    """One recorded episode of T steps."""

    id: Any
    scenario: Scenario
    red: str
    green: bool
    variant: parts.VariantName
    return10: int
    pid_reused: int | None  # from this step on (from 1) a process id may matter, which the model does without
    actions: np.ndarray  # [T] int64, blue's
    outcomes: list[dict[str, int | list[int]]]  # [T] of chance, by decision: an index, or those of all hosts in an order
    intents: list[tuple[int, int]]  # [T] red's verb and target, by number
    steps: list[Step]  # [T]


def target_words(scenario: Scenario, verb: str) -> Sequence[str]:
    """Return how recordings call red's targets: letters of hosts, names of subnets, in CAGE2 their first letters."""
    if verb != "discover":
        return HOST_LETTERS[: scenario.num_hosts]
    return tuple(name[0] for name in scenario.subnet_names) if scenario == CAGE2 else scenario.subnet_names


RedWords = tuple[str, str | None, int, str | None]


def red_words(scenario: Scenario, verb: int, target: int, success: int, exploit: int) -> RedWords:
    """Return red's turn as it is written: verb, target, success, exploit."""
    word = RED_VERBS[verb]
    target_word = None if target == state.NO_TARGET else target_words(scenario, word)[target]
    return word, target_word, success, None if exploit < 0 else scenario.exploit_names[exploit]


def observation_word(observation: np.ndarray) -> str:
    """Return one hex digit per host; 8, 4, 2, 1 stand for its four bits."""
    digits = observation.astype(np.int8).reshape(-1, parts.BITS_PER_HOST) @ np.array([8, 4, 2, 1], np.int8)
    return digits.tobytes().hex()[1::2]


def outcome_words(scenario: Scenario) -> dict[str, Sequence[Any]]:
    """Return the chance decisions of a step in the order in which they are made, and the words of what may come out."""
    hosts = HOST_LETTERS[: scenario.num_hosts]
    green: dict[str, Sequence[Any]] = {"green": (0, 1), "green_host": hosts}
    red: dict[str, Sequence[Any]] = {"user": hosts, "addresses": hosts, "names": hosts}
    red |= {"other": scenario.exploit_names, "top": (0, 1), "detected": (0, 1)}
    blue: dict[str, Sequence[Any]] = {"misinform": tuple(decoy.name for decoy in parts.MADE_UP)}
    return blue | (red | green if scenario.red_before_green else green | red)


def read_episodes(path: Path) -> Iterator[RecordedEpisode]:
    """Read the episodes of a .jsonl or .jsonl.gz file; one that cannot be read as such raises ConformanceError."""
    number = 0
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            while line := file.readline(LONGEST_EPISODE + 1):
                number += 1
                if len(line) > LONGEST_EPISODE:
                    raise ValueError(f"more than {LONGEST_EPISODE // files.MB} MB")
                yield _episode(files.parse_json(line), path.parent)
    except (OSError, EOFError, zlib.error) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise errors.ConformanceError(f"{path}: cannot be read after line {number} ({reason})") from e
    except (errors.ScenarioError, KeyError, TypeError, ValueError) as e:
        reason = f"no field {e}" if isinstance(e, KeyError) else str(e)
        raise errors.ConformanceError(f"{path}, line {max(number, 1)}: not a recorded episode ({reason})") from e
    if number == 0:
        raise errors.ConformanceError(f"{path}: holds no episodes")


def _episode(data: Any, folder: Path) -> RecordedEpisode:
    if not isinstance(data, dict) or not isinstance(data["steps"], list):
        raise ValueError(f"expected a JSON object with a list of steps, got {str(data)[:60]}")
    file = data.get("scenario")
    scenario = CAGE2 if file is None else _scenario(file, folder)
    words, steps, outcomes, intents = outcome_words(scenario), [], [], []
    for number, step in enumerate(data["steps"], start=1):
        blue, chance, (verb, target, success, exploit), observation, reward10, access, malware, ot = step
        if type(blue) is not int or not 0 <= blue < scenario.num_actions:
            raise ValueError(f"step {number}: blue action is {blue!r}, not in 0..{scenario.num_actions - 1}")
        targets = target_words(scenario, verb)
        if verb == "discover" and target in scenario.subnet_names:  # as every network but CAGE2 has them
            target = targets[scenario.subnet_names.index(target)]
        to = state.NO_TARGET if target is None else _index("red target", target, targets)
        intents.append((_index("red verb", verb, RED_VERBS), to))
        outcomes.append(_outcomes(chance, words))
        _check_letters("observation", observation, "0123456789abcdef", len(scenario.listed))
        _check_letters("access", access, "0rsbp", scenario.num_hosts)
        _check_letters("malware", malware, "01", scenario.num_hosts)
        seen = access, malware, observation, ot, reward10
        steps.append(Step(tuple(outcomes[-1]), True, verb, target, success, exploit, *seen))
    return RecordedEpisode(
        id=data["id"],
        scenario=scenario,
        red=_word("red", data["red"], (*RED_AGENTS, LEARNED_RED)),
        green=_word("green", data["green"], ("sleep", "agent")) == "agent",
        variant=_word("variant", data.get("variant", "current"), get_args(parts.VariantName)),
        return10=data["return10"],
        pid_reused=None if data.get(PID_REUSED) is None else int(data[PID_REUSED]),
        actions=np.array([step[0] for step in data["steps"]], np.int64),
        outcomes=outcomes,
        intents=intents,
        steps=steps,
    )


def _scenario(name: Any, folder: Path) -> Scenario:
    """Return the scenario of a file beside the recording."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"scenario must be the name of a file beside the recording, got {name!r}")
    return _loaded(folder / name)


@lru_cache(maxsize=64)  # every episode of a file names it
def _loaded(path: Path) -> Scenario:
    return Scenario.load(path)


def _outcomes(chance: list[Any], words: dict[str, Sequence[Any]]) -> dict[str, Any]:
    """Return what came of the decisions of a step, which always come in the same order."""
    made = dict(chance)
    if list(made) != [name for name in words if name in made] or len(made) < len(chance):
        raise ValueError(f"chance decisions must come once each, in the order {', '.join(words)}; got {chance}")
    return {name: _outcome(name, value, words[name]) for name, value in made.items()}


def _outcome(name: str, value: Any, words: Sequence[Any]) -> int | list[int]:
    if name == "green_host" and value is None:
        return dice.VOID_NAME
    if name not in ("addresses", "names"):
        return _index(name, value, words)
    if sorted(value) != sorted(words):
        raise ValueError(f"{name} must hold each of {words} once, got {value!r}")
    return [words.index(letter) for letter in value]


def _index(what: str, value: Any, words: Sequence[Any]) -> int:
    if value not in tuple(words):
        raise ValueError(f"{what} is {value!r}, not one of {', '.join(map(str, words))}")
    return tuple(words).index(value)


def _word(what: str, value: Any, words: Sequence[Any]) -> Any:
    return words[_index(what, value, words)]


def _check_letters(what: str, value: Any, letters: str, count: int) -> None:
    if not isinstance(value, str) or len(value) != count or not set(value) <= set(letters):
        raise ValueError(f"{what} must be {count} of the letters {letters}, got {value!r}")
