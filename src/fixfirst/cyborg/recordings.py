"""Recordings of CybORG: their format (`tests/conformance/README.md`), and how they replay.

Recorded outcomes of chance become indices, for they go into compiled code and replace the kernel's own draws (`chance.py`);
all else must follow and stays in the words that are compared, step by step: which chances were taken, what red did and
whether it worked, what blue saw, the reward, red's access and files per host, the OT service. Not compared: process ids,
addresses and ephemeral ports, which have no effect.
"""

import gzip
import string
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game import chance as dice, parts, state
from fixfirst.game.chance import Decision
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.simulator import World

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


@lru_cache(maxsize=64)  # every episode of a file names it
def _scenario(name: Any, folder: Path) -> Scenario:
    """Return the scenario of a file beside the recording."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"scenario must be the name of a file beside the recording, got {name!r}")
    return Scenario.load(folder / name)


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


@dataclass(frozen=True)
class Mismatch:
    """The first point at which the kernel and a recording differ."""

    file: str
    episode: Any
    step: int  # from 1
    field: str
    host: str | None
    expected: object
    got: object

    def __str__(self) -> str:
        host = f" of {self.host}" if self.host else ""
        where = f"{self.file}, episode {self.episode}, step {self.step}"
        return errors.in_one_line(f"{where}: {self.field}{host}: expected {self.expected!r}, got {self.got!r}")


@dataclass
class ReplayReport:
    """What a replay of many files found."""

    episodes: int = 0
    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)  # at most one per episode: afterwards all may differ
    coincidences: list[Mismatch] = field(default_factory=list)  # differences after a process id was used twice

    def __add__(self, other: "ReplayReport") -> "ReplayReport":
        mine, theirs = vars(self), vars(other)
        return ReplayReport(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {name: value if isinstance(value, int) else len(value) for name, value in vars(self).items()}


def check_file(path: Path) -> ReplayReport:
    """Replay every episode of a file."""
    report = ReplayReport()
    for episode in read_episodes(path):
        report.episodes += 1
        report.steps += len(episode.steps)
        mismatch = first_difference(episode, path.name)
        if mismatch is not None:
            by_pid = episode.pid_reused is not None and mismatch.step >= episode.pid_reused
            (report.coincidences if by_pid else report.mismatches).append(mismatch)
    return report


def first_difference(episode: RecordedEpisode, file: str = "") -> Mismatch | None:
    """Return the first difference between a recording and what comes out of the kernel, or None."""
    for number, (expected, got) in enumerate(zip(episode.steps, replay(episode), strict=True), start=1):
        if expected != got:
            facts = zip(Step._fields, expected, got, strict=True)
            return _mismatch(file, episode, number, *next(fact for fact in facts if fact[1] != fact[2]))
    total = sum(step.reward10 for step in episode.steps)
    if total != episode.return10:
        return Mismatch(file, episode.id, len(episode.steps), "return10", None, episode.return10, total)
    return None


def _mismatch(file: str, episode: RecordedEpisode, number: int, name: str, expected: Any, got: Any) -> Mismatch:
    """Return the mismatch of a fact of a step; of one that has a letter per host, with the first host that differs."""
    host = None
    if name in ("access", "malware", "observation"):
        at = next(at for at, letter in enumerate(expected) if letter != got[at])
        hosts = episode.scenario.listed if name == "observation" else range(episode.scenario.num_hosts)
        host, expected, got = episode.scenario.host_names[hosts[at]], expected[at], got[at]
    if name == "observation":
        expected, got = (f"{int(digit, 16):04b}" for digit in (expected, got))
    if name == "chance_decisions":
        expected, got = list(expected), list(got)
    return Mismatch(file, episode.id, number, name.replace("_", " "), host, expected, got)


def replay(episode: RecordedEpisode) -> Iterator[Step]:
    """Drive the kernel with the recorded actions and outcomes, and yield what comes of every step."""
    scenario, learned = episode.scenario, episode.red == LEARNED_RED
    red = "sleep" if learned else episode.red
    game = Game(scenario=scenario, red_agent=red, green=episode.green, variant=episode.variant, max_steps=None)
    world, refused = World(game, 1), 1 << Decision.REFUSED
    decisions = {name: 1 << Decision[name.upper()] for name in outcome_words(scenario)}
    if learned:
        world.meet(_RecordedRed(episode.intents), [1.0])
    world.reset(0)
    states, _, chances, *_ = world.inside()
    nothing_recorded = np.full(1, -1, chances.dtype)
    nothing_recorded["recorded"] = True
    for t, outcomes in enumerate(episode.outcomes):
        chances[:] = nothing_recorded
        for name, outcome in outcomes.items():
            chances[name].reshape(-1)[: np.size(outcome)] = outcome
        world.step(episode.actions[t : t + 1])
        env = dict(zip(states.dtype.names or (), states[0].item(), strict=True))
        yield Step(
            tuple(name for name, bit in decisions.items() if env["chances"] & bit),
            not env["chances"] & refused,
            *red_words(scenario, env["red_verb"], env["red_target"], env["red_success"], env["red_exploit"]),
            _access_word(env["removable"], env["stubborn"], env["privileged"], scenario.num_hosts),
            f"{env['malware']:0{scenario.num_hosts}b}"[::-1],
            observation_word(world.observations),
            OT_NAMES[env["ot"]],
            int(world.rewards10[0]),
        )


@lru_cache(maxsize=4096)  # sets come again and again
def _access_word(removable: int, stubborn: int, privileged: int, hosts: int) -> str:
    """Return a letter per host: removable, stubborn, both, privileged, or none of it."""
    kinds = ((removable >> h & 1) + 2 * (stubborn >> h & 1) + 4 * (privileged >> h & 1) for h in range(hosts))
    return "".join("0rsbpppp"[kind] for kind in kinds)


class _RecordedRed:
    """Decides what a recorded attacker decided; whether that was possible, and what came of it, is not written down."""

    def __init__(self, intents: list[tuple[int, int]]):
        self._intents = iter(intents)

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        states["red_verb"], states["red_target"] = next(self._intents)

    def conclude(self, states: np.ndarray) -> None:
        pass
